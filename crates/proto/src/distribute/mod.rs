//! Who serves a read, among the members that could. Each policy is a file.
//!
//! | policy | who decides | when |
//! |---|---|---|
//! | [`claim`] | the bricks, by bids | when a disk is about to be free |
//! | [`hash`], [`weighted_hash`] | the asker, by the address | at once |
//! | [`lard`] | one front end, by the address and the loads that it sees | at once |
//! | [`shortest_queue`] | the asker, by its questions unanswered | at once |
//! | [`probing`] | the asker, by what answers told | at once |
//! | [`hedged`] | as shortest queue, and a second holder | at once, and when it takes long |
//! | [`tied`] | two of the bricks | when a disk is free |
//!
//! What gateways use today is a line in [`ReadPolicy`].

pub mod claim;
pub mod hash;
pub mod hedged;
pub mod lard;
pub mod probing;
pub mod shortest_queue;
pub mod tied;
pub mod weighted_hash;

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
