//! libnbd's tools: `nbdinfo` (what is offered) and `nbdcopy` (in and out).

use super::volume::{Volume, same};
use anyhow::{Context, Result, ensure};
use rig::cluster::text;
use serde_json::Value;

/// The export is listed with its size, constraints and flags; its map tells data from holes.
pub(super) fn info(volume: &Volume) -> Result<()> {
    let image = volume.image("image", 64 << 20, 1)?;
    volume.tool("nbdcopy", &["--allocated", text(&image)?, &volume.uri])?;
    let base = volume.uri.rsplit_once('/').context("a URI without an export")?.0;
    let listed = volume.tool("nbdinfo", &["--list", "--json", base])?.stdout;
    ensure!(listed.contains("\"export-name\": \"v\""), "nbdinfo --list does not name the export:\n{listed}");
    check_export(&volume.tool("nbdinfo", &["--json", &volume.uri])?.stdout, volume.bytes)?;
    check_can(volume)?;
    check_map(volume)?;
    volume.until_killed(|| check_map(volume))?;
    check_map(volume)
}

fn check_export(json: &str, bytes: u64) -> Result<()> {
    let value: Value = serde_json::from_str(json).context("reading nbdinfo --json")?;
    let export = &value["exports"][0];
    ensure!(value["protocol"] == "newstyle-fixed", "protocol is {}", value["protocol"]);
    ensure!(value["structured"] == true, "no structured replies");
    ensure!(export["export-size"] == bytes, "size is {}", export["export-size"]);
    let constraint = |name: &str| export[name].as_u64().with_context(|| format!("no {name} in {json}"));
    let (least, best) = (constraint("block_size_minimum")?, constraint("block_size_preferred")?);
    let most = constraint("block_size_maximum")?;
    ensure!(least <= best && best.is_power_of_two() && best <= most, "block sizes {least}, {best}, {most}");
    Ok(())
}

fn check_can(volume: &Volume) -> Result<()> {
    for ability in ["fua", "flush", "trim", "zero", "multi-conn", "df", "structured"] {
        let asked = volume.tool("nbdinfo", &["--can", ability, &volume.uri]);
        asked.with_context(|| format!("the server does not offer {ability}"))?;
    }
    Ok(())
}

/// The first 64 MiB hold data (no byte of it may be called a hole); the tail, which nobody wrote, is a hole.
fn check_map(volume: &Volume) -> Result<()> {
    let text = volume.tool("nbdinfo", &["--map", "--json", &volume.uri])?.stdout;
    let map: Value = serde_json::from_str(&text).context("reading nbdinfo --map")?;
    let pieces = map.as_array().context("the map is no list")?;
    let number =
        |piece: &Value, name: &str| piece[name].as_u64().with_context(|| format!("a piece without {name}"));
    let mut next = 0;
    for piece in pieces {
        ensure!(number(piece, "offset")? == next, "the map has a gap at {next}");
        next += number(piece, "length")?;
    }
    ensure!(next == volume.bytes, "the map ends at {next}");
    ensure!(pieces[0]["type"] == 0, "the first piece holds data, yet its type is {}", pieces[0]["type"]);
    let last = &pieces[pieces.len() - 1];
    ensure!(last["type"] != 0, "nobody wrote to the end, yet the last piece of the map is data");
    Ok(())
}

/// What is copied in comes out the same, also with several connections and the second time over data.
pub(super) fn copy(volume: &Volume) -> Result<()> {
    for seed in 1..=2 {
        let image = volume.image("image", volume.bytes, seed)?;
        let back = volume.file("back");
        volume.tool("nbdcopy", &["--flush", text(&image)?, &volume.uri])?;
        volume.tool("nbdcopy", &["--connections=4", "--requests=16", &volume.uri, text(&back)?])?;
        same(&image, &back)?;
    }
    Ok(())
}
