//! Reading the used part of the page region when a disk is opened: which page is where, and whose slots are.

use crate::blocks::Blocks;
use crate::frames::CHUNK;
use crate::metadata::{PAGE_MAX, PAGE_SLOTS, Page};
use crate::open_error::OpenError;
use crate::pages::Home;
use crate::superblock::{Geometry, SLOT_BLOCKS};
use base::{BLOCK, BLOCK_U64, Checksum, VolumeId};
use bytes::Bytes;
use std::collections::BTreeMap;
use wire::FragmentId;

/// The places that were read.
pub(crate) struct PageScan {
    geometry: Geometry,
    seed: Checksum,
    /// The next place to read, and how many are being read.
    place: u32,
    places: u32,
    /// Up to here one page is read at a time, because some cannot be read.
    careful_until: u32,
    /// Places from here on were never used.
    high: u32,
    /// The slots that the journal has content for, and whose pages say that they have them: the volume, and the address in slots. Of other slots
    /// nobody asks; a disk has hundreds of millions.
    owners: BTreeMap<u32, Option<(VolumeId, u64)>>,
}

impl PageScan {
    /// Of the places below `high`. Of `wanted` slots it is noted who has them.
    pub(crate) fn new(
        geometry: Geometry,
        seed: Checksum,
        high: u32,
        wanted: impl IntoIterator<Item = u32>,
    ) -> PageScan {
        let owners = wanted.into_iter().map(|slot| (slot, None)).collect();
        PageScan { geometry, seed, place: 0, places: 0, careful_until: 0, high, owners }
    }

    /// What is to be read next, as `(offset, length)`; none at the end.
    pub(crate) fn next(&mut self) -> Option<(u64, usize)> {
        let left = self.high - self.place;
        let most = if self.place < self.careful_until { 1 } else { (CHUNK / BLOCK_U64) as u32 };
        self.places = left.min(most);
        (left > 0).then(|| (self.geometry.page_offset(self.place), self.places as usize * BLOCK))
    }

    /// Takes what was read, or learns that it cannot be read as a whole.
    pub(crate) fn take(&mut self, bytes: Option<Bytes>, blocks: &mut Blocks) -> Result<(), OpenError> {
        let count = self.places;
        match bytes.filter(|bytes| bytes.len() == count as usize * BLOCK) {
            Some(bytes) => {
                for (i, page) in bytes.chunks(BLOCK).enumerate() {
                    self.take_page(self.place + i as u32, page, blocks)?;
                }
                self.place += count;
            }
            None if count > 1 => self.careful_until = self.place + count,
            None => {
                self.take_page(self.place, &[], blocks)?;
                self.place += 1;
            }
        }
        Ok(())
    }

    /// Whose slot it is, of one that was wanted, if it has an owner.
    pub(crate) fn owner(&self, slot: u32) -> Option<(VolumeId, u64)> {
        self.owners.get(&slot).copied().flatten()
    }

    pub(crate) fn high(&self) -> u32 {
        self.high
    }

