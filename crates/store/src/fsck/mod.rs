//! Checks a disk that no brick is using: superblocks, journal, metadata, and the checksum of every block.
//!
//! It reads through [`Sectors`], so that it needs neither files nor time. What the journal says is found out by the very code
//! that opens a disk; what lies at home is then compared with it. A repair first makes the disk openable, lets a store bring
//! home what its journal holds, and then writes down as lost what cannot be read, so that a brick fetches it from others.
//!
//! Reading order: [`finding`] (what can be found, and what it means), `scan` (how it is found), `repair`.
//!
//! Deliberately absent: content from elsewhere. A lost block stays lost until the brick runs among its peers.

pub mod finding;
mod repair;
mod scan;

pub use finding::{Finding, State, What};

use crate::io::IoFault;
use crate::open_error::OpenError;
use base::{BrickId, ClusterId};
use bytes::Bytes;
use scan::Scan;

/// The disk as a check sees it. Offsets and lengths are multiples of 4096 bytes.
pub trait Sectors {
    /// Reads `length` bytes.
    ///
    /// # Errors
    /// [`IoFault::Unreadable`] when some of these sectors cannot be read and others can.
    fn read(&mut self, offset: u64, length: usize) -> Result<Bytes, IoFault>;
    /// Writes. Only a repair does.
    ///
    /// # Errors
    /// What the disk says.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), IoFault>;
    /// Puts what was written on stable storage.
    ///
    /// # Errors
    /// What the disk says.
    fn sync(&mut self) -> Result<(), IoFault>;
}

/// Whose disk it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The cluster.
    pub cluster: ClusterId,
    /// The brick.
    pub brick: BrickId,
    /// Which of the brick's disks.
    pub disk_index: u16,
}

/// What is asked of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FsckOptions {
    /// The size of the disk as it is.
    pub disk_bytes: u64,
    /// Whose it has to be; anybody's when absent.
    pub owner: Option<Owner>,
    /// Whether to repair what can be repaired.
    pub repair: bool,
}

/// What a check has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FsckReport {
    /// Whose disk it is.
    pub owner: Owner,
    /// What tells it from other disks; see [`Store::identity`](crate::Store::identity).
    pub identity: u64,
    /// What was found, in the order of the check; at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// How many more there were.
    pub left_out: u64,
    /// Bytes of journal in use.
    pub journal_bytes: u64,
    /// Writes in doubt that the journal holds.
    pub staged_writes: u64,
    /// Metadata pages looked at.
    pub pages: u64,
    /// Blocks whose content was compared with its checksum.
    pub blocks: u64,
    /// Blocks that were, or now are, known to be lost on this disk.
    pub lost_blocks: u64,
    worst: Option<State>,
}

/// The most findings that a report names.
pub const FINDINGS_MAX: usize = 10_000;

/// How a check has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Nothing is wrong.
    Clean,
    /// All that was wrong is repaired.
    Repaired,
    /// Something is wrong still.
    Damaged,
}

impl FsckReport {
    /// How it has ended.
    pub fn outcome(&self) -> Outcome {
        match self.worst {
            None | Some(State::Harmless) => Outcome::Clean,
            Some(State::Repaired) => Outcome::Repaired,
            Some(State::Repairable | State::Beyond) => Outcome::Damaged,
        }
    }

    fn add(&mut self, finding: Finding) {
        self.worst = self.worst.max(Some(finding.state));
        if self.findings.last_mut().is_some_and(|last| last.take_over(&finding)) {
            return;
        }
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.left_out += 1;
        }
    }
}

/// Checks a disk, and repairs it when asked. `progress` is told `(bytes done, bytes in all)`.
///
/// # Errors
/// When the disk cannot be checked: it is nobody's, somebody else's, of a newer format, cut short, or does not answer.
pub fn fsck(
    disk: &mut dyn Sectors,
    options: &FsckOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<FsckReport, OpenError> {
    let mut scan = Scan::new(disk, options, progress)?;
    scan.headers()?;
    let opened = scan.journal()?;
    scan.metadata(opened.as_deref())?;
    scan.end()
}
