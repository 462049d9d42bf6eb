//! Emulated disks: the bytes are those of the real file, the times are not. Every answer of the real file is held back
//! until it is due by the emulation, on the loop's own clock: no thread, no sleep, one timer.
//!
//! What is emulated stands in a small file of its own (see [`settings`]), which is read again when it changes, so that a
//! disk becomes slow and recovers under a brick that runs.
//!
//! A modelled drive takes the place of the area where a disk keeps its blocks; journal and metadata cost no time, as if they
//! lay in the non-volatile memory that D-SPTF's bricks have (section 3). Blocks are spread evenly over the drive's sectors.
//!
//! Reading order: [`settings`] (what can be emulated), [`timing`] (when an answer is due: pure), `device` (a drive and what
//! waits for it), [`lateness`] (how late the emulation itself was), `watched` (the file), `timer` (waking the loop), this
//! file (how they go together).
//!
//! What is held is bounded by what the stores have under way, which their own limits bound.

mod device;
pub mod lateness;
pub mod settings;
mod timer;
pub mod timing;
mod watched;

pub use device::Served;
pub use lateness::Lateness;
pub use settings::{DriveSettings, Settings, SettingsError};
pub use timing::{DiskClaim, Timing};

use super::{Completions, DiskEngine, DiskFile};
use crate::HostError;
use crate::clock::Clock;
use base::{BrickId, Time};
use std::ops::Range;
use std::os::fd::RawFd;
use std::path::Path;
use store::Io;
use timer::Timer;
use watched::Watched;

/// The emulation of all disks of a brick.
#[derive(Debug)]
pub struct Emulation {
    clock: Clock,
    file: Watched,
    timer: Timer,
    timing: Timing,
    real: Completions,
}

impl Emulation {
    /// As `file` says, now and whenever it changes. A disk that is not formatted is all blocks.
    ///
    /// # Errors
    /// When the file cannot be read or says something that cannot be; when the system has no timer left.
    pub fn new(
        brick: BrickId,
        file: &Path,
        disks: &[DiskFile],
        clock: Clock,
    ) -> Result<Emulation, HostError> {
        let (file, settings) = Watched::open(file, clock.now())?;
        let timer = Timer::new().map_err(crate::error::system("a timer for emulated disks"))?;
        let areas = disks.iter().map(blocks_of).collect();
        Ok(Emulation {
            clock,
            file,
            timer,
            timing: Timing::new(brick, settings, areas, clock.now()),
            real: Vec::new(),
        })
    }

    /// Becomes readable when an answer is due, or the file is to be looked at.
    pub fn event_fd(&self) -> RawFd {
        self.timer.fd()
    }

    /// A request goes to the real disk.
    pub fn asked(&mut self, now: Time, disk: usize, io: &Io) {
        self.timing.asked(now, disk, io);
    }

    /// Takes what the real disks have answered, and gives what is due.
    pub fn complete(&mut self, engine: &mut DiskEngine, now: Time, done: &mut Completions) {
        if let Some(settings) = self.file.changed(now) {
            self.timing.set(now, settings);
        }
        engine.complete(&mut self.real);
        for (disk, answer) in self.real.drain(..) {
            self.timing.answered(now, disk, answer);
        }
        self.timing.due(now, done);
    }

    /// Sends off the heads that are free, and sees to it that the loop wakes in time for what comes next.
    pub fn arm(&mut self) {
        let now = self.clock.now();
        self.timing.advance(now);
        let next = self.timing.deadline().map_or(self.file.next_look(), |due| due.min(self.file.next_look()));
        self.timer.arm(now, next);
    }

    /// The pure part, for what it is told of reads that other bricks were asked for.
    pub fn timing_mut(&mut self) -> &mut Timing {
        &mut self.timing
    }

    /// What it holds, and how late it was.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }
}

/// Where the disk keeps its blocks.
fn blocks_of(disk: &DiskFile) -> Range<u64> {
    let superblock = disk.read_at(0, base::BLOCK).ok();
    superblock.and_then(|sector| store::blocks_region(&sector)).unwrap_or(0..disk.size_bytes())
}
