//! D-SPTF as the asker sees it: a read waits at all holders, and the first that can claims it ([`super::claim`] is what the
//! bricks do).
//!
//! A gateway looks after what nobody claims or whose claimer does not answer: a holder is asked by itself. The paper's
//! clients do not.

use super::load::Load;
use super::policy::{Course, First, Members, Next, Part, Plan, Policy};
use super::rescue;
use super::row::SLOW_MIN_NS;
use super::shortest_queue::ShortestQueue;
use base::{BrickId, Time};

/// A contest goes without a member that is so many times as slow. Less is for the bids to tell: among busy disks each answers
/// what it was nearest to, and one that was left out for some unlucky answers would answer what it alone is asked for much later.
const CONTEST_FACTOR: u64 = 8;

#[derive(Debug)]
pub struct Contest {
    /// Where only one is to be asked.
    alone: ShortestQueue,
    is_rescued: bool,
}

impl Contest {
    /// As the paper has it.
    pub fn unattended() -> Contest {
        Contest { alone: ShortestQueue::default(), is_rescued: false }
    }

    /// With a holder that is asked by itself when a read takes long.
    pub fn rescued(alone: ShortestQueue) -> Contest {
        Contest { alone, is_rescued: true }
    }
}

impl Policy for Contest {
    fn one(&mut self, now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        self.alone.one(now, part, load)
    }

    fn first(&mut self, now: Time, part: &Part<'_>, load: &mut Load) -> Option<Plan> {
        let [_, _, ..] = part.holders else {
            return self.one(now, part, load).map(|slot| Plan { first: First::One(slot), wait: None });
        };
        let expected = |brick: BrickId| load.pace().expected_ns(now, brick, part.kind);
        let fastest_ns = part.holders.iter().map(|(_, brick)| expected(*brick)).min().unwrap_or(0);
        let bound_ns = fastest_ns.saturating_mul(CONTEST_FACTOR).saturating_add(SLOW_MIN_NS);
        let is_slow = |brick: BrickId| fastest_ns > 0 && expected(brick) > bound_ns;
        let slow = part.holders.iter().filter(|(_, brick)| is_slow(*brick)).map(|(slot, _)| *slot);
        let left_out = slow.fold(Members::default(), Members::with);
        let mut beside = Members::default();
        for (slot, brick) in part.holders.iter().filter(|(slot, _)| left_out.has(*slot)) {
            if load.is_look_due(now, *brick, part.kind) {
                beside = beside.with(*slot);
            }
        }
        let wait = self.is_rescued.then(|| rescue::delay(now, part.kind, part.holders, load));
        Some(Plan { first: First::Contest { left_out, beside }, wait })
    }

    fn next(&mut self, now: Time, part: &Part<'_>, course: &Course, load: &Load) -> Next {
        match self.is_rescued {
            true => rescue::next(now, part, course, load),
            false => Next::Nothing,
        }
    }
}
