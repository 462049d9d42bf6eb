//! A request under way: what must stay in memory until the disk has answered.

use super::file::DiskFile;
use crate::buffer::AlignedBuffer;
use base::Payload;
use bytes::Bytes;
use std::io;
use store::{Io, IoDone, IoFault, IoKind, IoToken};
use wire::{DISK_FULL, Durability};

/// Parts of a write that go to the disk as they are; one with more is bounced.
const PARTS_MAX: usize = 256;

/// What became of requests: `(disk, answer)`.
pub type Completions = Vec<(usize, IoDone)>;

pub(super) struct Operation {
    pub(super) disk: usize,
    pub(super) token: IoToken,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Read { offset: u64, buffer: AlignedBuffer },
    Write { offset: u64, content: Content, bytes: usize, sync: Sync },
    Flush,
}

/// What makes a write durable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    /// Nothing: a flush will.
    Later,
    /// The write itself, with `RWF_DSYNC`.
    Within,
    /// An `fdatasync` once the write is answered.
    After,
}

/// The content of a write.
pub(super) enum Content {
    /// Its parts as they came.
    Parts(Payload),
    /// A copy, because the disk would not take the parts from where they are.
    Bounced(AlignedBuffer),
}

impl Operation {
    /// Makes ready what the disk needs.
    pub(super) fn new(disk: usize, file: &DiskFile, io: Io) -> Operation {
        let kind = match io.kind {
            IoKind::Read { offset, length, .. } => Kind::Read { offset, buffer: AlignedBuffer::new(length) },
            IoKind::Write { offset, payload, durable } => {
                let bytes = payload.len();
                let sync = match (durable, file.durability()) {
                    (false, _) => Sync::Later,
                    (true, Durability::WriteThrough) => Sync::Within,
                    (true, Durability::WriteThenSync) => Sync::After,
                };
                Kind::Write { offset, content: Content::new(file, payload), bytes, sync }
            }
            IoKind::Flush => Kind::Flush,
        };
        Operation { disk, token: io.token, kind }
    }

    /// Whether the answer waits for an `fdatasync`, now that the system call gave `result`. From then on the operation is
    /// that of a flush.
    pub(super) fn wants_sync(&mut self, result: &io::Result<usize>) -> bool {
        let whole = |bytes: usize| result.as_ref().is_ok_and(|count| *count == bytes);
        let wants = matches!(&self.kind, Kind::Write { bytes, sync: Sync::After, .. } if whole(*bytes));
        if wants {
            self.kind = Kind::Flush;
        }
        wants
    }

    /// The answer, from what the system call gave.
    pub(super) fn finish(self, file: &DiskFile, result: io::Result<usize>) -> (usize, IoDone) {
        let answer = match (self.kind, result) {
            (Kind::Read { buffer, .. }, Ok(count)) if count == buffer.len() => Ok(buffer.into_bytes()),
            (Kind::Write { bytes, .. }, Ok(count)) if count == bytes => Ok(Bytes::new()),
            (Kind::Flush, Ok(_)) => Ok(Bytes::new()),
            (Kind::Read { offset, .. }, Ok(_)) => Err(failed(
                file,
                &format_args!("it ends before byte {offset} and what follows: was it cut short?"),
            )),
            (Kind::Write { .. }, Ok(count)) => {
                Err(failed(file, &format_args!("a write stopped after {count} bytes")))
            }
            (Kind::Read { .. }, Err(error)) if is_medium(&error) => Err(IoFault::Unreadable),
            (_, Err(error)) if is_full(&error) => {
                file.note_full();
                Err(failed(file, &DISK_FULL))
            }
            (_, Err(error)) => Err(failed(file, &error)),
        };
        (self.disk, IoDone { token: self.token, result: answer })
    }
}

impl Sync {
    /// The flags of the write.
    pub(super) fn flags(self) -> i32 {
        if self == Sync::Within { libc::RWF_DSYNC } else { 0 }
    }
}

impl Content {
    fn new(file: &DiskFile, payload: Payload) -> Content {
        let parts = payload.parts();
        if parts.len() <= PARTS_MAX && parts.iter().all(|part| file.takes(part)) {
            return Content::Parts(payload);
        }
        let mut copy = AlignedBuffer::new(payload.len());
        payload.copy_to(&mut copy);
        Content::Bounced(copy)
    }

    /// Where the system finds it. Valid for as long as the content is neither moved out nor dropped.
    pub(super) fn iovecs(&self, iovecs: &mut Vec<libc::iovec>) {
        let iovec =
            |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        iovecs.clear();
        match self {
            Content::Parts(payload) => iovecs.extend(payload.parts().iter().map(|part| iovec(part))),
            Content::Bounced(copy) => iovecs.push(iovec(copy)),
        }
    }
}

fn failed(file: &DiskFile, why: &dyn std::fmt::Display) -> IoFault {
    IoFault::Failed(format!("disk '{}': {why}", file.path().display()))
}

/// Whether the file system, or the quota, under the disk's file is exhausted.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Whether the sectors are bad, and not the whole disk.
pub(super) fn is_medium(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EILSEQ | libc::ENODATA))
}
