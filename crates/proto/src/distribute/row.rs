//! When the row of a parity layout stands in for the one brick that has the content: the same under each policy, since
//! there is no other holder to choose.

use super::load::Load;
use super::pace::Kind;
use super::policy::Part;
use super::rescue;
use base::{BrickId, Time};
use core::time::Duration;

/// A member is slow that is expected to take so many times as long as others, and so much longer: a row stands in for it at
/// once.
const SLOW_FACTOR: u64 = 2;
pub(super) const SLOW_MIN_NS: u64 = 500_000;

/// The current members of a row, enough of which can stand in for one of them.
#[derive(Clone, Debug)]
pub struct Row {
    /// `(slot, brick)` of all current members.
    pub members: Vec<(u8, BrickId)>,
    /// As many must answer as there are data units.
    pub needed: usize,
}

impl Row {
    /// Whether the others are expected to answer so much sooner than the holders.
    pub fn is_faster(&self, now: Time, part: &Part<'_>, load: &Load) -> bool {
        let expected = |brick: BrickId| load.pace().expected_ns(now, brick, part.kind);
        let is_holder = |slot: u8| part.holders.iter().any(|(holder, _)| *holder == slot);
        let others = self.members.iter().filter(|(slot, _)| !is_holder(*slot));
        let mut others: Vec<u64> = others.map(|(_, brick)| expected(*brick)).collect();
        others.sort_unstable();
        let Some(row_ns) = self.needed.checked_sub(1).and_then(|last| others.get(last)) else { return false };
        let bound_ns = row_ns.saturating_mul(SLOW_FACTOR).saturating_add(SLOW_MIN_NS);
        // Who has been silent for as long as a read is given would most likely let this one wait as long.
        let silent = self.delay(now, part.kind, load);
        let is_slower =
            |brick| expected(brick) > bound_ns || load.pace().silence(now, brick, part.kind) > silent;
        *row_ns > 0 && part.holders.iter().all(|(_, brick)| is_slower(*brick))
    }

    /// How long the holder may take before the row is asked as well.
    pub fn delay(&self, now: Time, kind: Kind, load: &Load) -> Duration {
        rescue::delay(now, kind, &self.members, load)
    }
}
