//! A metadata page: where 256 blocks of a volume are, with a stamp and a checksum each.
//!
//! A page is 4 KiB of eight sectors of 512 bytes. Each sector says what it is and carries its own checksum, because the disk
//! promises no more than that 512 bytes are written together. Blocks with more than one stamp (parity) have a page a
//! *plane*: plane 0 holds entry 0 and the place, plane `j` entry `j` alone.

use crate::superblock::SLOT_BLOCKS;
use base::{BLOCK, Checksum, Stamp, VolumeId, checksum::checksum_append};

/// Blocks that a page describes.
pub(crate) const PAGE_BLOCKS: u64 = 256;
/// Page numbers of a volume are smaller: no volume is longer.
pub(crate) const PAGE_MAX: u64 = 1 << 36;
/// Slots that a page describes.
pub(crate) const PAGE_SLOTS: u64 = PAGE_BLOCKS / SLOT_BLOCKS;
const SECTOR: usize = 512;
const SECTORS: usize = BLOCK / SECTOR;
const SECTOR_BLOCKS: usize = 32;
const ENTRIES_AT: usize = 128;
const ENTRY: usize = 12;
const MAGIC_PAGE: u32 = u32::from_le_bytes(*b"BWPG");
const MAGIC_FREE: u32 = u32::from_le_bytes(*b"BWFR");
/// The same, in the place of a page that was lost. Code that does not know these takes the page for lost still.
const MAGIC_PAGE_LOST: u32 = u32::from_le_bytes(*b"BWPL");
const MAGIC_FREE_LOST: u32 = u32::from_le_bytes(*b"BWFL");
/// In the place of a slot's number.
pub(crate) const NO_SLOT: u32 = u32::MAX;

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

/// A place in the page region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Site {
    pub(crate) place: u32,
    /// A page that was here could not be read any more. Nobody knows whose it was, and whatever is written here says so, or
    /// its blocks would pass for never written.
    pub(crate) is_after_loss: bool,
}

/// What is known of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Kind {
    /// Never written.
    #[default]
    Absent,
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

impl Entry {
    /// Whether the block's content is lost or unknown.
    fn is_unsure(&self) -> bool {
        matches!(self.kind, Kind::Lost | Kind::Unknown)
    }
}

/// A page in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Page {
    entries: [Entry; PAGE_BLOCKS as usize],
    slots: [u32; PAGE_SLOTS as usize],
    /// How many of the entries are unsure: in nearly every page none, and then nobody looks through them.
    unsure: u16,
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
    /// Whether it says that a page was lost here.
    pub(crate) is_after_loss: bool,
}

impl Page {
    /// A page that knows the same of all its blocks.
    pub(crate) fn of(kind: Kind) -> Page {
        let entry = Entry { kind, ..Entry::default() };
        let unsure = if entry.is_unsure() { PAGE_BLOCKS as u16 } else { 0 };
        Page { entries: [entry; PAGE_BLOCKS as usize], slots: [NO_SLOT; PAGE_SLOTS as usize], unsure }
    }

    /// What it says of the block at `lba`.
    pub(crate) fn entry(&self, lba: u64) -> Entry {
        self.entries[(lba % PAGE_BLOCKS) as usize]
    }

    /// Changes what it says of the block at `lba`.
    pub(crate) fn set_entry(&mut self, lba: u64, entry: Entry) {
        self.replace((lba % PAGE_BLOCKS) as usize, entry);
    }

    fn replace(&mut self, index: usize, entry: Entry) {
        let before = core::mem::replace(&mut self.entries[index], entry);
        self.unsure = self.unsure + u16::from(entry.is_unsure()) - u16::from(before.is_unsure());
    }

    /// Of the blocks of a slot, those that hold zeros under no stamp are as if they were never written.
    pub(crate) fn forget_erased(&mut self, first: u64) {
        for lba in first..first + SLOT_BLOCKS {
            let entry = self.entry(lba);
            if entry.kind == Kind::Zero && entry.stamp.is_zero() {
                self.set_entry(lba, Entry::default());
            }
        }
    }

    /// Whether it says of no block that it was ever written. It may have slots still.
    pub(crate) fn is_blank(&self) -> bool {
        self.entries.iter().all(|entry| entry.kind == Kind::Absent)
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

    /// The numbers of its slots; all ones where it has none.
    pub(crate) fn slot_numbers(&self) -> [u32; PAGE_SLOTS as usize] {
        self.slots
    }

    /// All its slots.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().copied().filter(|&slot| slot != NO_SLOT)
    }

    /// A bit for each slot it has.
    pub(crate) fn slot_mask(&self) -> u16 {
        (0..PAGE_SLOTS).filter(|&i| self.slots[i as usize] != NO_SLOT).fold(0, |mask, i| mask | 1 << i)
    }

    /// A bit for each group of blocks with one whose content is lost or unknown.
    pub(crate) fn unsure_mask(&self) -> u16 {
        if self.unsure == 0 {
            return 0;
        }
        let groups = self.entries.chunks(SLOT_BLOCKS as usize).enumerate();
        groups.filter(|(_, group)| group.iter().any(Entry::is_unsure)).fold(0, |mask, (at, _)| mask | 1 << at)
    }

