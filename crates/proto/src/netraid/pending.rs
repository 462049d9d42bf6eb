//! Writes under way at a brick, by place; which of them are in each other's way.

use base::{NodeId, Payload, RequestId, Stamp, Time, ViewNumber, VolumeId};
use std::collections::BTreeMap;
use wire::{Change, Decision, Span, WriteId};

/// Where a write begins, and its stamp: names it at one disk. The order is that of places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WriteKey {
    /// The branch that it goes to.
    pub volume: VolumeId,
    /// Its first block.
    pub lba: u64,
    /// Its stamp.
    pub stamp: Stamp,
}

impl WriteKey {
    /// The key of a write.
    pub fn of(write: &WriteId) -> WriteKey {
        WriteKey { volume: write.span.volume, lba: write.span.lba, stamp: write.stamp }
    }

    /// What comes before every write that begins at this block.
    fn before(volume: VolumeId, lba: u64) -> WriteKey {
        WriteKey { volume, lba, stamp: Stamp::ZERO }
    }
}

impl From<&Decision> for WriteKey {
    fn from(decision: &Decision) -> WriteKey {
        WriteKey { volume: decision.volume, lba: decision.lba, stamp: decision.stamp }
    }
}

/// A gateway's request to prepare a write.
#[derive(Clone, Debug)]
pub struct Prepare {
    /// Whom to answer, and which question; `None` for writes found again after a restart.
    pub reply_to: Option<(NodeId, u64)>,
    /// The view under which it was made.
    pub view: ViewNumber,
    /// The write.
    pub write: WriteId,
    /// What it does here.
    pub change: Change,
    /// The stamp that the (single) block must have.
    pub base: Option<Stamp>,
    /// Whether old xor new is wanted.
    pub want_delta: bool,
    /// The client's request.
    pub request: RequestId,
    /// Which part of it.
    pub part: u64,
    /// The content.
    pub payload: Payload,
}

impl Prepare {
    /// Where, and which stamp.
    pub fn key(&self) -> WriteKey {
        WriteKey::of(&self.write)
    }

    /// The stamps' entries that it changes, as a set of bits. Changes of disjoint entries of a parity block commute.
    pub fn lanes(&self) -> u32 {
        match self.change {
            Change::Xor { index, .. } => 1 << (index & 31),
            _ => u32::MAX,
        }
    }
}

/// How far a write is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The stamps of its blocks are being looked up.
    Checking,
    /// It is on its way to stable storage.
    Staging,
    /// It is on stable storage, and may have been decided elsewhere.
    Staged,
    /// Not a write: a repair that must not be overtaken.
    Mending,
}

/// A write under way.
#[derive(Clone, Debug)]
pub struct Pending {
    /// What was asked.
    pub prepare: Prepare,
    /// How far it is.
    pub state: State,
    /// Given up before it was staged: dropped as soon as it is.
    pub doomed: bool,
    /// The token of the store command it waits for.
    pub token: u64,
    /// Since when it is staged.
    pub since: Time,
    /// The answer's stamps and delta, kept in case the answer is lost.
    pub answer: Option<(Vec<Stamp>, Payload)>,
}

/// All writes under way at a disk.
#[derive(Debug, Default)]
pub struct PendingTable {
    by_place: BTreeMap<WriteKey, Pending>,
}

impl PendingTable {
    /// The write, if it is under way.
    pub fn get(&self, key: &WriteKey) -> Option<&Pending> {
        self.by_place.get(key)
    }

    /// The write, to change it.
    pub fn get_mut(&mut self, key: &WriteKey) -> Option<&mut Pending> {
        self.by_place.get_mut(key)
    }

    /// Adds a write.
    pub fn insert(&mut self, pending: Pending) {
        let before = self.by_place.insert(pending.prepare.key(), pending);
        assert!(before.is_none(), "a write is under way once");
    }

    /// Ends a write.
    pub fn remove(&mut self, key: &WriteKey) -> Option<Pending> {
        self.by_place.remove(key)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// All, by place.
    pub fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.by_place.values()
    }

    /// Those that touch a block of `span`.
    pub fn overlapping(&self, span: Span) -> impl Iterator<Item = &Pending> {
        // No span is longer than BLOCKS_MAX, so none that begins further before can reach in.
        let from = span.lba.saturating_sub(u64::from(Span::BLOCKS_MAX) - 1);
        self.by_place
            .range(WriteKey::before(span.volume, from)..WriteKey::before(span.volume, span.end()))
            .map(|(_, pending)| pending)
            .filter(move |pending| pending.prepare.write.span.overlaps(&span))
    }

    /// Those on stable storage that touch `span`: a read of it must wait for their decision.
    pub fn in_doubt(&self, span: Span) -> impl Iterator<Item = &Pending> {
        self.overlapping(span).filter(|pending| pending.state == State::Staged)
    }
}
