//! A brick's disk, whose speed may change while it runs. It runs in a time of its own, which passes slower than the
//! cluster's when it is slow: so what is queued keeps its place on the platter.

use base::{Mechanics, Position, Time};
use model::drive::{Access, Drive};
use proto::distribute::claim::estimate::Estimate;

/// What an access to an unknown device is expected to take, until one has been measured.
const UNKNOWN_NS: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Device {
    drive: Drive,
    /// What is known of it when its head cannot be seen.
    estimate: Option<Estimate>,
    percent: u64,
    // One moment, in the cluster's time and in the disk's own, since when the speed is what it is.
    since: (u64, u64),
}

impl Device {
    /// A disk whose platter is `phase_ns` ahead of one that began at the origin of time.
    pub(crate) fn new(drive: Drive, phase_ns: u64, is_blind: bool) -> Device {
        let estimate = is_blind.then(|| Estimate::new(UNKNOWN_NS));
        Device { drive, estimate, percent: 100, since: (0, phase_ns) }
    }

    /// From `now` on every time is `percent` of what the drive's file says.
    pub(crate) fn set_percent(&mut self, now: Time, percent: u32) {
        self.since = (now.0, self.own(now).0);
        self.percent = u64::from(percent);
    }

    /// Serves an access; returns when it is done, and how many the disk is at with it.
    pub(crate) fn serve(&mut self, start: Time, access: Access) -> (Time, u32) {
        let own = self.own(start);
        let done = self.drive.serve(own, access).done;
        let depth = self.estimate.as_mut().map_or(1, Estimate::begin);
        (Time(start.0 + self.stretched(done.0 - own.0)), depth)
    }

    /// Whether it can be said when an access will be done.
    pub(crate) fn is_seen(&self) -> bool {
        self.estimate.is_none()
    }

    /// Learns what an access took.
    pub(crate) fn served(&mut self, depth: u32, service_ns: u64) {
        if let Some(estimate) = &mut self.estimate {
            estimate.end(depth, service_ns);
        }
    }

    fn own(&self, at: Time) -> Time {
        let (cluster, own) = self.since;
        let passed = at.0.saturating_sub(cluster);
        Time(own + if self.percent == 100 { passed } else { passed * 100 / self.percent })
    }

    fn stretched(&self, own_ns: u64) -> u64 {
        if self.percent == 100 { own_ns } else { own_ns * self.percent / 100 }
    }
}

impl Mechanics for Device {
    fn position_of(&self, sector: u64, is_write: bool) -> Position {
        match &self.estimate {
            None => self.drive.position_of(sector, is_write),
            Some(estimate) => estimate.position_of(sector, is_write),
        }
    }

    fn cylinder(&self) -> u32 {
        self.estimate.as_ref().map_or_else(|| self.drive.cylinder(), Estimate::cylinder)
    }

    fn positioning_ns(&self, free: Time, to: &Position) -> u64 {
        match &self.estimate {
            None => self.stretched(self.drive.positioning_ns(self.own(free), to)),
            Some(estimate) => estimate.positioning_ns(free, to),
        }
    }

    fn rotation_ns(&self, free: Time, to: &Position) -> u64 {
        match &self.estimate {
            None => self.stretched(self.drive.rotation_ns(self.own(free), to)),
            Some(estimate) => estimate.rotation_ns(free, to),
        }
    }

    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        match &self.estimate {
            None => self.stretched(self.drive.seek_floor_ns(cylinders)),
            Some(estimate) => estimate.seek_floor_ns(cylinders),
        }
    }
}
