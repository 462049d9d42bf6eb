//! The words between a brick's participant and the store of one of its disks.
//!
//! The store keeps *versioned blocks* with *staged writes* on top: [`Command::Stage`] puts a write on stable storage
//! beside the committed content, [`Command::Apply`] makes it the committed content, [`Command::Drop`] forgets it.
//! Applying and dropping are lazy: after a crash a write may be staged again that was applied or dropped shortly
//! before, and the participant finds out its fate anew. Where it must not be in doubt again (a promise to the directory
//! that lists all that is) a [`Command::Barrier`] comes first. Notes are small durable facts of the participant, and
//! may overtake what is lazy.

use crate::{Change, Completion, Span, WriteId, wire_enum, wire_struct};
use base::{BrickId, Payload, RequestId, Stamp, VolumeId};
use std::sync::Arc;

/// Names the answer to a command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub u64);

/// A write as it is kept beside the committed content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Staged {
    pub write: WriteId,
    /// What it does to this disk's blocks.
    pub change: Change,
    /// The client's request that it is part of.
    pub request: RequestId,
    /// Which part of it.
    pub part: u64,
}

/// Who could serve a read, this brick among them.
pub type Holders = Arc<[BrickId]>;

/// A read, the same at every holder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ReadId {
    /// Who asks: a gateway or a client.
    pub asker: u64,
    pub sequence: u64,
}

/// A read, and how often it was asked for before: claims of an earlier attempt do not touch a later one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Attempt {
    pub read: ReadId,
    /// 0 at first.
    pub number: u8,
}

/// Says of a read at a disk that other bricks were asked for it as well: as long as it waits there, another brick may claim
/// it, and it is answered with [`StoreError::Left`] then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contested {
    /// How claims name the read.
    pub attempt: Attempt,
    pub holders: Holders,
}

/// What the participant asks of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Puts a write on stable storage. Room for its application is reserved. Answered by [`Reply::Staged`].
    Stage {
        token: Token,
        staged: Staged,
        /// The content, delta, or nothing.
        payload: Payload,
        /// Room that is for others: with less left over, the answer is [`StoreError::NoRoomYet`].
        kept_bytes: usize,
    },
    /// A staged write becomes the committed content at once (for reads), durably later. Not answered.
    Apply { stamp: Stamp },
    /// A staged write is forgotten. Not answered.
    Drop { stamp: Stamp },
    /// Puts content with given stamps in place at once, durably: a repair. Without content the blocks become unreadable:
    /// what these stamps name is lost. Answered by [`Reply::Staged`].
    Mend {
        token: Token,
        /// The blocks.
        span: Span,
        /// Stamps a block.
        width: u8,
        /// The stamps, `width` a block.
        stamps: Vec<Stamp>,
        /// The content, or nothing.
        payload: Payload,
    },
    /// These blocks of a version of an object are as if they were never written, durably, and what they took is given back. Answered by
    /// [`Reply::Staged`].
    Erase {
        token: Token,
        /// The blocks.
        span: Span,
    },
    /// Committed stamps and, if wanted, content. Answered by [`Reply::Read`].
    Read {
        token: Token,
        /// The blocks.
        span: Span,
        /// Stamps a block.
        width: u8,
        /// Whether content is wanted.
        content: bool,
        /// Set where other bricks were asked for the same, and the disk chooses when to serve it: the store puts it on the
        /// one request that the read leads to.
        contested: Option<Contested>,
    },
    /// Which blocks hold data. Answered by [`Reply::Allocation`].
    Allocation {
        token: Token,
        /// The blocks; may be longer than [`Span::BLOCKS_MAX`].
        span: Span,
    },
    /// Sets (or with `None` removes) a note, durably. Answered by [`Reply::Noted`].
    Note { token: Token, key: Vec<u8>, value: Option<Vec<u8>> },
    /// Says when every [`Command::Apply`] and [`Command::Drop`] that was asked before is durable: from then on no crash
    /// shows any of these writes as staged again. Answered by [`Reply::Noted`], in the order in which barriers are asked.
    Barrier { token: Token },
    /// Gives all space of a volume, or of one stretch of it, back. Not answered.
    Discard {
        volume: VolumeId,
        /// Which [`Span::STRETCH_BLOCKS`] of it; all without.
        stretch: Option<u64>,
    },
    /// These blocks are served from another member's memory: they need not be kept in this one's. Not answered.
    Forget {
        /// The blocks.
        span: Span,
    },
    /// Which stretches hold any stamp? Answered by [`Reply::Inventory`].
    Inventory {
        token: Token,
        /// Those after this one, in order.
        after: Option<(VolumeId, u64)>,
    },
    /// Reads blocks from where they are at home on the disk and checks them, past any cache. Answered by
    /// [`Reply::Read`], without content.
    Verify {
        token: Token,
        /// The blocks.
        span: Span,
        /// Stamps a block.
        width: u8,
    },
    /// Parts of requests that took effect at other members count as having taken effect here, durably. Answered by
    /// [`Reply::Noted`].
    Remember { token: Token, completions: Vec<Completion> },
    /// Parts of requests that took effect are still of interest: they are forgotten as late as if they took effect now. Not answered.
    Refresh { completions: Vec<Completion> },
    /// About so many journalled blocks may be written to their final places now. One for each
    /// [`Reply::WantsToDestage`]. Answered by [`Reply::Destaged`].
    Destage { token: Token, blocks: u32 },
}

