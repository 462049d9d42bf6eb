//! What a device can say about where its head is: the words between models of drives and those who decide what the head
//! does next. A drive finds an access's [`Position`] once, when it is queued; a scheduler then compares many of them,
//! each time the head becomes free.

use crate::Time;

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
