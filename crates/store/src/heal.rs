//! Metadata pages that a scrub finds damaged on the disk while they are whole in memory are written again.
//!
//! Between two cycles the pages in memory are those on the disk, so that one can be held against the other.

use crate::blocks::Blocks;
use crate::device::{Device, Look, ReadPurpose};
use crate::metadata::{Key, Page};
use base::BLOCK;
use bytes::Bytes;
use std::collections::BTreeSet;
use wire::Span;

/// Pages in memory, pinned, that are damaged on the disk.
#[derive(Default)]
pub(crate) struct Damaged {
    keys: BTreeSet<Key>,
    /// How many were found.
    found: u64,
}

impl Damaged {
    pub(crate) fn found(&self) -> u64 {
        self.found
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Looks at the pages of these blocks on the disk; those that are not in memory a read looks at anyway.
    pub(crate) fn look(blocks: &Blocks, span: &Span, width: u8, cycles: u64, device: &mut Device) {
        for plane in 0..width {
            let key = Key::of(span.volume, span.lba, plane);
            let Some(home) = blocks.pages.home(key).filter(|_| blocks.pages.is_resident(key)) else {
                continue;
            };
            let offset = device.geometry().page_offset(home.place);
            device.read(ReadPurpose::Look(Look { key, cycles }), offset, BLOCK);
        }
    }

    /// Takes a page as the disk has it. True when it has just been found damaged.
    pub(crate) fn take(
        &mut self,
        key: Key,
        bytes: Option<&Bytes>,
        blocks: &mut Blocks,
        device: &Device,
    ) -> bool {
        let Some(home) = blocks.pages.home(key) else { return false };
        let slot_count = device.geometry().slot_count;
        let decoded = bytes.map(|bytes| Page::decode(bytes, home.place, slot_count, device.seed()));
        let Some(page) = blocks.pages.get(key) else { return false };
        let is_good = decoded.is_some_and(|decoded| decoded.key == Some(key) && decoded.page == *page);
        let is_new = !is_good && self.keys.insert(key);
        if is_new {
            blocks.pages.pin(key);
            self.found += 1;
        }
        is_new
    }

    /// Takes out those that a cycle can write again. One that the cycle changes is left to the next.
    pub(crate) fn take_unchanged(&mut self, changes: impl Fn(&Key) -> bool) -> BTreeSet<Key> {
        let (later, now) = core::mem::take(&mut self.keys).into_iter().partition(changes);
        self.keys = later;
        now
    }

    /// Forgets pages that are gone.
    pub(crate) fn forget_gone(&mut self, blocks: &mut Blocks) {
        let gone: Vec<Key> = self.keys.extract_if(.., |key| blocks.pages.home(*key).is_none()).collect();
        gone.into_iter().for_each(|key| blocks.pages.unpin(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Bounds;
    use crate::metadata::Kind;
    use crate::superblock::Geometry;
    use base::VolumeId;

    #[test]
    fn a_page_that_is_gone_leaves_no_pin_to_the_one_that_comes_after() {
        let geometry = Geometry::plan(8 << 20, 1 << 20).expect("a disk");
        let bounds = Bounds { cache_bytes: 0, pages_max: 0, used_percent_max: 90, journal_bytes: 1 << 20 };
        let mut blocks = Blocks::new(&geometry, geometry.page_count, &bounds);
        let key = Key { volume: VolumeId(1), page: 2, plane: 0 };
        blocks.pages.create(key, Page::of(Kind::Absent));
        blocks.pages.pin(key);
        let mut damaged = Damaged { keys: BTreeSet::from([key]), found: 1 };
        blocks.pages.remove(key);
        damaged.forget_gone(&mut blocks);
        assert!(damaged.is_empty());
        blocks.pages.create(key, Page::of(Kind::Absent));
        // While it is written.
        blocks.pages.pin(key);
        blocks.pages.unpin(key);
        (0..2).for_each(|_| blocks.pages.trim());
        assert!(!blocks.pages.is_resident(key));
    }
}
