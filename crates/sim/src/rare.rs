//! The rare states that a full run must reach: a test that cannot get there proves nothing.
//!
//! Machines count them by these very names (`proto::Counters`); a few are counted by the world itself.

use std::collections::BTreeMap;

/// From so many seeds on, a run in which one of [`REQUIRED`] was never reached fails.
pub const SEEDS_MIN: u64 = 1000;

/// The names.
pub const REQUIRED: &[&str] = &[
    "ENOSPC answered",
    "duplicate request suppressed",
    "lease ran out",
    "read answered without a lease",
    "read in doubt",
    "recovered with writes in doubt",
    "request under an old view refused",
    "unreadable blocks repaired",
    "write decided by a view change",
    "write dropped by a view change",
    "write refused by wait-die",
    "write refused for ever",
    "write waited behind an undecided one",
];

/// Those that were never reached.
pub fn missing(reached: &BTreeMap<String, u64>) -> Vec<&'static str> {
    REQUIRED.iter().copied().filter(|name| reached.get(*name).is_none_or(|&count| count == 0)).collect()
}
