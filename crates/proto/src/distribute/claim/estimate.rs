//! A device whose head cannot be seen: its next service time is predicted from those measured, by how many accesses
//! were at it. What is far from a device's mean is taken as seriously as the rest, since being late is what others are
//! to know of.

use base::{Mechanics, Position, Time};

/// How many depths are told apart: 1, 2, 3-4, 5-8, and so on.
const DEPTHS: usize = 8;

/// A moving estimate of service times by depth, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    by_depth: [u64; DEPTHS],
    under_way: u32,
}

impl Estimate {
    /// A device of which nothing is known yet but what an access alone is expected to take.
    pub fn new(alone_ns: u64) -> Estimate {
        Estimate { by_depth: [alone_ns.max(1); DEPTHS], under_way: 0 }
    }

    /// An access was given to the device. Returns the depth to give back with what it took.
    pub fn begin(&mut self) -> u32 {
        self.under_way += 1;
        self.under_way
    }

    /// An access that began at `depth` has ended after `service_ns`. It weighs an eighth, and half where it was much faster
    /// than expected: a device that has recovered is to be seen to have.
    pub fn end(&mut self, depth: u32, service_ns: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        let mean = &mut self.by_depth[class(depth)];
        let part = if service_ns < *mean / 4 { 2 } else { 8 };
        *mean = (*mean - *mean / part + service_ns / part).max(1);
    }

    /// What an access that joined those under way would take, in nanoseconds.
    pub fn next_ns(&self) -> u64 {
        self.by_depth[class(self.under_way + 1)]
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
