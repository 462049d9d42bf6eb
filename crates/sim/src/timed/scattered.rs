//! A disk on which what is written lies in runs, each anywhere: what files look like on a disk that has been used for long, and what makes
//! disks of one kind differ a hundredfold.
//!
//! Runs are filled in the order of writes, across the ends of accesses: what is written in one go is one run, if runs are long. What is read
//! lies where it was written last. Accesses are served in the order in which they come.

use super::device::Device;
use base::{Access, Device as _, HashMap, Mechanics, Position, SECTOR_BYTES, Time};
use core::ops::Range;
use model::Draw;

#[derive(Debug)]
pub(crate) struct Scattered {
    device: Device,
    run_bytes: u64,
    /// Bytes that were too few for one more sector of the runs before.
    left_over: u64,
    /// What is left of the run that is being filled.
    run: Range<u64>,
    places: Draw,
    /// Where it lies what begins at a sector, in the order of its sectors.
    pieces: HashMap<u64, Vec<Range<u64>>>,
}

impl Scattered {
    /// Runs of so many bytes in the mean, a sector at least and no more than the disk has, at places that are drawn.
    pub(crate) fn new(device: Device, run_bytes: u64, places: Draw) -> Scattered {
        let run_bytes = run_bytes.clamp(SECTOR_BYTES, device.capacity_sectors() * SECTOR_BYTES);
        Scattered { device, run_bytes, left_over: 0, run: 0..0, places, pieces: HashMap::default() }
    }

    /// The disk itself, for accesses to places of it that are not in runs.
    pub(crate) fn bare(&mut self) -> &mut Device {
        &mut self.device
    }

    /// What begins at this sector lies in new room from now on.
    pub(crate) fn lay(&mut self, sector: u64, count: u64) {
        let pieces = self.find_room(count);
        self.pieces.insert(sector, pieces);
    }

    fn find_room(&mut self, mut count: u64) -> Vec<Range<u64>> {
        let mut pieces = Vec::new();
        while count > 0 {
            if self.run.is_empty() {
                let bytes = self.run_bytes + self.left_over;
                let most = self.device.capacity_sectors();
                let sectors = (bytes / SECTOR_BYTES).min(most);
                self.left_over = bytes % SECTOR_BYTES;
                let start = self.places.below(most - sectors + 1);
                self.run = start..start + sectors;
            }
            let piece = self.run.start..self.run.end.min(self.run.start + count);
            (self.run.start, count) = (piece.end, count - (piece.end - piece.start));
            pieces.push(piece);
        }
        pieces
    }
}

/// Of what was never written it is not known where it would lie: it is taken for the place of its address.
impl Mechanics for Scattered {
    fn position_of(&self, sector: u64, is_write: bool) -> Position {
        let first = self.pieces.get(&sector).map_or(sector, |pieces| pieces[0].start);
        self.device.position_of(first, is_write)
    }

    fn cylinder(&self) -> u32 {
        self.device.cylinder()
    }

    fn positioning_ns(&self, free: Time, to: &Position) -> u64 {
        self.device.positioning_ns(free, to)
    }

    fn rotation_ns(&self, free: Time, to: &Position) -> u64 {
        self.device.rotation_ns(free, to)
    }

    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        self.device.seek_floor_ns(cylinders)
    }
}

impl base::Device for Scattered {
    fn capacity_sectors(&self) -> u64 {
        self.device.capacity_sectors()
    }

    fn serve(&mut self, start: Time, access: Access) -> Time {
        let Access { sector, count, is_write } = access;
        if is_write || !self.pieces.contains_key(&sector) {
            self.lay(sector, u64::from(count));
        }
        let mut left = u64::from(count);
        self.pieces[&sector].iter().fold(start, |now, piece| {
            let count = left.min(piece.end - piece.start);
            left -= count;
            match count {
                0 => now,
                count => {
                    self.device.serve(now, Access { sector: piece.start, count: count as u32, is_write })
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::device::Speeds;
    use super::*;
    use model::drive::{Drive, DriveModel, DriveOptions, find};
    use std::sync::Arc;

    const MIB: u64 = 1 << 20;

    /// Seconds for so many accesses of 1 MiB one after another, writes and then the same reads.
    fn seconds(run_bytes: u64, accesses: u64) -> [f64; 2] {
        let entry = find("robustore-disk").expect("the drive is in the library");
        let model = Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive"));
        let speeds = Arc::new(Speeds::from_the_beginning(Vec::new()));
        let device = Device::new(Drive::with_options(model, DriveOptions::UNCACHED), 12_345, speeds);
        let mut disk = Scattered::new(device, run_bytes, Draw::new(7));
        let mut now = Time(1_000_000);
        [true, false].map(|is_write| {
            let begin = now;
            for access in 0..accesses {
                let access = Access { sector: access * 4096 * 100, count: 2048, is_write };
                now = disk.serve(now, access);
            }
            now.since(begin).as_secs_f64()
        })
    }

    /// The paper's disks are from 0.52 to 53 MB/s: this drive with runs of 4 KiB, and with all in one run.
    #[test]
    fn the_ends_of_the_papers_range_are_runs_of_a_block_and_one_run() {
        for (run_bytes, expected, accesses) in [(4096, 0.52, 40), (1 << 40, 53.0, 400)] {
            for seconds in seconds(run_bytes, accesses) {
                let rate = accesses as f64 / seconds;
                assert!((rate / expected - 1.0).abs() < 0.02, "{rate} MiB/s in runs of {run_bytes}");
            }
        }
    }

    #[test]
    fn between_them_a_run_costs_one_movement() {
        let movement = 4096.0 / (0.52 * MIB as f64) - 4096.0 / (53.0 * MIB as f64);
        for run_bytes in [4352, 64 << 10, 600 << 10, 3 * MIB] {
            let expected =
                run_bytes as f64 / (movement + run_bytes as f64 / (53.0 * MIB as f64)) / MIB as f64;
            for seconds in seconds(run_bytes, 400) {
                let rate = 400.0 / seconds;
                assert!((rate / expected - 1.0).abs() < 0.05, "{rate} and not {expected} MiB/s");
            }
        }
    }
}
