//! Disks: files and block devices, through io_uring or a few threads.
//!
//! Reading order: [`file`](mod@file) (opening, locking, making), `place` (which disk it is), `operation` (what is under way), `ring`, `plain`,
//! [`emulated`] (answers held back), `offline` (for checks).

pub mod emulated;
pub mod file;
mod offline;
mod operation;
mod place;
mod plain;
mod ring;

pub use file::{DiskBefore, DiskFile};
pub use operation::Completions;

use crate::HostError;
use crate::options::IoEngine;
use plain::Plain;
use ring::Ring;
use std::os::fd::RawFd;
use store::Io;

/// All disks of a brick. Nothing here blocks.
pub enum DiskEngine {
    Ring(Box<Ring>),
    Plain(Plain),
}

impl DiskEngine {
    /// An engine for `disks`, whose numbers are their places in the vector.
    ///
    /// # Errors
    /// When io_uring is asked for and not to be had, or the system is out of threads or descriptors.
    pub fn new(engine: IoEngine, disks: Vec<DiskFile>) -> Result<DiskEngine, HostError> {
        let ring = match engine {
            IoEngine::Plain => return plain(disks),
            IoEngine::Auto | IoEngine::IoUring => Ring::new(&disks),
        };
        match (ring, engine) {
            (Ok(ring), _) => Ok(DiskEngine::Ring(Box::new(ring.with_files(disks)))),
            (Err(error), IoEngine::Auto) => {
                tracing::info!(%error, "no io_uring here; disk I/O goes through threads");
                plain(disks)
            }
            (Err(source), _) => {
                Err(HostError::System { what: "io_uring (set `io = \"plain\"` to do without)", source })
            }
        }
    }

    /// Becomes readable when answers have come.
    pub fn event_fd(&self) -> RawFd {
        match self {
            DiskEngine::Ring(ring) => ring.event_fd(),
            DiskEngine::Plain(plain) => plain.event_fd(),
        }
    }

    /// Queues a request; it is asked at the next [`DiskEngine::submit`].
    pub fn push(&mut self, disk: usize, io: Io) {
        match self {
            DiskEngine::Ring(ring) => ring.push(disk, io),
            DiskEngine::Plain(plain) => plain.push(disk, io),
        }
    }

    /// Asks all that was queued: one system call.
    pub fn submit(&mut self) {
        match self {
            DiskEngine::Ring(ring) => ring.submit(),
            DiskEngine::Plain(plain) => plain.submit(),
        }
    }

    /// Takes the answers that have come: no system call.
    pub fn complete(&mut self, done: &mut Completions) {
        match self {
            DiskEngine::Ring(ring) => ring.complete(done),
            DiskEngine::Plain(plain) => plain.complete(done),
        }
    }

    /// Requests that are not answered.
    pub fn in_flight(&self) -> usize {
        match self {
            DiskEngine::Ring(ring) => ring.in_flight(),
            DiskEngine::Plain(plain) => plain.in_flight(),
        }
    }

    /// A disk whose file system had no room for a write.
    pub fn full_disk(&self) -> Option<&DiskFile> {
        let files = match self {
            DiskEngine::Ring(ring) => ring.files(),
            DiskEngine::Plain(plain) => plain.files(),
        };
        files.iter().find(|file| file.is_full())
    }

    pub fn name(&self) -> &'static str {
        match self {
            DiskEngine::Ring(_) => "io_uring",
            DiskEngine::Plain(_) => "plain",
        }
    }
}

fn plain(disks: Vec<DiskFile>) -> Result<DiskEngine, HostError> {
    Plain::new(disks).map(DiskEngine::Plain).map_err(crate::error::system("threads for disk I/O"))
}
