//! Until when a brick may believe that its views are in force.
//!
//! A brick counts its lease from when it *sent* the heartbeat, the directory from when it received it, and by a clock
//! that may run faster: so the brick's belief ends first. After a restart the directory takes it that every brick was
//! given the longest lease a moment ago.
//!
//! Suspicion adapts to the network: a lease is as long as the brick's heartbeats have lately been irregular (their mean
//! distance and eight times its mean deviation, after Jacobson's estimator for retransmission, SIGCOMM '88), within
//! one and [`LEASES_MAX`] times the configured length. So a brick on a bad link is not left out for its link, and one on a
//! good link is found dead quickly. The views that leave out the dead are asked for in [`super::members`].

use super::event::DirectoryConfig;
use base::{BrickId, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::BrickStatus;

/// The longest lease, in lengths of the configured one.
const LEASES_MAX: u64 = 2;

#[derive(Debug)]
pub(super) struct Lease {
    /// When the brick was heard last.
    pub(super) heard: Time,
    /// When it sent that, by its own clock.
    pub(super) sent: Time,
    /// The latest time until which it may believe.
    until: Time,
    /// What it said last.
    pub(super) status: BrickStatus,
    /// The version of the map that it knows.
    pub(super) known: u64,
    /// Mean distance of its heartbeats, and the mean deviation from that.
    mean_ns: u64,
    deviation_ns: u64,
}

impl Lease {
    /// A heartbeat came `gap_ns` after the one before.
    fn observe(&mut self, gap_ns: u64) {
        if self.mean_ns == 0 {
            (self.mean_ns, self.deviation_ns) = (gap_ns, 0);
            return;
        }
        let error = self.mean_ns.abs_diff(gap_ns);
        self.deviation_ns = self.deviation_ns - self.deviation_ns / 4 + error / 4;
        self.mean_ns = self.mean_ns - self.mean_ns / 8 + gap_ns / 8;
    }

    fn wanted_ns(&self) -> u64 {
        self.mean_ns + 8 * self.deviation_ns
    }

    /// Whether its heartbeats come so regularly that `lease_ns` is long enough.
    pub(super) fn is_regular(&self, lease_ns: u64) -> bool {
        self.wanted_ns() <= lease_ns
    }
}

#[derive(Debug)]
pub(super) struct Leases {
    lease_ns: u64,
    drift_ppm: u64,
    /// Until when bricks not heard since the start may believe.
    grace: Time,
    bricks: BTreeMap<BrickId, Lease>,
}

impl Leases {
    pub(super) fn new(config: &DirectoryConfig, now: Time) -> Leases {
        let (lease_ns, drift_ppm) = (config.lease_ns, u64::from(config.drift_ppm));
        let mut leases = Leases { lease_ns, drift_ppm, grace: now, bricks: BTreeMap::new() };
        leases.renew_grace(now);
        leases
    }

    /// How long a brick's lease is now.
    pub(super) fn length_ns(&self, brick: BrickId) -> u64 {
        let wanted = self.bricks.get(&brick).map_or(0, Lease::wanted_ns);
        wanted.clamp(self.lease_ns, LEASES_MAX * self.lease_ns)
    }

    /// A lease as it may look to a clock that runs differently.
    fn with_drift(&self, lease_ns: u64) -> Duration {
        Duration::from_nanos(lease_ns + lease_ns / 1_000_000 * self.drift_ppm)
    }

    /// A heartbeat was heard, which the brick sent at `sent` by its own clock.
    pub(super) fn on_heartbeat(
        &mut self,
        (now, sent): (Time, Time),
        brick: BrickId,
        status: BrickStatus,
        grant: bool,
    ) {
        let (grace, longest) = (self.grace, LEASES_MAX * self.lease_ns);
        let lease = self.bricks.entry(brick).or_insert_with(|| Lease {
            heard: now,
            sent,
            until: grace,
            status: BrickStatus::default(),
            known: 0,
            mean_ns: 0,
            deviation_ns: 0,
        });
        let gap_ns = now.since(lease.heard).as_nanos() as u64;
        // A longer gap is an absence, which says nothing about the link.
        if (1..longest).contains(&gap_ns) {
            lease.observe(gap_ns);
        }
        (lease.heard, lease.sent) = (now, sent);
        lease.status = status;
        if grant {
            let span = self.with_drift(self.length_ns(brick));
            let lease = self.bricks.get_mut(&brick).expect("just entered");
            lease.until = lease.until.max(now + span);
        }
    }

    /// A brick that was heard knows this version of the map.
    pub(super) fn knows(&mut self, brick: BrickId, known: u64) {
        if let Some(lease) = self.bricks.get_mut(&brick) {
            lease.known = known;
        }
    }

    /// Whether the brick cannot believe in its views any more.
    pub(super) fn has_ended(&self, now: Time, brick: BrickId) -> bool {
        now > self.bricks.get(&brick).map_or(self.grace, |lease| lease.until.max(self.grace))
    }

    pub(super) fn len(&self) -> usize {
        self.bricks.len()
    }

    /// The directory did not listen for a while, or has forgotten what leases it gave: nobody is silent before it has
    /// listened for the longest lease's time again.
    pub(super) fn renew_grace(&mut self, now: Time) {
        self.grace = now + self.with_drift(LEASES_MAX * self.lease_ns);
    }

    /// Whether it is known if the brick is there: it was heard within a lease's time, or has been silent for longer than the directory may have been away.
    pub(super) fn is_settled(&self, now: Time, brick: BrickId) -> bool {
        let span = self.with_drift(self.length_ns(brick));
        now > self.grace || self.bricks.get(&brick).is_some_and(|lease| now.since(lease.heard) < span)
    }

    /// Bricks that were heard of within a lease's time.
    pub(super) fn is_alive(&self, now: Time, brick: BrickId) -> bool {
        let span = self.with_drift(self.length_ns(brick));
        self.bricks
            .get(&brick)
            .is_some_and(|lease| now.since(lease.heard) < span && lease.status.failed.is_none())
    }

    /// The brick is no more.
    pub(super) fn forget(&mut self, brick: BrickId) {
        self.bricks.remove(&brick);
    }

    /// Bricks of `all` that are to be left out: silent, broken or `unwanted`, and without a lease.
    pub(super) fn dead(
        &self,
        now: Time,
        all: impl Iterator<Item = BrickId>,
        unwanted: impl Fn(BrickId) -> bool,
    ) -> BTreeSet<BrickId> {
        all.filter(|brick| (!self.is_alive(now, *brick) || unwanted(*brick)) && self.has_ended(now, *brick))
            .collect()
    }

    pub(super) fn get(&self, brick: BrickId) -> Option<&Lease> {
        self.bricks.get(&brick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::IndexConfig;

    const CARE: wire::Care = wire::Care {
        rebuild_bytes_per_second: 1,
        scrub_bytes_per_second: 1,
        scrub_interval_s: 0,
        scrub: 0,
        rebuild_after_s: 0,
    };
    const CONFIG: DirectoryConfig = DirectoryConfig {
        lease_ns: 2_000_000_000,
        drift_ppm: 10_000,
        domains: Vec::new(),
        care: CARE,
        slow_hold_ns: (0, 0),
        index: IndexConfig::USUAL,
        first_time: base::ClusterTime::FIRST,
        page_bytes: DirectoryConfig::PAGE_BYTES,
        shortest_loan: DirectoryConfig::SHORTEST_LOAN,
        anyone_administers: false,
    };

    fn second(s: u64) -> Time {
        Time(s * 1_000_000_000)
    }

    #[test]
    fn nobody_is_dead_before_its_lease_has_ended() {
        let mut leases = Leases::new(&CONFIG, Time::ZERO);
        let dead = |leases: &Leases, now| leases.dead(now, [BrickId(1), BrickId(2)].into_iter(), |_| false);
        assert!(dead(&leases, second(4)).is_empty(), "after a restart all may have been given leases");
        leases.on_heartbeat((second(4), Time::ZERO), BrickId(1), BrickStatus::default(), true);
        assert_eq!(dead(&leases, second(5)), BTreeSet::from([BrickId(2)]));
        assert!(!dead(&leases, Time(6_010_000_000)).contains(&BrickId(1)));
        assert!(dead(&leases, Time(6_030_000_000)).contains(&BrickId(1)));
    }

    #[test]
    fn a_brick_that_is_not_wanted_stays_until_its_lease_has_ended() {
        let mut leases = Leases::new(&CONFIG, Time::ZERO);
        leases.on_heartbeat((second(9), Time::ZERO), BrickId(1), BrickStatus::default(), true);
        leases.on_heartbeat((second(11), Time::ZERO), BrickId(1), BrickStatus::default(), false);
        let dead = |now| leases.dead(now, [BrickId(1)].into_iter(), |_| true);
        assert!(dead(second(11)).is_empty() && !dead(Time(11_030_000_000)).is_empty());
    }

    #[test]
    fn leases_are_longer_where_heartbeats_are_irregular() {
        let beat = |leases: &mut Leases, at_ms: u64| {
            leases.on_heartbeat(
                (Time(at_ms * 1_000_000), Time::ZERO),
                BrickId(1),
                BrickStatus::default(),
                true,
            );
        };
        let mut steady = Leases::new(&CONFIG, Time::ZERO);
        (0..50).for_each(|n| beat(&mut steady, 400 * n));
        assert_eq!(steady.length_ns(BrickId(1)), CONFIG.lease_ns);
        let mut shaky = Leases::new(&CONFIG, Time::ZERO);
        (0..50).for_each(|n| beat(&mut shaky, 400 * n + 300 * (n % 2)));
        assert!(shaky.length_ns(BrickId(1)) > 2_500_000_000, "{}", shaky.length_ns(BrickId(1)));
        (100..200).for_each(|n| beat(&mut shaky, 30_000 * n));
        assert!(shaky.length_ns(BrickId(1)) <= LEASES_MAX * CONFIG.lease_ns);
    }
}
