//! More than a layout can lose: some blocks lose one copy or unit more. Exactly these must answer EIO; all others must be read
//! as they were written.

use super::{Arena, damage::damage_content};
use crate::clients::data;
use anyhow::{Context, Result, ensure};
use base::BLOCK_U64;
use rig::noise::Noise;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Destroys blocks of a new volume; how many.
pub(super) fn run(binary: &Path, layout: &'static str, tolerates: usize, noise: &mut Noise) -> Result<u64> {
    let mut arena = Arena::start(binary, layout, tolerates)?;
    let concerned = concerned(&arena, layout, noise)?;
    eprintln!("    beyond {layout}: {} blocks are to be lost", concerned.len());
    check(&mut arena, &concerned, noise)
        .with_context(|| format!("more than {layout} can lose; files are in {}", arena.cluster.dir.display()))
        .inspect_err(|_| arena.cluster.keep_files())?;
    Ok(concerned.len() as u64)
}

fn check(arena: &mut Arena, concerned: &BTreeSet<u64>, noise: &mut Noise) -> Result<()> {
    for brick in &mut arena.cluster.bricks {
        brick.stop()?;
    }
    for &block in concerned {
        let content = arena.ledger.content(block);
        let disks = (1..=arena.cluster.bricks.len()).map(|number| arena.cluster.disk(number));
        let found = disks.map(|disk| damage_content(&disk, &content, noise)).sum::<Result<u64>>()?;
        ensure!(found > 0, "block {block} is on no disk");
    }
    arena.cluster.bricks.iter_mut().try_for_each(|brick| brick.restart())?;
    let mut nbd = arena.cluster.connect_patiently(1, "v")?;
    let unreadable = arena.ledger.verify(&mut nbd)?;
    let wrongly: Vec<_> = unreadable.difference(concerned).collect();
    let survived: Vec<_> = concerned.difference(&unreadable).collect();
    ensure!(wrongly.is_empty(), "blocks {wrongly:?} answer EIO and are not concerned");
    ensure!(survived.is_empty(), "blocks {survived:?} were destroyed and are read");
    arena.cluster.all_alive()
}

/// Blocks whose every copy is destroyed; of a row with parity one block more than it can lose.
fn concerned(arena: &Arena, layout: &str, noise: &mut Noise) -> Result<BTreeSet<u64>> {
    let info: Value = serde_json::from_str(&arena.cluster.admin(&["--json", "volume", "info", "v"])?)?;
    let unit_bytes = info["stripe_unit_bytes"].as_u64().context("`volume info` names no stripe unit")?;
    let (unit, columns) = (unit_bytes / BLOCK_U64, data(layout));
    let mut chosen = BTreeSet::new();
    while (chosen.len() as u64) < super::BEYOND {
        if columns == 1 {
            chosen.insert(noise.below(arena.ledger.blocks()));
            continue;
        }
        let row = noise.below(arena.ledger.blocks() / columns);
        let first = row / unit * unit * columns + row % unit;
        let skipped = noise.below(columns);
        let lost = (0..columns).map(|step| (skipped + step) % columns).take(arena.tolerates + 1);
        chosen.extend(lost.map(|column| first + column * unit));
    }
    Ok(chosen)
}
