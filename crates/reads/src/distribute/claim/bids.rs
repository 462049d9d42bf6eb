//! Who is expected to serve a read on devices without rotation: the holder whose last bid was lowest.
//!
//! Every holder heard the same claims, so all rank the holders alike without a message: the first serves at once, and the
//! others leave it the time that it said it needs, and that claims take to arrive, and then take turns. Bids that are
//! near one another count as equal, and a hash of the data ranks those, so that the reads spread and each block stays in
//! one brick's memory. Who lets its time pass counts as slower than all others, until it is heard again. Who knows that
//! it has become slower than it said ranks itself by what it knows; the others will notice.
//!
//! A low bid holds until another is heard. A high one gets old: who made it serves a read now and then beside the one
//! that is expected to, and says by its claim how it fares. Nobody waits for it meanwhile.
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
    /// A bid that is at most so much higher than the lowest, in percent, counts as equal to it,
    pub near_percent: u64,
    /// and one that is so much higher, in nanoseconds: estimates from a few samples differ so much.
    pub near_ns: u64,
    /// A high bid is old after so many times what it says, within the bounds of [`Defer::look_min`] and
    /// [`Defer::look_max`]: a slow device is looked at for no more than a part of its time.
    pub look_share: u32,
    /// A high bid is not old before.
    pub look_min: Duration,
    /// It is old then.
    pub look_max: Duration,
    /// Claims are never reckoned to take longer than this to arrive.
    pub late_max: Duration,
}

impl Default for Defer {
    fn default() -> Defer {
        Defer {
            near_percent: 50,
            near_ns: 300_000,
            look_share: 50,
            look_min: Duration::from_millis(250),
            look_max: Duration::from_secs(1),
            late_max: Duration::from_millis(20),
        }
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
    /// another, and who is near the lowest bid comes first. 0 when it is the best itself,
    /// or has long not been looked at.
    pub(super) turn: u64,
}

/// Bricks whose bids are remembered: more than share data with one.
const BRICKS_MAX: usize = 4096;

/// The last known bid of every brick that was heard, this one too, and how long claims take to arrive.
#[derive(Debug)]
pub(super) struct Bids {
    me: BrickId,
    defer: Defer,
    heard: BTreeMap<BrickId, (u64, Time)>,
    lateness: Lateness,
}

impl Bids {
    pub(super) fn new(me: BrickId, defer: Defer) -> Bids {
        Bids { me, defer, heard: BTreeMap::new(), lateness: Lateness::default() }
    }

    pub(super) fn heard(&mut self, brick: BrickId, bid_ns: u64, now: Time) {
        if self.heard.len() >= BRICKS_MAX && !self.heard.contains_key(&brick) {
            let oldest = self.heard.iter().min_by_key(|(_, (_, at))| *at).map(|(brick, _)| *brick);
            oldest.map(|brick| self.heard.remove(&brick));
        }
        self.heard.insert(brick, (bid_ns, now));
    }

    /// `brick` did not claim in the time that it was given.
    pub(super) fn silent(&mut self, brick: BrickId, waited: Duration, now: Time) {
        self.heard(brick, u64::MAX, now);
        // Or its claim is on its way, and would have come with more patience.
        self.lateness.sample(nanos(waited * 2).min(nanos(self.defer.late_max)));
    }

    /// A claim came so long after the read that was left to its sender.
    pub(super) fn claimed(&mut self, waited: Duration) {
        self.lateness.sample(nanos(waited).min(nanos(self.defer.late_max)));
    }

    /// How long nearly all claims take to arrive, in nanoseconds.
    pub(super) fn late_ns(&self) -> u64 {
        self.lateness.bound().min(nanos(self.defer.late_max))
    }

    /// Who is expected to serve a read of `data`; `own_ns` is what this brick would need, and what is assumed when no
    /// holder is known.
    pub(super) fn expected(&self, data: u64, holders: &Holders, own_ns: u64, now: Time) -> Expected {
        let known = |brick: BrickId| self.known(brick, own_ns);
        let lowest = holders.iter().filter_map(|brick| known(*brick)).min().unwrap_or(own_ns);
        let near = lowest.saturating_add((lowest / 100).saturating_mul(self.defer.near_percent));
        let near = near.max(lowest.saturating_add(self.defer.near_ns));
        let rank = |brick: BrickId| {
            let beyond = known(brick).filter(|bid_ns| *bid_ns > near).unwrap_or(0);
            (beyond, Reverse(hash::weight(data, brick)), brick)
        };
        let best = holders.iter().copied().min_by_key(|brick| rank(*brick)).unwrap_or(self.me);
        let own = rank(self.me);
        let place = holders.iter().filter(|brick| (rank(**brick).1, **brick) < (own.1, own.2)).count();
        let slower = if own.0 > 0 { holders.len() } else { 0 };
        let is_first = best == self.me || (own.0 > 0 && self.is_old(now));
        let turn = if is_first { 0 } else { 1 + place + slower };
        // Where all were silent nobody has said how long it needs.
        let bid_ns = Some(known(best).unwrap_or(lowest)).filter(|bid_ns| *bid_ns < u64::MAX);
        Expected { best, bid_ns: bid_ns.unwrap_or(own_ns), turn: turn as u64 }
    }

