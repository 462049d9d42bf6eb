//! Reading metadata pages when a disk is opened: which page is where, and whose slots are. Those that [the map](crate::page_map) does not
//! know, or all.

use crate::blocks::Blocks;
use crate::frames::CHUNK;
use crate::metadata::{Key, PAGE_MAX, PAGE_SLOTS, Page};
use crate::open_error::OpenError;
use crate::pages::Home;
use crate::superblock::Geometry;
use base::{BLOCK, BLOCK_U64, Checksum, VolumeId};
use bytes::Bytes;
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::FragmentId;

/// The places that were read.
pub(crate) struct PageScan {
    geometry: Geometry,
    seed: Checksum,
    /// The places that are still to be read, and how many of the first range are being read.
    left: VecDeque<Range<u32>>,
    places: u32,
    /// Up to here one page is read at a time, because some cannot be read.
    careful_until: u32,
    /// Places from here on were never used.
    high: u32,
    /// How many places were read, and which of them have a page that is damaged.
    read: u32,
    damaged: BTreeSet<u32>,
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
        let left = core::iter::once(0..high).collect();
        PageScan {
            geometry,
            seed,
            left,
            places: 0,
            careful_until: 0,
            high,
            read: 0,
            damaged: BTreeSet::new(),
            owners,
        }
    }

    /// The same disk, all of it, with nothing read yet.
    pub(crate) fn of_all(&self) -> PageScan {
        PageScan::new(self.geometry, self.seed, self.high, [])
    }

    /// Of all others it is known what is there.
    pub(crate) fn read_only(&mut self, places: BTreeSet<u32>) {
        self.left.clear();
        for place in places {
            match self.left.back_mut() {
                Some(last) if last.end == place => last.end += 1,
                _ => self.left.push_back(place..place + 1),
            }
        }
    }

    /// What is to be read next, as `(offset, length)`; none at the end.
    pub(crate) fn next(&mut self) -> Option<(u64, usize)> {
        while self.left.front().is_some_and(Range::is_empty) {
            self.left.pop_front();
        }
        let places = self.left.front()?;
        let most = if places.start < self.careful_until { 1 } else { (CHUNK / BLOCK_U64) as u32 };
        self.places = most.min(places.end - places.start);
        Some((self.geometry.page_offset(places.start), self.places as usize * BLOCK))
    }

    /// Takes what was read, or learns that it cannot be read as a whole.
    pub(crate) fn take(&mut self, bytes: Option<Bytes>, blocks: &mut Blocks) -> Result<(), OpenError> {
        let (count, first) = (self.places, self.left.front().expect("places were asked for").start);
        match bytes.filter(|bytes| bytes.len() == count as usize * BLOCK) {
            Some(bytes) => {
                for (place, page) in (first..).zip(bytes.chunks(BLOCK)) {
                    self.take_page(place, page, blocks)?;
                }
            }
            None if count > 1 => {
                self.careful_until = first + count;
                return Ok(());
            }
            None => self.take_page(first, &[], blocks)?,
        }
        self.read += count;
        self.left.front_mut().expect("just seen").start += count;
        Ok(())
    }

    /// Whose slot it is, of one that was wanted, if it has an owner.
    pub(crate) fn owner(&self, slot: u32) -> Option<(VolumeId, u64)> {
        self.owners.get(&slot).copied().flatten()
    }

    pub(crate) fn high(&self) -> u32 {
        self.high
    }

    /// The places with pages that are damaged.
    pub(crate) fn damaged(&self) -> &BTreeSet<u32> {
        &self.damaged
    }

    /// How many places were read.
    pub(crate) fn read(&self) -> u32 {
        self.read
    }

    /// Takes what is at a place; nothing when it cannot be read.
    fn take_page(&mut self, place: u32, bytes: &[u8], blocks: &mut Blocks) -> Result<(), OpenError> {
        let corrupt = OpenError::MetadataCorrupt { offset: self.geometry.page_offset(place) };
        let decoded = Page::decode(bytes, place, self.geometry.slot_count, self.seed);
        let key = decoded.key.filter(|key| key.page < PAGE_MAX);
        let is_lost = key.is_none() && (decoded.damaged > 0 || bytes.is_empty() || decoded.key.is_some());
        if is_lost || decoded.damaged > 0 {
            self.damaged.insert(place);
        }
        if is_lost || decoded.is_after_loss {
            blocks.pages.found_lost(place);
        }
        let Some(key) = key else { return Ok(()) };
        let is_blank = FragmentId::version_of(key.volume).is_some() && decoded.page.is_blank();
        let (home, slots) = (Home::of(&decoded.page, place), decoded.page.slot_numbers());
        if self.enter(key, home, &slots, is_blank, blocks) { Ok(()) } else { Err(corrupt) }
    }

    /// Takes what a page says. False when another one says it, too.
    pub(crate) fn enter(
        &mut self,
        key: Key,
        home: Home,
        slots: &[u32; PAGE_SLOTS as usize],
        is_blank: bool,
        blocks: &mut Blocks,
    ) -> bool {
        if !blocks.pages.found(key, home) {
            return false;
        }
        if is_blank {
            blocks.pages.found_blank(key);
        }
        let first = key.page * PAGE_SLOTS;
        for (number, &slot) in
            (first..).zip(slots).filter(|(number, _)| home.slots & 1 << (number - first) != 0)
        {
            if !blocks.slots.mark(slot) {
                return false;
            }
            if let Some(owner) = self.owners.get_mut(&slot) {
                *owner = Some((key.volume, number));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Bounds;
    use crate::metadata::{Entry, Kind, Site};
    use crate::superblock::SLOT_BLOCKS;
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
            let (mut blocks, mut requests) =
                (Blocks::new(&self.geometry, self.geometry.page_count, &bounds), 0);
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
