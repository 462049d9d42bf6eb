//! What stays the same about a drive: its file, read and turned into tables.

use super::cache::CacheShape;
use super::constant::AccessTime;
use super::controller::Controller;
use super::disk::DiskModel;
use super::form::{DriveForm, Source};
use super::geometry::Place;
use super::{DriveError, SECTOR_BYTES};

/// A kind of drive. One is shared by all drives of its kind.
#[derive(Clone, Debug)]
pub struct DriveModel {
    name: String,
    demerit_max_ms: Option<f64>,
    pub(super) kind: Kind,
    pub(super) controller: Controller,
    pub(super) cache: Option<CacheShape>,
    capacity_sectors: u64,
    /// The times of the file, multiplied by this many percent, are the model's.
    percent: u32,
    file: String,
    text: String,
}

/// How the drive finds its data.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Disk(DiskModel),
    Constant(AccessTime),
}

/// What a drive is, in numbers for people.
#[derive(Clone, Debug, PartialEq)]
pub enum Summary {
    /// An arm and platters.
    Disk {
        /// Turns in a minute.
        rpm: f64,
        cylinders: u32,
        surfaces: u32,
        zones: usize,
        /// Sectors of the innermost and of the outermost track.
        sectors_per_track: (u32, u32),
        /// One cylinder, the mean over random pairs of cylinders, and from the first to the last.
        seek_ns: [u64; 3],
        /// Sectors of the on-board cache.
        cache_sectors: u32,
    },
    Constant(AccessTime),
}

impl DriveModel {
    /// Reads a drive's file. `file` is its name, for errors.
    ///
    /// # Errors
    /// What no drive could have: the file, the line where it is known, the field, and why.
    pub fn parse(file: &str, text: &str) -> Result<DriveModel, DriveError> {
        DriveModel::scaled(file, text, 100)
    }

    fn scaled(file: &str, text: &str, percent: u32) -> Result<DriveModel, DriveError> {
        let source = Source { file, text };
        let form = source.form()?;
        let scale = f64::from(percent) / 100.0;
        let kind = kind(&source, &form, scale)?;
        let demerit_max_ms = form.demerit_max_ms.as_ref().map(|demerit| {
            let is_right = |ms: f64| ms.is_finite() && ms >= 0.0;
            source.check(demerit, "demerit_max_ms", is_right, "finite, and not negative")
        });
        let demerit_max_ms = demerit_max_ms.transpose()?;
        Ok(DriveModel {
            kind,
            controller: Controller::new(&source, &form.controller, scale)?,
            cache: form.cache.as_ref().map(|cache| CacheShape::new(&source, cache)).transpose()?,
            capacity_sectors: *form.capacity_sectors.get_ref(),
            name: form.name,
            demerit_max_ms,
            percent,
            file: file.to_owned(),
            text: text.to_owned(),
        })
    }

    /// The same drive with every time, also that of a turn, stretched to `percent` of what it is now; 200 is half as
    /// fast.
    ///
    /// # Panics
    /// When the times of the file come to less than a hundredth or more than a hundredfold.
    pub fn slowed(&self, percent: u32) -> DriveModel {
        let percent = (u64::from(self.percent) * u64::from(percent) / 100) as u32;
        assert!(
            (1..=10_000).contains(&percent),
            "{percent}% of the drive's own times is not from 1% to 10000%"
        );
        DriveModel::scaled(&self.file, &self.text, percent).expect("what was read once can be read again")
    }

    /// Maker, model and size.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How far the model may be from a trace of the real drive: the RMS demerit in milliseconds, where one was compared.
    pub fn demerit_max_ms(&self) -> Option<f64> {
        self.demerit_max_ms
    }

    /// Sectors of 512 bytes that it has.
    pub fn capacity_sectors(&self) -> u64 {
        self.capacity_sectors
    }