    fn known(&self, brick: BrickId, own_ns: u64) -> Option<u64> {
        let (bid_ns, _) = self.heard.get(&brick)?;
        Some(if brick == self.me { own_ns.max(*bid_ns) } else { *bid_ns })
    }

    /// Whether what this brick said last, a high bid, was long ago.
    fn is_old(&self, now: Time) -> bool {
        let Some(&(bid_ns, at)) = self.heard.get(&self.me) else { return false };
        let (least, most) = (nanos(self.defer.look_min), nanos(self.defer.look_max));
        nanos(now.since(at)) >= bid_ns.saturating_mul(u64::from(self.defer.look_share)).clamp(least, most)
    }
}

/// How long claims take to arrive: their mean and how far they are from it, as senders of TCP keep round trips (RFC 6298).
#[derive(Clone, Copy, Debug, Default)]
struct Lateness {
    mean_ns: u64,
    spread_ns: u64,
}

impl Lateness {
    fn sample(&mut self, ns: u64) {
        let off = self.mean_ns.abs_diff(ns);
        self.spread_ns = self.spread_ns - self.spread_ns / 4 + off / 4;
        self.mean_ns = self.mean_ns - self.mean_ns / 8 + ns / 8;
    }

    fn bound(&self) -> u64 {
        self.mean_ns + 4 * self.spread_ns
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
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
        let heard = [(0, 500_000), (1, 100), (2, 149)];
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
        let mut other = bids(1, &[(0, 100), (1, 100), (2, 900_000)]);
        let data = (0..).find(|data| other.expected(*data, &holders(), 100, Time(2)).best == BrickId(0));
        let data = data.expect("half of them");
        let slow = bids(0, &[(0, 100), (1, 100), (2, 900_000)]).expected(data, &holders(), 500_000, Time(2));
        assert!((slow.best, slow.turn > 3) == (BrickId(1), true), "it knows better than its last bid");
        other.silent(BrickId(0), Duration::from_millis(1), Time(3));
        assert_eq!(other.expected(data, &holders(), 100, Time(4)).best, BrickId(1));
        other.heard(BrickId(0), 100, Time(5));
        assert_eq!(other.expected(data, &holders(), 100, Time(6)).best, BrickId(0), "it was heard again");
    }

    #[test]
    fn who_is_slow_is_looked_at_now_and_then_beside_the_best_and_nobody_waits_for_it() {
        let heard = [(0, 20_000_000), (1, 100), (2, 100)];
        let old = Time(2) + Defer::default().look_max;
        for data in 0..20 {
            let turn = |me: u32, now| bids(me, &heard).expected(data, &holders(), 100, now);
            assert!(turn(0, Time(3)).turn > 3 && turn(0, old).turn == 0);
            assert!(turn(0, old).best != BrickId(0) && turn(1, old).best != BrickId(0));
        }
        let low = bids(0, &[(0, 100), (1, 100), (2, 100)]);
        let asleep = Time(2) + Duration::from_secs(1000);
        let firsts = (0..300).filter(|data| low.expected(*data, &holders(), 100, asleep).turn == 0).count();
        assert!(firsts < 150, "low bids hold: {firsts} of 300 are its own");
    }

    #[test]
    fn patience_follows_how_long_claims_take() {
        let mut bids = bids(0, &[]);
        assert_eq!(bids.late_ns(), 0);
        (0..50).for_each(|_| bids.claimed(Duration::from_micros(400)));
        assert!((400_000..600_000).contains(&bids.late_ns()), "{}", bids.late_ns());
        (0..8).for_each(|_| bids.silent(BrickId(1), Duration::from_millis(2), Time(5)));
        assert!(bids.late_ns() > 2_000_000, "{}", bids.late_ns());
        (0..50).for_each(|_| bids.silent(BrickId(1), Duration::from_secs(2), Time(5)));
        assert!(bids.late_ns() <= 20_000_000, "a bound: {}", bids.late_ns());
    }
}