/// What the store answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The write is on stable storage, or why not.
    Staged {
        token: Token,
        /// What became of it.
        result: Result<(), StoreError>,
    },
    /// Committed blocks.
    Read {
        token: Token,
        /// What became of it.
        result: Result<Blocks, StoreError>,
    },
    /// Runs `(blocks, holds data)`.
    Allocation {
        token: Token,
        /// What became of it.
        result: Result<Vec<(u32, bool)>, StoreError>,
    },
    /// The note, or all before the barrier, is on stable storage.
    Noted {
        token: Token,
        /// What became of it.
        result: Result<(), StoreError>,
    },
    /// Stretches that hold stamps.
    Inventory {
        token: Token,
        /// `(volume, stretch)` in order, at most [`INVENTORY_MAX`]; fewer are the end.
        result: Result<Vec<(VolumeId, u64)>, StoreError>,
    },
    /// About so many journalled blocks are to be written to their final places, and wait for their turn. The store goes on without one when something
    /// waits for the room that this gives, in the journal or on the disk.
    WantsToDestage { blocks: u32 },
    /// What was begun by [`Command::Destage`] is written.
    Destaged { token: Token },
    /// Until another such answer comes, content of so many bytes may be staged or mended; all that comes, if it is [`u64::MAX`], as at the
    /// beginning. Whoever asks for more all the same is served, or gets [`StoreError::NoRoomYet`].
    Room { bytes: u64 },
    /// So many blocks were brought home, and the disk worked on that for so long. What they waited before is no part of it.
    Home { blocks: u64, took_ns: u64 },
    /// The disk failed for good: it answers every command with [`StoreError::Failed`] from now on.
    Broken { why: String },
}

/// Blocks as they are committed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Blocks {
    /// The stamps, `width` a block; zero for blocks never written or unreadable.
    pub stamps: Vec<Stamp>,
    /// The content, if it was wanted; zeros for blocks never written or unreadable.
    pub content: Payload,
    /// The blocks, from 0, whose content does not match its checksum (when content was wanted) or whose stamps
    /// cannot be read.
    pub unreadable: Vec<u32>,
}

/// Why a command failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// No room for data.
    #[error("the disk is full")]
    NoSpace,
    /// No room for a write until earlier ones are decided or in their final places.
    #[error("the disk has no room before earlier writes are in their places")]
    NoRoomYet,
    /// The store's queues are full, or these blocks are being given back: whoever asks again is served.
    #[error("the disk is busy")]
    Busy,
    /// Another brick serves this contested read.
    #[error("another brick serves it")]
    Left,
    #[error("the disk failed")]
    Failed,
}

/// The most parts of requests of one client that a store remembers to have taken effect.
pub const CLIENT_COMPLETIONS_MAX: usize = 4096;

/// The note that holds a stamp: about writes up to it a brick has no say after a restart, unless it remembers them. Participants set it,
/// and a store raises it to the latest stamp that it has forgotten.
pub const HORIZON_NOTE: &[u8] = b"h";

/// The most stretches in one [`Reply::Inventory`].
pub const INVENTORY_MAX: usize = 4096;

/// What a store found on its disk when it started: what the participant must know again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// Writes that are staged: in doubt.
    pub staged: Vec<Staged>,
    /// Parts of requests that took effect here, in the order in which they would be forgotten: what was told first, of all and
    /// beyond [`CLIENT_COMPLETIONS_MAX`] of a client. What is remembered again is as new.
    pub completions: Vec<Completion>,
    /// Of how many the store forgets one for each that it is told.
    pub completions_max: usize,
    pub notes: Vec<(Vec<u8>, Vec<u8>)>,
}

wire_struct!(Staged { write, change, request, part });
wire_enum!(StoreError { 0 => NoSpace, 1 => Busy, 2 => Failed, 3 => Left, 4 => NoRoomYet });