    /// All bytes that it has.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_sectors * SECTOR_BYTES
    }

    /// Where a sector lies; `None` on a drive without platters.
    ///
    /// # Panics
    /// When the drive has no such sector.
    pub fn place(&self, sector: u64) -> Option<Place> {
        match &self.kind {
            Kind::Disk(disk) => Some(disk.geometry.place(sector)),
            Kind::Constant(_) => None,
        }
    }

    /// The first and the last address that the mapping puts on the track of `sector`, of which the drive may not offer all;
    /// `None` on a drive without platters.
    ///
    /// # Panics
    /// When the drive has no such sector.
    pub fn track(&self, sector: u64) -> Option<(u64, u64)> {
        match &self.kind {
            Kind::Disk(disk) => Some(disk.geometry.track(sector)),
            Kind::Constant(_) => None,
        }
    }

    /// How long the arm takes for so many cylinders, before a read and before a write; `None` without an arm or so many
    /// cylinders.
    pub fn seek_ns(&self, cylinders: u32) -> Option<(u64, u64)> {
        match &self.kind {
            Kind::Disk(disk) if cylinders < disk.seek.cylinders() => {
                let seek_ns = |is_write| disk.seek.move_ns(cylinders, false, is_write);
                Some((seek_ns(false), seek_ns(true)))
            }
            _ => None,
        }
    }

    /// One turn; `None` without platters.
    pub fn revolution_ns(&self) -> Option<u64> {
        match &self.kind {
            Kind::Disk(disk) => Some(disk.revolution.period_ns()),
            Kind::Constant(_) => None,
        }
    }

    /// A read at a random place of an idle drive, until its first byte, and the rate of the bytes then: means, without switches of
    /// the head.
    pub fn mean_access(&self) -> AccessTime {
        let disk = match &self.kind {
            Kind::Disk(disk) => disk,
            Kind::Constant(access) => return *access,
        };
        let (inner, outer) = disk.geometry.sectors_per_track();
        let track_bytes = (f64::from(inner) + f64::from(outer)) / 2.0 * super::SECTOR_BYTES as f64;
        let access_ns = disk.seek.mean_ns() + disk.revolution.period_ns() / 2;
        AccessTime {
            read_ns: access_ns,
            write_ns: access_ns,
            bytes_per_second: Some(track_bytes / disk.revolution.exact_ns() * 1e9),
        }
    }

    /// The drive in numbers.
    pub fn summary(&self) -> Summary {
        let disk = match &self.kind {
            Kind::Disk(disk) => disk,
            Kind::Constant(access) => return Summary::Constant(*access),
        };
        let cylinders = disk.seek.cylinders();
        let last = cylinders - 1;
        let seek_ns = |distance: u32| disk.seek.move_ns(distance, false, false);
        Summary::Disk {
            // The turn is known to 2^-16 ns; digits beyond that would be noise.
            rpm: (60e15 / disk.revolution.exact_ns()).round() / 1e6,
            cylinders,
            surfaces: disk.geometry.surfaces(),
            zones: disk.geometry.zones(),
            sectors_per_track: disk.geometry.sectors_per_track(),
            seek_ns: [seek_ns(last.min(1)), disk.seek.mean_ns(), seek_ns(last)],
            cache_sectors: self.cache.map_or(0, |cache| cache.segments * cache.segment_sectors),
        }
    }
}

fn kind(source: &Source<'_>, form: &DriveForm, scale: f64) -> Result<Kind, DriveError> {
    match (&form.disk, &form.access) {
        (Some(disk), None) => Ok(Kind::Disk(DiskModel::new(source, form, disk, scale)?)),
        (None, Some(access)) if form.zone.is_empty() => {
            source.check(&form.capacity_sectors, "capacity_sectors", |n| n > 0, "at least 1")?;
            Ok(Kind::Constant(AccessTime::new(source, access, scale)?))
        }
        (None, Some(_)) => {
            let why = "stands beside `access`; a device of constant access time has no zones".to_owned();
            Err(source.error(Some(form.zone[0].span().start), "zone", why))
        }
        (Some(_), Some(_)) => Err(source.error(
            source.find("[access]"),
            "access",
            "stands beside `disk`; a drive is one of them".to_owned(),
        )),
        (None, None) => {
            let why = "is missing; a drive has mechanics, `[disk]`, or a constant access time, `[access]`"
                .to_owned();
            Err(source.error(None, "disk", why))
        }
    }
}
