//! What a device can say about where its head is: the words between models of drives and those who decide what the head
//! does next. A drive finds an access's [`Position`] once, when it is queued; a scheduler then compares many of them,
//! each time the head becomes free.

use crate::Time;
use core::fmt::Debug;

/// The unit of a device's addresses and capacity.
pub const SECTOR_BYTES: u64 = 512;

/// One access to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The first sector.
    pub sector: u64,
    /// How many, at least one.
    pub count: u32,
    pub is_write: bool,
}

/// Where on a drive an access begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    /// The cylinder, from the outermost; 0 on a device without an arm.
    pub cylinder: u32,
    pub surface: u32,
    /// When in a revolution the first sector comes by, in nanoseconds after the platter's origin.
    pub angle_ns: u64,
    /// Writes settle longer than reads.
    pub is_write: bool,
}

/// How long it takes to get to a place. All times are predictions for a head that is free at the moment given.
pub trait Mechanics {
    /// Where an access to `sector` (of 512 bytes) begins.
    fn position_of(&self, sector: u64, is_write: bool) -> Position;

    /// Where the arm stands now, or will when what is under way is done.
    fn cylinder(&self) -> u32;

    /// From `free` until the first sector is under the settled head: seek or head switch, settling, rotation.
    fn positioning_ns(&self, free: Time, to: &Position) -> u64;

    /// The part of [`Mechanics::positioning_ns`] that is spent waiting for the platter: as long as this the command can
    /// be held back without the access ending later.
    fn rotation_ns(&self, free: Time, to: &Position) -> u64;

    /// No access `cylinders` away or farther is positioned sooner. It does not fall with the distance.
    fn seek_floor_ns(&self, cylinders: u32) -> u64;
}

/// A device that shows where its head is, and says how long what it serves takes.
pub trait Device: Mechanics + Debug + Send {
    fn capacity_sectors(&self) -> u64;

    /// Serves an access that begins at `start`, when the one before it is done: when it ends. After it [`Mechanics`] speaks
    /// of the head as it is then, so that the next access can be chosen before that.
    fn serve(&mut self, start: Time, access: Access) -> Time;
}

impl<M: Mechanics + ?Sized> Mechanics for Box<M> {
    fn position_of(&self, sector: u64, is_write: bool) -> Position {
        (**self).position_of(sector, is_write)
    }

    fn cylinder(&self) -> u32 {
        (**self).cylinder()
    }

    fn positioning_ns(&self, free: Time, to: &Position) -> u64 {
        (**self).positioning_ns(free, to)
    }

    fn rotation_ns(&self, free: Time, to: &Position) -> u64 {
        (**self).rotation_ns(free, to)
    }

    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        (**self).seek_floor_ns(cylinders)
    }
}
