//! A device whose head cannot be seen: its next service time is predicted from those measured, by how many accesses
//! were at it. What is far from a device's mean is taken as seriously as the rest, since being late is what others are
//! to know of.

use base::{Mechanics, Position, Time};

/// What is known of a device before anything was measured: `brickwork disk probe` finds it out, or its data sheet says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calibration {
    /// A read alone, until its first byte, in nanoseconds.
    pub access_ns: u64,
    /// Each block of it, in nanoseconds; 0 where that is not known.
    pub block_ns: u64,
}

impl Default for Calibration {
    /// A solid-state device of which nothing is known.
    fn default() -> Calibration {
        Calibration { access_ns: 100_000, block_ns: 0 }
    }
}

impl Calibration {
    /// What a read of `blocks` that took `service_ns` took until its first byte, so that reads of all sizes tell the same of
    /// the device. One that was faster than the calibration has it was so in all its parts.
    pub fn access_of(&self, blocks: u32, service_ns: u64) -> u64 {
        let transfer_ns = self.block_ns.saturating_mul(blocks.into());
        let part = self.access_ns.max(1) as f64 / self.access_ns.max(1).saturating_add(transfer_ns) as f64;
        service_ns.saturating_sub(transfer_ns).max((service_ns as f64 * part) as u64)
    }
}

/// How many depths are told apart: 1, 2, 3-4, 5-8, and so on.
const DEPTHS: usize = 8;

/// A moving estimate of service times by depth, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    alone_ns: u64,
    by_depth: [Option<u64>; DEPTHS],
    under_way: u32,
}

impl Estimate {
    /// A device of which nothing is known yet but what an access alone is expected to take.
    pub fn new(alone_ns: u64) -> Estimate {
        Estimate { alone_ns: alone_ns.max(1), by_depth: [None; DEPTHS], under_way: 0 }
    }

    /// An access was given to the device. Returns the depth to give back with what it took.
    pub fn begin(&mut self) -> u32 {
        self.under_way += 1;
        self.under_way
    }

    /// An access that began at `depth` has ended after `service_ns`. It weighs an eighth; a half when it was much faster than
    /// expected, so that a device that has recovered is seen to have; and all when it is the first.
    pub fn end(&mut self, depth: u32, service_ns: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        let mean = &mut self.by_depth[class(depth)];
        let old_ns = mean.unwrap_or(service_ns);
        let part = if service_ns < old_ns / 4 { 2 } else { 8 };
        *mean = Some((old_ns - old_ns / part + service_ns / part).max(1));
    }

    /// What an access that joined those under way would take, in nanoseconds. A depth that was never reached takes as
    /// long as the next lower one that was.
    pub fn next_ns(&self) -> u64 {
        let (lower, higher) = self.by_depth.split_at(class(self.under_way + 1) + 1);
        let known = lower.iter().rev().chain(higher).flatten().next();
        known.copied().unwrap_or(self.alone_ns)
    }
}

fn class(depth: u32) -> usize {
    (depth.max(1).next_power_of_two().trailing_zeros() as usize).min(DEPTHS - 1)
}

impl Mechanics for Estimate {
    fn position_of(&self, _sector: u64, is_write: bool) -> Position {
        Position { is_write, ..Position::default() }
    }

    fn cylinder(&self) -> u32 {
        0
    }

    fn positioning_ns(&self, _free: Time, _to: &Position) -> u64 {
        self.next_ns()
    }

    fn rotation_ns(&self, _free: Time, _to: &Position) -> u64 {
        0
    }

    fn seek_floor_ns(&self, _cylinders: u32) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_read_tells_of_the_access_what_a_short_one_does() {
        let disk = Calibration { access_ns: 8_000_000, block_ns: 30_000 };
        for blocks in [1, 16, 256] {
            let transfer_ns = 30_000 * u64::from(blocks);
            let usual = disk.access_of(blocks, 8_000_000 + transfer_ns);
            assert!(usual.abs_diff(8_000_000) < 10, "{usual} of {blocks} blocks");
            assert_eq!(disk.access_of(blocks, 28_000_000 + transfer_ns), 28_000_000, "20 ms late");
            let cached = disk.access_of(blocks, 5_000);
            assert!((2_000..=5_000).contains(&cached), "{cached} of {blocks} blocks from memory");
        }
        assert_eq!(Calibration::default().access_of(256, 777), 777, "where transfer is not known");
    }

    #[test]
    fn depths_are_told_apart_and_borrow_from_lower_ones() {
        let mut estimate = Estimate::new(500);
        assert_eq!((estimate.next_ns(), estimate.begin()), (500, 1));
        estimate.end(1, 100);
        assert_eq!(estimate.next_ns(), 100, "the first says all");
        let depths: Vec<u32> = (0..4).map(|_| estimate.begin()).collect();
        assert_eq!((depths, estimate.next_ns()), (vec![1, 2, 3, 4], 100));
        (0..200).for_each(|_| {
            estimate.begin();
            estimate.end(5, 800);
        });
        assert!((700..=800).contains(&estimate.next_ns()), "{}", estimate.next_ns());
        (0..4).for_each(|_| estimate.end(3, 400));
        assert_eq!(estimate.next_ns(), 100, "alone again");
    }
}
