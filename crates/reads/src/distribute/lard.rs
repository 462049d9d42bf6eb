//! Locality-aware request distribution (Pai and others: ASPLOS 1998), as D-SPTF compares with it: a front end gives an
//! address to the least loaded holder when it is first asked for, and every later request for it goes there. When that
//! brick is loaded too heavily, the address moves to the least loaded one.
//!
//! A load is the reads that the front end has under way at a brick. An address moves when its brick has more than `high`
//! and another less than `low`, or its brick twice `high`; and, since D-SPTF speaks of a rebalance window that a short
//! slowness must outlast (section 5.2.2) and leaves it at that, when this has been so for `window`.

use super::hash;
use super::load::Load;
use super::policy::{Part, Policy};
use base::{BrickId, HashMap, Time};
use core::time::Duration;
use std::collections::VecDeque;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LardConfig {
    /// Below so many reads under way a brick is idle enough to take over. The original has 25.
    pub low: u32,
    /// Above so many it is overloaded. The original has 65.
    pub high: u32,
    /// Both thresholds are multiplied by this: a storage brick is busy with fewer requests than a web server.
    pub scale: f64,
    /// How long a brick must be overloaded without interruption before addresses leave it.
    pub window: Duration,
    /// Addresses whose brick is remembered; the oldest are forgotten.
    pub addresses: usize,
    /// How many bytes one address stands for.
    pub granule: u64,
}

impl Default for LardConfig {
    /// The thresholds of the original; a home for each MiB, up to a TiB.
    fn default() -> LardConfig {
        let (low, high, scale, window) = (25, 65, 1.0, Duration::ZERO);
        LardConfig { low, high, scale, window, addresses: 1 << 20, granule: 1 << 20 }
    }
}

/// The front end's memory.
#[derive(Debug)]
pub struct Lard {
    config: LardConfig,
    homes: HashMap<u64, BrickId>,
    oldest: VecDeque<u64>,
    overloaded_since: HashMap<BrickId, Time>,
    moves: u64,
}

impl Lard {
    /// A front end that has seen no address.
    pub fn new(config: LardConfig) -> Lard {
        let (homes, oldest, overloaded_since) = (HashMap::default(), VecDeque::new(), HashMap::default());
        Lard { config, homes, oldest, overloaded_since, moves: 0 }
    }

    /// The holder that serves `address` (in bytes) among `candidates` `(slot, brick)`.
    fn choose(&mut self, now: Time, address: u64, candidates: &[(u8, BrickId)], load: &Load) -> Option<u8> {
        let spread = |brick| core::cmp::Reverse(hash::weight(address, brick));
        let least =
            candidates.iter().min_by_key(|(_, brick)| (load.queue(*brick), spread(*brick))).copied()?;
        let key = address / self.config.granule.max(1);
        let home = self.homes.get(&key).and_then(|home| candidates.iter().find(|(_, brick)| brick == home));
        match home.copied() {
            Some((slot, home)) if !self.is_to_move(now, home, least.1, load) => return Some(slot),
            Some(_) => self.moves += 1,
            None => {}
        }
        self.settle(key, least.1);
        Some(least.0)
    }

    /// Where `address` (in bytes) is served, when it was asked for before.
    fn home_of(&self, address: u64) -> Option<BrickId> {
        self.homes.get(&(address / self.config.granule.max(1))).copied()
    }

    fn is_to_move(&mut self, now: Time, home: BrickId, least: BrickId, load: &Load) -> bool {
        let (at_home, least) = (f64::from(load.queue(home)), f64::from(load.queue(least)));
        let low = f64::from(self.config.low) * self.config.scale;
        let high = f64::from(self.config.high) * self.config.scale;
        if !(at_home > high && least < low || at_home >= 2.0 * high) {
            self.overloaded_since.remove(&home);
            return false;
        }
        let since = *self.overloaded_since.entry(home).or_insert(now);
        now.since(since) >= self.config.window
    }

    fn settle(&mut self, key: u64, brick: BrickId) {
        if self.homes.insert(key, brick).is_some() {
            return;
        }
        self.oldest.push_back(key);
        if self.oldest.len() > self.config.addresses
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.homes.remove(&oldest);
        }
    }
}

impl Policy for Lard {
    fn one(&mut self, now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        self.choose(now, part.address, part.holders, load)
    }

    fn home(&self, part: &Part<'_>) -> Option<BrickId> {
        self.home_of(part.address)
    }

    fn moves(&self) -> u64 {
        self.moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: [(u8, BrickId); 2] = [(0, BrickId(1)), (1, BrickId(2))];

    fn loaded(window: Duration) -> (Lard, Load) {
        let mut lard = Lard::new(LardConfig { window, ..LardConfig::default() });
        let mut load = Load::default();
        assert_eq!(lard.choose(Time::ZERO, 0, &PAIR, &load), Some(0));
        (0..66).for_each(|_| load.begin(BrickId(1)));
        (lard, load)
    }

    #[test]
    fn an_address_stays_until_its_brick_is_overloaded_and_another_is_not() {
        let (mut lard, mut load) = loaded(Duration::ZERO);
        load.end(BrickId(1));
        assert_eq!(lard.choose(Time(1), 100, &PAIR, &load), Some(0), "65 are not more than 65");
        load.begin(BrickId(1));
        (0..25).for_each(|_| load.begin(BrickId(2)));
        assert_eq!(lard.choose(Time(1), 100, &PAIR, &load), Some(0), "25 are not less than 25");
        load.end(BrickId(2));
        assert_eq!(lard.choose(Time(1), 100, &PAIR, &load), Some(1));
        assert_eq!((lard.home_of((1 << 20) - 1), lard.moves()), (Some(BrickId(2)), 1));
        assert_eq!(lard.choose(Time(2), 100, &PAIR[..1], &load), Some(0), "a home that is away is no home");
    }

    #[test]
    fn overload_must_outlast_the_window() {
        let (mut lard, load) = loaded(Duration::from_nanos(10));
        assert_eq!(lard.choose(Time(100), 0, &PAIR, &load), Some(0));
        assert_eq!(lard.choose(Time(109), 0, &PAIR, &load), Some(0));
        assert_eq!(lard.choose(Time(110), 0, &PAIR, &load), Some(1));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut lard = Lard::new(LardConfig { addresses: 10, ..LardConfig::default() });
        let load = Load::default();
        (0..100).for_each(|block| assert!(lard.choose(Time::ZERO, block << 20, &PAIR, &load).is_some()));
        assert_eq!((lard.homes.len(), lard.oldest.len()), (10, 10));
        assert_eq!(lard.home_of(0), None);
    }
}
