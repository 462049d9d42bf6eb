//! Who serves a read, among the members that could. Each policy is a file, and a line in [`ReadPolicy`].

pub mod claim;
pub mod shortest_queue;

use base::BrickId;
use shortest_queue::ShortestQueue;

/// A read policy.
#[derive(Debug)]
pub enum ReadPolicy {
    /// The member with the fewest questions of this gateway unanswered.
    ShortestQueue(ShortestQueue),
}

impl Default for ReadPolicy {
    fn default() -> ReadPolicy {
        ReadPolicy::ShortestQueue(ShortestQueue::default())
    }
}

impl ReadPolicy {
    /// One of `candidates` `(slot, brick)` for the block at `address`; `None` when there are none.
    pub fn choose(&self, address: u64, candidates: &[(u8, BrickId)]) -> Option<u8> {
        match self {
            ReadPolicy::ShortestQueue(policy) => policy.choose(address, candidates),
        }
    }

    /// A question went to `brick`.
    pub fn begin(&mut self, brick: BrickId) {
        match self {
            ReadPolicy::ShortestQueue(policy) => policy.begin(brick),
        }
    }

    /// It was answered, or is of no interest any more.
    pub fn end(&mut self, brick: BrickId) {
        match self {
            ReadPolicy::ShortestQueue(policy) => policy.end(brick),
        }
    }
}
