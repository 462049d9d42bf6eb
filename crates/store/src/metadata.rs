//! A metadata page: where 256 blocks of a volume are, with a stamp and a checksum each.
//!
//! A page is 4 KiB of eight sectors of 512 bytes. Each sector says what it is and carries its own checksum, because the disk
//! promises no more than that 512 bytes are written together. Blocks with more than one stamp (parity) have a page a
//! *plane*: plane 0 holds entry 0 and the place, plane `j` entry `j` alone.

use crate::superblock::SLOT_BLOCKS;
use base::{BLOCK, Checksum, Stamp, VolumeId, checksum::checksum_append};

/// Blocks that a page describes.
pub(crate) const PAGE_BLOCKS: u64 = 256;
/// Slots that a page describes.
pub(crate) const PAGE_SLOTS: u64 = PAGE_BLOCKS / SLOT_BLOCKS;
const SECTOR: usize = 512;
const SECTOR_BLOCKS: usize = 32;
const ENTRIES_AT: usize = 128;
const ENTRY: usize = 12;
const MAGIC_PAGE: u32 = u32::from_le_bytes(*b"BWPG");
const MAGIC_FREE: u32 = u32::from_le_bytes(*b"BWFR");
const NO_SLOT: u32 = u32::MAX;

/// Names a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) volume: VolumeId,
    /// The first block's address, in [`PAGE_BLOCKS`].
    pub(crate) page: u64,
    pub(crate) plane: u8,
}

impl Key {
    /// The page that describes entry `plane` of a block.
    pub(crate) fn of(volume: VolumeId, lba: u64, plane: u8) -> Key {
        Key { volume, page: lba / PAGE_BLOCKS, plane }
    }
}

/// What is known of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Kind {
    /// Never written.
    #[default]
    Absent,
    /// Written, and zero.
    Zero,
    /// Its content is in its slot.
    Data,
    /// Its stamp is known, its content is lost.
    Lost,
    /// A damaged sector described it.
    Unknown,
}

impl Kind {
    fn from_bits(bits: u8) -> Option<Kind> {
        [Kind::Absent, Kind::Zero, Kind::Data, Kind::Lost, Kind::Unknown].get(bits as usize).copied()
    }
}

/// What a page says of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) stamp: Stamp,
    pub(crate) sum: Checksum,
}

/// A page in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Page {
    entries: [Entry; PAGE_BLOCKS as usize],
    slots: [u32; PAGE_SLOTS as usize],
}

impl Default for Page {
    fn default() -> Page {
        Page::of(Kind::Absent)
    }
}

/// What was found where a page should be.
pub(crate) struct Decoded {
    /// Which page it is; `None` when it is marked free, or nothing of it can be read.
    pub(crate) key: Option<Key>,
    /// Its content; blocks of damaged sectors are unknown.
    pub(crate) page: Page,
    /// A bit for each sector that is damaged.
    pub(crate) damaged: u8,
}

impl Page {
    /// A page that knows the same of all its blocks.
    pub(crate) fn of(kind: Kind) -> Page {
        let entry = Entry { kind, ..Entry::default() };
        Page { entries: [entry; PAGE_BLOCKS as usize], slots: [NO_SLOT; PAGE_SLOTS as usize] }
    }

    /// What it says of the block at `lba`.
    pub(crate) fn entry(&self, lba: u64) -> Entry {
        self.entries[(lba % PAGE_BLOCKS) as usize]
    }

    /// Changes what it says of the block at `lba`.
    pub(crate) fn set_entry(&mut self, lba: u64, entry: Entry) {
        self.entries[(lba % PAGE_BLOCKS) as usize] = entry;
    }

    /// The slot of the block at `lba`.
    pub(crate) fn slot(&self, lba: u64) -> Option<u32> {
        let slot = self.slots[(lba % PAGE_BLOCKS / SLOT_BLOCKS) as usize];
        (slot != NO_SLOT).then_some(slot)
    }

