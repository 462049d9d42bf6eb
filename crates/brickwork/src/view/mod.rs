//! The directory's answers in words: how bricks, volumes and bytes are. [`json`] says the same for programs, [`problems`]
//! what an operator should know and do.

mod json;
mod problems;

pub use json::{
    brick_json, capacities_json, care_json, catch_up_json, lost_json, map_json, scrub_json, status_json,
    stream_json, streams_json, users_json, volume_json,
};
pub use problems::problems;

use crate::config::Bytes;
use std::time::Duration;
use wire::directory::{BrickEntry, VolumeStatus};
use wire::{BrickStatus, ClusterStatus, Durability, GatewayStatus, LostBlocks};

/// Bytes of a volume that nobody can make out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostRange {
    pub volume: String,
    /// The first byte.
    pub offset: u64,
    pub length: u64,
}

impl std::fmt::Display for LostRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (first, last) = (self.offset, self.offset + self.length.max(1) - 1);
        write!(f, "volume '{}', bytes {first} to {last} ({})", self.volume, Bytes(self.length))
    }
}

/// What all bricks report as lost, by volume and place; what several report, once.
pub fn lost_ranges(status: &ClusterStatus) -> Vec<LostRange> {
    let mut all: Vec<LostBlocks> =
        status.bricks.iter().flat_map(|brick| brick.status.rot.lost.clone()).collect();
    all.sort();
    let mut merged: Vec<LostBlocks> = Vec::new();
    for next in all {
        match merged.last_mut() {
            Some(last) if last.volume == next.volume && next.offset <= last.offset + last.length => {
                last.length = last.length.max(next.offset + next.length - last.offset);
            }
            _ => merged.push(next),
        }
    }
    let name = |lost: &LostBlocks| {
        let found = status.volumes.iter().find(|volume| volume.volume.id == lost.volume);
        found.map_or_else(|| lost.volume.to_string(), |volume| volume.volume.name.clone())
    };
    merged
        .iter()
        .map(|lost| LostRange { volume: name(lost), offset: lost.offset, length: lost.length })
        .collect()
}

/// The gateways at which clients have a volume open, and how many clients. Gateways say so every two seconds.
pub fn users_of(status: &ClusterStatus, volume: base::VolumeId) -> Vec<(&GatewayStatus, u32)> {
    let at =
        |gateway: &GatewayStatus| gateway.opened.iter().find(|of| of.volume == volume).map(|of| of.users);
    status.gateways.iter().filter_map(|gateway| Some((gateway, at(gateway)?))).collect()
}

/// A gateway with its address, as people read it.
pub fn gateway_place(gateway: &GatewayStatus) -> String {
    match gateway.address.as_str() {
        "" => format!("{} (within an attach)", gateway.name),
        address => format!("{} ({address})", gateway.name),
    }
}

/// Where a volume is open and by how many, as people read it.
pub fn open_at(users: &[(&GatewayStatus, u32)]) -> Option<String> {
    let of = |(gateway, clients): &(&GatewayStatus, u32)| {
        format!("{} by {}", gateway_place(gateway), crate::output::count(u64::from(*clients), "client"))
    };
    (!users.is_empty()).then(|| users.iter().map(of).collect::<Vec<_>>().join(", "))
}

/// When a gateway was heard: it registers anew every two seconds.
pub fn gateway_heard(gateway: &GatewayStatus) -> String {
    match gateway.silent_ms {
        ms @ 0..GATEWAY_SILENT_MS => format!("heard {} ago", ago(ms)),
        ms => format!("silent for {}", ago(ms)),
    }
}

/// Two registrations that did not come.
const GATEWAY_SILENT_MS: u64 = 5_000;

/// Whether every volume has its full redundancy, and keeps it: no member is about to be left out.
pub fn is_redundant(status: &ClusterStatus) -> bool {
    let whole = |volume: &VolumeStatus| volume.degraded + volume.unavailable + volume.rebuilding == 0;
    let stays = |brick: &BrickEntry| brick.groups == 0 || (brick.alive && !brick.evicted);
    status.volumes.iter().all(whole) && status.bricks.iter().all(stays)
}

