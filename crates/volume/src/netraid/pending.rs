//! Writes under way at a brick, by place; which of them are in each other's way.

use base::{BLOCK, NodeId, Payload, RequestId, Stamp, Time, ViewNumber, VolumeId};
use reads::seat::Stay;
use std::collections::BTreeMap;
use wire::disk::{Blocks, Staged, Token};
use wire::{Change, Decision, Order, Service, Span, WriteId};

/// Where a write begins, and its stamp: names it at one disk. The order is that of places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WriteKey {
    /// The branch that it goes to.
    pub volume: VolumeId,
    /// Its first block.
    pub lba: u64,
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
    pub write: WriteId,
    /// What it does here.
    pub change: Change,
    /// The stamp that the (single) block must have.
    pub base: Option<Stamp>,
    /// Whether old xor new is wanted.
    pub want_delta: bool,
    pub request: RequestId,
    /// Which part of it.
    pub part: u64,
    pub payload: Payload,
    pub service: Service,
    /// What it does where it meets another write under way.
    pub order: Order,
    pub stay: Stay,
}

impl Prepare {
    /// The request for a write that was found staged after a restart.
    pub fn recovered(staged: &Staged) -> Prepare {
        Prepare {
            change: staged.change.clone(),
            request: staged.request,
            part: staged.part,
            ..Prepare::of(staged.write)
        }
    }

    /// A request that nobody made, of which nothing is known but the write.
    pub fn of(write: WriteId) -> Prepare {
        Prepare {
            reply_to: None,
            view: ViewNumber(0),
            write,
            change: Change::Data,
            base: None,
            want_delta: false,
            request: RequestId::default(),
            part: 0,
            payload: Payload::new(),
            service: Service::default(),
            order: Order::default(),
            stay: Stay::from(Time::ZERO),
        }
    }

    /// What goes to stable storage, without the content.
    pub fn staged(&self) -> Staged {
        let (change, request, part) = (self.change.clone(), self.request, self.part);
        Staged { write: self.write, change, request, part }
    }

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
#[derive(Clone, Debug)]
pub enum State {
    /// The stamps of its blocks are being looked up.
    Checking {
        /// Of the question that counts: an earlier one was asked before blocks were copied up.
        token: Token,
    },
    /// It is on its way to stable storage.
    Staging {
        /// Given up meanwhile: it is dropped as soon as it is staged.
        doomed: bool,
        /// What the answer tells of the old content.
        old: Option<OldContent>,
    },
    /// It is on stable storage, and may have been decided elsewhere.
    Staged {
        /// Since when.
        since: Time,
        /// What the answer tells of the old content, kept in case the answer is lost.
        old: Option<OldContent>,
        /// The question for the old content, where it was found staged after a restart.
        looked_up: Option<Token>,
    },
    /// Not a write: a repair that must not be overtaken.
    Mending,
}

impl State {
    /// Found on stable storage at `now`, after a restart.
    pub fn recovered(now: Time) -> State {
        State::Staged { since: now, old: None, looked_up: None }
    }
}

/// What a delta is computed from.
#[derive(Clone, Debug)]
pub struct OldContent {
    /// The stamps of the blocks before the write.
    pub stamps: Vec<Stamp>,
    /// Old content xor new.
    pub delta: Payload,
}

/// A write under way.
#[derive(Clone, Debug)]
pub struct Pending {
    pub prepare: Prepare,
    /// How far it is.
    pub state: State,
}

impl Pending {
    /// Whether it is on stable storage, and not decided.
    pub fn is_staged(&self) -> bool {
        matches!(self.state, State::Staged { .. })
    }

    /// Since when it is on stable storage.
    pub fn staged_since(&self) -> Option<Time> {
        match self.state {
            State::Staged { since, .. } => Some(since),
            _ => None,
        }
    }

    /// Content that the disk is yet to be brought.
    fn checking_bytes(&self) -> usize {
        if self.is_checking() { self.prepare.payload.len() } else { 0 }
    }

    /// Whether the stamps of its blocks are being looked up.
    pub fn is_checking(&self) -> bool {
        matches!(self.state, State::Checking { .. })
    }

