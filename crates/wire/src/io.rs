//! What clients ask of a volume through a gateway, and what they are answered.

use crate::wire_enum;

/// A client's I/O, in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Io {
    /// Reads `length` bytes.
    Read {
        offset: u64,
        length: u32,
    },
    Write {
        offset: u64,
    },
    /// Makes the bytes zero, and gives whole blocks back.
    Zero {
        offset: u64,
        length: u64,
    },
    /// Which blocks hold data?
    Allocation {
        offset: u64,
        /// How many bytes at the most.
        length: u32,
    },
}

/// What a client's I/O gives back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IoReply {
    /// Done; the content of a read travels beside it.
    Done,
    /// `(bytes, holds data)` from the offset on.
    Allocation { runs: Vec<(u64, bool)> },
}

/// Why a client's I/O failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IoError {
    /// The volume's [`crate::IoTimeout`] is over. A write may have taken effect, or may yet: it is in doubt.
    #[error("not served within the volume's io timeout; a write may have taken effect or not")]
    TimedOut,
    /// Bytes outside the volume, a length of zero, or more than is read at a time.
    #[error("the request is outside the volume, or reads more than 32 MiB")]
    OutOfRange,
    /// The bricks are full.
    #[error("no space left on the bricks")]
    NoSpace,
    /// Not enough good copies are left to make out the content.
    #[error("the blocks cannot be read from any member")]
    Unreadable,
    /// The volume is not known here (any more).
    #[error("no such volume")]
    NoVolume,
    /// A disk failed and nobody else can serve.
    #[error("input/output error")]
    Failed,
    /// A write to a snapshot, or to a volume that was made read-only.
    #[error("the volume is read-only")]
    ReadOnly,
}

wire_enum!(Io {
    0 => Read { offset, length }, 1 => Write { offset }, 2 => Zero { offset, length }, 3 => Allocation { offset, length },
});
wire_enum!(IoReply { 0 => Done, 1 => Allocation { runs } });
wire_enum!(IoError { 0 => OutOfRange, 1 => NoSpace, 2 => Unreadable, 3 => NoVolume, 4 => Failed, 5 => ReadOnly, 6 => TimedOut });
