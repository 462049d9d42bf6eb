//! `brickwork volume lost`: which bytes of a volume went with a disk that no other brick can stand in for.

use super::{client, confirm};
use crate::config::Bytes;
use crate::global::Global;
use crate::view::LostRange;
use crate::{output, view};
use anyhow::{Result, bail};
use base::{BrickId, GroupId};
use wire::{AdminReply, AdminRequest, ClusterStatus, VolumeMap};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Blocks that were written again are good, but their ranges stay listed until --forget. --forget acts on the volume together with its snapshots and
clones, which share its disks. It does not end what a scrub lists as lost to rot: write such blocks again.

Examples:
  brickwork volume lost scratch
  brickwork volume lost scratch --json | jq '.lost[0]'
  brickwork volume lost scratch --forget")]
pub(super) struct Lost {
    /// The volume, or VOLUME@SNAPSHOT
    name: String,
    /// Make blocks that went with a disk and were not written again read as zeros, and stop reporting them
    #[arg(long)]
    forget: bool,
    /// Do not ask for confirmation
    #[arg(long, requires = "forget")]
    yes: bool,
}

pub(super) fn lost(global: &Global, args: Lost) -> Result<()> {
    let Lost { name, forget, yes } = args;
    if forget {
        if !yes {
            let what = format!(
                "Make the lost blocks of volume '{name}', its snapshots and its clones that were not written again read as zeros"
            );
            confirm::confirm(&what, &name)?;
        }
        client::call(global, AdminRequest::ForgetLost { name: name.clone() })?;
        return super::done(
            global,
            &name,
            "served with zeros where blocks went with a disk and were not written again",
        );
    }
    let AdminReply::Map(map) = client::call(global, AdminRequest::VolumeMap { name: name.clone() })? else {
        bail!("the directory answered something else; it is of another version");
    };
    let ranges = ranges(&client::status(global)?, &map);
    let total = ranges.iter().map(|range| range.length).sum::<u64>();
    if global.json {
        output::print_json(&serde_json::json!({ "lost_bytes": total, "lost": view::lost_json(&ranges) }));
        return Ok(());
    }
    for range in &ranges {
        println!("bytes {} to {} ({})", range.offset, range.offset + range.length - 1, Bytes(range.length));
    }
    match ranges.len() {
        0 => println!("Nothing of volume '{name}' is lost."),
        count => println!(
            "{} ({}) of volume '{name}' are lost. Reads of blocks there fail with EIO until these are written again.",
            output::count(count as u64, "range"),
            Bytes(total)
        ),
    }
    Ok(())
}

/// What went with disks, and what single blocks no brick can make out.
fn ranges(status: &ClusterStatus, map: &VolumeMap) -> Vec<LostRange> {
    let is_bare = |group: GroupId, brick: BrickId| {
        let entry = status.bricks.iter().find(|entry| entry.id == brick);
        entry.is_some_and(|entry| entry.status.groups.bare.contains(&group))
    };
    let volume = &map.volume.name;
    let gone = rules::layout::lost_ranges(&map.volume, &map.groups, is_bare).into_iter();
    let gone =
        gone.map(|of| LostRange { volume: volume.clone(), offset: of.start, length: of.end - of.start });
    let mut all: Vec<LostRange> = gone.collect();
    all.extend(view::lost_ranges(status).into_iter().filter(|range| range.volume == *volume));
    all.sort_by_key(|range| range.offset);
    all
}
