//! Who is expected to serve a read on devices without rotation: the holder whose last bid was lowest.
//!
//! Every holder heard the same claims, so each names the same holder without a message: that one serves at once, and the
//! others leave it the time that it said it needs. Bids that are near one another count as equal, and a hash of the read
//! spreads the reads over them. A bid that is old counts as low: whoever recovered gets a read now and then, and says by
//! its claim how it fares. Who lets its time pass counts as slow until it is heard again, or that too is old.

use super::{Holders, ReadId, recent};
use base::{BrickId, Time};
use core::time::Duration;
use std::collections::BTreeMap;

/// How reads are left to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Defer {
    /// After how long a bid is old.
    pub age: Duration,
    /// A bid that is at most so much higher than the lowest, in percent, counts as equal to it.
    pub near_percent: u64,
}

impl Default for Defer {
    /// Old after a second; half as much again counts as equal, since estimates from a few samples differ so much.
    fn default() -> Defer {
        Defer { age: Duration::from_secs(1), near_percent: 50 }
    }
}

/// The last known bid of every brick that was heard, this one too.
#[derive(Debug)]
pub(super) struct Bids {
    me: BrickId,
    defer: Defer,
    heard: BTreeMap<BrickId, (u64, Time)>,
}

impl Bids {
    pub(super) fn new(me: BrickId, defer: Defer) -> Bids {
        Bids { me, defer, heard: BTreeMap::new() }
    }

    pub(super) fn heard(&mut self, brick: BrickId, bid_ns: u64, now: Time) {
        self.heard.insert(brick, (bid_ns, now));
    }

    /// `brick` did not claim in the time that it was given.
    pub(super) fn silent(&mut self, brick: BrickId, now: Time) {
        self.heard.insert(brick, (u64::MAX, now));
    }

    /// Who is expected to serve `read`, and for how long the others wait for it; `own_ns` is what this brick needs, and
    /// what is assumed of one that is not known.
    pub(super) fn best(&self, read: ReadId, holders: &Holders, own_ns: u64, now: Time) -> (BrickId, u64) {
        let known = |brick: &BrickId| self.known(*brick, now);
        let lowest = holders.iter().filter_map(known).min().unwrap_or(own_ns);
        let near = lowest.saturating_add((lowest / 100).saturating_mul(self.defer.near_percent));
        let best = |brick: &&BrickId| known(brick).is_none_or(|bid_ns| bid_ns <= near);
        let count = holders.iter().filter(best).count();
        let turn = (u64::from(recent::hash(read)) * count as u64) >> 32;
        let brick = holders.iter().filter(best).nth(turn as usize).copied().unwrap_or(self.me);
        (brick, known(&brick).unwrap_or(lowest.min(own_ns)))
    }

    fn known(&self, brick: BrickId, now: Time) -> Option<u64> {
        let (bid_ns, at) = self.heard.get(&brick)?;
        (now.since(*at) < self.defer.age).then_some(*bid_ns)
    }
}
