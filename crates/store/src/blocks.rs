//! Where blocks are: in layers over their final places, and what of the disk's room is taken.
//!
//! The parts own their fields; what needs several of them stands here: finding a block, and setting room aside for a write.

use crate::cache::BlockCache;
use crate::device::{Device, ReadId, ReadPurpose};
use crate::discard::{Discards, Region};
use crate::full_disk::{Coming, Demand, PAGES_KEPT, Room, Taken};
use crate::layers::Layers;
use crate::metadata::{Entry, Key, Kind, PAGE_BLOCKS, PAGE_SLOTS, Page};
use crate::overlay::{Group, Need, Overlay, Place, Setting, Version};
use crate::pages::{Home, Pages};
use crate::record::{Body, Extent};
use crate::slots::Allocator;
use crate::split::{Cause, Portion, Way, split};
use crate::stats::Space;
use crate::superblock::{Geometry, SLOT_BLOCKS, SLOT_BYTES};
use base::{BLOCK, Checksum, Stamp, VolumeId};
use bytes::Bytes;
use std::collections::BTreeSet;
use wire::Span;
use wire::disk::{Contested, StoreError};

/// What is known of all blocks of the disk.
pub(crate) struct Blocks {
    pub(crate) layers: Layers,
    pub(crate) pages: Pages,
    pub(crate) slots: Allocator,
    pub(crate) discards: Discards,
    pub(crate) cache: BlockCache,
    room: Room,
}

/// Where a committed block is.
pub(crate) enum Source {
    Memory(Bytes),
    Disk {
        physical: u64,
        sum: Checksum,
    },
    Zero,
    Bad,
    /// Not known before this page is in memory.
    Missing(Key),
}

/// Bounds of what is kept of the blocks.
pub(crate) struct Bounds {
    pub(crate) cache_bytes: usize,
    pub(crate) pages_max: usize,
    pub(crate) used_percent_max: u8,
    pub(crate) journal_bytes: u64,
}

impl Blocks {
    /// With nothing known yet, and room for so many pages.
    pub(crate) fn new(geometry: &Geometry, places: u32, bounds: &Bounds) -> Blocks {
        Blocks {
            layers: Layers::default(),
            pages: Pages::new(places, bounds.pages_max),
            slots: Allocator::new(geometry.slot_count),
            discards: Discards::new(bounds.journal_bytes),
            cache: BlockCache::new(bounds.cache_bytes),
            room: Room::new(bounds.used_percent_max),
        }
    }

    /// Entry `plane` of a block's stamps: `None` when it cannot be read, an error when a page is missing.
    pub(crate) fn stamp(&self, volume: VolumeId, lba: u64, plane: u8) -> Result<Option<Stamp>, Key> {
        let stamp = self.versions(volume, lba).find_map(|version| version.stamps.get(plane));
        if stamp.is_some() {
            return Ok(stamp);
        }
        let (entry, _) = self.at_home(volume, lba, plane)?;
        Ok((entry.kind != Kind::Unknown).then_some(entry.stamp))
    }

    /// Where the committed content of a block is.
    pub(crate) fn source(&self, volume: VolumeId, lba: u64) -> Source {
        if let Some(version) = self.versions(volume, lba).next() {
            return match &version.place {
                Place::Memory(bytes) => Source::Memory(bytes.clone()),
                Place::Slot(slot) => Source::Disk { physical: physical(*slot, lba), sum: version.sum },
                Place::Zero => Source::Zero,
                Place::Lost => Source::Bad,
            };
        }
        match self.at_home(volume, lba, 0) {
            Err(key) => Source::Missing(key),
            Ok((Entry { kind: Kind::Data, sum, .. }, Some(slot))) => {
                Source::Disk { physical: physical(slot, lba), sum }
            }
            Ok((Entry { kind: Kind::Absent | Kind::Zero, .. }, _)) => Source::Zero,
            Ok(_) => Source::Bad,
        }
    }

    /// Whether a block may hold anything but zeros.
    pub(crate) fn holds_data(&self, volume: VolumeId, lba: u64) -> bool {
        if self.discards.cover(volume, lba) {
            return false;
        }
        match self.versions(volume, lba).next() {
            Some(version) => !matches!(version.place, Place::Zero),
            None => self.pages.lost() > 0 || self.is_no_hole(volume, lba / SLOT_BLOCKS),
        }
    }

    /// For how many blocks from `lba` on the answer of [`Blocks::holds_data`] is the same without being asked again.
    pub(crate) fn run_length(&self, volume: VolumeId, lba: u64) -> u64 {
        let layered = self.layers.has_group(volume, lba / SLOT_BLOCKS);
        if layered { 1 } else { SLOT_BLOCKS - lba % SLOT_BLOCKS }
    }

