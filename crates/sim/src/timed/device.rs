//! A brick's disk, whose speed may change while it runs. It runs in a time of its own, which passes slower than the
//! brick's when it is slow: so what is queued keeps its place on the platter.

use base::{Mechanics, Position, Time};
use model::drive::{Access, Drive};
use std::sync::{Arc, OnceLock};

/// How fast a disk is, and when that changes.
#[derive(Debug)]
pub(crate) struct Speeds {
    /// From these moments on every time is so many percent of what the drive's file says; moments count from the origin.
    steps: Vec<(Time, u32)>,
    /// On the clock of the disk's brick. Before it is known the disk is as fast as its file says.
    origin: OnceLock<Time>,
}

impl Speeds {
    /// Steps whose origin is not known yet.
    pub(crate) fn new(steps: Vec<(Time, u32)>) -> Speeds {
        Speeds { steps, origin: OnceLock::new() }
    }

    /// Steps that count from the beginning of time.
    pub(crate) fn from_the_beginning(steps: Vec<(Time, u32)>) -> Speeds {
        Speeds { steps, origin: OnceLock::from(Time::ZERO) }
    }

    /// From now on the moments are known.
    pub(crate) fn begin(&self, origin: Time) {
        // Once only: a brick that starts again goes on with the same moments.
        let _ = self.origin.set(origin);
    }

    /// Where a disk is at a moment: the percentage, and the time of its own that has passed.
    fn at(&self, at: Time) -> (u64, u64) {
        let (mut percent, mut since, mut own) = (100, 0, 0);
        for (after, next) in self.begun_by(at) {
            (own, since) = (own + passed(after - since, percent), after);
            percent = u64::from(next);
        }
        (percent, own + passed(at.0 - since, percent))
    }

    /// The steps that are taken by then: when, and the percentage from then on.
    fn begun_by(&self, at: Time) -> impl Iterator<Item = (u64, u32)> {
        let origin = if self.steps.is_empty() { None } else { self.origin.get() };
        let steps =
            origin.into_iter().flat_map(|origin| self.steps.iter().map(|step| (origin.0 + step.0.0, step.1)));
        steps.take_while(move |(after, _)| *after <= at.0)
    }
}

/// How much of its own time passes for a disk that is so slow.
fn passed(ns: u64, percent: u64) -> u64 {
    if percent == 100 { ns } else { ns * 100 / percent }
}

#[derive(Debug)]
pub(crate) struct Device {
    drive: Drive,
    phase_ns: u64,
    speeds: Arc<Speeds>,
}

impl Device {
    /// A disk whose platter is `phase_ns` ahead of one that began at the origin of time.
    pub(crate) fn new(drive: Drive, phase_ns: u64, speeds: Arc<Speeds>) -> Device {
        Device { drive, phase_ns, speeds }
    }

    fn own(&self, at: Time) -> Time {
        Time(self.phase_ns + self.speeds.at(at).1)
    }

    /// What takes so long in the disk's own time, and begins at this moment.
    fn stretched(&self, at: Time, own_ns: u64) -> u64 {
        match self.speeds.at(at).0 {
            100 => own_ns,
            percent => own_ns * percent / 100,
        }
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
        self.stretched(free, self.drive.positioning_ns(self.own(free), to))
    }

    fn rotation_ns(&self, free: Time, to: &Position) -> u64 {
        self.stretched(free, self.drive.rotation_ns(self.own(free), to))
    }

    /// No speed makes a seek shorter than the fastest one of the steps does.
    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        let least = self.speeds.steps.iter().map(|(_, percent)| u64::from(*percent)).fold(100, u64::min);
        self.drive.seek_floor_ns(cylinders) * least / 100
    }
}

impl base::Device for Device {
    fn capacity_sectors(&self) -> u64 {
        self.drive.model().capacity_sectors()
    }

    fn serve(&mut self, start: Time, access: Access) -> Time {
        let own = self.own(start);
        let done = self.drive.serve(own, access).done;
        Time(start.0 + self.stretched(start, done.0 - own.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Device as _;
    use model::drive::{DriveModel, DriveOptions, find};

    fn atlas(speeds: Speeds) -> Device {
        let entry = find("quantum-atlas-10k").expect("the drive is in the library");
        let model = Arc::new(DriveModel::parse("quantum-atlas-10k", entry.text).expect("a sound drive"));
        Device::new(Drive::with_options(model, DriveOptions::MECHANICS), 12_345, Arc::new(speeds))
    }

    #[test]
    fn a_slow_platter_turns_slowly_and_comes_to_where_it_was_expected() {
        let mut device = atlas(Speeds::from_the_beginning(vec![(Time(1_000_000), 200)]));
        let turn_ns = device.drive.model().revolution_ns().expect("it turns");
        for sector in [0, 1_000_000, 17_000_000] {
            let position = device.position_of(sector, false);
            let (start, rotation_ns) = (Time(70_000_000), device.rotation_ns(Time(70_000_000), &position));
            assert!(rotation_ns < 2 * turn_ns);
            let later = device.rotation_ns(Time(start.0 + rotation_ns / 2), &position);
            assert!(
                later.abs_diff(rotation_ns - rotation_ns / 2) < 10,
                "{later} ns of {rotation_ns} are left"
            );
            let expected_ns = device.positioning_ns(start, &position);
            let done = device.serve(start, Access { sector, count: 1, is_write: false });
            let transfer_ns = done.0 - start.0 - expected_ns;
            assert!((10_000..80_000).contains(&transfer_ns), "a sector passes in {transfer_ns} ns");
        }
    }

    #[test]
    fn speeds_count_from_their_origin_and_not_before_it_is_known() {
        let speeds = Speeds::new(vec![(Time(100), 200), (Time(300), 50)]);
        assert_eq!(speeds.at(Time(1_000)), (100, 1_000));
        speeds.begin(Time(1_000));
        assert_eq!(speeds.at(Time(1_100)), (200, 1_100));
        assert_eq!(speeds.at(Time(1_300)), (50, 1_200));
        assert_eq!(speeds.at(Time(1_400)), (50, 1_400));
    }
}
