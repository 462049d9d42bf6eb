//! Until when a brick may believe that its views are in force.
//!
//! A brick counts its lease from when it *sent* the heartbeat, the directory from when it received it, and by a clock
//! that may run faster: so the brick's belief ends first. After a restart the directory takes it that every brick was
//! given a lease a moment ago.

use super::DirectoryConfig;
use base::{BrickId, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::BrickStatus;

#[derive(Debug)]
pub(super) struct Lease {
    /// When the brick was heard last.
    pub(super) heard: Time,
    /// The latest time until which it may believe.
    until: Time,
    /// What it said last.
    pub(super) status: BrickStatus,
}

#[derive(Debug)]
pub(super) struct Leases {
    span: Duration,
    /// Until when bricks not heard since the start may believe.
    grace: Time,
    bricks: BTreeMap<BrickId, Lease>,
}

impl Leases {
    pub(super) fn new(config: &DirectoryConfig, now: Time) -> Leases {
        let drift = config.lease_ns / 1_000_000 * u64::from(config.drift_ppm);
        let span = Duration::from_nanos(config.lease_ns + drift);
        Leases { span, grace: now + span, bricks: BTreeMap::new() }
    }

    pub(super) fn on_heartbeat(&mut self, now: Time, brick: BrickId, status: BrickStatus, grant: bool) {
        let grace = self.grace;
        let lease = self.bricks.entry(brick).or_insert_with(|| Lease {
            heard: now,
            until: grace,
            status: BrickStatus::default(),
        });
        lease.heard = now;
        lease.status = status;
        if grant {
            lease.until = lease.until.max(now + self.span);
        }
    }

    /// Whether the brick cannot believe in its views any more.
    pub(super) fn has_ended(&self, now: Time, brick: BrickId) -> bool {
        now > self.bricks.get(&brick).map_or(self.grace, |lease| lease.until.max(self.grace))
    }

    /// The directory did not listen for a while: nobody is silent before it has listened for a lease's time again.
    pub(super) fn renew_grace(&mut self, now: Time) {
        self.grace = now + self.span;
    }

    /// Bricks that were heard of within a lease's time.
    pub(super) fn is_alive(&self, now: Time, brick: BrickId) -> bool {
        self.bricks
            .get(&brick)
            .is_some_and(|lease| now.since(lease.heard) < self.span && lease.status.failed.is_none())
    }

    /// Bricks of `all` that are to be left out: silent or broken, and without a lease.
    pub(super) fn dead(&self, now: Time, all: impl Iterator<Item = BrickId>) -> BTreeSet<BrickId> {
        all.filter(|brick| !self.is_alive(now, *brick) && self.has_ended(now, *brick)).collect()
    }

    pub(super) fn get(&self, brick: BrickId) -> Option<&Lease> {
        self.bricks.get(&brick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_dead_before_its_lease_has_ended() {
        let config = DirectoryConfig { lease_ns: 2_000_000_000, drift_ppm: 10_000, domains: Vec::new() };
        let mut leases = Leases::new(&config, Time::ZERO);
        let second = |s: u64| Time(s * 1_000_000_000);
        let dead = |leases: &Leases, now| leases.dead(now, [BrickId(1), BrickId(2)].into_iter());
        assert!(dead(&leases, second(2)).is_empty(), "after a restart all may have been given leases");
        leases.on_heartbeat(second(2), BrickId(1), BrickStatus::default(), true);
        assert_eq!(dead(&leases, second(3)), BTreeSet::from([BrickId(2)]));
        assert!(!dead(&leases, Time(4_010_000_000)).contains(&BrickId(1)));
        assert!(dead(&leases, Time(4_030_000_000)).contains(&BrickId(1)));
    }
}
