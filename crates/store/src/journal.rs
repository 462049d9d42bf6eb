//! The journal's ring: what of it is in use.
//!
//! Positions count all bytes ever written; a position's place is its remainder by the ring's size. A frame may run over
//! the ring's end. One frame is in flight at a time, so only the last one can be torn.

use crate::header::Header;
use crate::page_map::MapAt;
use crate::superblock::Geometry;
use base::Payload;
use bytes::Bytes;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Journal {
    at: u64,
    bytes: u64,
    /// Of the newest header.
    generation: u64,
    /// Everything before is in its final place.
    tail: u64,
    /// Where the next frame begins.
    head: u64,
    /// Frames before this are on stable storage.
    durable: u64,
}

impl Journal {
    /// As the newest header and the last frame have it.
    pub(crate) fn new(geometry: &Geometry, header: &Header, head: u64) -> Journal {
        Journal {
            at: geometry.journal_at,
            bytes: geometry.journal_bytes,
            generation: header.generation,
            tail: header.tail,
            head,
            durable: head,
        }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.bytes
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.head - self.tail
    }

    /// Bytes in use before a position.
    pub(crate) fn until(&self, position: u64) -> u64 {
        position.saturating_sub(self.tail)
    }

    /// Where a position is on the disk.
    pub(crate) fn offset_of(&self, position: u64) -> u64 {
        self.at + position % self.bytes
    }

    /// Where the next frame begins.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Frames before this are on stable storage.
    pub(crate) fn durable(&self) -> u64 {
        self.durable
    }

    /// All frames are on stable storage.
    pub(crate) fn set_durable(&mut self) {
        self.durable = self.head;
    }

    /// Recovery ended here: what is before is on stable storage, and the next frame begins here.
    pub(crate) fn resume_at(&mut self, head: u64) {
        (self.head, self.durable) = (head, head);
    }

    /// The header on the disk says that the journal begins at `tail`.
    pub(crate) fn move_tail(&mut self, tail: u64) {
        self.generation += 1;
        self.tail = tail;
    }

    /// The writes, as `(offset, content)`, that put a frame at the head: two when it runs over the ring's end.
    pub(crate) fn append(&mut self, frame: &Bytes) -> Vec<(u64, Payload)> {
        let length = frame.len() as u64;
        assert!(self.used() + length <= self.bytes, "the journal overruns its tail");
        let place = self.head % self.bytes;
        self.head += length;
        let first = length.min(self.bytes - place) as usize;
        let mut writes = vec![(self.at + place, Payload::from(frame.slice(..first)))];
        if first < frame.len() {
            writes.push((self.at, Payload::from(frame.slice(first..))));
        }
        writes
    }

    /// The header that moves the tail to `tail`, and which of the two places it goes to.
    pub(crate) fn next_header(&self, tail: u64, pages_high: u32, map: Option<MapAt>) -> (Header, u64) {
        let generation = self.generation + 1;
        (Header { generation, tail, head: self.durable, pages_high, map }, generation % 2)
    }
}
