//! What is where on the disk, and whose disk it is.
//!
//! One superblock lies in the first sector and its copy in the last, so that neither a partition tool that writes over the
//! head nor one that cuts the tail goes unnoticed.

use crate::header::Header;
use base::{BLOCK, BrickId, Checksum, ClusterId, Payload, checksum, checksum::checksum_append};
use core::ops::Range;
use wire::{Wire, wire_struct};

/// The version of the disk format that this code writes.
pub(crate) const FORMAT_VERSION: u32 = 1;
/// Blocks in a slot, the unit of allocation.
pub(crate) const SLOT_BLOCKS: u64 = 16;
/// Bytes of a slot.
pub(crate) const SLOT_BYTES: u64 = SLOT_BLOCKS * BLOCK as u64;
/// Where the two journal headers are, one behind the other.
pub(crate) const HEADERS_AT: u64 = BLOCK as u64;
/// Where the journal begins; the sectors before it that are not named are zero.
const JOURNAL_AT: u64 = SLOT_BYTES;
/// One metadata page for so many bytes of disk: dense data needs one a MiB, and each further stamp of parity as much again.
const BYTES_PER_PAGE: u64 = 32 * BLOCK as u64;
/// The smallest journal: below it a group of a few blocks would not fit beside its own checkpoint.
const JOURNAL_BYTES_MIN: u64 = 128 * 1024;
/// One in so many places of the page region, and at least so many, are for the map of pages, unless there are fewer than so many in all.
const PLACES_PER_MAP: u32 = 12;
const MAP_PLACES_MIN: u32 = 8;
const MAPPED_PLACES_MIN: u32 = 48;
const MAGIC: [u8; 8] = *b"BRICKWRK";
/// Where the encoded fields begin, behind magic, version, length and checksum.
const BODY_AT: usize = 20;

/// What a fresh disk is made of.
#[derive(Clone, Debug)]
pub struct FormatOptions {
    /// The cluster that it will belong to.
    pub cluster: ClusterId,
    /// The brick that it will belong to.
    pub brick: BrickId,
    /// Which of the brick's disks it is.
    pub disk_index: u16,
    /// Names this disk; drawn at random by the caller, never used twice. The first eight bytes alone, as a little-endian
    /// number, are its [identity](crate::Store::identity) to the rest of the cluster.
    pub uuid: [u8; 16],
    /// Its size, rounded down to whole sectors.
    pub disk_bytes: u64,
    /// The size of its journal; see [`journal_bytes_default`].
    pub journal_bytes: u64,
}

/// Why a disk cannot be formatted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The journal is too small.
    #[error("a journal of {journal_bytes} bytes is too small: give it at least {JOURNAL_BYTES_MIN}")]
    JournalTooSmall {
        /// The size asked for.
        journal_bytes: u64,
    },
    /// The disk has no room for data.
    #[error(
        "a disk of {disk_bytes} bytes with a journal of {journal_bytes} has no room for data: use a larger disk"
    )]
    DiskTooSmall {
        disk_bytes: u64,
        /// The size of the journal.
        journal_bytes: u64,
    },
}

/// A sensible journal for a disk of `disk_bytes`: 1/16 of it, between 256 KiB and 64 MiB. A fifth of a journal bounds the
/// content that one write may bring through it, so that 6 MiB take any write, on a full disk too.
pub fn journal_bytes_default(disk_bytes: u64) -> u64 {
    (disk_bytes / 16).clamp(256 * 1024, 64 << 20) / SLOT_BYTES * SLOT_BYTES
}

/// The writes, as `(offset, content)`, that make a fresh disk; it is one once they are on stable storage. The disk need
/// not be zeroed: what an earlier format left is not taken for this one's, because every checksum starts from the uuid.
pub fn format(options: FormatOptions) -> Result<Vec<(u64, Payload)>, FormatError> {
    let geometry = Geometry::plan(options.disk_bytes, options.journal_bytes)?;
    let superblock = Superblock {
        cluster: options.cluster,
        brick: options.brick,
        disk_index: options.disk_index,
        uuid: Uuid(options.uuid),
        geometry,
    };
    let sector = Payload::from(superblock.encode_sector());
    let header = Header::default().encode_sector(superblock.seed());
    Ok(vec![
        (HEADERS_AT, Payload::from(header)),
        (HEADERS_AT + BLOCK as u64, Payload::zeros(BLOCK)),
        (geometry.copy_at(), sector.clone()),
        (0, sector),
    ])
}

/// The name of one disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Uuid(pub(crate) [u8; 16]);

impl Wire for Uuid {
    fn encode(&self, out: &mut wire::Writer<'_>) {
        out.put(&self.0);
    }
    fn decode(reader: &mut wire::Reader<'_>) -> Result<Uuid, wire::DecodeError> {
        Ok(Uuid(reader.take(16, "uuid")?.try_into().expect("sixteen bytes")))
    }
}

/// Where the regions are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    /// The disk, in whole sectors.
    pub(crate) disk_bytes: u64,
    pub(crate) journal_at: u64,
    pub(crate) journal_bytes: u64,
    pub(crate) pages_at: u64,
    pub(crate) page_count: u32,
    /// The slots.
    pub(crate) slots_at: u64,
    pub(crate) slot_count: u32,
}

