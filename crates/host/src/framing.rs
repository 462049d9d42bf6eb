//! Bytes of a connection back into packets. Small payloads are slices of the receive buffer; large ones are received
//! straight into a buffer of their own.

use crate::buffer::AlignedBuffer;
use crate::channel::Channel;
use base::Payload;
use bytes::{Buf, BytesMut};
use std::io;
use std::mem::MaybeUninit;
use wire::frame::{FrameError, HEADER_BYTES, Header};
use wire::{Message, Packet, Version};

/// A payload from this size on is received into an aligned buffer of its own: ready for direct I/O, never copied.
pub(crate) const LARGE_PAYLOAD_BYTES: usize = 32 << 10;
/// The receive buffer of a connection that has just begun, or is idle.
const READ_BYTES_MIN: usize = 4 << 10;
/// The receive buffer of a busy connection. Slices of it may live long in caches and keep it whole, so it is not larger.
const READ_BYTES_MAX: usize = 64 << 10;
/// What a read takes beyond the large payload that it is for: the next header, and little that must be copied.
const BEYOND_BYTES: usize = 4 << 10;

/// What a read brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fill {
    /// Bytes, and there may be more.
    More(usize),
    /// Bytes, and nothing more now.
    Last(usize),
    Nothing,
    /// The stream has ended.
    End,
}

/// The receiving side of a connection.
#[derive(Default)]
pub(crate) struct Input {
    buffer: BytesMut,
    /// How much to ask for: doubled when reads fill it, small again when idle.
    read_bytes: usize,
    large: Option<Large>,
    /// In which version the bytes are frames: in none before the other side has said who it is. A length that a stranger
    /// writes reserves nothing.
    version: Option<Version>,
}

/// A large payload that is being received.
struct Large {
    message: Message,
    content: AlignedBuffer,
    filled: usize,
}

impl Input {
    pub(crate) fn fill(&mut self, channel: &mut Channel) -> io::Result<Fill> {
        self.make_room();
        let beyond = self.buffer.spare_capacity_mut();
        let (offered, result) = match &mut self.large {
            None => (beyond.len(), channel.read_two(&mut [], beyond)),
            Some(large) => {
                let rest = as_uninit(&mut large.content[large.filled..]);
                let beyond = &mut beyond[..BEYOND_BYTES];
                (rest.len() + beyond.len(), channel.read_two(rest, beyond))
            }
        };
        let count = match result {
            Ok(0) => return Ok(Fill::End),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Fill::Nothing),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Fill::More(0)),
            Err(error) => return Err(error),
        };
        self.took(count);
        if count == offered && self.large.is_none() {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        }
        let last = count < offered && channel.short_read_is_last();
        Ok(if last { Fill::Last(count) } else { Fill::More(count) })
    }

    /// Bytes received and not used.
    pub(crate) fn buffered(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// From now on the bytes are frames of that version.
    pub(crate) fn open(&mut self, version: Version) {
        self.version = Some(version);
    }

    /// The next whole packet.
    pub(crate) fn next_packet(&mut self) -> Result<Option<Packet>, FrameError> {
        if self.large.is_some() {
            return Ok(self.finish_large());
        }
        let Some(header) = self.buffer.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let header = Header::parse(header)?;
        let message_end = HEADER_BYTES + header.message_bytes;
        if header.payload_bytes >= LARGE_PAYLOAD_BYTES {
            return self.begin_large(&header, message_end);
        }
        let end = message_end + header.payload_bytes;
        if self.buffer.len() < end {
            return Ok(None);
        }
        let message = self.message(&header, message_end)?;
        let payload = if header.payload_bytes == 0 {
            self.buffer.advance(end);
            Payload::new()
        } else {
            self.buffer.advance(message_end);
            Payload::from(self.buffer.split_to(header.payload_bytes).freeze())
        };
        Ok(Some(Packet { message, payload }))
    }

    /// Gives memory back, while nothing is half received.
    pub(crate) fn shrink(&mut self) {
        if self.buffer.is_empty() && self.large.is_none() {
            (self.buffer, self.read_bytes) = (BytesMut::new(), 0);
        }
    }

    fn message(&self, header: &Header, end: usize) -> Result<Message, FrameError> {
        header.message(self.version.unwrap_or(Version::OLDEST), &self.buffer[HEADER_BYTES..end])
    }

    fn begin_large(&mut self, header: &Header, message_end: usize) -> Result<Option<Packet>, FrameError> {
        if self.buffer.len() < message_end {
            return Ok(None);
        }
        let message = self.message(header, message_end)?;
        self.buffer.advance(message_end);
        let mut content = AlignedBuffer::new(header.payload_bytes);
        let filled = self.buffer.len().min(content.len());
        content[..filled].copy_from_slice(&self.buffer[..filled]);
        self.buffer.advance(filled);
        self.large = Some(Large { message, content, filled });
        Ok(self.finish_large())
    }

    fn finish_large(&mut self) -> Option<Packet> {
        let large = self.large.take_if(|large| large.filled == large.content.len())?;
        Some(Packet { message: large.message, payload: Payload::from(large.content.into_bytes()) })
    }

    fn make_room(&mut self) {
        self.read_bytes = self.read_bytes.max(READ_BYTES_MIN);
        let needed = if self.large.is_some() { BEYOND_BYTES } else { self.missing() };
        let spare = self.buffer.capacity() - self.buffer.len();
        // A buffer that is nearly used up would make for many small reads.
        if spare < needed.max(self.read_bytes / 4) {
            self.buffer.reserve(needed.max(self.read_bytes));
        }
    }

    /// Bytes missing from the frame that has begun, as far as is known; at least one.
    fn missing(&self) -> usize {
        if self.version.is_none() {
            return 1;
        }
        let frame = match self.buffer.first_chunk::<HEADER_BYTES>().map(Header::parse) {
            Some(Ok(header)) if header.payload_bytes >= LARGE_PAYLOAD_BYTES => {
                HEADER_BYTES + header.message_bytes
            }
            Some(Ok(header)) => HEADER_BYTES + header.message_bytes + header.payload_bytes,
            _ => HEADER_BYTES,
        };
        frame.saturating_sub(self.buffer.len()).max(1)
    }

    fn took(&mut self, count: usize) {
        let into_large = self.large.as_mut().map_or(0, |large| {
            let part = count.min(large.content.len() - large.filled);
            large.filled += part;
            part
        });
        // SAFETY: the channel has written that many bytes to the start of the spare capacity.
        unsafe { self.buffer.set_len(self.buffer.len() + count - into_large) };
    }
}

fn as_uninit(bytes: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    // SAFETY: the same layout; the channel only ever writes initialized bytes into it.
    unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [MaybeUninit<u8>]) }
}
