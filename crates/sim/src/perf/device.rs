//! A brick's disk, whose speed may change while it runs. It runs in a time of its own, which passes slower than the
//! cluster's when it is slow: so what is queued keeps its place on the platter.

use base::{Mechanics, Position, Time};
use model::drive::{Access, Drive};

#[derive(Debug)]
pub(super) struct Device {
    drive: Drive,
    percent: u64,
    // One moment, in the cluster's time and in the disk's own, since when the speed is what it is.
    since: (u64, u64),
}

impl Device {
    /// A disk whose platter is `phase_ns` ahead of one that began at the origin of time.
    pub(super) fn new(drive: Drive, phase_ns: u64) -> Device {
        Device { drive, percent: 100, since: (0, phase_ns) }
    }

    /// From `now` on every time is `percent` of what the drive's file says.
    pub(super) fn set_percent(&mut self, now: Time, percent: u32) {
        self.since = (now.0, self.own(now).0);
        self.percent = u64::from(percent);
    }

    /// Serves an access and returns when it is done.
    pub(super) fn serve(&mut self, start: Time, access: Access) -> Time {
        let own = self.own(start);
        let done = self.drive.serve(own, access).done;
        Time(start.0 + self.stretched(done.0 - own.0))
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
        self.drive.position_of(sector, is_write)
    }

    fn cylinder(&self) -> u32 {
        self.drive.cylinder()
    }

    fn positioning_ns(&self, free: Time, to: &Position) -> u64 {
        self.stretched(self.drive.positioning_ns(self.own(free), to))
    }

    fn rotation_ns(&self, free: Time, to: &Position) -> u64 {
        self.stretched(self.drive.rotation_ns(self.own(free), to))
    }

    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        self.stretched(self.drive.seek_floor_ns(cylinders))
    }
}
