//! What a check is asked, through what it sees the disk, and what it tells.

use super::finding::{Finding, State};
use crate::io::IoFault;
use base::{BrickId, ClusterId};
use bytes::Bytes;

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
    pub cluster: ClusterId,
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
    Clean,
    /// All that was wrong is repaired.
    Repaired,
    /// Something is wrong still.
    Damaged,
}

impl FsckReport {
    /// Nothing is found yet.
    pub(super) fn new(owner: Owner, identity: u64) -> FsckReport {
        FsckReport {
            owner,
            identity,
            findings: Vec::new(),
            left_out: 0,
            journal_bytes: 0,
            staged_writes: 0,
            pages: 0,
            blocks: 0,
            lost_blocks: 0,
            worst: None,
        }
    }

    /// Whether anything that was found needed or needs a repair.
    pub(super) fn is_damage_found(&self) -> bool {
        self.worst >= Some(State::Repaired)
    }

    /// How it has ended.
    pub fn outcome(&self) -> Outcome {
        match self.worst {
            None | Some(State::Harmless) => Outcome::Clean,
            Some(State::Repaired) => Outcome::Repaired,
            Some(State::Repairable | State::Beyond) => Outcome::Damaged,
        }
    }

    pub(super) fn add(&mut self, finding: Finding) {
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
