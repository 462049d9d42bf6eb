//! A disk with an arm and platters: what a movement, a turn and a transfer take.

use super::form::{DiskForm, DriveForm, Source};
use super::geometry::{Geometry, Place, Run};
use super::revolution::Revolution;
use super::seek::SeekTable;
use super::{Access, DriveError};
use base::{Position, Time};

/// What stays the same about a disk.
#[derive(Clone, Debug)]
pub(super) struct DiskModel {
    pub(super) geometry: Geometry,
    pub(super) revolution: Revolution,
    pub(super) seek: SeekTable,
}

/// Where the arm is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Arm {
    pub(super) cylinder: u32,
    pub(super) surface: u32,
}

/// What an access took mechanically.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Motion {
    /// Seeks, head switches and settling, also between tracks.
    pub(super) seek_ns: u64,
    pub(super) rotation_ns: u64,
    /// For a write's data, which come over the bus.
    pub(super) wait_ns: u64,
    pub(super) transfer_ns: u64,
    /// When the last sector has passed the head.
    pub(super) done: Time,
    /// When the last sector of a read is over the bus, which takes them in order while later ones pass the head.
    pub(super) bus_done: Time,
}

/// How far reading on came on one track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Sectors read.
    pub(super) count: u32,
    /// When the last of them was.
    pub(super) at: Time,
    /// Whether that is all that was asked of the track.
    pub(super) is_whole: bool,
}

/// What is the same for all tracks of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Begins at whatever sector comes by first.
    pub(super) is_zero_latency: bool,
    /// Each sector over the bus.
    pub(super) bus_q16: u64,
    /// So many sectors pass the head before the bus begins.
    pub(super) before_bus: u32,
    /// When a write's data begin to come over the bus, where the platter waits until the bus keeps ahead of it.
    pub(super) bus_begins: Option<Time>,
}

impl DiskModel {
    /// The disk that the form states, every time multiplied by `scale`.
    pub(super) fn new(
        source: &Source<'_>,
        form: &DriveForm,
        disk: &DiskForm,
        scale: f64,
    ) -> Result<DiskModel, DriveError> {
        let must = "finite, from 1 to 1000000";
        let rpm =
            source.check(&disk.rpm, "disk.rpm", |rpm| rpm.is_finite() && (1.0..=1e6).contains(&rpm), must)?;
        let geometry = Geometry::new(source, disk, &form.zone, &form.capacity_sectors)?;
        Ok(DiskModel {
            geometry,
            revolution: Revolution::new(60e9 / rpm * scale),
            seek: SeekTable::new(source, disk, scale)?,
        })
    }

    /// Where an access to `sector` begins.
    pub(super) fn position(&self, sector: u64, is_write: bool) -> Position {
        let place = self.geometry.place(sector);
        Position {
            cylinder: place.cylinder,
            surface: place.surface,
            angle_ns: place.angle_ns(&self.revolution),
            is_write,
        }
    }

    /// How long the arm moves from where it is.
    pub(super) fn move_ns(&self, arm: Arm, to: &Position) -> u64 {
        self.seek.move_ns(arm.cylinder.abs_diff(to.cylinder), arm.surface != to.surface, to.is_write)
    }

    /// Does an access whose command has been understood at `start`, and moves the arm.
    pub(super) fn run(&self, arm: &mut Arm, start: Time, access: Access, manner: Manner) -> Motion {
        self.run_behind(arm, start, start, access, manner)
    }

    /// As [`DiskModel::run`], for a bus that is at work until `bus_free`.
    pub(super) fn run_behind(
        &self,
        arm: &mut Arm,
        start: Time,
        bus_free: Time,
        access: Access,
        manner: Manner,
    ) -> Motion {
        let mut motion = Motion { done: start, bus_done: bus_free, ..Motion::default() };
        let (mut sector, mut left) = (access.sector, access.count);
        while left > 0 {
            let run = self.geometry.run(sector, left);
            self.go(arm, &run.place, access.is_write, &mut motion);
            if let Some(bus_begins) = manner.bus_begins.filter(|_| left == access.count) {
                let begins = self.keeps_ahead_from(bus_begins, &run.place, access.count, manner.bus_q16);
                motion.wait_ns += begins.0.saturating_sub(motion.done.0);
                motion.done = motion.done.max(begins);
            }
            self.pass(&run, access.count - left, manner, &mut motion);
            sector += u64::from(run.count);
            left -= run.count;
        }
        motion
    }

