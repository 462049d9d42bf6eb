//! The receiving side of an NBD connection: large payloads go straight into a buffer of their own.

use crate::buffer::AlignedBuffer;
use crate::channel::Channel;
use crate::framing::{Fill, LARGE_PAYLOAD_BYTES};
use bytes::{Bytes, BytesMut};
use nbd::{Action, Session};
use std::io;
use std::mem::MaybeUninit;

const READ_BYTES_MIN: usize = 4 << 10;
const READ_BYTES_MAX: usize = 64 << 10;
/// A larger payload is received in several buffers of this size: memory follows what has arrived, not what was announced.
const LARGE_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Feed {
    buffer: BytesMut,
    read_bytes: usize,
}

impl Feed {
    /// Reads once and hands what came to the session.
    pub(super) fn fill(
        &mut self,
        channel: &mut Channel,
        session: &mut Session,
        large: &mut Option<Large>,
        actions: &mut Vec<Action>,
    ) -> io::Result<Fill> {
        if large.is_none() && session.payload_bytes() >= LARGE_PAYLOAD_BYTES {
            let bytes = session.payload_bytes().min(LARGE_BYTES_MAX);
            *large = Some(Large { content: AlignedBuffer::new(bytes), filled: 0 });
        }
        let (offered, result) = match large {
            Some(large) => {
                let rest = large.rest();
                (rest.len(), channel.read_two(rest, &mut []))
            }
            None => {
                self.make_room();
                let spare = self.buffer.spare_capacity_mut();
                (spare.len(), channel.read_two(&mut [], spare))
            }
        };
        let count = match result {
            Ok(0) => return Ok(Fill::End),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Fill::Nothing),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Fill::More(0)),
            Err(error) => return Err(error),
        };
        if let Some(bytes) = self.take(count, offered, large) {
            session.receive(bytes, actions);
        }
        let last = count < offered && channel.short_read_is_last();
        Ok(if last { Fill::Last(count) } else { Fill::More(count) })
    }

    pub(super) fn shrink(&mut self) {
        (self.buffer, self.read_bytes) = (BytesMut::new(), 0);
    }

    fn take(&mut self, count: usize, offered: usize, large: &mut Option<Large>) -> Option<Bytes> {
        if let Some(content) = large {
            content.filled += count;
            return Some(large.take_if(|large| large.filled == large.content.len())?.content.into_bytes());
        }
        // SAFETY: the channel has written that many bytes to the start of the spare capacity.
        unsafe { self.buffer.set_len(self.buffer.len() + count) };
        if count == offered {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        }
        Some(self.buffer.split().freeze())
    }

    fn make_room(&mut self) {
        self.read_bytes = self.read_bytes.max(READ_BYTES_MIN);
        if self.buffer.capacity() < self.read_bytes / 4 {
            self.buffer.reserve(self.read_bytes);
        }
    }
}

/// A large payload that is being received.
pub(super) struct Large {
    content: AlignedBuffer,
    filled: usize,
}

impl Large {
    fn rest(&mut self) -> &mut [MaybeUninit<u8>] {
        let rest = &mut self.content[self.filled..];
        // SAFETY: the same layout; the channel only ever writes initialized bytes into it.
        unsafe { &mut *(std::ptr::from_mut(rest) as *mut [MaybeUninit<u8>]) }
    }
}