    /// Whether there is anything of a region in the layers or in pages.
    pub(crate) fn holds_any(&self, region: Region) -> bool {
        self.pages.of(region).next().is_some() || self.layers.holds_any(region)
    }

    /// Clean blocks that another member keeps in memory leave the cache, as far as it takes no reading to find them.
    pub(crate) fn forget_cached(&mut self, span: Span) {
        for lba in span.lba..span.end() {
            if let Source::Disk { physical, .. } = self.source(span.volume, lba) {
                self.cache.forget(physical, 1);
            }
        }
    }

    /// The versions of a block that are not at home, newest first.
    fn versions(&self, volume: VolumeId, lba: u64) -> impl Iterator<Item = &Version> {
        let is_discarded = self.discards.cover(volume, lba);
        self.layers.versions(volume, lba).filter(move |_| !is_discarded)
    }

    /// What a block's page says of it, and its slot.
    fn at_home(&self, volume: VolumeId, lba: u64, plane: u8) -> Result<(Entry, Option<u32>), Key> {
        let key = Key::of(volume, lba, plane);
        if self.discards.cover(volume, lba) {
            return Ok((Entry::default(), None));
        }
        if self.pages.home(key).is_none() {
            return Ok((self.nowhere(), None));
        }
        let page = self.pages.get(key).ok_or(key)?;
        Ok((page.entry(lba), page.slot(lba)))
    }

    /// What is known of blocks without a page: nothing was ever written there, unless pages were lost.
    pub(crate) fn nowhere(&self) -> Entry {
        let kind = if self.pages.lost() > 0 { Kind::Unknown } else { Kind::Absent };
        Entry { kind, ..Entry::default() }
    }

    /// Whether an entry of zero needs a page to say so: without one that is what is known of it, unless pages were lost.
    /// A block that is mended where it lies must not ask for pages that it never had, as a full disk has none.
    fn needs_page_for_zero(&self) -> bool {
        self.pages.lost() > 0
    }

    /// Asks for a page unless it is on its way; `reader` is told when it is there.
    pub(crate) fn load_page(
        &mut self,
        key: Key,
        reader: Option<ReadId>,
        contested: Option<Contested>,
        device: &mut Device,
    ) {
        if self.pages.want(key, reader) {
            self.ask_page(key, contested, device);
        }
    }

    /// Asks the disk for a page.
    pub(crate) fn ask_page(&self, key: Key, contested: Option<Contested>, device: &mut Device) {
        let place = self.pages.home(key).expect("a page to load has a home").place;
        let offset = device.geometry().page_offset(place);
        device.read_contested(ReadPurpose::Page(key), offset, BLOCK, contested);
    }

    /// Takes a page as the disk has it, and gives back which reads wait for it; none when nobody asked for it. Of a page
    /// that cannot be read nothing is known.
    pub(crate) fn take_page(
        &mut self,
        key: Key,
        bytes: Option<&Bytes>,
        device: &Device,
    ) -> Option<BTreeSet<ReadId>> {
        let readers = self.pages.wanted_by(key)?;
        if let Some(home) = self.pages.home(key).filter(|_| !self.pages.is_resident(key)) {
            let slot_count = device.geometry().slot_count;
            let decoded = bytes.map(|bytes| Page::decode(bytes, home.place, slot_count, device.seed()));
            let page = decoded.filter(|decoded| decoded.key == Some(key)).map(|decoded| decoded.page);
            self.pages.put(key, page.unwrap_or_else(|| Page::of(Kind::Unknown)));
            self.pages.update(key, |_| ());
        }
        Some(readers)
    }

    /// Whether a slot is at home at these blocks.
    pub(crate) fn has_slot(&self, volume: VolumeId, number: u64) -> bool {
        let home = self.pages.home(Key::of(volume, number * SLOT_BLOCKS, 0));
        home.is_some_and(|home| home.slots & 1 << (number % (PAGE_BLOCKS / SLOT_BLOCKS)) != 0)
    }

    /// Whether a slot is at home at these blocks, or nobody can say what they hold.
    fn is_no_hole(&self, volume: VolumeId, number: u64) -> bool {
        let home = self.pages.home(Key::of(volume, number * SLOT_BLOCKS, 0));
        home.is_some_and(|home| (home.slots | home.unsure) & 1 << (number % (PAGE_BLOCKS / SLOT_BLOCKS)) != 0)
    }