impl Geometry {
    /// Where blocks are, in bytes from the disk's beginning.
    pub(crate) fn blocks_region(&self) -> Range<u64> {
        self.slots_at..self.slots_at + u64::from(self.slot_count) * SLOT_BYTES
    }

    pub(crate) fn plan(disk_bytes: u64, journal_bytes: u64) -> Result<Geometry, FormatError> {
        let disk_bytes = disk_bytes / BLOCK as u64 * BLOCK as u64;
        let journal_bytes = journal_bytes / BLOCK as u64 * BLOCK as u64;
        if journal_bytes < JOURNAL_BYTES_MIN {
            return Err(FormatError::JournalTooSmall { journal_bytes });
        }
        let too_small = FormatError::DiskTooSmall { disk_bytes, journal_bytes };
        let pages_at = JOURNAL_AT + journal_bytes;
        let left = disk_bytes.checked_sub(pages_at + BLOCK as u64).ok_or(too_small.clone())?;
        let page_count = (left / BYTES_PER_PAGE).clamp(16, u64::from(u32::MAX) / 2);
        let slots_at = (pages_at + page_count * BLOCK as u64).next_multiple_of(SLOT_BYTES);
        let slots = left.checked_sub(slots_at - pages_at).ok_or(too_small.clone())? / SLOT_BYTES;
        let slot_count = u32::try_from(slots).unwrap_or(u32::MAX - 1).min(u32::MAX - 1);
        if slot_count < 16 {
            return Err(too_small);
        }
        let page_count = page_count as u32;
        Ok(Geometry {
            disk_bytes,
            journal_at: JOURNAL_AT,
            journal_bytes,
            pages_at,
            page_count,
            slots_at,
            slot_count,
        })
    }

    /// Whether a superblock's fields describe regions that lie behind one another on the disk.
    fn is_sound(&self) -> bool {
        let planned = Geometry::plan(self.disk_bytes, self.journal_bytes);
        planned.is_ok_and(|planned| planned == *self)
    }

    /// Where the superblock's copy is.
    pub(crate) fn copy_at(&self) -> u64 {
        self.disk_bytes - BLOCK as u64
    }

    /// How many of the page region's last places the map of pages takes. To read all pages of a tiny disk takes no time.
    pub(crate) fn map_places(&self) -> u32 {
        if self.page_count < MAPPED_PLACES_MIN {
            return 0;
        }
        (self.page_count / PLACES_PER_MAP).max(MAP_PLACES_MIN)
    }

    /// Where a metadata page is.
    pub(crate) fn page_offset(&self, page: u32) -> u64 {
        self.pages_at + u64::from(page) * BLOCK as u64
    }

    /// Where a physical block is.
    pub(crate) fn block_offset(&self, physical: u64) -> u64 {
        self.slots_at + physical * BLOCK as u64
    }
}

/// Whose disk this is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Superblock {
    pub(crate) cluster: ClusterId,
    pub(crate) brick: BrickId,
    pub(crate) disk_index: u16,
    pub(crate) uuid: Uuid,
    pub(crate) geometry: Geometry,
}

/// What a sector says of itself as a superblock.
pub(crate) enum Found {
    Superblock(Box<Superblock>),
    /// It is one of a later format.
    Newer(u32),
    /// It was one once.
    Damaged,
    /// It is none.
    Nothing,
}

impl Superblock {
    /// What tells this disk from others.
    pub(crate) fn identity(&self) -> u64 {
        let (first, _) = self.uuid.0.split_at(8);
        u64::from_le_bytes(first.try_into().expect("eight bytes"))
    }

    /// What every other checksum on this disk starts from.
    pub(crate) fn seed(&self) -> Checksum {
        checksum(&self.uuid.0)
    }

    /// Its sector.
    pub(crate) fn encode_sector(&self) -> Vec<u8> {
        let body = self.to_bytes();
        let mut sector = vec![0; BLOCK];
        sector[..8].copy_from_slice(&MAGIC);
        sector[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        sector[12..16].copy_from_slice(&(body.len() as u32).to_le_bytes());
        sector[BODY_AT..BODY_AT + body.len()].copy_from_slice(&body);
        let sum = sector_sum(&sector);
        sector[16..BODY_AT].copy_from_slice(&sum.to_le_bytes());
        sector
    }

    /// Reads a sector back.
    pub(crate) fn decode_sector(sector: &[u8]) -> Found {
        if sector.len() < BLOCK || sector[..8] != MAGIC {
            return Found::Nothing;
        }
        let word = |at: usize| u32::from_le_bytes(sector[at..at + 4].try_into().expect("four bytes"));
        if word(16) != sector_sum(&sector[..BLOCK]) {
            return Found::Damaged;
        }
        if word(8) > FORMAT_VERSION {
            return Found::Newer(word(8));
        }
        let end = BODY_AT.saturating_add(word(12) as usize);
        match sector.get(BODY_AT..end).map(Superblock::from_bytes) {
            Some(Ok(found)) if found.geometry.is_sound() => Found::Superblock(Box::new(found)),
            _ => Found::Damaged,
        }
    }
}

/// The checksum of a superblock's sector, without the place where it is kept.
fn sector_sum(sector: &[u8]) -> Checksum {
    checksum_append(checksum(&sector[..16]), &sector[BODY_AT..])
}

wire_struct!(Geometry { disk_bytes, journal_at, journal_bytes, pages_at, page_count, slots_at, slot_count });
wire_struct!(Superblock { cluster, brick, disk_index, uuid, geometry });
