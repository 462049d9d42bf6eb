//! The heads of disks that show them: a platter that turns fast, so that a run sees many choices and claims.

use base::{Access, BrickId, Device, Mechanics, Position, SECTOR_BYTES, Time};
use reads::distribute::claim::Config;
use reads::seat::heads::{Heads, Surroundings};
use store::Io;

const REVOLUTION_NS: u64 = 500_000;
const TRACK_SECTORS: u64 = 64;
const SEEK_NS: u64 = 50_000;
/// What claims reckon a message takes: many do not, here.
const ONE_WAY_NS: u64 = 100_000;
/// Written blocks that are answered before they are on the platter.
const NVRAM_BYTES: u64 = 64 << 10;

/// The heads of so many disks of `brick`, as they are after a start.
pub(super) fn heads(brick: BrickId, disks: usize, disk_bytes: u64, now: Time) -> Vec<Heads<Io>> {
    let surroundings = Surroundings {
        claims: Config::disk(brick, ONE_WAY_NS),
        dilate: 1,
        nvram_bytes: NVRAM_BYTES,
        data_bytes: None,
    };
    let platter = || Box::new(Platter { sectors: disk_bytes / SECTOR_BYTES, track: 0 });
    (0..disks).map(|_| Heads::new(surroundings, platter(), now)).collect()
}

/// One surface whose head takes as long to any other track.
#[derive(Debug)]
struct Platter {
    sectors: u64,
    track: u32,
}

impl Platter {
    fn seek_ns(&self, to: &Position) -> u64 {
        if to.cylinder == self.track { 0 } else { SEEK_NS }
    }
}

impl Mechanics for Platter {
    fn position_of(&self, sector: u64, is_write: bool) -> Position {
        let angle_ns = sector % TRACK_SECTORS * (REVOLUTION_NS / TRACK_SECTORS);
        Position { cylinder: (sector / TRACK_SECTORS) as u32, surface: 0, angle_ns, is_write }
    }

    fn cylinder(&self) -> u32 {
        self.track
    }

    fn positioning_ns(&self, free: Time, to: &Position) -> u64 {
        self.seek_ns(to) + self.rotation_ns(free, to)
    }

    fn rotation_ns(&self, free: Time, to: &Position) -> u64 {
        let settled_ns = (free.0 + self.seek_ns(to)) % REVOLUTION_NS;
        (to.angle_ns + REVOLUTION_NS - settled_ns) % REVOLUTION_NS
    }

    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        if cylinders == 0 { 0 } else { SEEK_NS }
    }
}

impl Device for Platter {
    fn capacity_sectors(&self) -> u64 {
        self.sectors
    }

    fn serve(&mut self, start: Time, access: Access) -> Time {
        let to = self.position_of(access.sector, access.is_write);
        let done_ns = start.0 + self.positioning_ns(start, &to);
        self.track = to.cylinder;
        Time(done_ns + u64::from(access.count) * (REVOLUTION_NS / TRACK_SECTORS))
    }
}
