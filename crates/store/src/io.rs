//! What a store asks of its disk: reads and writes of whole 4 KiB sectors, and flushes.

use base::Payload;
use bytes::Bytes;
use wire::disk::Contested;

/// Names a request to a disk until it is answered: no two requests that are outstanding at one disk have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct IoToken(pub u64);

/// A request to the disk. Offsets and lengths are multiples of 4096 bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Io {
    pub token: IoToken,
    pub kind: IoKind,
}

/// What is asked of the disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IoKind {
    /// Reads `length` bytes.
    Read {
        /// From byte.
        offset: u64,
        length: usize,
        /// Set where another brick may claim what is read as long as the request waits: it is answered with
        /// [`IoFault::Left`] then.
        contested: Option<Contested>,
    },
    /// Writes. Not on stable storage, and not in order with other writes, until a flush that was asked for after
    /// this was answered.
    Write {
        /// To byte.
        offset: u64,
        /// What; its parts are aligned in memory where the store could see to it.
        payload: Payload,
        /// Answer only when this very write is on stable storage (as with `RWF_DSYNC`). Says nothing of others.
        durable: bool,
    },
    /// Answered when all writes that were answered before it was asked are on stable storage.
    Flush,
}

impl IoKind {
    /// A read that is this brick's own to serve.
    pub fn read(offset: u64, length: usize) -> IoKind {
        IoKind::Read { offset, length, contested: None }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IoDone {
    pub token: IoToken,
    /// The bytes read (empty for writes and flushes), or why not.
    pub result: Result<Bytes, IoFault>,
}

/// Why a disk failed a request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IoFault {
    /// These sectors cannot be read (a medium error); others can.
    #[error("unreadable sectors")]
    Unreadable,
    /// Nobody wants these blocks any more: another brick reads them for whoever asked.
    #[error("left to another brick")]
    Left,
    /// The disk does not work (any more).
    #[error("{0}")]
    Failed(String),
}