    /// How full the disk is.
    pub(crate) fn space(&self) -> Space {
        Space {
            capacity_bytes: u64::from(self.slots.count()) * SLOT_BYTES,
            used_bytes: u64::from(self.slots.used()) * SLOT_BYTES,
            full_percent: self.room.full_percent(Taken::in_use(&self.slots, self.pages.places())),
        }
    }

    /// Cuts a write; one that changes what is there finds no slots to go to directly.
    pub(crate) fn split(&self, span: Span, is_zero: bool, cause: Cause) -> Vec<Portion> {
        let free = if cause == Cause::Delta { 0 } else { self.slots.available() };
        split(span, is_zero, free)
    }

    /// The room that a write needs to be brought to its final place, and to say of its zeros that they are known.
    pub(crate) fn need(&self, span: Span, setting: Setting<'_>, portions: &[Portion]) -> Need {
        self.need_with(span, setting, portions, self.needs_page_for_zero())
    }

    /// The room that a recovered write was promised: zeros have what is left over in its cycle.
    pub(crate) fn need_recovered(&self, span: Span, setting: Setting<'_>, portions: &[Portion]) -> Need {
        self.need_with(span, setting, portions, false)
    }

    fn need_with(&self, span: Span, setting: Setting<'_>, portions: &[Portion], zeros: bool) -> Need {
        let mut need = Need::default();
        for portion in portions.iter().filter(|portion| portion.way == Way::Inline) {
            let first = span.lba + u64::from(portion.offset);
            let numbers = first / SLOT_BLOCKS..=(first + u64::from(portion.count) - 1) / SLOT_BLOCKS;
            need.slots += numbers.filter(|&number| !self.has_slot(span.volume, number)).count() as u32;
        }
        for page in span.lba / PAGE_BLOCKS..=(span.end() - 1) / PAGE_BLOCKS {
            let missing = |plane| self.pages.home(Key { volume: span.volume, page, plane }).is_none();
            let planes = setting.planes_used(zeros);
            need.pages += planes.filter(|&plane| missing(plane)).count() as u32;
        }
        need
    }

    /// The room that a layer found in the journal needs.
    pub(crate) fn need_of(&self, layer: &Overlay) -> Need {
        let mut keys = BTreeSet::new();
        let mut slots = 0;
        for (volume, number, group) in layer.groups() {
            let is_new = group.slot.is_none() && !self.has_slot(volume, number);
            slots += u32::from(group.is_in_memory() && is_new);
            let page = number * SLOT_BLOCKS / PAGE_BLOCKS;
            keys.extend(self.planes_of(volume, page, group).map(|plane| Key { volume, page, plane }));
        }
        let pages = keys.into_iter().filter(|&key| self.pages.home(key).is_none()).count() as u32;
        Need { slots, pages }
    }

    /// The planes in which a group of versions has something to say: a stamp, or what is said in a page that there is.
    pub(crate) fn planes_of(&self, volume: VolumeId, page: u64, group: &Group) -> impl Iterator<Item = u8> {
        let stamps = group.versions.iter().flat_map(|(_, version)| version.stamps.as_slice());
        let says = move |(plane, stamp): &(u8, Stamp)| {
            let has_page = || self.pages.home(Key { volume, page, plane: *plane }).is_some();
            !stamp.is_zero() || has_page()
        };
        core::iter::once(0).chain(stamps.filter(says).map(|(plane, _)| plane))
    }

    /// The planes of a page in which the cycle has nothing but zeros to say, and that need a page for it.
    pub(crate) fn zero_planes(&self, volume: VolumeId, page: u64) -> BTreeSet<u8> {
        if !self.needs_page_for_zero() {
            return BTreeSet::new();
        }
        let numbers = page * PAGE_SLOTS..(page + 1) * PAGE_SLOTS;
        let groups = numbers.filter_map(|number| self.layers.destaging().group(volume, number));
        let versions = groups.flat_map(|group| &group.versions);
        let planes = versions.flat_map(|(_, version)| version.stamps.as_slice()).map(|(plane, _)| plane);
        planes.filter(|&plane| self.pages.home(Key { volume, page, plane }).is_none()).collect()
    }

    /// Sets pages aside for the cycle: those for stamps, which were promised, and as many of those for zeros as are left
    /// over when every promise is kept. Gives back how many those are.
    pub(crate) fn set_aside_for_cycle(&mut self, for_stamps: u32, for_zeros: u32) -> u32 {
        let promised = self.layers.destaging().need.pages;
        let most = promised + self.pages.places().available();
        let zeros = for_zeros.min(most.saturating_sub(for_stamps));
        let more = (for_stamps + zeros).min(most).saturating_sub(promised);
        self.pages.reserve(more);
        self.layers.add_to_cycle(Need { slots: 0, pages: more });
        zeros
    }