    /// Takes what is at a place; nothing when it cannot be read.
    fn take_page(&mut self, place: u32, bytes: &[u8], blocks: &mut Blocks) -> Result<(), OpenError> {
        let corrupt = OpenError::MetadataCorrupt { offset: self.geometry.page_offset(place) };
        let decoded = Page::decode(bytes, place, self.geometry.slot_count, self.seed);
        let key = decoded.key.filter(|key| key.page < PAGE_MAX);
        let is_lost = key.is_none() && (decoded.damaged > 0 || bytes.is_empty() || decoded.key.is_some());
        if is_lost || decoded.is_after_loss {
            blocks.pages.found_lost(place);
        }
        let Some(key) = key else { return Ok(()) };
        if !blocks.pages.found(key, Home::of(&decoded.page, place)) {
            return Err(corrupt);
        }
        if FragmentId::version_of(key.volume).is_some() && decoded.page.is_blank() {
            blocks.pages.found_blank(key);
        }
        for number in key.page * PAGE_SLOTS..(key.page + 1) * PAGE_SLOTS {
            let Some(slot) = decoded.page.slot(number * SLOT_BLOCKS) else { continue };
            if !blocks.slots.mark(slot) {
                return Err(corrupt);
            }
            if let Some(owner) = self.owners.get_mut(&slot) {
                *owner = Some((key.volume, number));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Bounds;
    use crate::metadata::{Entry, Key, Kind, Site};
    use base::Stamp;

    /// A disk whose first places have pages of all their slots, each taken in turn.
    struct Full {
        geometry: Geometry,
        high: u32,
    }

    impl Full {
        fn with(high: u32) -> Full {
            let disk_bytes = (u64::from(high) + 1000) * PAGE_SLOTS * SLOT_BLOCKS * BLOCK_U64 * 2;
            let geometry = Geometry::plan(disk_bytes, 1 << 20).unwrap();
            assert!(
                high < geometry.page_count && u64::from(high) * PAGE_SLOTS < u64::from(geometry.slot_count)
            );
            Full { geometry, high }
        }

        fn page(&self, place: u32) -> Vec<u8> {
            let mut page = Page::of(Kind::Absent);
            for slot in 0..PAGE_SLOTS {
                let lba = slot * SLOT_BLOCKS;
                page.set_slot(lba, Some(place * PAGE_SLOTS as u32 + slot as u32));
                page.set_entry(lba, Entry { kind: Kind::Data, stamp: Stamp(1), ..page.entry(lba) });
            }
            let key = Key { volume: VolumeId(7), page: u64::from(place), ..Key::of(VolumeId(7), 0, 0) };
            page.encode(key, Site { place, is_after_loss: false }, Checksum::default())
        }

        /// Reads all of it; how many requests that took. Pages at `bad` places cannot be read.
        fn scan(&self, scan: &mut PageScan, bad: &[u32]) -> (Blocks, u32) {
            let bounds =
                Bounds { cache_bytes: 0, pages_max: 16, used_percent_max: 95, journal_bytes: 1 << 20 };
            let (mut blocks, mut requests) = (Blocks::new(&self.geometry, &bounds), 0);
            while let Some((offset, length)) = scan.next() {
                let first = ((offset - self.geometry.page_offset(0)) / BLOCK_U64) as u32;
                let places = first..first + (length / BLOCK) as u32;
                let is_read = !places.clone().any(|place| bad.contains(&place));
                let bytes = is_read.then(|| places.flat_map(|place| self.page(place)).collect::<Vec<u8>>());
                scan.take(bytes.map(Bytes::from), &mut blocks).unwrap();
                requests += 1;
            }
            (blocks, requests)
        }
    }

    #[test]
    fn around_a_page_that_cannot_be_read_pages_are_read_one_by_one_and_then_many_at_a_time_again() {
        let disk = Full::with(1000);
        let mut scan = PageScan::new(disk.geometry, Checksum::default(), disk.high, []);
        let (blocks, requests) = disk.scan(&mut scan, &[300]);
        assert_eq!(blocks.pages.lost(), 1);
        assert_eq!(blocks.slots.used(), 999 * PAGE_SLOTS as u32);
        // 256, then 256 that fail and are read one by one, 256 and 232.
        assert_eq!(requests, 1 + 1 + 256 + 2);
    }

    /// What is noted of slots does not grow with the disk.
    #[test]
    fn only_of_slots_that_are_asked_for_it_is_noted_whose_they_are() {
        let disk = Full::with(600);
        let free = 600 * PAGE_SLOTS as u32 + 5;
        let mut scan = PageScan::new(disk.geometry, Checksum::default(), disk.high, [17, free]);
        let (blocks, _) = disk.scan(&mut scan, &[]);
        assert_eq!(blocks.slots.used(), 600 * PAGE_SLOTS as u32);
        assert_eq!(scan.owner(17), Some((VolumeId(7), 17)));
        assert_eq!((scan.owner(16), scan.owner(free)), (None, None));
        assert_eq!(scan.owners.len(), 2);
    }
}
