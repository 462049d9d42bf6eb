//! Emulated disks: the bytes are those of the real file, the times are not. Every answer of the real file is held back
//! until it is due by the emulation, on the loop's own clock: no thread, no sleep, one timer.
//!
//! What is emulated stands in a small file of its own (see [`settings`]), which is read again when it changes, so that a
//! disk becomes slow and recovers under a brick that runs.
//!
//! A modelled drive takes the place of the area where a disk keeps its blocks. Its heads stand in the disk's seat, in the brick
//! ([`reads::seat::heads`]), which says with each request when the drive is done with it.
//!
//! Reading order: [`settings`] (what can be emulated), [`timing`] (when an answer is due: pure), [`lateness`] (how late the
//! emulation itself was), `watched` (the file), `timer` (waking the loop), this file (how they go together).
//!
//! What is held is bounded by what the stores have under way, which their own limits bound.

pub mod lateness;
pub mod settings;
mod timer;
pub mod timing;
mod watched;

pub use lateness::Lateness;
pub use settings::{DriveSettings, Settings, SettingsError};
pub use timing::Timing;

use super::{Completions, DiskEngine};
use crate::HostError;
use crate::clock::Clock;
use base::{BrickId, Time};
use reads::seat::heads::Heads;
use std::os::fd::RawFd;
use std::path::Path;
use store::{Io, IoToken};
use timer::Timer;
use watched::Watched;

/// The emulation of all disks of a brick.
#[derive(Debug)]
pub struct Emulation {
    brick: BrickId,
    disks: usize,
    clock: Clock,
    file: Watched,
    settings: Settings,
    /// Whether the brick knows of the heads that these settings mean.
    is_told: bool,
    timer: Timer,
    timing: Timing,
    real: Completions,
}

impl Emulation {
    /// As `file` says, now and whenever it changes, of so many disks.
    ///
    /// # Errors
    /// When the file cannot be read or says something that cannot be; when the system has no timer left.
    pub fn new(brick: BrickId, file: &Path, disks: usize, clock: Clock) -> Result<Emulation, HostError> {
        let (file, settings) = Watched::open(file, clock.now())?;
        let timer = Timer::new().map_err(crate::error::system("a timer for emulated disks"))?;
        let mut timing = Timing::default();
        timing.set_late(settings.late);
        Ok(Emulation { brick, disks, clock, file, settings, is_told: false, timer, timing, real: Vec::new() })
    }

    /// Becomes readable when an answer is due, or the file is to be looked at.
    pub fn event_fd(&self) -> RawFd {
        self.timer.fd()
    }

    /// A request goes to the real disk with which an emulated drive is done at `due`.
    pub fn asked(&mut self, disk: usize, token: IoToken, due: Time) {
        self.timing.asked(disk, token, due);
    }

    /// Takes what the real disks have answered, and gives what is due.
    pub fn complete(&mut self, engine: &mut DiskEngine, now: Time, done: &mut Completions) {
        if let Some(settings) = self.file.changed(now) {
            self.timing.set_late(settings.late);
            // The same drive goes on with what waits for it.
            self.is_told &= settings.dilate == self.settings.dilate && settings.drive == self.settings.drive;
            self.settings = settings;
        }
        engine.complete(&mut self.real);
        for (disk, answer) in self.real.drain(..) {
            self.timing.answered(now, disk, answer);
        }
        self.timing.due(now, done);
    }

    /// The heads of the disks as they are from now on, none where they are not seen; `None` where nothing has changed.
    pub fn take_heads(&mut self, now: Time) -> Option<Vec<Heads<Io>>> {
        if self.is_told {
            return None;
        }
        self.is_told = true;
        Some(self.settings.heads(self.brick, self.disks, now))
    }

    /// Sees to it that the loop wakes in time for what comes next, here or, at `due`, elsewhere.
    pub fn arm(&mut self, due: Time) {
        let answer = self.timing.deadline().unwrap_or(Time::MAX);
        self.timer.arm(self.clock.now(), due.min(answer).min(self.file.next_look()));
    }

    /// What is emulated now.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What it holds, and how late it was.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }
}
