//! When the row of a parity layout stands in for the one brick that has the content: the same under each policy, since
//! there is no other holder to choose.

use super::load::Load;
use super::pace::Kind;
use super::policy::{Members, Part};
use super::rescue;
use base::{BrickId, Time};
use core::cmp::Reverse;
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
        let is_holder = |slot: u8| part.holders.iter().any(|(holder, _)| *holder == slot);
        let others: Vec<_> = self.members.iter().copied().filter(|(slot, _)| !is_holder(*slot)).collect();
        let slower = self.slower_than(now, part.kind, &others, load);
        slower.is_some_and(|is_slower| part.holders.iter().all(|(_, brick)| is_slower(*brick)))
    }

    /// Those of the members that are expected to take so much longer than as many others as are needed: without them the row is
    /// made out sooner.
    pub fn slow_members(&self, now: Time, kind: Kind, load: &Load) -> Members {
        let Some(is_slower) = self.slower_than(now, kind, &self.members, load) else {
            return Members::default();
        };
        let mut slow: Vec<(u8, BrickId)> = self.members.clone();
        slow.retain(|(_, brick)| is_slower(*brick));
        // Enough stay in any case: the slowest go first.
        let expected_ns = |brick| {
            let silence_ns = load.pace().silence(now, brick, kind).as_nanos() as u64;
            load.pace().expected_ns(now, brick, kind).max(silence_ns)
        };
        slow.sort_by_key(|(_, brick)| Reverse(expected_ns(*brick)));
        slow.truncate(self.members.len().saturating_sub(self.needed));
        slow.into_iter().fold(Members::default(), |slots, (slot, _)| slots.with(slot))
    }

    /// Who is slower than as many of `among` as are needed; `None` where the pace of these is not known.
    fn slower_than<'a>(
        &self,
        now: Time,
        kind: Kind,
        among: &[(u8, BrickId)],
        load: &'a Load,
    ) -> Option<impl Fn(BrickId) -> bool + use<'a>> {
        let expected = move |brick: BrickId| load.pace().expected_ns(now, brick, kind);
        let mut all: Vec<u64> = among.iter().map(|(_, brick)| expected(*brick)).collect();
        all.sort_unstable();
        let row_ns =
            self.needed.checked_sub(1).and_then(|last| all.get(last)).filter(|row_ns| **row_ns > 0)?;
        let bound_ns = row_ns.saturating_mul(SLOW_FACTOR).saturating_add(SLOW_MIN_NS);
        // Who has been silent for as long as a read is given would most likely let this one wait as long.
        let silent = self.delay(now, kind, load);
        Some(move |brick| expected(brick) > bound_ns || load.pace().silence(now, brick, kind) > silent)
    }

    /// How long the holder may take before the row is asked as well.
    pub fn delay(&self, now: Time, kind: Kind, load: &Load) -> Duration {
        rescue::delay(now, kind, &self.members, load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribute::pace::QuestionId;

    const MS: u64 = 1_000_000;

    /// What is known of members whose reads took so many milliseconds; none of one that was never asked.
    fn load(took_ms: &[u64]) -> Load {
        let mut load = Load::default();
        for (brick, took_ms) in (1..).map(BrickId).zip(took_ms).filter(|(_, took_ms)| **took_ms > 0) {
            for question in (0..20).map(QuestionId) {
                load.pace_mut().begin(Time(MS), brick, Kind::Read, question);
                load.pace_mut().answered(Time(MS + took_ms * MS), brick, Kind::Read, question, Time(MS));
            }
            load.pace_mut().heard(brick);
        }
        load
    }

    fn slow(took_ms: &[u64], needed: usize) -> Vec<u8> {
        let members = (0..took_ms.len() as u8).map(|slot| (slot, BrickId(u32::from(slot) + 1))).collect();
        let slow = Row { members, needed }.slow_members(Time(1000 * MS), Kind::Read, &load(took_ms));
        slow.iter().collect()
    }

    #[test]
    fn members_are_slow_that_enough_others_are_much_quicker_than() {
        assert_eq!(slow(&[10, 90, 10, 12, 10], 4), [1]);
        assert_eq!(slow(&[10, 15, 10, 12, 10], 4), [] as [u8; 0], "a little slower");
        assert_eq!(slow(&[10, 90, 10, 90, 10], 3), [1, 3]);
    }

    #[test]
    fn of_two_slow_members_the_one_that_says_nothing_is_left_out_first() {
        let mut load = load(&[10, 60, 10, 40, 10]);
        let members = || (0..5).map(|slot| (slot, BrickId(u32::from(slot) + 1))).collect();
        let slow = |load: &Load| {
            let slow = Row { members: members(), needed: 4 }.slow_members(Time(1000 * MS), Kind::Read, load);
            slow.iter().collect::<Vec<u8>>()
        };
        load.pace_mut().begin(Time(100 * MS), BrickId(4), Kind::Read, QuestionId(99));
        assert_eq!(slow(&load), [3], "it has been silent for 900 ms");
    }

    #[test]
    fn as_many_as_are_needed_stay_however_slow_they_are() {
        assert_eq!(slow(&[10, 90, 10, 10], 4), [] as [u8; 0]);
        assert_eq!(
            slow(&[10, 90, 10, 60, 10], 4),
            [] as [u8; 0],
            "one of the two is needed, and either would do"
        );
        assert_eq!(slow(&[10, 900, 10, 60, 10], 4), [1]);
        assert_eq!(slow(&[10, 90], 4), [] as [u8; 0]);
    }

    #[test]
    fn nobody_is_slow_beside_members_of_whom_nothing_is_known() {
        assert_eq!(slow(&[0, 90, 0, 0, 0], 4), [] as [u8; 0]);
    }
}
