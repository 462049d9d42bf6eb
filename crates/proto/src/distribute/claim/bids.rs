//! Who is expected to serve a read on devices without rotation: the holder whose last bid was lowest.
//!
//! Every holder heard the same claims, so each names the same holder without a message: that one serves at once, and the
//! others leave it the time that it said it needs, and that claims take to arrive. Bids that are near one another count as
//! equal, and a hash of the address spreads the reads over them, so that a block is cached at one brick. Who lets its
//! time pass counts as slow until it is heard again.
//!
//! A low bid holds until another is heard. A high one gets old: who made it serves a read now and then beside the one
//! that is expected to, and says by its claim how it fares. Nobody waits for it meanwhile.

use super::Holders;
use crate::distribute::hash;
use base::{BrickId, Time};
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
    /// Nobody waits longer for claims to arrive, beside what the bid says.
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

/// Bids of so many bricks are remembered; beyond it the oldest is forgotten.
const HEARD_MAX: usize = 1024;

/// The last known bid of every brick that was heard, this one too, and how long claims take to arrive.
#[derive(Debug)]
pub(super) struct Bids {
    me: BrickId,
    defer: Defer,
    heard: BTreeMap<BrickId, (u64, Time)>,
    late_ns: Lateness,
}

/// Whose turn a read is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// This brick's, at once.
    Own,
    /// Another's, that is given so long.
    Other(BrickId, Duration),
}

impl Bids {
    pub(super) fn new(me: BrickId, defer: Defer) -> Bids {
        Bids { me, defer, heard: BTreeMap::new(), late_ns: Lateness::default() }
    }

    pub(super) fn heard(&mut self, brick: BrickId, bid_ns: u64, now: Time) {
        if self.heard.len() >= HEARD_MAX && !self.heard.contains_key(&brick) {
            let oldest = self.heard.iter().min_by_key(|(_, (_, at))| *at).map(|(brick, _)| *brick);
            oldest.map(|brick| self.heard.remove(&brick));
        }
        self.heard.insert(brick, (bid_ns, now));
    }

    /// `brick` did not claim in the time that it was given.
    pub(super) fn silent(&mut self, brick: BrickId, waited: Duration, now: Time) {
        self.heard(brick, u64::MAX, now);
        // Or its claim is on its way, and would have come with more patience.
        self.late_ns.sample(nanos(waited).saturating_mul(2).min(nanos(self.defer.late_max)));
    }

    /// A claim came so long after the read that was left to its sender.
    pub(super) fn claimed(&mut self, waited: Duration) {
        self.late_ns.sample(nanos(waited).min(nanos(self.defer.late_max)));
    }

    /// Whose turn the read at `address` is; `own_ns` is what this brick needs, and what is assumed of those that are not
    /// known.
    pub(super) fn turn(&self, address: u64, holders: &Holders, own_ns: u64, now: Time) -> Turn {
        let known = |brick: BrickId| self.heard.get(&brick).map(|(bid_ns, _)| *bid_ns);
        let lowest = holders.iter().filter_map(|brick| known(*brick)).min().unwrap_or(own_ns);
        let near = lowest.saturating_add((lowest / 100).saturating_mul(self.defer.near_percent));
        let near = near.max(lowest.saturating_add(self.defer.near_ns));
        let is_near = |brick: &BrickId| known(*brick).is_none_or(|bid_ns| bid_ns <= near);
        let best = holders.iter().copied().filter(is_near).max_by_key(|brick| hash::weight(address, *brick));
        let best = best.unwrap_or(self.me);
        let is_nobody_good = lowest == u64::MAX;
        if best == self.me || is_nobody_good || (!is_near(&self.me) && self.is_old(now)) {
            return Turn::Own;
        }
        let bid_ns = known(best).unwrap_or(lowest.min(own_ns));
        let late_ns = self.late_ns.bound().min(nanos(self.defer.late_max));
        Turn::Other(best, Duration::from_nanos(bid_ns.saturating_add(late_ns)))
    }

    /// Whether what this brick said last, a high bid, was long ago.
    fn is_old(&self, now: Time) -> bool {
        let Some(&(bid_ns, at)) = self.heard.get(&self.me) else { return false };
        let (least, most) = (nanos(self.defer.look_min), nanos(self.defer.look_max));
        let age = bid_ns.saturating_mul(u64::from(self.defer.look_share)).clamp(least, most);
        nanos(now.since(at)) >= age
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