    /// From when on a write can begin there so that each sector comes over the bus before it passes the head.
    fn keeps_ahead_from(&self, bus_begins: Time, place: &Place, count: u32, bus_q16: u64) -> Time {
        let others_pass_ns = self.revolution.sectors_ns(count - 1, place.sectors_per_track);
        let all_come_ns = bus_ns(count, bus_q16);
        Time(bus_begins.0 + bus_ns(1, bus_q16).max(all_come_ns.saturating_sub(others_pass_ns)))
    }

    /// Reads on from `sector`, on one track, from `at` until `now`; the arm follows as far as it gets.
    pub(super) fn read_on(&self, arm: &mut Arm, at: Time, now: Time, sector: u64, left: u32) -> Step {
        let run = self.geometry.run(sector, left);
        let mut motion = Motion { done: at, ..Motion::default() };
        let was = *arm;
        self.go(arm, &run.place, false, &mut motion);
        let angle_ns = run.place.angle_ns(&self.revolution);
        let begin = motion.done.0 + self.revolution.wait_ns(motion.done, angle_ns);
        let pass_ns = self.revolution.sectors_ns(run.passed, run.place.sectors_per_track);
        if begin + pass_ns <= now.0 {
            return Step { count: run.count, at: Time(begin + pass_ns), is_whole: true };
        }
        let sector_ns = self.revolution.sectors_ns(1, run.place.sectors_per_track).max(1);
        let passed = (now.0.saturating_sub(begin) / sector_ns) as u32;
        let count = passed.min(run.count - 1);
        if count == 0 {
            // It may not even have begun to move: whoever comes now finds it where it was.
            *arm = if at < now { *arm } else { was };
            return Step { count, at, is_whole: false };
        }
        let at = begin + self.revolution.sectors_ns(count, run.place.sectors_per_track);
        Step { count, at: Time(at), is_whole: false }
    }

    fn go(&self, arm: &mut Arm, place: &Place, is_write: bool, motion: &mut Motion) {
        let distance = arm.cylinder.abs_diff(place.cylinder);
        let move_ns = self.seek.move_ns(distance, arm.surface != place.surface, is_write);
        *arm = Arm { cylinder: place.cylinder, surface: place.surface };
        motion.seek_ns += move_ns;
        motion.done.0 += move_ns;
    }

    /// Waits for the sectors of one track and passes them, after so many of tracks before.
    fn pass(&self, run: &Run, before: u32, manner: Manner, motion: &mut Motion) {
        let per_track = run.place.sectors_per_track;
        let sector_ns = self.revolution.sectors_ns(1, per_track);
        let pass_ns = self.revolution.sectors_ns(run.passed, per_track);
        let first_ns = self.revolution.wait_ns(motion.done, run.place.angle_ns(&self.revolution));
        // A head that comes down among them has them all when it is back at the next sector from where it came down.
        let period_ns = self.revolution.period_ns();
        let wait_ns = match (first_ns + pass_ns).checked_sub(period_ns) {
            Some(left_ns) if manner.is_zero_latency => period_ns + left_ns % sector_ns.max(1) - pass_ns,
            _ => first_ns,
        };
        let come_down = motion.done.0;
        motion.rotation_ns += wait_ns;
        motion.transfer_ns += pass_ns;
        motion.done.0 += wait_ns + pass_ns;
        // Sectors of tracks before may wait for it, too.
        let Some(waiting) = (before + run.count).checked_sub(manner.before_bus) else { return };
        let (begins, waits) = match waiting < run.count {
            true => (run.count - waiting, before + run.count),
            false => (1, run.count),
        };
        // A head that came down among them has them all before they have passed in order.
        let can_begin = (come_down + first_ns + u64::from(begins) * sector_ns).min(motion.done.0);
        let in_order = motion.bus_done.0.max(can_begin) + bus_ns(waits, manner.bus_q16);
        motion.bus_done.0 = in_order.max(motion.done.0 + bus_ns(1, manner.bus_q16));
    }
}

/// How long so many sectors take over a bus.
pub(super) fn bus_ns(sectors: u32, bus_q16: u64) -> u64 {
    (u64::from(sectors) * bus_q16) >> 16
}
