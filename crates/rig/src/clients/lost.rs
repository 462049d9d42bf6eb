//! A disk is gone that no other brick can stand in for: its blocks are an error at once, are listed, and can be written again.

use anyhow::{Context, Result, ensure};
use rig::cluster::{Cluster, Spec, Storage, run, text};
use rig::nbd::Nbd;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

const SIZE: u64 = 64 << 20;
/// A stripe unit.
const UNIT: u32 = 64 << 10;
const UNITS: u8 = 128;

/// The units that cannot be read; the others have what was written. Prints how long the longest read took.
fn lost_units(nbd: &mut Nbd, expected: impl Fn(u8) -> u8) -> Result<Vec<u8>> {
    let (mut lost, mut longest) = (Vec::new(), Duration::ZERO);
    for unit in 0..UNITS {
        let started = Instant::now();
        match nbd.read_unless_lost(u64::from(unit) * u64::from(UNIT), UNIT)? {
            Some(content) => {
                ensure!(content.iter().all(|byte| *byte == expected(unit)), "unit {unit} has wrong bytes");
            }
            None => lost.push(unit),
        }
        longest = longest.max(started.elapsed());
    }
    eprintln!("    {} of {UNITS} stripe units are lost; the longest read took {longest:.1?}", lost.len());
    Ok(lost)
}

pub(super) fn raid0_disk(binary: &Path) -> Result<()> {
    let mut cluster = Cluster::start(
        binary,
        &Spec {
            bricks: 2,
            storage: Storage { disk_bytes: 256 << 20, ..Storage::default() },
            ..Spec::default()
        },
    )?;
    cluster.create("v", SIZE, "raid0x2")?;
    let mut nbd = cluster.connect(0, "v")?;
    for unit in 0..UNITS {
        nbd.write(u64::from(unit) * u64::from(UNIT), &[unit + 1; UNIT as usize])?;
    }
    cluster.bricks[0].stop()?;
    cluster.exchange_disk(0)?;
    let state = |status: &Value| status["volumes"][0]["lost_groups"].as_u64().unwrap_or_default();
    let took = cluster.wait_for("the loss is known", Duration::from_secs(60), |status| state(status) > 0)?;
    eprintln!("    known as lost {took:.1?} after the brick serves with the new disk");
    ensure!(cluster.status()?["healthy"] == Value::Bool(false), "status says that all is well");
    let lost = lost_units(&mut nbd, |unit| unit + 1)?;
    ensure!(!lost.is_empty() && lost.len() < usize::from(UNITS), "one of two disks is gone");
    let config = cluster.client_config();
    let volume = |arguments: &[&str]| {
        run(binary, &[&["--json", "--config", text(&config)?, "volume"], arguments].concat())
    };
    let told = volume(&["lost", "v"])?.stdout;
    let told: Value = serde_json::from_str(&told).with_context(|| told.clone())?;
    let is_listed = |unit: u8| {
        let at = u64::from(unit) * u64::from(UNIT);
        told["lost"].as_array().into_iter().flatten().any(|range| {
            let (offset, length) = (range["offset"].as_u64(), range["length"].as_u64());
            offset.zip(length).is_some_and(|(offset, length)| (offset..offset + length).contains(&at))
        })
    };
    for unit in 0..UNITS {
        ensure!(is_listed(unit) == lost.contains(&unit), "unit {unit}: `volume lost` says {told}");
    }
    // The first half of what is lost is written again, and is good; the rest becomes zeros.
    let (again, rest) = lost.split_at(lost.len() / 2);
    for unit in again {
        nbd.write(u64::from(*unit) * u64::from(UNIT), &[unit + 101; UNIT as usize])?;
    }
    let now = |unit: u8| if again.contains(&unit) { unit + 101 } else { unit + 1 };
    ensure!(lost_units(&mut nbd, now)? == rest, "what was written again is read");
    volume(&["lost", "v", "--forget", "--yes"])?;
    cluster.wait_for("nothing is lost", Duration::from_secs(60), |status| state(status) == 0)?;
    let now = |unit: u8| if rest.contains(&unit) { 0 } else { now(unit) };
    ensure!(lost_units(&mut nbd, now)?.is_empty(), "what is forgotten is zeros");
    cluster.all_alive()
}