    /// Changes the slot of the block at `lba`.
    pub(crate) fn set_slot(&mut self, lba: u64, slot: Option<u32>) {
        self.slots[(lba % PAGE_BLOCKS / SLOT_BLOCKS) as usize] = slot.unwrap_or(NO_SLOT);
    }

    /// All its slots.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().copied().filter(|&slot| slot != NO_SLOT)
    }

    /// A bit for each slot it has.
    pub(crate) fn slot_mask(&self) -> u16 {
        (0..PAGE_SLOTS).filter(|&i| self.slots[i as usize] != NO_SLOT).fold(0, |mask, i| mask | 1 << i)
    }

    /// Its bytes, for place number `place`.
    pub(crate) fn encode(&self, key: Key, place: u32, seed: Checksum) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK];
        for (index, sector) in bytes.as_chunks_mut::<SECTOR>().0.iter_mut().enumerate() {
            put_header(sector, MAGIC_PAGE, Some(key), place, index);
            self.encode_sector(sector, index);
            seal(sector, seed);
        }
        bytes
    }

    /// The bytes that mark a place as free.
    pub(crate) fn encode_free(place: u32, seed: Checksum) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK];
        for (index, sector) in bytes.as_chunks_mut::<SECTOR>().0.iter_mut().enumerate() {
            put_header(sector, MAGIC_FREE, None, place, index);
            seal(sector, seed);
        }
        bytes
    }

    /// Reads what is at `place`. Of a page torn between being free and being `key`'s, the free sectors are absent.
    pub(crate) fn decode(bytes: &[u8], place: u32, slot_count: u32, seed: Checksum) -> Decoded {
        let mut decoded = Decoded { key: None, page: Page::of(Kind::Unknown), damaged: 0 };
        for (index, sector) in bytes.as_chunks::<SECTOR>().0.iter().enumerate() {
            let Some((magic, key)) = read_header(sector, place, index, seed) else {
                decoded.damaged |= 1 << index;
                continue;
            };
            let fits = magic == MAGIC_FREE || decoded.key.is_none_or(|known| known == key);
            if !fits || !decoded.page.decode_sector(sector, index, magic, slot_count) {
                decoded.damaged |= 1 << index;
            } else if magic == MAGIC_PAGE {
                decoded.key = Some(key);
            }
        }
        decoded
    }

    fn encode_sector(&self, sector: &mut [u8; SECTOR], index: usize) {
        for (i, slot) in self.slots[index * 2..index * 2 + 2].iter().enumerate() {
            put(sector, 32 + i * 4, &slot.to_le_bytes());
        }
        for i in 0..SECTOR_BLOCKS {
            let entry = self.entries[index * SECTOR_BLOCKS + i];
            sector[48 + i / 2] |= (entry.kind as u8) << (i % 2 * 4);
            put(sector, ENTRIES_AT + i * ENTRY, &entry.stamp.0.to_le_bytes());
            put(sector, ENTRIES_AT + i * ENTRY + 8, &entry.sum.to_le_bytes());
        }
    }

    /// False, and without effect, when the sector contradicts itself.
    fn decode_sector(&mut self, sector: &[u8; SECTOR], index: usize, magic: u32, slot_count: u32) -> bool {
        let mut entries = [Entry::default(); SECTOR_BLOCKS];
        let mut slots = [NO_SLOT; 2];
        if magic == MAGIC_PAGE {
            slots = [u32_at(sector, 32), u32_at(sector, 36)];
            for (i, entry) in entries.iter_mut().enumerate() {
                let Some(kind) = Kind::from_bits(sector[48 + i / 2] >> (i % 2 * 4) & 15) else {
                    return false;
                };
                let at = ENTRIES_AT + i * ENTRY;
                *entry = Entry { kind, stamp: Stamp(u64_at(sector, at)), sum: u32_at(sector, at + 8) };
            }
        }
        if slots.iter().any(|&slot| slot != NO_SLOT && slot >= slot_count) {
            return false;
        }
        self.slots[index * 2..index * 2 + 2].copy_from_slice(&slots);
        self.entries[index * SECTOR_BLOCKS..(index + 1) * SECTOR_BLOCKS].copy_from_slice(&entries);
        true
    }
}

