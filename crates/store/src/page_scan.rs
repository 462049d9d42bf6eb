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
    /// Places from here on were never used.
    high: u32,
    /// Whose slots are: the volume, and the address in slots.
    owners: BTreeMap<u32, (VolumeId, u64)>,
}

impl PageScan {
    /// Of the places below `high`.
    pub(crate) fn new(geometry: Geometry, seed: Checksum, high: u32) -> PageScan {
        PageScan { geometry, seed, place: 0, places: 0, high, owners: BTreeMap::new() }
    }

    /// What is to be read next, as `(offset, length)`; none at the end.
    pub(crate) fn next(&mut self) -> Option<(u64, usize)> {
        let left = self.high - self.place;
        // After an unreadable stretch its pages are asked for one by one.
        let most = if self.places == 1 { 1 } else { (CHUNK / BLOCK_U64) as u32 };
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
            None if count > 1 => self.places = 1,
            None => {
                self.take_page(self.place, &[], blocks)?;
                self.place += 1;
            }
        }
        Ok(())
    }

    /// Whose slot it is, if it has an owner.
    pub(crate) fn owner(&self, slot: u32) -> Option<(VolumeId, u64)> {
        self.owners.get(&slot).copied()
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
            self.owners.insert(slot, (key.volume, number));
        }
        Ok(())
    }
}
