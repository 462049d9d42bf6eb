//! The member with the shortest queue, as this gateway sees it: the fewest of its own questions unanswered. A brick
//! that is slow for whatever reason keeps questions longer and so gets fewer. Ties go to the brick that a hash of the
//! address picks, so that a block tends to be cached at one brick.

use super::load::Load;
use super::policy::{Part, Policy};
use base::{BLOCK_U64, Time};

/// The holder with the shortest queue.
#[derive(Debug)]
pub struct ShortestQueue {
    /// How many bytes are one place, which tends to be served by one brick.
    pub granule: u64,
}

impl Default for ShortestQueue {
    fn default() -> ShortestQueue {
        ShortestQueue { granule: BLOCK_U64 }
    }
}

impl Policy for ShortestQueue {
    fn one(&mut self, _now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        let preferred = preferred(part.address / self.granule, part.holders.len())?;
        part.holders
            .iter()
            .enumerate()
            .min_by_key(|(index, (_, brick))| (load.queue(*brick), *index != preferred))
            .map(|(_, (slot, _))| *slot)
    }
}

fn preferred(address: u64, candidates: usize) -> Option<usize> {
    let mixed = (address ^ address >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (candidates > 0).then(|| ((mixed >> 32) % candidates as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribute::pace::Kind;
    use crate::distribute::policy::PartId;
    use base::BrickId;

    #[test]
    fn a_brick_that_does_not_answer_gets_no_more() {
        let holders = [(0, BrickId(1)), (1, BrickId(2))];
        let part = Part { id: PartId::default(), address: 7 << 12, kind: Kind::Read, holders: &holders };
        let (mut policy, mut load) = (ShortestQueue::default(), Load::default());
        let first = policy.one(Time::ZERO, &part, &load).expect("two holders");
        load.begin(holders[usize::from(first)].1);
        assert_ne!(policy.one(Time::ZERO, &part, &load), Some(first));
        load.end(holders[usize::from(first)].1);
        assert_eq!(policy.one(Time::ZERO, &part, &load), Some(first), "ties go by the address");
        assert_eq!(policy.one(Time::ZERO, &Part { holders: &[], ..part }, &load), None);
    }
}
