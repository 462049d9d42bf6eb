//! Requests: what a client may ask of an export, and the check that each one passes before it is served.

use crate::export::Export;
use crate::wire::{command as cmd, command_flag as flag};
use base::Payload;
use std::borrow::Cow;
use thiserror::Error;

/// Names a request of one session, for its reply. Cookies cannot: a client may use one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub(crate) u64);

/// A checked request: its range lies within the export and is not empty. It may begin and end at any byte: the protocol
/// wants clients that negotiated no block size served down to single bytes, and others lose nothing by it.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// What [`Session::reply`](crate::Session::reply) is called with.
    pub tag: Tag,
    pub command: Command,
}

/// What to do. Offsets and lengths are in bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// Answer by [`Reply::Data`](crate::Reply::Data) or [`Reply::Sparse`](crate::Reply::Sparse).
    Read {
        /// Where.
        offset: u64,
        /// How much; at most the maximum block size.
        length: u32,
    },
    Write {
        /// Where.
        offset: u64,
        /// What; at most the maximum block size.
        payload: Payload,
        /// Whether it is durable before the reply.
        fua: bool,
    },
    /// Make all writes that were answered durable, those of other connections too if the export is
    /// [multi-connection](Export::multi_connection).
    Flush,
    /// The content is no longer needed.
    Trim {
        /// Where.
        offset: u64,
        /// How much; up to 4 GiB.
        length: u32,
        /// Whether it is durable before the reply.
        fua: bool,
    },
    WriteZeroes {
        /// Where.
        offset: u64,
        /// How much; up to 4 GiB.
        length: u32,
        /// Whether it is durable before the reply.
        fua: bool,
        /// Whether the range must stay allocated.
        no_hole: bool,
        /// Whether to fail with [`Errno::NotSupported`] if it is no faster than writing.
        fast: bool,
    },
    /// Answer by [`Reply::Status`](crate::Reply::Status).
    BlockStatus {
        /// Where.
        offset: u64,
        /// How much; up to 4 GiB.
        length: u32,
        /// Whether the first extent is enough.
        one: bool,
    },
    /// The content will be read soon.
    Cache {
        /// Where.
        offset: u64,
        /// How much; up to 4 GiB.
        length: u32,
    },
}

/// The errors that the protocol knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Errno {
    /// `EPERM`: a write to a read-only export.
    NotPermitted = 1,
    /// `EIO`: the data cannot be read or written.
    Io = 5,
    /// `ENOMEM`.
    NoMemory = 12,
    /// `EINVAL`: the request makes no sense here.
    Invalid = 22,
    /// `ENOSPC`: the export, or the storage behind it, has no room.
    NoSpace = 28,
    /// `EOVERFLOW`: the read is too long for one chunk.
    Overflow = 75,
    /// `ENOTSUP`: zeroing would not be fast.
    NotSupported = 95,
    /// `ESHUTDOWN`: the server is about to end.
    Shutdown = 108,
}

/// Why a request failed. The message reaches clients that negotiated structured replies.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct RequestError {
    /// What the client's program acts on.
    pub errno: Errno,
    /// What a person reads.
    pub message: Cow<'static, str>,
}

impl RequestError {
    /// An error with a message.
    pub fn new(errno: Errno, message: impl Into<Cow<'static, str>>) -> RequestError {
        RequestError { errno, message: message.into() }
    }
}

/// A request's header as it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) flags: u16,
    pub(crate) kind: u16,
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// What was negotiated and decides what may be asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) structured: bool,
    pub(crate) block_status: bool,
}

impl Header {
    /// The bytes of data that the request or its reply carries.
    pub(crate) fn data_bytes(&self) -> usize {
        if matches!(self.kind, cmd::READ | cmd::WRITE) { self.length as usize } else { 0 }
    }

    pub(crate) fn has(&self, bit: u16) -> bool {
        self.flags & bit != 0
    }

