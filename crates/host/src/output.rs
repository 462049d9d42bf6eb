//! What waits to be sent on a connection: a rope of small heads in one reusable buffer and payload parts as they are.

use crate::channel::Channel;
use base::Payload;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use wire::frame::{self, FrameError};
use wire::{Packet, Version};

/// Parts in one system call.
const PARTS_MAX: usize = 128;
/// Payload parts shorter than this are copied behind the heads: that costs less than an entry of their own.
const INLINE_BYTES: usize = 512;
/// A drained buffer of heads larger than this is given back.
const HEADS_KEEP_BYTES: usize = 64 << 10;

#[derive(Debug)]
enum Part {
    /// The next so many bytes of the heads.
    Heads(usize),
    Shared(Bytes),
}

#[derive(Debug, Default)]
pub(crate) struct Output {
    parts: VecDeque<Part>,
    heads: Vec<u8>,
    /// Bytes at the front of `heads` that are sent.
    heads_sent: usize,
    /// Bytes of the first part that are sent, when it is shared.
    front_sent: usize,
    bytes: usize,
}

impl Output {
    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a packet for a node with which `version` is spoken.
    ///
    /// # Errors
    /// Where it is too long; nothing is added then.
    pub(crate) fn push_packet(&mut self, version: Version, packet: &Packet) -> Result<(), FrameError> {
        let mut framed = Ok(());
        self.push_head(|heads| framed = frame::encode(version, packet, heads));
        framed?;
        self.push_payload(&packet.payload);
        Ok(())
    }

    /// Adds the bytes that `write` appends.
    pub(crate) fn push_head(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.heads.len();
        write(&mut self.heads);
        let added = self.heads.len() - before;
        self.bytes += added;
        match self.parts.back_mut() {
            Some(Part::Heads(bytes)) => *bytes += added,
            _ if added > 0 => self.parts.push_back(Part::Heads(added)),
            _ => {}
        }
    }

    /// Adds a payload without copying it.
    pub(crate) fn push_payload(&mut self, payload: &Payload) {
        payload.parts().iter().for_each(|part| self.push_bytes(part));
    }

    /// Adds bytes without copying them, unless they are few.
    pub(crate) fn push_bytes(&mut self, bytes: &Bytes) {
        if bytes.len() < INLINE_BYTES {
            self.push_head(|heads| heads.extend_from_slice(bytes));
        } else {
            self.bytes += bytes.len();
            self.parts.push_back(Part::Shared(bytes.clone()));
        }
    }

    /// Sends as much as the connection takes now. `Ok(true)` when nothing waits any more.
    pub(crate) fn send(&mut self, channel: &mut Channel) -> io::Result<bool> {
        while !self.parts.is_empty() {
            match self.send_some(channel) {
                Ok(sent) => self.advance(sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        channel.flush()
    }

    fn send_some(&self, channel: &mut Channel) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); PARTS_MAX];
        let (mut count, mut head, mut skip) = (0, self.heads_sent, self.front_sent);
        for part in self.parts.iter().take(PARTS_MAX) {
            slices[count] = match part {
                Part::Heads(bytes) => {
                    head += bytes;
                    IoSlice::new(&self.heads[head - bytes..head])
                }
                Part::Shared(bytes) => IoSlice::new(&bytes[skip..]),
            };
            (count, skip) = (count + 1, 0);
        }
        match channel.write(&slices[..count])? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            sent => Ok(sent),
        }
    }

    fn advance(&mut self, mut sent: usize) {
        self.bytes -= sent;
        while sent > 0 {
            match self.parts.front_mut().expect("no more is sent than waits") {
                Part::Heads(bytes) => {
                    let step = sent.min(*bytes);
                    (*bytes, self.heads_sent, sent) = (*bytes - step, self.heads_sent + step, sent - step);
                    if *bytes == 0 {
                        self.parts.pop_front();
                    }
                }
                Part::Shared(bytes) => {
                    let step = sent.min(bytes.len() - self.front_sent);
                    (self.front_sent, sent) = (self.front_sent + step, sent - step);
                    if self.front_sent == bytes.len() {
                        self.front_sent = 0;
                        self.parts.pop_front();
                    }
                }
            }
        }
        self.reuse_heads();
    }

    fn reuse_heads(&mut self) {
        if self.heads_sent == self.heads.len() {
            self.heads.clear();
            self.heads.shrink_to(HEADS_KEEP_BYTES);
            self.heads_sent = 0;
        } else if self.heads_sent >= HEADS_KEEP_BYTES {
            self.heads.drain(..self.heads_sent);
            self.heads_sent = 0;
        }
    }

    /// Gives memory back, while nothing waits.
    pub(crate) fn shrink(&mut self) {
        if self.bytes == 0 {
            (self.heads, self.parts) = (Vec::new(), VecDeque::new());
        }
    }
}