    /// Its bytes, for a place.
    pub(crate) fn encode(&self, key: Key, site: Site, seed: Checksum) -> Vec<u8> {
        let magic = if site.is_after_loss { MAGIC_PAGE_LOST } else { MAGIC_PAGE };
        let mut bytes = vec![0; BLOCK];
        for (index, sector) in bytes.as_chunks_mut::<SECTOR>().0.iter_mut().enumerate() {
            put_header(sector, magic, Some(key), site.place, index);
            self.encode_sector(sector, index);
            seal(sector, seed);
        }
        bytes
    }

    /// The bytes that mark a place as free.
    pub(crate) fn encode_free(site: Site, seed: Checksum) -> Vec<u8> {
        let magic = if site.is_after_loss { MAGIC_FREE_LOST } else { MAGIC_FREE };
        let mut bytes = vec![0; BLOCK];
        for (index, sector) in bytes.as_chunks_mut::<SECTOR>().0.iter_mut().enumerate() {
            put_header(sector, magic, None, site.place, index);
            seal(sector, seed);
        }
        bytes
    }

    /// Reads what is at `place`. Of a page torn between being free and being `key`'s, the free sectors are absent.
    pub(crate) fn decode(bytes: &[u8], place: u32, slot_count: u32, seed: Checksum) -> Decoded {
        let sectors = bytes.as_chunks::<SECTOR>().0;
        let header = |index| read_header(sectors.get(index)?, place, index, seed);
        let headers: [Option<(u32, Key)>; SECTORS] = core::array::from_fn(header);
        // Whoever took the place of a lost page is its owner, also if some of the lost one can be read again.
        let owner = |magic| headers.iter().flatten().find(|(m, _)| *m == magic).map(|&(_, key)| key);
        let key = owner(MAGIC_PAGE_LOST).or_else(|| owner(MAGIC_PAGE));
        let is_after_loss = headers.iter().flatten().any(|(magic, _)| is_lost(*magic));
        let mut decoded = Decoded { key: None, page: Page::of(Kind::Unknown), damaged: 0, is_after_loss };
        for (index, (sector, header)) in sectors.iter().zip(&headers).enumerate() {
            let fits = header.filter(|(magic, of)| !is_page(*magic) || Some(*of) == key);
            let Some((magic, of)) = fits else {
                decoded.damaged |= 1 << index;
                continue;
            };
            if !decoded.page.decode_sector(sector, index, is_page(magic), slot_count) {
                decoded.damaged |= 1 << index;
            } else if is_page(magic) {
                decoded.key = Some(of);
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
    fn decode_sector(&mut self, sector: &[u8; SECTOR], index: usize, is_page: bool, slot_count: u32) -> bool {
        let mut entries = [Entry::default(); SECTOR_BLOCKS];
        let mut slots = [NO_SLOT; 2];
        if is_page {
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
        entries.into_iter().enumerate().for_each(|(i, entry)| self.replace(index * SECTOR_BLOCKS + i, entry));
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
    let is_known = is_page(magic) || [MAGIC_FREE, MAGIC_FREE_LOST].contains(&magic);
    (whole && here && is_known).then_some((magic, key))
}

fn is_page(magic: u32) -> bool {
    [MAGIC_PAGE, MAGIC_PAGE_LOST].contains(&magic)
}

fn is_lost(magic: u32) -> bool {
    [MAGIC_PAGE_LOST, MAGIC_FREE_LOST].contains(&magic)
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

    fn site(place: u32) -> Site {
        Site { place, is_after_loss: false }
    }

    #[test]
    fn a_place_says_that_a_page_was_lost_there() {
        let (key, page) = page();
        let lost = Site { place: 4, is_after_loss: true };
        let bytes = page.encode(key, lost, 1);
        let decoded = Page::decode(&bytes, 4, 6, 1);
        assert_eq!((decoded.key, decoded.damaged, decoded.is_after_loss), (Some(key), 0, true));
        assert_eq!(decoded.page, page);
        let free = Page::decode(&Page::encode_free(lost, 1), 4, 6, 1);
        assert_eq!((free.key, free.damaged, free.is_after_loss), (None, 0, true));
        // What was lost can be read again, beside a sector of the page that took its place.
        let mut torn = page.encode(Key { plane: 1, ..key }, site(4), 1);
        torn[3584..].copy_from_slice(&bytes[3584..]);
        let decoded = Page::decode(&torn, 4, 6, 1);
        assert_eq!((decoded.key, decoded.damaged, decoded.is_after_loss), (Some(key), 0x7f, true));
    }

    #[test]
    fn comes_back_and_knows_its_place() {
        let (key, page) = page();
        let bytes = page.encode(key, site(11), 1);
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
        let mut bytes = page.encode(key, site(0), 1);
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
        let mut bytes = page.encode(key, site(4), 1);
        bytes[..512].copy_from_slice(&Page::encode_free(site(4), 1)[..512]);
        let decoded = Page::decode(&bytes, 4, 6, 1);
        assert_eq!((decoded.key, decoded.damaged), (Some(key), 0));
        assert_eq!(decoded.page, page);
        assert_eq!(Page::decode(&Page::encode_free(site(4), 1), 4, 6, 1).key, None);
    }
}
