//! `brickwork volume list`: volumes by name, snapshots below theirs.

use crate::config::Bytes;
use crate::global::Global;
use crate::verb::client;
use crate::{output, view};
use anyhow::Result;
use base::{BLOCK_U64, VolumeId};
use wire::VolumeInfo;

pub(super) const HELP: &str = "\
Snapshots stand below their volume, the oldest first; a clone says of which snapshot it is.

Examples:
  brickwork volume list
  brickwork volume list --json | jq -r '.[] | select(.snapshot | not) | .name'";

pub(super) fn list(global: &Global) -> Result<()> {
    let volumes = client::volumes(global)?;
    if global.json {
        output::print_json(&volumes.iter().map(view::volume_json).collect());
        return Ok(());
    }
    if volumes.is_empty() {
        println!("There is no volume yet: brickwork volume create first --size 10GiB --layout raid1x3");
        return Ok(());
    }
    let mut table =
        output::table(&["volume", "size", "layout", "placed by", "unit", "reads", "writes", "clone of"]);
    for (volume, is_below) in ordered(&volumes) {
        let mut cells = row(volume);
        if let Some((_, name)) = volume.name.split_once('@').filter(|_| is_below) {
            cells[0] = format!("  @{name}");
        }
        let clone_of = if volume.is_snapshot { String::new() } else { origin(&volumes, volume) };
        table.add_row(cells.into_iter().chain([clone_of]));
    }
    output::align_right(&mut table, &[1, 4]);
    println!("{}", output::render(&table));
    Ok(())
}

/// A volume's cells: name, size, layout, placement rule, stripe unit, who serves reads, and whether it takes writes.
pub(super) fn row(volume: &VolumeInfo) -> [String; 7] {
    let writes = match (volume.is_snapshot, volume.read_only) {
        (true, _) => "snapshot",
        (false, true) => "refused",
        (false, false) => "allowed",
    };
    [
        volume.name.clone(),
        Bytes(volume.size_bytes).to_string(),
        volume.layout.clone(),
        volume.placement.to_string(),
        Bytes(u64::from(volume.stripe_unit_blocks) * BLOCK_U64).to_string(),
        volume.read_policy.to_string(),
        writes.to_owned(),
    ]
}

/// Volumes by name, each followed by its snapshots in the order of their making; whether it stands below another.
fn ordered(volumes: &[VolumeInfo]) -> Vec<(&VolumeInfo, bool)> {
    let is_head = |id: VolumeId| volumes.iter().any(|volume| volume.id == id && !volume.is_snapshot);
    let below = |volume: &VolumeInfo| volume.is_snapshot && volume.origin.is_some_and(is_head);
    let mut heads: Vec<&VolumeInfo> = volumes.iter().filter(|volume| !below(volume)).collect();
    heads.sort_by(|a, b| a.name.cmp(&b.name));
    let with_snapshots = |head| {
        let head: &VolumeInfo = head;
        let mut of_it: Vec<&VolumeInfo> =
            volumes.iter().filter(|volume| below(volume) && volume.origin == Some(head.id)).collect();
        of_it.sort_by_key(|volume| volume.id);
        std::iter::once((head, false)).chain(of_it.into_iter().map(|snapshot| (snapshot, true)))
    };
    heads.into_iter().flat_map(with_snapshots).collect()
}

/// The name of what a volume was made of; nothing when it was made of nothing, or that is gone.
fn origin(volumes: &[VolumeInfo], volume: &VolumeInfo) -> String {
    let origin = volumes.iter().find(|other| Some(other.id) == volume.origin);
    origin.map_or_else(String::new, |origin| origin.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(id: u64, name: &str, origin: Option<u64>) -> VolumeInfo {
        VolumeInfo {
            family: VolumeId(1),
            origin: origin.map(VolumeId),
            is_snapshot: name.contains('@'),
            ..VolumeInfo::new(VolumeId(id), name, 1 << 30, "raid1x3")
        }
    }

    #[test]
    fn snapshots_stand_below_their_volume_and_clones_by_themselves() {
        let volumes = [
            volume(1, "first", None),
            volume(2, "first@monday", Some(1)),
            volume(3, "a-clone", Some(2)),
            volume(4, "first@friday", Some(1)),
            volume(5, "gone@old", Some(99)),
        ];
        let names: Vec<(&str, bool)> =
            ordered(&volumes).into_iter().map(|(volume, below)| (volume.name.as_str(), below)).collect();
        let expected = [
            ("a-clone", false),
            ("first", false),
            ("first@monday", true),
            ("first@friday", true),
            ("gone@old", false),
        ];
        assert_eq!(names, expected);
        assert_eq!(origin(&volumes, &volumes[2]), "first@monday");
        assert_eq!((row(&volumes[1])[6].as_str(), origin(&volumes, &volumes[4]).as_str()), ("snapshot", ""));
    }
}
