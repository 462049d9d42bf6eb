//! Which metadata pages there are, where, and the ones in memory.

use crate::device::ReadId;
use crate::discard::Region;
use crate::metadata::{Key, Page, Site};
use crate::page_index::PageIndex;
use crate::slots::Allocator;
use base::HashMap;
use core::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Where a page is on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Home {
    pub(crate) place: u32,
    /// A bit for each slot that it has, so that space can be counted without reading it.
    pub(crate) slots: u16,
    /// A bit for each group of blocks with one whose content is lost or unknown: they are no holes, although they may have no
    /// slot.
    pub(crate) unsure: u16,
}

impl Home {
    /// Of a page at a place.
    pub(crate) fn of(page: &Page, place: u32) -> Home {
        Home { place, slots: page.slot_mask(), unsure: page.unsure_mask() }
    }
}

/// All pages of the disk.
#[derive(Debug)]
pub(crate) struct Pages {
    index: PageIndex,
    /// Places in the page region.
    places: Allocator,
    /// Places from this one on were never used.
    high: u32,
    /// Places where a page was that could not be read. It is not known whose it was, so no block that has no page counts as
    /// never written. What is written there says so.
    lost: BTreeSet<u32>,
    /// Pages of objects that said nothing when the disk was opened: whoever was to write there never did.
    blank: BTreeSet<Key>,
    /// Pages on their way in, and the reads that wait for them.
    loading: BTreeMap<Key, BTreeSet<ReadId>>,
    resident: HashMap<Key, Resident>,
    /// Pins of pages that were removed: whoever undoes one must not take it from a page that was created anew there.
    orphaned: HashMap<Key, u32>,
    clock: VecDeque<Key>,
    limit: usize,
}

#[derive(Debug)]
struct Resident {
    page: Box<Page>,
    pins: u32,
    referenced: Cell<bool>,
}

impl Pages {
    /// No pages, in a region of `count` places; at most `limit` unpinned ones stay in memory.
    pub(crate) fn new(count: u32, limit: usize) -> Pages {
        Pages {
            index: PageIndex::default(),
            places: Allocator::new(count),
            high: 0,
            lost: BTreeSet::new(),
            blank: BTreeSet::new(),
            loading: BTreeMap::new(),
            resident: HashMap::default(),
            orphaned: HashMap::default(),
            clock: VecDeque::new(),
            limit,
        }
    }

    /// As the journal's header and the disk have it: places from `high` on were never used.
    pub(crate) fn set_high(&mut self, high: u32) {
        self.high = high;
    }

    pub(crate) fn high(&self) -> u32 {
        self.high
    }

    /// A page that is at home at a place; false when another one claims the same blocks.
    pub(crate) fn found(&mut self, key: Key, home: Home) -> bool {
        self.places.mark(home.place);
        self.index.insert(key, home)
    }

    /// A page cannot be read, or could not before something else took its place. It may have been any volume's.
    pub(crate) fn found_lost(&mut self, place: u32) {
        self.lost.insert(place);
    }

    /// A page of objects says nothing.
    pub(crate) fn found_blank(&mut self, key: Key) {
        self.blank.insert(key);
    }

    pub(crate) fn has_blank(&self) -> bool {
        !self.blank.is_empty()
    }

    /// Those that said nothing and are still there: the next cycle looks at them.
    pub(crate) fn take_blank(&mut self) -> Vec<Key> {
        let blank = core::mem::take(&mut self.blank);
        blank.into_iter().filter(|key| self.index.get(*key).is_some()).collect()
    }

    /// How many pages were lost: if there are any, blocks without a page are unknown.
    pub(crate) fn lost(&self) -> usize {
        self.lost.len()
    }

    /// Whether the same places are known as lost, and the same pages as saying nothing, but for these places.
    pub(crate) fn is_same_but_for(&self, other: &Pages, damaged: &BTreeSet<u32>) -> bool {
        let lost = |pages: &Pages| -> BTreeSet<u32> { pages.lost.difference(damaged).copied().collect() };
        let is_whole = |key: &&Key| self.home(**key).is_none_or(|home| !damaged.contains(&home.place));
        lost(self) == lost(other)
            && self.blank.iter().filter(is_whole).eq(other.blank.iter().filter(is_whole))
    }

    /// What is to be written at a place says whether a page was lost there.
    pub(crate) fn site(&self, place: u32) -> Site {
        Site { place, is_after_loss: self.lost.contains(&place) }
    }

    /// Which places are in use.
    pub(crate) fn places(&self) -> &Allocator {
        &self.places
    }

    /// Sets places aside, so that pages can be created.
    pub(crate) fn reserve(&mut self, count: u32) {
        self.places.reserve(count);
    }

    /// Gives back what was set aside.
    pub(crate) fn release(&mut self, count: u32) {
        self.places.release(count);
    }

    /// The page that was at a place is gone for good.
    pub(crate) fn free_place(&mut self, place: u32) {
        self.places.free(place);
    }

    /// Notes that a page is wanted in memory, by a read or by nobody in particular. True when it has to be asked for.
    pub(crate) fn want(&mut self, key: Key, reader: Option<ReadId>) -> bool {
        let is_new = !self.loading.contains_key(&key);
        self.loading.entry(key).or_default().extend(reader);
        is_new
    }

