//! The rare states that a full run must reach: a test that cannot get there proves nothing.
//!
//! Machines count them by these very names (`proto::Counters`); a few are counted by the world itself.

use std::collections::BTreeMap;

/// From so many seeds on, a run in which one of [`REQUIRED`] was never reached fails.
pub const SEEDS_MIN: u64 = 1000;

/// The names.
pub const REQUIRED: &[&str] = &[
    "base of a patch had changed",
    "brick came with other disks",
    "brick caught up and became current",
    "claim overtook its read",
    "client served within seconds after its gateway was killed",
    "client went to another gateway",
    "cut begun",
    "directory restarted inside a view change",
    "disk left a read to another brick",
    "disks lost in the middle of a rebuild",
    "duplicate answers to a read",
    "duplicate request suppressed",
    "ENOSPC answered",
    "in-doubt write settled by another gateway",
    "joiner crashed while catching up",
    "joining brick lost",
    "lease ran out",
    "read answered without a lease",
    "read confirmed without a lease",
    "read in doubt",
    "read left to another member",
    "read rescued",
    "read went around a slow brick",
    "recovered with writes in doubt",
    "repair taken by a member",
    "request under an old view refused",
    "rotten brick scrubbed clean",
    "slot given to another brick",
    "slow member came back",
    "slow member left out",
    "slow member needed again",
    "source crashed while another caught up",
    "torn journal tail at recovery",
    "unit reconstructed from its row",
    "unreadable blocks repaired",
    "view change revoked",
    "write aborted by a view change",
    "write decided by a view change",
    "write dropped by a view change",
    "write gave way to others",
    "write refused by wait-die",
    "write refused for ever",
    "write waited behind an undecided one",
    "write while its data brick joins",
];

/// Those that were never reached.
pub fn missing(reached: &BTreeMap<String, u64>) -> Vec<&'static str> {
    REQUIRED.iter().copied().filter(|name| reached.get(*name).is_none_or(|&count| count == 0)).collect()
}
