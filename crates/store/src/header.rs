//! The journal's two headers: where recovery begins. They are written in turn, so that one is always whole.

use base::{BLOCK, Checksum, checksum::checksum_append};
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
