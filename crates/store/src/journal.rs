//! The journal's ring: what of it is in use, and the two headers that say where to begin.
//!
//! Positions count all bytes ever written; a position's place is its remainder by the ring's size. A frame may run over
//! the ring's end. One frame is in flight at a time, so only the last one can be torn.

use crate::superblock::Geometry;
use base::{BLOCK, Checksum, Payload, checksum::checksum_append};
use bytes::Bytes;
use wire::{Wire, wire_struct};

const MAGIC: u64 = u64::from_le_bytes(*b"BWJOURNL");
/// Where the encoded fields begin, behind magic and checksum.
const BODY_AT: usize = 12;

/// What a journal header says. Two copies are written in turn, so that one is always whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Header {
    /// Which one is newer.
    pub(crate) generation: u64,
    /// Where recovery begins: everything before is at home.
    pub(crate) tail: u64,
    /// Frames before this were on stable storage when the header was written: one that is missing is damage, not a
    /// torn tail.
    pub(crate) head: u64,
    /// Metadata pages from this one on were never used.
    pub(crate) pages_high: u32,
}

impl Header {
    /// Its sector.
    pub(crate) fn encode_sector(&self, seed: Checksum) -> Vec<u8> {
        let body = self.to_bytes();
        let mut sector = vec![0; BLOCK];
        sector[..8].copy_from_slice(&MAGIC.to_le_bytes());
        sector[BODY_AT..BODY_AT + body.len()].copy_from_slice(&body);
        let sum = header_sum(&sector, body.len(), seed);
        sector[8..BODY_AT].copy_from_slice(&sum.to_le_bytes());
        sector
    }

    /// Reads a sector back.
    pub(crate) fn decode_sector(sector: &[u8], seed: Checksum) -> Option<Header> {
        let len = Header::default().to_bytes().len();
        let sum = u32::from_le_bytes(sector.get(8..BODY_AT)?.try_into().expect("four bytes"));
        let whole = sector.len() == BLOCK && sector[..8] == MAGIC.to_le_bytes();
        let header = Header::from_bytes(sector.get(BODY_AT..BODY_AT + len)?).ok()?;
        (whole && sum == header_sum(sector, len, seed) && header.tail <= header.head).then_some(header)
    }
}

fn header_sum(sector: &[u8], len: usize, seed: Checksum) -> Checksum {
    checksum_append(checksum_append(seed, &sector[..8]), &sector[BODY_AT..BODY_AT + len])
}

wire_struct!(Header { generation, tail, head, pages_high });

/// The ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journal {
    at: u64,
    bytes: u64,
    /// Of the newest header.
    pub(crate) generation: u64,
    /// Everything before is at home.
    pub(crate) tail: u64,
    /// Where the next frame begins.
    pub(crate) head: u64,
    /// Frames before this are on stable storage.
    pub(crate) durable: u64,
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

    /// Its size.
    pub(crate) fn capacity(&self) -> u64 {
        self.bytes
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.head - self.tail
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
    pub(crate) fn next_header(&self, tail: u64, pages_high: u32) -> (Header, u64) {
        let generation = self.generation + 1;
        (Header { generation, tail, head: self.durable, pages_high }, generation % 2)
    }
}
