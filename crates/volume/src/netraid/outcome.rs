//! What operations are called, who waits for them, and what they end with. Knows no operation.

use base::{GroupId, Payload, Stamp};
use wire::{Completion, Inventory, IoError, Slots, Span, WriteId};

/// Names an operation of one coordinator. Its number is never used again, also not for a question.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OperationId(pub(crate) u64);

/// Who waits for an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parent {
    /// A part of a client's request, `(request, volume block)`, or of a brick's job, `(job, part)`.
    Part(u64, u64),
    /// Another operation, which hears of the end by `on_child`.
    Operation(OperationId),
    /// The end is of no interest to anyone.
    Nobody,
}

/// What an operation does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Progress<T> {
    Ended(T),
    /// It waits; its timer stays as it was.
    Waits,
    /// It waits, and is woken after this time instead of when it was to be woken before.
    WaitsFor(core::time::Duration),
    /// It waits, and only answers and children wake it.
    Sleeps,
}

impl<T> Progress<T> {
    /// The same, of an operation whose end is of another type.
    pub(crate) fn map<U>(self, end: impl FnOnce(T) -> U) -> Progress<U> {
        match self {
            Progress::Ended(outcome) => Progress::Ended(end(outcome)),
            Progress::Waits => Progress::Waits,
            Progress::WaitsFor(delay) => Progress::WaitsFor(delay),
            Progress::Sleeps => Progress::Sleeps,
        }
    }
}

/// Blocks that were read or reconstructed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetched {
    /// The blocks.
    pub content: Payload,
    /// If they were wanted, one a block; for parity, one a data unit and block.
    pub stamps: Vec<Stamp>,
}

/// What a unit holds that is to be written, and the parity of its rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OldRow {
    /// Of the unit.
    pub(crate) content: Payload,
    /// The stamps of all data units, a vector a block.
    pub(crate) vectors: Vec<Stamp>,
    /// By slot.
    pub(crate) parities: Vec<(u8, Payload)>,
}

/// How a write ended that did not fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    Done,
    /// It did not, and never will: what it was computed from is not there any more.
    Changed,
    /// It did not, and has no more patience: it was refused as often as its manner allows. It may begin anew for the same request.
    Refused,
    /// This part of the request did by an earlier attempt, and the others may have to be made still.
    HadTakenEffect {
        part: u64,
    },
    /// It did not, and may begin anew: a member has to be repaired first.
    Lacks(Lack),
    /// All members that take part have it, and it is neither decided nor given up: its record decides.
    Held(Held),
}

/// Blocks that a member cannot read, or lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lack {
    pub(crate) group: GroupId,
    pub(crate) slot: u8,
    pub(crate) span: Span,
}

/// A write that waits for its record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    pub(crate) write: WriteId,
    /// The members that have it.
    pub(crate) slots: Slots,
}

/// Whether nothing of some writes is in doubt at any member, nor will be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllDecided {
    Yes,
    /// Some member did not say so.
    Unknown,
}

/// It was found out which records are needed no more, or that was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Released;

/// What became of a write in doubt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    Committed,
    /// It never will.
    Aborted,
    /// A new view began first, whose making decided it.
    ByView,
}

/// Whether all members that take part in a write have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Completeness {
    /// They have, and it takes effect.
    Complete,
    /// One did not when it was asked.
    Incomplete,
    /// That cannot be said: later writes went over it, or a new view began.
    Unknown,
}

/// What was found out of the write with this stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Looked {
    pub(crate) stamp: Stamp,
    pub(crate) completeness: Completeness,
}

/// The latest stamp of some blocks, where somebody said it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatestStamp(pub(crate) Option<Stamp>);

/// How a repair ended that did not fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repaired {
    /// The member took the content.
    Taken,
    /// The member has something newer, or a write under way there.
    Changed,
    /// A new view began first.
    ByView,
}

/// The stamps that a member's blocks should have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// As many a block as the member keeps.
    pub stamps: Vec<Stamp>,
    /// The blocks, from 0, of which nobody can say; their stamps are zero here.
    pub unknown: Vec<u32>,
}

/// A page of what a member has.
#[derive(Clone, Debug)]
pub enum Page {
    /// Stretches that hold stamps.
    Stretches(Inventory),
    /// Requests that took effect.
    Completions(Vec<Completion>),
}

/// What an operation of any kind ended with.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A read, or a reconstruction.
    Read(Result<Fetched, IoError>),
    Written(Result<Written, IoError>),
    /// What a small write replaces.
    OldRow(Result<OldRow, IoError>),
    /// A write in doubt.
    Settled(Settled),
    Looked(Looked),
    LatestStamp(LatestStamp),
    Repaired(Result<Repaired, IoError>),
    /// Which blocks hold data: `(blocks, holds data)`.
    Allocation(Vec<(u32, bool)>),
    Expected(Expected),
    AllDecided(AllDecided),
    Released(Released),
    /// A page of what a member has.
    Page(Result<Page, IoError>),
    /// It was ended from outside: its volume is gone, or its group is not known. An operation hears this of those that it began on other groups; of
    /// its own group or volume it would be ended with them.
    Gone(IoError),
}

/// What an operation may hear of those that it begins: the types of their ends, and no others.
pub trait Child: Sized {
    /// `None` where no operation that this one begins ends so.
    fn from_outcome(outcome: Outcome) -> Option<Self>;
}

/// The children of an operation that begins none.
pub enum NoChild {}

impl Child for NoChild {
    fn from_outcome(_: Outcome) -> Option<NoChild> {
        None
    }
}

/// Each type of end is a variant of [`Outcome`], and may be what a parent hears.
macro_rules! ends {
    ($($type:ty => $variant:ident),* $(,)?) => {$(
        impl From<$type> for Outcome {
            fn from(end: $type) -> Outcome {
                Outcome::$variant(end)
            }
        }
        impl Child for $type {
            fn from_outcome(outcome: Outcome) -> Option<$type> {
                match outcome {
                    Outcome::$variant(end) => Some(end),
                    _ => None,
                }
            }
        }
    )*};
}

ends! {
    Result<Fetched, IoError> => Read,
    Result<Written, IoError> => Written,
    Result<OldRow, IoError> => OldRow,
    Settled => Settled,
    Looked => Looked,
    LatestStamp => LatestStamp,
    Result<Repaired, IoError> => Repaired,
    Vec<(u32, bool)> => Allocation,
    Expected => Expected,
    AllDecided => AllDecided,
    Released => Released,
    Result<Page, IoError> => Page,
}