    /// Whether a page is on its way in.
    pub(crate) fn is_wanted(&self, key: Key) -> bool {
        self.loading.contains_key(&key)
    }

    /// Whoever waits for a page that has come; none when nobody asked for it.
    pub(crate) fn wanted_by(&mut self, key: Key) -> Option<BTreeSet<ReadId>> {
        self.loading.remove(&key)
    }

    /// Where a page is.
    pub(crate) fn home(&self, key: Key) -> Option<Home> {
        self.index.get(key)
    }

    /// All pages of a region.
    pub(crate) fn of(&self, region: Region) -> impl Iterator<Item = Key> {
        self.index.range(region.pages()).map(|(key, _)| key)
    }

    /// The first page from `key` on.
    pub(crate) fn first_from(&self, key: Key) -> Option<Key> {
        self.index.first_from(key)
    }

    /// The page, if it is in memory.
    pub(crate) fn get(&self, key: Key) -> Option<&Page> {
        let resident = self.resident.get(&key)?;
        resident.referenced.set(true);
        Some(&resident.page)
    }

    /// Whether the page is in memory.
    pub(crate) fn is_resident(&self, key: Key) -> bool {
        self.resident.contains_key(&key)
    }

    /// Puts a page into memory.
    pub(crate) fn put(&mut self, key: Key, page: Page) {
        if let Some(resident) = self.resident.get_mut(&key) {
            *resident.page = page;
            return;
        }
        self.resident.insert(key, Resident { page: Box::new(page), pins: 0, referenced: Cell::new(true) });
        self.clock.push_back(key);
    }

    /// Changes a page in memory and what the index knows of its slots.
    pub(crate) fn update<R>(&mut self, key: Key, change: impl FnOnce(&mut Page) -> R) -> R {
        let resident = self.resident.get_mut(&key).expect("a page to change is in memory");
        let result = change(&mut resident.page);
        let home = self.index.get(key).expect("a page in memory has a home");
        self.index.set(key, Home::of(&resident.page, home.place));
        result
    }

    /// Gives a page that does not exist a place, from those that were set aside, and puts it into memory.
    pub(crate) fn create(&mut self, key: Key, page: Page) -> Option<u32> {
        let place = self.places.allocate()?;
        self.high = self.high.max(place + 1);
        let is_new = self.index.insert(key, Home::of(&page, place));
        assert!(is_new, "page {key:?} exists");
        self.put(key, page);
        Some(place)
    }

    /// Forgets a page. Its place stays taken until the caller frees it.
    pub(crate) fn remove(&mut self, key: Key) {
        self.index.remove(key);
        let pins = self.resident.remove(&key).map_or(0, |resident| resident.pins);
        if pins > 0 {
            *self.orphaned.entry(key).or_default() += pins;
        }
    }

    /// Keeps a page in memory until it is unpinned as often.
    pub(crate) fn pin(&mut self, key: Key) {
        self.resident.get_mut(&key).expect("a page to pin is in memory").pins += 1;
    }

    /// Undoes one [`Pages::pin`].
    pub(crate) fn unpin(&mut self, key: Key) {
        if let Some(pins) = self.orphaned.get_mut(&key) {
            *pins -= 1;
            if *pins == 0 {
                self.orphaned.remove(&key);
            }
        } else if let Some(resident) = self.resident.get_mut(&key) {
            resident.pins = resident.pins.saturating_sub(1);
        }
    }

    /// Forgets pages that nobody uses until the limit holds, or all that are left are in use.
    pub(crate) fn trim(&mut self) {
        let mut tries = self.clock.len() * 2;
        while self.resident.len() > self.limit && tries > 0 {
            tries -= 1;
            let key = self.clock.pop_front().expect("what is in memory is on the clock");
            match self.resident.get_mut(&key) {
                Some(resident) if resident.pins > 0 || resident.referenced.get() => {
                    resident.referenced.set(false);
                    self.clock.push_back(key);
                }
                Some(_) => drop(self.resident.remove(&key)),
                None => {}
            }
        }
    }

    /// How many pages there are.
    pub(crate) fn count(&self) -> usize {
        self.index.len()
    }

    /// All pages and their homes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, Home)> {
        self.index.iter()
    }

    /// The pages in memory.
    pub(crate) fn residents(&self) -> impl Iterator<Item = (Key, &Page)> {
        self.resident.iter().map(|(&key, resident)| (key, &*resident.page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Kind;
    use base::VolumeId;

    #[test]
    fn a_pin_of_a_page_that_was_removed_is_none_of_the_one_that_came_after() {
        let key = Key { volume: VolumeId(1), page: 2, plane: 0 };
        let mut pages = Pages::new(4, 0);
        let trimmed = |pages: &mut Pages| {
            (0..2).for_each(|_| pages.trim());
            !pages.is_resident(key)
        };
        pages.create(key, Page::of(Kind::Absent));
        pages.pin(key);
        pages.remove(key);
        pages.create(key, Page::of(Kind::Absent));
        pages.pin(key);
        pages.unpin(key);
        assert!(!trimmed(&mut pages), "it is being written");
        pages.unpin(key);
        assert!(trimmed(&mut pages));
    }
}
