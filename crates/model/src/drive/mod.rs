//! Drives faithful to real ones: disks with zones, arms and platters, and devices of constant access time. A drive is a
//! TOML file; the repository's own are in [`library`], and users write theirs.
//!
//! Reading order: [`mod@revolution`], [`seek`], [`geometry`], [`disk`] (what an access takes mechanically),
//! [`controller`], [`cache`] and [`serve`] (what a drive puts around that), [`form`] (the file), [`model`].
//!
//! The rules were checked against an instrumented DiskSim 4.0, which its authors checked against real drives:
//! - at time zero platters are at angle zero and the arm is at cylinder and surface zero;
//! - a movement is the longer of seek and head switch, and settles before a write if there was any;
//! - sectors cross the bus in order, while later ones still pass under the head.

mod cache;
mod constant;
mod controller;
mod disk;
mod error;
mod form;
mod geometry;
mod library;
mod model;
mod revolution;
mod seek;
mod serve;

pub use constant::AccessTime;
pub use error::DriveError;
pub use geometry::Place;
pub use library::{Entry, find, library};
pub use model::{DriveModel, Summary};

pub use base::{Access, SECTOR_BYTES};

use base::{Device, Mechanics, Position, Time};
use model::Kind;
use serve::{Serving, State};
use std::sync::Arc;

/// What of a drive's file is in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriveOptions {
    /// The on-board cache: read-ahead, hits, early acknowledgement of writes.
    pub cache: bool,
    /// Command overheads and the bus. Without them an access is seek, rotation and transfer.
    pub overheads: bool,
    /// Reads and writes that begin in the middle, where the drive can do that.
    pub zero_latency: bool,
}

impl DriveOptions {
    /// All that the file states.
    pub const FULL: DriveOptions = DriveOptions { cache: true, overheads: true, zero_latency: true };
    /// Every access goes to the platters.
    pub const UNCACHED: DriveOptions = DriveOptions { cache: false, ..DriveOptions::FULL };
    /// Seek, rotation and transfer only.
    pub const MECHANICS: DriveOptions = DriveOptions { cache: false, overheads: false, zero_latency: false };
}

/// What an access took. The parts add up to `done`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    /// The command, and saying that it is done.
    pub overhead_ns: u64,
    /// Seeks, head switches and settling, also between tracks.
    pub seek_ns: u64,
    /// Waiting for the platter.
    pub rotation_ns: u64,
    /// Sectors passing under the head.
    pub transfer_ns: u64,
    /// The bus, as far as it did not overlap with the platter.
    pub bus_ns: u64,
    /// When it ends.
    pub done: Time,
}

/// A drive: a model, and where its arm is.
#[derive(Clone, Debug)]
pub struct Drive {
    model: Arc<DriveModel>,
    options: DriveOptions,
    state: State,
}

impl Drive {
    /// A drive of this kind at rest, with its overheads and without its on-board cache ([`DriveOptions::UNCACHED`]), as
    /// experiments about head schedulers want it.
    pub fn new(model: Arc<DriveModel>) -> Drive {
        Drive::with_options(model, DriveOptions::UNCACHED)
    }

    /// A drive of this kind at rest, of which only some parts are in force.
    pub fn with_options(model: Arc<DriveModel>, options: DriveOptions) -> Drive {
        Drive { model, options, state: State::default() }
    }

    pub fn model(&self) -> &Arc<DriveModel> {
        &self.model
    }

    /// Does an access that begins at `start`, when the one before it is done. After it [`Mechanics`] speaks of the arm
    /// as it is when this access is done, so that the next one can be chosen before that.
    ///
    /// # Panics
    /// When the drive has no such sectors, or `count` is zero.
    pub fn serve(&mut self, start: Time, access: Access) -> Service {
        let end = access.sector.checked_add(u64::from(access.count));
        let is_inside = access.count > 0 && end.is_some_and(|end| end <= self.model.capacity_sectors());
        assert!(
            is_inside,
            "{access:?} is not within the {} sectors of this drive",
            self.model.capacity_sectors()
        );
        Serving { model: &self.model, options: self.options, state: &mut self.state }.serve(start, access)
    }

    /// As [`Mechanics::positioning_ns`], for a command that the drive has already understood at `begin`. That a write may wait for its data is left out.
    pub fn reach_ns(&self, begin: Time, to: &Position) -> u64 {
        match &self.model.kind {
            Kind::Disk(disk) => {
                let move_ns =
                    self.state.arm_free.0.saturating_sub(begin.0) + disk.move_ns(self.state.arm, to);
                move_ns + disk.revolution.wait_ns(Time(begin.0 + move_ns), to.angle_ns)
            }
            Kind::Constant(constant) => constant.access_ns(to.is_write),
        }
    }

    fn command_ns(&self, is_write: bool) -> u64 {
        self.model.controller.command_ns(self.options, is_write, false, self.state.was_write)
    }
}

impl Device for Drive {
    fn capacity_sectors(&self) -> u64 {
        self.model.capacity_sectors()
    }

    fn serve(&mut self, start: Time, access: Access) -> Time {
        Drive::serve(self, start, access).done
    }
}

impl Mechanics for Drive {
    fn position_of(&self, sector: u64, is_write: bool) -> Position {
        match &self.model.kind {
            Kind::Disk(disk) => disk.position(sector, is_write),
            Kind::Constant(_) => Position { is_write, ..Position::default() },
        }
    }

    fn cylinder(&self) -> u32 {
        self.state.arm.cylinder
    }

    fn positioning_ns(&self, free: Time, to: &Position) -> u64 {
        let command_ns = self.command_ns(to.is_write);
        command_ns + self.reach_ns(Time(free.0 + command_ns), to)
    }

    fn rotation_ns(&self, free: Time, to: &Position) -> u64 {
        match &self.model.kind {
            Kind::Disk(disk) => {
                let begin = Time(free.0 + self.command_ns(to.is_write)).max(self.state.arm_free);
                disk.revolution.wait_ns(Time(begin.0 + disk.move_ns(self.state.arm, to)), to.angle_ns)
            }
            Kind::Constant(_) => 0,
        }
    }

    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        match &self.model.kind {
            Kind::Disk(disk) => disk.seek.floor_ns(cylinders),
            Kind::Constant(constant) => constant.read_ns.min(constant.write_ns),
        }
    }
}
