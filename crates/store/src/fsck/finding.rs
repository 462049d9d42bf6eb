//! What a check can find, and what it means to whoever runs the brick.

use crate::open_error::OpenError;
use base::VolumeId;
use core::fmt;

/// Something that a check has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Where on the disk, in bytes.
    pub offset: u64,
    pub what: What,
    /// What can be done, or was done, about it.
    pub state: State,
}

/// What can be done about a finding, least bad first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// Nothing has to be done.
    Harmless,
    Repaired,
    /// A repair would repair it.
    Repairable,
    /// It cannot be repaired here.
    Beyond,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// One of the two superblocks cannot be read.
    Superblock {
        /// Whether it is the copy in the last sector.
        is_copy: bool,
    },
    /// One of the two journal headers is damaged.
    JournalHeader {
        /// Which, 0 or 1.
        which: u8,
    },
    /// The journal ends in a frame that was not written to its end.
    TornTail,
    /// A brick refuses the disk.
    Refused(OpenError),
    /// Sectors of a metadata page are damaged.
    Metadata {
        /// Whose page it is.
        volume: VolumeId,
        /// The first block that it describes.
        lba: u64,
        /// Blocks whose place or stamps are unknown.
        blocks: u32,
    },
    /// Nothing of a metadata page can be read.
    LostPage,
    /// Two metadata pages claim to describe the same blocks.
    PageTwice {
        volume: VolumeId,
        /// The first block.
        lba: u64,
    },
    /// Two metadata pages claim the same room.
    SlotTwice {
        /// The volume of the second one.
        volume: VolumeId,
        /// Its first block there.
        lba: u64,
    },
    /// Blocks should have content and have no room for it.
    Placeless {
        volume: VolumeId,
        /// The first block.
        lba: u64,
        blocks: u32,
    },
    /// The content of blocks does not match its checksum, or cannot be read.
    Rotten {
        volume: VolumeId,
        /// The first block.
        lba: u64,
        blocks: u32,
    },
    /// The same, of blocks that only the journal knows.
    RottenInJournal {
        volume: VolumeId,
        /// The first block.
        lba: u64,
        blocks: u32,
    },
    /// One of the two copies of notes cannot be read.
    NotesCopy,
    /// The map of metadata pages does not say what the pages say.
    PageMap,
}

impl Finding {
    /// Adds adjacent blocks of the same kind. False when `next` is something else.
    pub(crate) fn take_over(&mut self, next: &Finding) -> bool {
        if self.state != next.state {
            return false;
        }
        match (&mut self.what, &next.what) {
            (What::Rotten { volume, lba, blocks }, What::Rotten { volume: v, lba: l, blocks: b })
            | (
                What::RottenInJournal { volume, lba, blocks },
                What::RottenInJournal { volume: v, lba: l, blocks: b },
            )
            | (What::Placeless { volume, lba, blocks }, What::Placeless { volume: v, lba: l, blocks: b })
            | (What::Metadata { volume, lba, blocks }, What::Metadata { volume: v, lba: l, blocks: b })
                if v == volume && *l == *lba + u64::from(*blocks) =>
            {
                *blocks += b;
                true
            }
            _ => false,
        }
    }
}

impl What {
    /// A word for programs.
    pub fn name(&self) -> &'static str {
        match self {
            What::Superblock { is_copy: false } => "superblock",
            What::Superblock { is_copy: true } => "superblock-copy",
            What::JournalHeader { .. } => "journal-header",
            What::TornTail => "torn-tail",
            What::Refused(_) => "refused",
            What::Metadata { .. } => "metadata",
            What::LostPage => "lost-page",
            What::PageTwice { .. } => "page-twice",
            What::SlotTwice { .. } => "slot-twice",
            What::Placeless { .. } => "placeless",
            What::Rotten { .. } => "rotten",
            What::RottenInJournal { .. } => "rotten-in-journal",
            What::NotesCopy => "notes-copy",
            What::PageMap => "page-map",
        }
    }

    /// The blocks concerned: volume, first block, how many.
    pub fn blocks(&self) -> Option<(VolumeId, u64, u32)> {
        match *self {
            What::Metadata { volume, lba, blocks }
            | What::Placeless { volume, lba, blocks }
            | What::Rotten { volume, lba, blocks }
            | What::RottenInJournal { volume, lba, blocks } => Some((volume, lba, blocks)),
            What::PageTwice { volume, lba } => Some((volume, lba, crate::metadata::PAGE_BLOCKS as u32)),
            What::SlotTwice { volume, lba } => Some((volume, lba, crate::superblock::SLOT_BLOCKS as u32)),
            _ => None,
        }
    }

    /// What it means, and what to do.
    pub fn meaning(&self) -> &'static str {
        match self {
            What::Superblock { .. } => "The disk opens with the other one; without both it would be lost.",
            What::JournalHeader { .. } => "The disk opens with the other one.",
            What::TornTail => {
                "It was never acknowledged, and is what a power cut or a killed process leaves. The brick drops it."
            }
            What::Refused(_) => {
                "Exchange the disk and format it (`brickwork brick format`); its content comes from the other bricks."
            }
            What::Metadata { .. } | What::Placeless { .. } | What::Rotten { .. } => {
                "Reads of these blocks are served by other bricks, and a scrub restores them from there."
            }
            What::LostPage => {
                "Whose blocks it described is unknown, so that this disk cannot tell blocks that were never written from \
                 lost ones. Exchange the disk and format it (`brickwork brick format`)."
            }
            What::PageTwice { .. } | What::SlotTwice { .. } => {
                "The brick refuses the disk. Exchange it and format it (`brickwork brick format`); its content comes from the other \
                 bricks."
            }
            What::RottenInJournal { .. } => {
                "When the write is applied its blocks are unreadable here; a scrub then restores them from other bricks."
            }
            What::NotesCopy => "The brick uses the other copy, and writes both anew when it starts.",
            What::PageMap => {
                "A brick that opened the disk by it would not find blocks. Without it the brick reads all metadata pages, and writes a \
                 new map."
            }
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Superblock { is_copy: false } => write!(f, "the superblock is damaged"),
            What::Superblock { is_copy: true } => write!(f, "the copy of the superblock is damaged"),
            What::JournalHeader { which } => write!(f, "journal header {which} is damaged"),
            What::TornTail => write!(f, "the journal's last frame is incomplete"),
            What::Refused(error) => write!(f, "{error}"),
            What::Metadata { volume, lba, blocks } => {
                write!(f, "metadata of {blocks} blocks of {volume} from block {lba} on are damaged")
            }
            What::LostPage => write!(f, "a metadata page is, or was, damaged as a whole"),
            What::PageTwice { volume, lba } => {
                write!(f, "the metadata of {volume} from block {lba} on are there twice")
            }
            What::SlotTwice { volume, lba } => {
                write!(f, "the room of {volume} from block {lba} on belongs to other blocks, too")
            }
            What::Placeless { volume, lba, blocks } => {
                write!(f, "{blocks} blocks of {volume} from block {lba} on have no place")
            }
            What::Rotten { volume, lba, blocks } => {
                write!(f, "the content of {blocks} blocks of {volume} from block {lba} on is damaged")
            }
            What::PageMap => write!(f, "the map of metadata pages does not say what the pages say"),
            What::NotesCopy => {
                write!(f, "one of two copies of what the brick notes of its groups is damaged")
            }
            What::RottenInJournal { volume, lba, blocks } => write!(
                f,
                "the content of {blocks} blocks of {volume} from block {lba} on, which the journal refers to, is damaged"
            ),
        }
    }
}