    /// Sets room aside for a write; refuses what the disk has no room for beside the room kept for others, and new data
    /// when it is nearly full.
    pub(crate) fn admit(
        &mut self,
        span: Span,
        cause: Cause,
        portions: &[Portion],
        need: Need,
        kept_bytes: usize,
    ) -> Result<(), StoreError> {
        let demand = self.demand(span, cause, portions, need);
        let taken = Taken::with_reserved(&self.slots, self.pages.places());
        let coming = Coming { brings_home: !self.layers.is_empty(), gives_back: !self.discards.is_empty() };
        self.room.admit(demand, kept_bytes, taken, coming)?;
        self.reserve(need);
        Ok(())
    }

    fn demand(&self, span: Span, cause: Cause, portions: &[Portion], need: Need) -> Demand {
        let direct = || portions.iter().filter(|portion| portion.way == Way::Direct);
        let number = |offset: u32| (span.lba + u64::from(offset)) / SLOT_BLOCKS;
        let fresh = direct().filter(|portion| !self.has_slot(span.volume, number(portion.offset))).count();
        let is_zero = portions.iter().all(|portion| portion.way == Way::Zero);
        let is_new = cause != Cause::Mend && !is_zero && need.pages > 0;
        let pages_kept = if is_new { self.pages.places().count() / PAGES_KEPT } else { 0 };
        Demand {
            slots: need.slots + direct().count() as u32,
            new_slots: if cause == Cause::Mend { 0 } else { need.slots + fresh as u32 },
            pages: need.pages + pages_kept,
        }
    }

    /// Sets room aside; as much as there is when recovery asks for more.
    pub(crate) fn reserve(&mut self, need: Need) -> Need {
        let slots = need.slots.min(self.slots.available());
        let pages = need.pages.min(self.pages.places().available());
        self.slots.reserve(slots);
        self.pages.reserve(pages);
        Need { slots, pages }
    }

    pub(crate) fn release(&mut self, need: Need) {
        self.slots.release(need.slots);
        self.pages.release(need.pages);
    }

    /// A slot for content that goes there directly.
    pub(crate) fn direct_slot(&mut self) -> u32 {
        let slot = self.slots.allocate().expect("room was counted");
        self.cache.forget(u64::from(slot) * SLOT_BLOCKS, SLOT_BLOCKS);
        slot
    }

    pub(crate) fn free_slot_of(&mut self, extent: &Extent) {
        if let Body::Slot(slot) = extent.body {
            self.slots.free(slot);
        }
    }

    /// The journal has a discard.
    pub(crate) fn log_discard(&mut self, region: Region) {
        self.discards.log(region);
        let slots = self.layers.discard(region);
        slots.into_iter().for_each(|slot| self.slots.free(slot));
    }

    /// Whether the same is known of the disk's pages as `pages` say, but for those at places that are `damaged`. Of slots of these it is not known which
    /// are theirs.
    pub(crate) fn is_same(&self, pages: &Blocks, damaged: &BTreeSet<u32>) -> bool {
        let whole = |(_, home): &(Key, Home)| !damaged.contains(&home.place);
        self.pages.iter().filter(whole).eq(pages.pages.iter().filter(whole))
            && self.pages.is_same_but_for(&pages.pages, damaged)
            && (!damaged.is_empty() || self.slots.is_same(&pages.slots))
    }

    /// Asserts that the accounts are true.
    pub(crate) fn check(&self) {
        self.layers.check();
        self.cache.check();
        self.slots.check();
        self.pages.places().check();
        let homes: u32 = self.pages.iter().map(|(_, home)| home.slots.count_ones()).sum();
        assert!(homes <= self.slots.used(), "{homes} slots are mapped, {} in use", self.slots.used());
        let mut seen = BTreeSet::new();
        for (key, page) in self.pages.residents() {
            let home = self.pages.home(key).expect("a page in memory has a home");
            assert_eq!(home, Home::of(page, home.place), "page {key:?}");
            for slot in page.slots() {
                let is_own = self.slots.is_used(slot) && seen.insert(slot);
                assert!(is_own, "slot {slot} is mapped twice, or free");
            }
        }
        let mut journalled = self.layers.durable().slots();
        assert!(journalled.all(|slot| self.slots.is_used(slot)), "a journalled slot is free");
    }
}

fn physical(slot: u32, lba: u64) -> u64 {
    u64::from(slot) * SLOT_BLOCKS + lba % SLOT_BLOCKS
}
