//! Who is expected to serve a read on devices without rotation: the holder whose last bid was lowest.
//!
//! Every holder heard the same claims, so all rank the holders alike without a message: the first serves at once, and the
//! others leave it the time that it said it needs, and then take turns. Bids that are
//! near one another count as equal, and a hash of the data ranks those, so that the reads spread and each block stays in
//! one brick's memory. A bid that is old counts as low: whoever recovered gets a read now and then, and says by its claim
//! how it fares. Who lets its time pass counts as twice as slow as it said, until it is heard again, or that too is old.
//! Who knows that it has become slower than it said ranks itself by what it knows; the others will notice.
//!
//! Where views differ for a while a read is served twice, or waits for a bid's time; never is it forgotten.

use super::super::hash;
use super::Holders;
use base::{BrickId, Time};
use core::cmp::Reverse;
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

/// Who is expected to serve a read, as one brick sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Expected {
    /// The first of all.
    pub(super) best: BrickId,
    /// How long it is left the read, in nanoseconds.
    pub(super) bid_ns: u64,
    /// In which turn this brick takes the read when nobody has: no two holders have the same, whatever they think of one
    /// another, and who is near the lowest bid comes first. 0 when it is the best itself.
    pub(super) turn: u64,
}

/// Bricks whose bids are remembered: more than share data with one.
const BRICKS_MAX: usize = 4096;

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
        if self.heard.len() < BRICKS_MAX || self.heard.contains_key(&brick) {
            self.heard.insert(brick, (bid_ns, now));
        }
    }

    /// `brick` did not claim in the `bid_ns` that it was given.
    pub(super) fn silent(&mut self, brick: BrickId, bid_ns: u64, now: Time) {
        let is_known = self.known(brick, 0, now).is_some_and(|known_ns| known_ns > bid_ns);
        if !is_known {
            self.heard(brick, bid_ns.saturating_mul(2), now);
        }
    }

    /// Who is expected to serve a read of `data`; `own_ns` is what this brick would need, and what is assumed when no
    /// holder is known.
    pub(super) fn expected(&self, data: u64, holders: &Holders, own_ns: u64, now: Time) -> Expected {
        let known = |brick: BrickId| self.known(brick, own_ns, now);
        let lowest = holders.iter().filter_map(|brick| known(*brick)).min().unwrap_or(own_ns);
        let near = lowest.saturating_add((lowest / 100).saturating_mul(self.defer.near_percent));
        let rank = |brick: BrickId| {
            let beyond = known(brick).filter(|bid_ns| *bid_ns > near).unwrap_or(0);
            (beyond, Reverse(hash::weight(data, brick)), brick)
        };
        let best = holders.iter().copied().min_by_key(|brick| rank(*brick)).unwrap_or(self.me);
        let own = rank(self.me);
        let place = holders.iter().filter(|brick| (rank(**brick).1, **brick) < (own.1, own.2)).count();
        let slower = if own.0 > 0 { holders.len() } else { 0 };
        let turn = if best == self.me { 0 } else { 1 + place + slower };
        Expected { best, bid_ns: known(best).unwrap_or(lowest), turn: turn as u64 }
    }

    fn known(&self, brick: BrickId, own_ns: u64, now: Time) -> Option<u64> {
        let (bid_ns, at) = self.heard.get(&brick)?;
        let bid_ns = if brick == self.me { own_ns.max(*bid_ns) } else { *bid_ns };
        (now.since(*at) < self.defer.age).then_some(bid_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bids(me: u32, heard: &[(u32, u64)]) -> Bids {
        let mut bids = Bids::new(BrickId(me), Defer::default());
        heard.iter().for_each(|(brick, bid_ns)| bids.heard(BrickId(*brick), *bid_ns, Time(1)));
        bids
    }

    fn holders() -> Holders {
        [BrickId(0), BrickId(1), BrickId(2)].into_iter().collect()
    }

    #[test]
    fn all_rank_alike_and_equals_by_the_data() {
        let heard = [(0, 500), (1, 100), (2, 149)];
        let mut firsts = [0; 3];
        for data in 0..1000 {
            let seen: Vec<Expected> =
                (0..3).map(|me| bids(me, &heard).expected(data, &holders(), 100, Time(2))).collect();
            assert!(seen.iter().all(|expected| expected.best == seen[0].best), "{seen:?}");
            let mut turns: Vec<u64> = seen.iter().map(|expected| expected.turn).collect();
            assert!(turns[0] > 3, "who is slow comes last: {turns:?}");
            turns.sort_unstable();
            turns.dedup();
            assert!(turns.len() == 3 && turns[0] == 0, "no two at once: {turns:?}");
            firsts[seen[0].best.0 as usize] += 1;
        }
        assert!(
            firsts[0] == 0 && firsts[1] > 400 && firsts[2] > 400,
            "149 is near 100, and 500 is not: {firsts:?}"
        );
    }

    #[test]
    fn who_is_silent_or_knows_itself_slow_goes_behind_until_its_bid_is_old() {
        let mut other = bids(1, &[(0, 100), (1, 100), (2, 900)]);
        let data = (0..).find(|data| other.expected(*data, &holders(), 100, Time(2)).best == BrickId(0));
        let data = data.expect("half of them");
        let slow = bids(0, &[(0, 100), (1, 100), (2, 900)]).expected(data, &holders(), 5000, Time(2));
        assert!((slow.best, slow.turn > 3) == (BrickId(1), true), "it knows better than its last bid");
        other.silent(BrickId(0), 100, Time(3));
        assert_eq!(other.expected(data, &holders(), 100, Time(4)).best, BrickId(1));
        let old = Time(4) + Defer::default().age;
        assert_eq!(
            other.expected(data, &holders(), 100, old).bid_ns,
            100,
            "what is assumed of who is not known"
        );
        assert!(
            (0..100).any(|data| other.expected(data, &holders(), 100, old).best == BrickId(0)),
            "it is tried again"
        );
    }
}
