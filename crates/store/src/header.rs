//! The journal's two headers: where recovery begins, and what of the map of pages counts. They are written in turn, so that one is
//! always whole.

use crate::page_map::MapAt;
use base::{BLOCK, Checksum, checksum::checksum_append};
use wire::{Wire, wire_struct};

const MAGIC: u64 = u64::from_le_bytes(*b"BWJOURNL");
/// Where the encoded fields begin, behind magic and checksum.
const BODY_AT: usize = 12;
/// Where what is said of the map stands: within the first 512 bytes, so that no header has that of another one. Releases that
/// do not know the map write zeros here.
const MAP_AT: usize = 64;
const MAP_MAGIC: u32 = u32::from_le_bytes(*b"BWMP");
/// Where its fields begin, behind magic and checksum.
const MAP_BODY_AT: usize = MAP_AT + 8;

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
    /// What of the map of pages counts; nothing where whoever wrote this kept none.
    pub(crate) map: Option<MapAt>,
}

/// The fields that all releases know.
struct Fields {
    generation: u64,
    tail: u64,
    head: u64,
    pages_high: u32,
}

/// Their length.
const FIELDS: usize = 28;

impl Header {
    /// Its sector.
    pub(crate) fn encode_sector(&self, seed: Checksum) -> Vec<u8> {
        let Header { generation, tail, head, pages_high, map } = *self;
        let fields = Fields { generation, tail, head, pages_high }.to_bytes();
        let mut sector = vec![0; BLOCK];
        sector[..8].copy_from_slice(&MAGIC.to_le_bytes());
        sector[BODY_AT..BODY_AT + FIELDS].copy_from_slice(&fields);
        let sum = header_sum(&sector, seed);
        sector[8..BODY_AT].copy_from_slice(&sum.to_le_bytes());
        if let Some(map) = map {
            let map = map.to_bytes();
            sector[MAP_AT..MAP_AT + 4].copy_from_slice(&MAP_MAGIC.to_le_bytes());
            sector[MAP_BODY_AT..MAP_BODY_AT + map.len()].copy_from_slice(&map);
            let sum = map_sum(&sector, map.len(), seed);
            sector[MAP_AT + 4..MAP_BODY_AT].copy_from_slice(&sum.to_le_bytes());
        }
        sector
    }

    /// Reads a sector back.
    pub(crate) fn decode_sector(sector: &[u8], seed: Checksum) -> Option<Header> {
        let sum = u32::from_le_bytes(sector.get(8..BODY_AT)?.try_into().expect("four bytes"));
        let whole = sector.len() == BLOCK && sector[..8] == MAGIC.to_le_bytes();
        let fields = Fields::from_bytes(sector.get(BODY_AT..BODY_AT + FIELDS)?).ok()?;
        let Fields { generation, tail, head, pages_high } = fields;
        let is_header = whole && sum == header_sum(sector, seed) && tail <= head;
        is_header.then(|| Header { generation, tail, head, pages_high, map: decode_map(sector, seed) })
    }
}

/// What a whole header says of the map.
fn decode_map(sector: &[u8], seed: Checksum) -> Option<MapAt> {
    let word = |at: usize| u32::from_le_bytes(sector[at..at + 4].try_into().expect("four bytes"));
    let body = &sector[MAP_BODY_AT..MAP_BODY_AT + MapAt::BYTES];
    let is_whole = word(MAP_AT) == MAP_MAGIC && word(MAP_AT + 4) == map_sum(sector, MapAt::BYTES, seed);
    is_whole.then(|| MapAt::from_bytes(body).ok()).flatten()
}

fn header_sum(sector: &[u8], seed: Checksum) -> Checksum {
    checksum_append(checksum_append(seed, &sector[..8]), &sector[BODY_AT..BODY_AT + FIELDS])
}

/// Of the map's fields, together with those of this very header.
fn map_sum(sector: &[u8], len: usize, seed: Checksum) -> Checksum {
    checksum_append(
        checksum_append(seed, &sector[..BODY_AT + FIELDS]),
        &sector[MAP_BODY_AT..MAP_BODY_AT + len],
    )
}

wire_struct!(Fields { generation, tail, head, pages_high });
