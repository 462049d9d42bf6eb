//! Why a disk is refused, in words for whoever runs the brick.

use crate::io::IoFault;
use base::{BrickId, ClusterId};

/// Why a disk is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// No superblock.
    #[error("the disk holds no Brickwork superblock: format it, or name the right disk")]
    NotFormatted,
    /// Both superblocks are damaged.
    #[error(
        "both superblocks of the disk are damaged: replace the disk, its content comes back from the other bricks"
    )]
    SuperblockCorrupt,
    #[error("the disk belongs to cluster {found}, not to {expected}: name the right disk")]
    OtherCluster {
        found: ClusterId,
        /// Whose it should be.
        expected: ClusterId,
    },
    #[error("the disk belongs to {found}, not to {expected}: name the right disk")]
    OtherBrick {
        found: BrickId,
        /// Whose it should be.
        expected: BrickId,
    },
    /// Another one of the brick's disks.
    #[error("the disk is number {found} of its brick, not {expected}: put the brick's disks in their order")]
    OtherDisk {
        found: u16,
        /// Which it should be.
        expected: u16,
    },
    /// Written by a later version.
    #[error("the disk has format {found}, this version knows up to {known}: use a newer brickwork")]
    NewerFormat {
        found: u32,
        /// The newest format that this code knows.
        known: u32,
    },
    /// Smaller than it was.
    #[error(
        "the disk has {disk_bytes} bytes, it was formatted with {needed_bytes}: it was cut short; restore its size"
    )]
    Truncated {
        disk_bytes: u64,
        /// The size it had.
        needed_bytes: u64,
    },
    /// No journal header is whole.
    #[error(
        "both journal headers of the disk are damaged: replace the disk, its content comes back from the other bricks"
    )]
    JournalHeaderCorrupt,
    /// A journal frame that was on stable storage is damaged: what was acknowledged is missing.
    #[error(
        "the journal is damaged at byte {offset} of the disk, and acknowledged writes with it: replace the disk, its \
         content comes back from the other bricks"
    )]
    JournalCorrupt {
        /// Where, in bytes from the disk's start.
        offset: u64,
    },
    /// Two metadata pages contradict each other.
    #[error(
        "the metadata at byte {offset} of the disk contradict others: replace the disk, its content comes back from the \
         other bricks"
    )]
    MetadataCorrupt {
        /// Where, in bytes from the disk's start.
        offset: u64,
    },
    /// Both copies of notes are damaged: what this brick promised is missing.
    #[error(
        "both copies of what the brick noted of its groups are damaged, the second at byte {offset} of the disk: replace the disk, its \
         content comes back from the other bricks"
    )]
    NotesCorrupt {
        /// Where, in bytes from the disk's start.
        offset: u64,
    },
    /// The disk does not answer.
    #[error("the disk failed at byte {offset} while it was being opened: {fault}")]
    Io {
        /// Where, in bytes from the disk's start.
        offset: u64,
        fault: IoFault,
    },
}
