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
//! [`Policies`] is what a gateway knows for all of them. Each volume has one, by its name ([`ReadPolicy`]).

pub mod claim;
pub mod hash;
pub mod hedged;
pub mod lard;
pub mod probing;
pub mod shortest_queue;
pub mod tied;
pub mod weighted_hash;

use base::{BrickId, Time};
use core::time::Duration;
use hedged::Hedged;
use lard::{Lard, LardConfig};
use probing::Probing;
use shortest_queue::ShortestQueue;
use weighted_hash::WeightedHash;
use wire::ReadPolicy;

/// How many bytes are served by one brick, as far as the policies by address are concerned.
pub const GRANULE_BYTES: u64 = 64 << 10;
/// A gateway's share of LARD's thresholds, which are those of a web server: a brick is busy with fewer.
pub const LARD_SCALE: f64 = 0.25;
/// Addresses whose home LARD remembers.
const LARD_ADDRESSES: usize = 1 << 17;
/// No second question is asked sooner.
const HEDGE_FLOOR_NS: u64 = 200_000;
/// How long weights by measured speed hold.
const WEIGHTS_EVERY: Duration = Duration::from_secs(1);

/// What a gateway knows for all policies together, since a volume's may change at any time.
#[derive(Debug)]
pub struct Policies {
    queues: ShortestQueue,
    lard: Lard,
    probing: Probing,
    hedged: Hedged,
    weighted: WeightedHash,
    weighted_at: Option<Time>,
}

impl Default for Policies {
    fn default() -> Policies {
        let lard = LardConfig {
            scale: LARD_SCALE,
            addresses: LARD_ADDRESSES,
            granule: GRANULE_BYTES,
            ..LardConfig::default()
        };
        Policies {
            queues: ShortestQueue::default(),
            lard: Lard::new(lard),
            probing: Probing::new(1),
            hedged: Hedged::new(95.0, HEDGE_FLOOR_NS),
            weighted: WeightedHash::default(),
            weighted_at: None,
        }
    }
}

impl Policies {
    /// One of `candidates` `(slot, brick)` for what lies at `address` (in bytes), under a policy by which a gateway chooses
    /// alone; `None` when there are none. `speed` says how long a brick's answers take, in nanoseconds.
    pub fn choose(
        &mut self,
        now: Time,
        policy: ReadPolicy,
        address: u64,
        candidates: &[(u8, BrickId)],
        speed: impl Fn(BrickId) -> Option<u64>,
    ) -> Option<u8> {
        match policy {
            ReadPolicy::Hash => hash::choose(address / GRANULE_BYTES, candidates),
            ReadPolicy::WeightedHash => {
                self.weigh(now, candidates, speed);
                self.weighted.choose(address / GRANULE_BYTES, candidates)
            }
            ReadPolicy::Lard => self.lard.choose(now, address, candidates),
            ReadPolicy::Probing => self.probing.choose(candidates),
            ReadPolicy::Claim | ReadPolicy::ShortestQueue | ReadPolicy::Hedged | ReadPolicy::Tied => {
                self.queues.choose(address / GRANULE_BYTES, candidates)
            }
        }
    }

    /// After how long a second holder is asked, when reads are hedged.
    pub fn hedge_delay(&self) -> Option<Duration> {
        self.hedged.delay_ns().map(Duration::from_nanos)
    }

    /// A question went to `brick`.
    pub fn begin(&mut self, brick: BrickId) {
        self.queues.begin(brick);
        self.lard.begin(brick);
        self.probing.begin(brick);
    }

    /// It was answered, or is of no interest any more.
    pub fn end(&mut self, brick: BrickId) {
        self.queues.end(brick);
        self.lard.end(brick);
        self.probing.end(brick);
    }

    /// `brick` gave the content that was asked of it after `response_ns`.
    pub fn answered(&mut self, brick: BrickId, response_ns: u64) {
        // Answers do not tell how much of that was the access.
        self.probing.answered(brick, response_ns, response_ns, 0);
        self.hedged.answered(response_ns);
    }

    /// Weighs bricks by their speed, now and then: what moves to another brick is not in its cache.
    fn weigh(&mut self, now: Time, candidates: &[(u8, BrickId)], speed: impl Fn(BrickId) -> Option<u64>) {
        let weight = |brick| speed(brick).map_or(1.0, |mean_ns| 1e6 / mean_ns.max(1) as f64);
        candidates.iter().for_each(|(_, brick)| self.weighted.add(*brick, weight));
        if self.weighted_at.is_none_or(|at| now >= at + WEIGHTS_EVERY) {
            self.weighted_at = Some(now);
            self.weighted.weigh_all(weight);
        }
    }
}