    /// Whether it holds the place of a repair.
    pub fn is_mending(&self) -> bool {
        matches!(self.state, State::Mending)
    }
}

/// The writes beside which a read is served: they are not decided.
#[derive(Clone, Debug)]
pub enum Undecided {
    /// Their content goes over what is decided.
    Shown(Vec<(WriteId, Payload)>),
    /// The reader is told which they are.
    Named(Vec<WriteId>),
}

impl Undecided {
    /// Whether what is read shows what it says. Of those that it shows none may have been decided meanwhile, since a later one may
    /// have gone over it. One that it names may: then the reader finds that it is complete.
    pub fn is_still_so(&self, table: &PendingTable) -> bool {
        let is_staged = |write: &WriteId| table.get(&WriteKey::of(write)).is_some_and(Pending::is_staged);
        match self {
            Undecided::Shown(shown) => shown.iter().all(|(write, _)| is_staged(write)),
            Undecided::Named(_) => true,
        }
    }

    /// The names that the reader is told.
    pub fn named(&self) -> Option<&[WriteId]> {
        match self {
            Undecided::Shown(_) => None,
            Undecided::Named(writes) => Some(writes),
        }
    }

    /// Puts what it shows over what was read at `span`.
    pub fn put_over(&self, span: Span, blocks: &mut Blocks) {
        let Undecided::Shown(shown) = self else { return };
        for (WriteId { span: at, .. }, new) in shown {
            let (from, to) = (at.lba.max(span.lba), at.end().min(span.end()));
            let bytes = |blocks: u64| blocks as usize * BLOCK;
            let (before, middle) = (bytes(from - span.lba), bytes(to - from));
            let mut content = blocks.content.slice(0, before);
            content.append(&new.slice(bytes(from - at.lba), middle));
            content.append(&blocks.content.slice(before + middle, blocks.content.len() - before - middle));
            blocks.content = content;
            blocks.unreadable.retain(|block| !(from..to).contains(&(span.lba + u64::from(*block))));
        }
    }
}

/// All writes under way at a disk.
#[derive(Debug, Default)]
pub struct PendingTable {
    by_place: BTreeMap<WriteKey, Pending>,
    /// Content of those that are being checked.
    checking_bytes: usize,
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

    pub fn insert(&mut self, pending: Pending) {
        self.checking_bytes += pending.checking_bytes();
        let before = self.by_place.insert(pending.prepare.key(), pending);
        assert!(before.is_none(), "a write is under way once");
    }

    pub fn remove(&mut self, key: &WriteKey) -> Option<Pending> {
        let pending = self.by_place.remove(key)?;
        self.checking_bytes -= pending.checking_bytes();
        Some(pending)
    }

    /// A write that was checked is being staged.
    pub fn begin_staging(&mut self, key: &WriteKey, old: Option<OldContent>) -> Option<&mut Pending> {
        let pending = self.by_place.get_mut(key)?;
        self.checking_bytes -= pending.checking_bytes();
        pending.state = State::Staging { doomed: false, old };
        Some(pending)
    }

    /// How much content the disk is yet to be brought.
    pub fn checking_bytes(&self) -> usize {
        self.checking_bytes
    }

    /// Asserts what must hold.
    pub fn check(&self) {
        let bytes = self.by_place.values().map(Pending::checking_bytes).sum();
        assert_eq!(self.checking_bytes, bytes, "content that is being checked is counted");
    }

    pub fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

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

    /// What writes on stable storage put in the place of the blocks at `span`. `None` where that is not known here any more, since the content
    /// is with the store alone, or the blocks are parity.
    pub fn content_over(&self, span: Span) -> Option<Undecided> {
        let content = |pending: &Pending| {
            let Prepare { write, change, payload, .. } = &pending.prepare;
            match change {
                Change::Zero => Some((*write, Payload::zeros(write.span.bytes()))),
                Change::Data if payload.len() == write.span.bytes() => Some((*write, payload.clone())),
                _ => None,
            }
        };
        self.in_doubt(span).map(content).collect::<Option<Vec<_>>>().map(Undecided::Shown)
    }

    /// Those on stable storage that touch `span`: a read of it must wait for their decision.
    pub fn in_doubt(&self, span: Span) -> impl Iterator<Item = &Pending> {
        self.overlapping(span).filter(|pending| pending.is_staged())
    }
}