fn put_header(sector: &mut [u8; SECTOR], magic: u32, key: Option<Key>, place: u32, index: usize) {
    put(sector, 4, &magic.to_le_bytes());
    if let Some(key) = key {
        put(sector, 8, &key.volume.0.to_le_bytes());
        put(sector, 16, &key.page.to_le_bytes());
        sector[24] = key.plane;
    }
    sector[25] = index as u8;
    put(sector, 28, &place.to_le_bytes());
}

/// The magic and key of a whole sector that belongs here.
fn read_header(sector: &[u8; SECTOR], place: u32, index: usize, seed: Checksum) -> Option<(u32, Key)> {
    let magic = u32_at(sector, 4);
    let whole = u32_at(sector, 0) == checksum_append(seed, &sector[4..]);
    let here = sector[25] as usize == index && u32_at(sector, 28) == place;
    let key = Key { volume: VolumeId(u64_at(sector, 8)), page: u64_at(sector, 16), plane: sector[24] };
    (whole && here && [MAGIC_PAGE, MAGIC_FREE].contains(&magic)).then_some((magic, key))
}

fn seal(sector: &mut [u8; SECTOR], seed: Checksum) {
    let sum = checksum_append(seed, &sector[4..]);
    put(sector, 0, &sum.to_le_bytes());
}

fn put(sector: &mut [u8; SECTOR], at: usize, bytes: &[u8]) {
    sector[at..at + bytes.len()].copy_from_slice(bytes);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> (Key, Page) {
        let mut page = Page::default();
        page.set_entry(33, Entry { kind: Kind::Data, stamp: Stamp(7), sum: 9 });
        page.set_slot(33, Some(5));
        page.set_entry(255, Entry { kind: Kind::Zero, stamp: Stamp(8), sum: 0 });
        (Key::of(VolumeId(3), 256 * 4 + 1, 0), page)
    }

    #[test]
    fn comes_back_and_knows_its_place() {
        let (key, page) = page();
        let bytes = page.encode(key, 11, 1);
        let decoded = Page::decode(&bytes, 11, 6, 1);
        assert_eq!((decoded.key, decoded.damaged), (Some(key), 0));
        assert_eq!(decoded.page, page);
        assert_eq!(Page::decode(&bytes, 12, 6, 1).damaged.count_ones(), 8, "at another place");
        assert_eq!(Page::decode(&bytes, 11, 6, 2).damaged.count_ones(), 8, "of another disk");
        assert_eq!(Page::decode(&bytes, 11, 5, 1).damaged, 1 << 1, "a slot beyond the disk");
    }

    #[test]
    fn a_damaged_sector_costs_its_blocks_only() {
        let (key, page) = page();
        let mut bytes = page.encode(key, 0, 1);
        bytes[600] ^= 1;
        let decoded = Page::decode(&bytes, 0, 6, 1);
        assert_eq!(decoded.key, Some(key));
        assert_eq!(decoded.page.entry(33).kind, Kind::Unknown);
        assert_eq!(decoded.page.slot(33), None);
        assert_eq!(decoded.page.entry(255).stamp, Stamp(8));
    }

    #[test]
    fn torn_between_free_and_used() {
        let (key, page) = page();
        let mut bytes = page.encode(key, 4, 1);
        bytes[..512].copy_from_slice(&Page::encode_free(4, 1)[..512]);
        let decoded = Page::decode(&bytes, 4, 6, 1);
        assert_eq!((decoded.key, decoded.damaged), (Some(key), 0));
        assert_eq!(decoded.page, page);
        assert_eq!(Page::decode(&Page::encode_free(4, 1), 4, 6, 1).key, None);
    }
}