    /// The request, if the export can serve it; a write still lacks its payload.
    pub(crate) fn check(&self, export: &Export, terms: Terms) -> Result<Command, RequestError> {
        self.check_flags(export, terms)?;
        if export.read_only && matches!(self.kind, cmd::WRITE | cmd::TRIM | cmd::WRITE_ZEROES) {
            let message = format!("export {:?} is read-only", export.name);
            return Err(RequestError::new(Errno::NotPermitted, message));
        }
        if self.kind == cmd::FLUSH {
            let plain = self.offset == 0 && self.length == 0;
            return if plain {
                Ok(Command::Flush)
            } else {
                Err(invalid("a flush takes no offset and no length"))
            };
        }
        self.check_range(export)?;
        Ok(self.command())
    }

    fn check_flags(&self, export: &Export, terms: Terms) -> Result<(), RequestError> {
        let allowed = match self.kind {
            cmd::READ if terms.structured => flag::DF,
            cmd::READ | cmd::WRITE | cmd::FLUSH | cmd::TRIM => 0,
            cmd::CACHE if export.cache => 0,
            cmd::WRITE_ZEROES if export.fast_zero => flag::NO_HOLE | flag::FAST_ZERO,
            cmd::WRITE_ZEROES => flag::NO_HOLE,
            cmd::BLOCK_STATUS if terms.block_status => flag::REQ_ONE,
            cmd::BLOCK_STATUS => {
                return Err(invalid(format!(
                    "no metadata context was selected for export {:?}",
                    export.name
                )));
            }
            kind => return Err(invalid(format!("request type {kind} is unknown or was not offered"))),
        };
        // Clients are known to set FUA on requests that write nothing; the protocol lets them.
        let extra = self.flags & !(allowed | flag::FUA);
        if extra != 0 {
            return Err(invalid(format!("flags {extra:#x} do not belong to request type {}", self.kind)));
        }
        Ok(())
    }

    fn check_range(&self, export: &Export) -> Result<(), RequestError> {
        let (offset, length) = (self.offset, u64::from(self.length));
        let sizes = export.block_sizes;
        let errno = self.errno_of_range(export);
        let Some(errno) = errno else { return Ok(()) };
        let message = format!(
            "{offset}+{length} B of export {:?}: a request has at least one byte, at most {} B of data, and ends within \
             the export's {} B",
            export.name,
            sizes.maximum(),
            export.reachable_bytes(),
        );
        Err(RequestError::new(errno, message))
    }

    fn errno_of_range(&self, export: &Export) -> Option<Errno> {
        let (length, sizes) = (u64::from(self.length), export.block_sizes);
        if self.data_bytes() as u64 > u64::from(sizes.maximum()) {
            return Some(if self.has(flag::DF) { Errno::Overflow } else { Errno::Invalid });
        }
        if self.length == 0 {
            return Some(Errno::Invalid);
        }
        if self.offset.checked_add(length).is_none_or(|end| end > export.reachable_bytes()) {
            let writes = matches!(self.kind, cmd::WRITE | cmd::WRITE_ZEROES);
            return Some(if writes { Errno::NoSpace } else { Errno::Invalid });
        }
        None
    }

    fn command(&self) -> Command {
        let (offset, length, fua) = (self.offset, self.length, self.has(flag::FUA));
        match self.kind {
            cmd::READ => Command::Read { offset, length },
            cmd::WRITE => Command::Write { offset, payload: Payload::new(), fua },
            cmd::TRIM => Command::Trim { offset, length, fua },
            cmd::CACHE => Command::Cache { offset, length },
            cmd::WRITE_ZEROES => {
                let (no_hole, fast) = (self.has(flag::NO_HOLE), self.has(flag::FAST_ZERO));
                Command::WriteZeroes { offset, length, fua, no_hole, fast }
            }
            cmd::BLOCK_STATUS => Command::BlockStatus { offset, length, one: self.has(flag::REQ_ONE) },
            kind => unreachable!("request type {kind} passed the check of its flags"),
        }
    }
}

fn invalid(message: impl Into<Cow<'static, str>>) -> RequestError {
    RequestError::new(Errno::Invalid, message)
}
