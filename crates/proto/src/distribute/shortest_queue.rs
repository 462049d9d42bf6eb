//! The member with the shortest queue, as this gateway sees it: the fewest of its own questions unanswered. A brick
//! that is slow for whatever reason keeps questions longer and so gets fewer. Ties go to the brick that a hash of the
//! address picks, so that a block tends to be cached at one brick.

use base::{BrickId, HashMap};

/// The queue lengths.
#[derive(Debug, Default)]
pub struct ShortestQueue {
    waiting: HashMap<BrickId, u32>,
}

impl ShortestQueue {
    /// The one of `candidates` `(slot, brick)` to ask for the block at `address`; `None` when there are none.
    pub fn choose(&self, address: u64, candidates: &[(u8, BrickId)]) -> Option<u8> {
        let preferred = preferred(address, candidates.len())?;
        candidates
            .iter()
            .enumerate()
            .min_by_key(|(index, (_, brick))| (self.length(*brick), *index != preferred))
            .map(|(_, (slot, _))| *slot)
    }

    /// Questions unanswered at `brick`.
    pub fn length(&self, brick: BrickId) -> u32 {
        self.waiting.get(&brick).copied().unwrap_or(0)
    }

    /// A question went to `brick`.
    pub fn begin(&mut self, brick: BrickId) {
        *self.waiting.entry(brick).or_default() += 1;
    }

    /// It was answered, or is of no interest any more.
    pub fn end(&mut self, brick: BrickId) {
        if let Some(waiting) = self.waiting.get_mut(&brick) {
            *waiting = waiting.saturating_sub(1);
        }
    }
}

fn preferred(address: u64, candidates: usize) -> Option<usize> {
    let mixed = (address ^ address >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (candidates > 0).then(|| ((mixed >> 32) % candidates as u64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brick_that_does_not_answer_gets_no_more() {
        let candidates = [(0, BrickId(1)), (1, BrickId(2))];
        let mut policy = ShortestQueue::default();
        let first = policy.choose(7, &candidates).expect("two candidates");
        policy.begin(candidates[usize::from(first)].1);
        assert_ne!(policy.choose(7, &candidates), Some(first));
        policy.end(candidates[usize::from(first)].1);
        assert_eq!(policy.choose(7, &candidates), Some(first), "ties go by the address");
        assert_eq!(policy.choose(7, &[]), None);
    }
}