/// Whether blocks of some volume went with a disk, and no other brick has them.
pub fn has_lost(status: &ClusterStatus) -> bool {
    status.volumes.iter().any(|volume| volume.lost > 0)
}

/// How a brick is, in a word or two.
pub fn brick_state(brick: &BrickEntry) -> String {
    if brick.status.failed.is_some() {
        return "disk failed".to_owned();
    }
    match (brick.evicted, brick.alive) {
        (true, true) => return "evicted".to_owned(),
        (true, false) => return "evicted, silent".to_owned(),
        (false, false) => return "silent".to_owned(),
        (false, true) => {}
    }
    match &brick.slow {
        Some(slow) if slow.is_out && brick.stale_groups == brick.groups => {
            return "slow, left out".to_owned();
        }
        Some(slow) if slow.is_out => return "slow, leaving".to_owned(),
        Some(_) => return "serving, slow".to_owned(),
        None => {}
    }
    if brick.joining_groups > 0 {
        return match caught_up(brick) {
            Some(percent) => format!("catching up {percent}%"),
            None => "catching up".to_owned(),
        };
    }
    if brick.stale_groups > 0 { "serving, behind".to_owned() } else { "serving".to_owned() }
}

/// The same, and for how long it has been silent if it is.
pub fn brick_state_since(brick: &BrickEntry) -> String {
    let silent = brick.silent_ms.filter(|_| !brick.alive);
    let since = silent.or(brick.slow.as_ref().map(|slow| slow.since_ms));
    brick_state(brick) + &since.map(|ms| format!(" {}", ago(ms))).unwrap_or_default()
}

/// How much of what it lacked a brick has by now, in percent; none when that is not known.
pub fn caught_up(brick: &BrickEntry) -> Option<u64> {
    brick.caught_up_percent.map(u64::from).or_else(|| compared(&brick.status))
}

/// The same as told by a directory of an earlier release: how much of the groups is compared in which it catches up just now.
fn compared(status: &BrickStatus) -> Option<u64> {
    let sum = |of: fn(&wire::CatchUp) -> u64| status.groups.catching_up.iter().map(of).sum::<u64>();
    let (compared, total) = (sum(|group| group.compared_blocks), sum(|group| group.total_blocks));
    (compared.min(total) * 100).checked_div(total)
}

/// How a volume is, in a word or two.
pub fn volume_state(volume: &VolumeStatus) -> String {
    let of = |count: u32| format!("{count}/{}", volume.groups);
    let rebuilding =
        if volume.rebuilding > 0 { format!(", rebuilding {}", volume.rebuilding) } else { String::new() };
    match (volume.unavailable, volume.degraded) {
        (0, 0) if volume.lost > 0 => format!("lost blocks {}", of(volume.lost)),
        (0, 0) if volume.rebuilding == 0 => "healthy".to_owned(),
        (0, 0) => format!("rebuilding {}", of(volume.rebuilding)),
        (0, degraded) => format!("degraded {}{rebuilding}", of(degraded)),
        (unavailable, _) => format!("unavailable {}", of(unavailable)),
    }
}

/// Milliseconds as a person says them.
pub fn ago(silent_ms: u64) -> String {
    match silent_ms / 1000 {
        0 => format!("{silent_ms} ms"),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// The same of a [`Duration`].
pub fn span(time: Duration) -> String {
    ago(time.as_millis() as u64)
}

/// How full, in percent.
pub fn percent(used: u64, capacity: u64) -> u64 {
    u64::try_from((u128::from(used) * 100).checked_div(u128::from(capacity)).unwrap_or(0)).unwrap_or(u64::MAX)
}

/// The places of a brick's disks whose durable writes are each followed by a sync, because their file system is not known
/// to honour write-through.
pub fn synced_disks(status: &BrickStatus) -> impl Iterator<Item = usize> + '_ {
    let ways = status.durability.iter().enumerate();
    ways.filter(|(_, way)| **way == Durability::WriteThenSync).map(|(disk, _)| disk)
}

/// How full a brick is.
pub fn usage(status: &BrickStatus) -> String {
    format!(
        "{}% of {}",
        percent(status.space.used_bytes, status.space.capacity_bytes),
        Bytes(status.space.capacity_bytes)
    )
}
