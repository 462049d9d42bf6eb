//! The way home: journalled content goes to its slots, the metadata pages learn of it, and the journal's tail moves up.
//!
//! One cycle: a checkpoint frame that carries forward all that is undecided; then all content journalled before it goes home;
//! a flush; a journal header with the checkpoint as the new tail. Only then are slots free that the cycle gave up,
//! because until then a crash brings the old journal back, and with it the old places.

use crate::commit::Item;
use crate::io::IoKind;
use crate::machine::{Purpose, Running};
use crate::metadata::{Entry, Key, Kind, PAGE_BLOCKS, PAGE_SLOTS, Page};
use crate::overlay::{Group, Need, Overlay, Place, Version};
use crate::record::{Extent, aligned_copy};
use crate::superblock::{HEADERS_AT, SLOT_BLOCKS};
use base::{BLOCK_U64, Payload, Stamp, VolumeId};
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use wire::Span;

/// Writes under way at the same time.
const WINDOW: usize = 64;
/// Pages read ahead of their turn.
const AHEAD: usize = 32;
/// Pages of discarded volumes that one cycle erases.
const ERASED_MAX: usize = 1024;
/// Groups in memory at which content is brought home, however few its bytes.
const GROUPS_MAX: usize = 4096;

/// Where the way home is.
pub(crate) enum Cycle {
    /// Nothing to do.
    Idle,
    /// To be begun as soon as no group is in flight.
    Wanted,
    /// The checkpoint at this position is in flight.
    Sealing(u64),
    /// Content and pages are being written.
    Writing(Writing),
    /// They are being flushed.
    Flushing(Writing),
    /// The header is being written.
    Header(Writing),
}

/// The work of a cycle.
#[derive(Default)]
pub(crate) struct Writing {
    tail: u64,
    todo: VecDeque<Todo>,
    under_way: usize,
    freed_slots: Vec<u32>,
    freed_places: Vec<u32>,
}

/// What is to be done with one page, or one page of each plane.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Todo {
    /// Bring the content of its blocks home.
    Update { volume: VolumeId, page: u64, planes: BTreeSet<u8> },
    /// It is damaged on the disk.
    Rewrite(Key),
    /// Its blocks are discarded.
    Erase(Key),
}

impl Cycle {
    /// Whether none is under way or wanted.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self, Cycle::Idle)
    }

    /// Whether the next group is to be its checkpoint.
    pub(crate) fn is_wanted(&self) -> bool {
        matches!(self, Cycle::Wanted)
    }

    /// Asks for a cycle, unless one is under way.
    pub(crate) fn want(&mut self, reason: bool) {
        if reason && self.is_idle() {
            *self = Cycle::Wanted;
        }
    }

    /// The checkpoint begins at `position`.
    pub(crate) fn seal(&mut self, position: u64) {
        *self = Cycle::Sealing(position);
    }
}

impl Running {
    /// Wants a cycle when enough has gathered, the journal fills up, or the disk is idle.
    pub(crate) fn consider_cycle(&mut self) {
        let Some(since) = self.durable_since.filter(|_| self.cycle.is_idle()) else { return };
        let journal_max = (self.journal.capacity() / 3).min(self.limits.backlog_bytes as u64 * 2);
        let idle = self.now >= since + Duration::from_nanos(self.limits.idle_ns);
        let much = self.durable.bytes() >= self.limits.destage_bytes || self.durable.len() >= GROUPS_MAX;
        self.cycle.want(idle || much || self.journal.used() > journal_max);
    }

    /// The checkpoint is durable: what is journalled before it can go home.
    pub(crate) fn start_writing_home(&mut self) {
        let Cycle::Sealing(tail) = self.cycle else { unreachable!("a checkpoint is part of a cycle") };
        assert!(self.destaging.is_empty(), "two cycles at once");
        self.destaging = core::mem::take(&mut self.durable);
        self.durable_since = None;
        let todo = self.todo();
        self.cycle = Cycle::Writing(Writing { tail, todo, ..Writing::default() });
        self.write_home();
    }

    fn todo(&mut self) -> VecDeque<Todo> {
        let mut todo: VecDeque<Todo> = VecDeque::new();
        for (volume, number, group) in self.destaging.groups() {
            let page = number / PAGE_SLOTS;
            let used = self.planes_of(volume, page, group);
            match todo.back_mut() {
                Some(Todo::Update { volume: v, page: p, planes }) if (*v, *p) == (volume, page) => {
                    planes.extend(used)
                }
                _ => todo.push_back(Todo::Update { volume, page, planes: used.collect() }),
            }
        }
        let doomed = self.discards.logged().flat_map(|region| self.pages.of(region));
        todo.extend(doomed.take(ERASED_MAX).map(Todo::Erase));
        // One that changes in this cycle is left to the next.
        let changes = |key: &Key| {
            self.discards.cover(key.volume, key.page * PAGE_BLOCKS) || self.destaging.has_page(*key)
        };
        let (later, now) = core::mem::take(&mut self.rewrites).into_iter().partition(changes);
        self.rewrites = later;
        todo.extend(BTreeSet::into_iter(now).map(Todo::Rewrite));
        todo
    }

    /// The planes in which a group of versions has something to say.
    fn planes_of(&self, volume: VolumeId, page: u64, group: &Group) -> impl Iterator<Item = u8> {
        let stamps = group.versions.iter().flat_map(|(_, version)| version.stamps.as_slice());
        let says = move |(plane, stamp): &(u8, Stamp)| {
            let has_page = || self.pages.home(Key { volume, page, plane: *plane }).is_some();
            !stamp.is_zero() || self.needs_page_for_zero() || has_page()
        };
        core::iter::once(0).chain(stamps.filter(says).map(|(plane, _)| plane))
    }

    /// Goes on writing as far as the window and the pages in memory allow.
    pub(crate) fn write_home(&mut self) {
        while let Cycle::Writing(writing) = &mut self.cycle {
            let Some(next) = writing.todo.front().filter(|_| writing.under_way < WINDOW) else { break };
            if next.keys().any(|key| self.pages.home(key).is_some() && !self.pages.is_resident(key)) {
                self.read_ahead();
                break;
            }
            let next = writing.todo.pop_front().expect("just seen");
            match next {
                Todo::Update { volume, page, planes } => self.update(volume, page, &planes),
                Todo::Rewrite(key) => self.rewrite(key),
                Todo::Erase(key) => self.erase(key),
            }
        }
        if matches!(&self.cycle, Cycle::Writing(writing) if writing.todo.is_empty() && writing.under_way == 0)
        {
            let Cycle::Writing(writing) = core::mem::replace(&mut self.cycle, Cycle::Idle) else { return };
            self.cycle = Cycle::Flushing(writing);
            self.ask(Purpose::CycleFlush, IoKind::Flush);
        }
    }

    fn read_ahead(&mut self) {
        let Cycle::Writing(writing) = &self.cycle else { return };
        let keys: Vec<Key> = writing.todo.iter().take(AHEAD).flat_map(Todo::keys).collect();
        for key in keys {
            if self.pages.home(key).is_some() && !self.pages.is_resident(key) {
                self.load_page(key, None, None);
            }
        }
    }

    /// Brings one page's blocks home and writes the page.
    fn update(&mut self, volume: VolumeId, page: u64, planes: &BTreeSet<u8>) {
        let mut written = BTreeSet::new();
        for &plane in planes {
            let key = Key { volume, page, plane };
            if self.pages.home(key).is_some() || self.create_page(key) {
                written.insert(plane);
            } else if plane == 0 || self.has_stamps(key) {
                return self.fail("no place is left for a metadata page, although it was set aside");
            }
            // Zeros were set no page aside for, and need one since a page was lost: they are unknown, and can be mended.
        }
        for number in page * PAGE_SLOTS..(page + 1) * PAGE_SLOTS {
            let Some(group) = self.destaging.group(volume, number).cloned() else { continue };
            if !self.update_group(volume, number, &group) {
                return self.fail("no slot is left for content, although it was set aside");
            }
        }
        written.into_iter().for_each(|plane| self.write_page(Key { volume, page, plane }));
    }

    /// Whether any stamp but zero is to be brought home to a page.
    fn has_stamps(&self, Key { volume, page, plane }: Key) -> bool {
        let groups = (page * PAGE_SLOTS..(page + 1) * PAGE_SLOTS)
            .filter_map(|number| self.destaging.group(volume, number));
        let mut stamps =
            groups.flat_map(|group| &group.versions).flat_map(|(_, version)| version.stamps.as_slice());
        stamps.any(|(of, stamp)| of == plane && !stamp.is_zero())
    }

    fn create_page(&mut self, key: Key) -> bool {
        if self.destaging.need.pages > 0 {
            self.destaging.need.pages -= 1;
            self.pages.places.release(1);
        }
        let page = Page::of(self.nowhere().kind);
        self.pages.create(key, page).is_some()
    }

    fn update_group(&mut self, volume: VolumeId, number: u64, group: &Group) -> bool {
        let first = number * SLOT_BLOCKS;
        let key = Key::of(volume, first, 0);
        let old = self.pages.update(key, |page| {
            let old = page.slot(first);
            group
                .versions
                .iter()
                .for_each(|(index, version)| set_entry(page, first + u64::from(*index), 0, version));
            old
        });
        self.update_planes(volume, first, group);
        let holds_data = self
            .pages
            .update(key, |page| (first..first + SLOT_BLOCKS).any(|lba| page.entry(lba).kind == Kind::Data));
        let new = match holds_data {
            true => group.slot.or(old).or_else(|| self.allocate_slot()),
            // Writes that found a slot here set none aside: it stays theirs, although it holds nothing now.
            false => old.filter(|_| self.is_awaited(volume, number)),
        };
        if holds_data && new.is_none() {
            return false;
        }
        self.pages.update(key, |page| page.set_slot(first, new));
        let given_up = [old, group.slot].into_iter().flatten().filter(|&slot| Some(slot) != new);
        let given_up: BTreeSet<u32> = given_up.chain(group.replaced.iter().copied()).collect();
        let Cycle::Writing(writing) = &mut self.cycle else { unreachable!("pages change within a cycle") };
        writing.freed_slots.extend(given_up);
        if let Some(slot) = new {
            self.write_blocks(slot, group);
        }
        true
    }

    /// Whether content that is not on its way home yet will need a slot at these blocks.
    fn is_awaited(&self, volume: VolumeId, number: u64) -> bool {
        let blocks = Span { volume, lba: number * SLOT_BLOCKS, count: SLOT_BLOCKS as u32 };
        let covers = |span: &Span, extents: &[Extent]| {
            let inline = extents.iter().filter(|extent| extent.inline().is_some());
            let mut spans =
                inline.map(|e| Span { lba: span.lba + u64::from(e.offset), count: e.count, ..*span });
            span.overlaps(&blocks) && spans.any(|span| span.overlaps(&blocks))
        };
        let journalled = self.durable.group(volume, number).is_some_and(Group::is_in_memory);
        let written = || self.writes.values().any(|write| covers(&write.staged.write.span, &write.extents));
        let mended = || self.works.iter().any(|work| covers(&work.span, work.mended()));
        journalled || written() || mended()
    }

    fn update_planes(&mut self, volume: VolumeId, first: u64, group: &Group) {
        for (index, version) in &group.versions {
            let lba = first + u64::from(*index);
            for (plane, _) in version.stamps.as_slice().filter(|(plane, _)| *plane > 0) {
                let key = Key::of(volume, lba, plane);
                if self.pages.home(key).is_some() {
                    self.pages.update(key, |page| set_entry(page, lba, plane, version));
                }
            }
        }
    }

    fn allocate_slot(&mut self) -> Option<u32> {
        if self.destaging.need.slots > 0 {
            self.destaging.need.slots -= 1;
            self.slots.release(1);
        }
        self.slots.allocate()
    }

    /// Writes a group's blocks, adjacent ones together.
    fn write_blocks(&mut self, slot: u32, group: &Group) {
        let mut run: Option<(u64, Vec<&Version>)> = None;
        for (index, version) in &group.versions {
            let Place::Memory(_) = &version.place else { continue };
            let physical = u64::from(slot) * SLOT_BLOCKS + u64::from(*index);
            match &mut run {
                Some((first, versions)) if *first + versions.len() as u64 == physical => {
                    versions.push(version)
                }
                _ => {
                    run.take().into_iter().for_each(|(first, versions)| self.write_run(first, &versions));
                    run = Some((physical, vec![version]));
                }
            }
        }
        run.into_iter().for_each(|(first, versions)| self.write_run(first, &versions));
    }

    fn write_run(&mut self, first: u64, versions: &[&Version]) {
        let mut payload = Payload::new();
        self.cache.forget(first, versions.len() as u64);
        for (i, version) in versions.iter().enumerate() {
            let Place::Memory(bytes) = &version.place else { continue };
            payload.push(bytes.clone());
            // A copy of its own: the block shares the memory of a whole journal frame, which must not stay for its sake.
            self.cache.insert(first + i as u64, vec![version.sum], aligned_copy(bytes));
        }
        self.stats.destaged_blocks += versions.len() as u64;
        self.start_write(self.geometry.block_offset(first), payload, None);
    }

    pub(crate) fn write_page(&mut self, key: Key) {
        let place = self.pages.home(key).expect("an updated page has a home").place;
        let bytes = self.pages.get(key).expect("an updated page is in memory").encode(key, place, self.seed);
        self.pages.pin(key);
        self.start_write(self.geometry.page_offset(place), Payload::from(aligned_copy(&bytes)), Some(key));
    }

    fn start_write(&mut self, offset: u64, payload: Payload, page: Option<Key>) {
        let Cycle::Writing(writing) = &mut self.cycle else {
            unreachable!("content goes home within a cycle")
        };
        writing.under_way += 1;
        self.write(Purpose::Home(page), offset, payload, false);
    }

    /// Marks a discarded volume's page as free and gives up its slots.
    fn erase(&mut self, key: Key) {
        // The same cycle may have an update of it, if content was journalled behind the discard.
        let Some(home) = self.pages.home(key) else { return };
        let slots: Vec<u32> = self.pages.get(key).map(|page| page.slots().collect()).unwrap_or_default();
        self.pages.remove(key);
        let Cycle::Writing(writing) = &mut self.cycle else {
            unreachable!("pages are erased within a cycle")
        };
        writing.freed_slots.extend(slots);
        writing.freed_places.push(home.place);
        let bytes = aligned_copy(&Page::encode_free(home.place, self.seed));
        self.start_write(self.geometry.page_offset(home.place), Payload::from(bytes), None);
    }

    pub(crate) fn on_home_written(&mut self, page: Option<Key>) {
        page.into_iter().for_each(|key| self.pages.unpin(key));
        if let Cycle::Writing(writing) = &mut self.cycle {
            writing.under_way -= 1;
        }
        self.write_home();
    }

    pub(crate) fn on_cycle_flushed(&mut self) {
        let Cycle::Flushing(writing) = core::mem::replace(&mut self.cycle, Cycle::Idle) else { return };
        let (header, place) = self.journal.next_header(writing.tail, self.pages.high);
        let sector = Payload::from(aligned_copy(&header.encode_sector(self.seed)));
        self.cycle = Cycle::Header(writing);
        self.write(Purpose::Header, HEADERS_AT + place * BLOCK_U64, sector, true);
    }

    pub(crate) fn on_header_written(&mut self) {
        let Cycle::Header(writing) = core::mem::replace(&mut self.cycle, Cycle::Idle) else { return };
        self.journal.generation += 1;
        self.journal.tail = writing.tail;
        let home = core::mem::take(&mut self.destaging);
        self.slots.release(home.need.slots);
        self.pages.places.release(home.need.pages);
        writing.freed_slots.into_iter().for_each(|slot| self.slots.free(slot));
        writing.freed_places.into_iter().for_each(|place| self.pages.places.free(place));
        self.stats.destages += 1;
        self.forget_discarded();
    }

    /// Discards without pages are over; for the others another cycle follows.
    fn forget_discarded(&mut self) {
        let pages = &self.pages;
        self.discards.end_logged(|region| pages.of(region).next().is_some());
        while let Some(region) = self.discards.next_waiting() {
            self.queue.push(Item::Discard(region), self.now);
        }
        self.rewrites.retain(|&key| pages.home(key).is_some());
        let more = self.discards.logged().next().is_some() || !self.rewrites.is_empty();
        self.cycle.want(more);
    }
}

impl Todo {
    /// The pages that have to be in memory for it, if they exist.
    fn keys(&self) -> Box<dyn Iterator<Item = Key> + '_> {
        match self {
            Todo::Update { volume, page, planes } => {
                Box::new(planes.iter().map(|&plane| Key { volume: *volume, page: *page, plane }))
            }
            Todo::Erase(key) => Box::new(core::iter::once(*key)),
            Todo::Rewrite(_) => Box::new(core::iter::empty()),
        }
    }
}

/// Takes what a version says of entry `plane` into a page.
fn set_entry(page: &mut Page, lba: u64, plane: u8, version: &Version) {
    let old = page.entry(lba);
    let known = version.stamps.get(plane);
    let kind = match version.place {
        // A delta over a block whose other stamps cannot be read does not make them known.
        _ if known.is_none() && old.kind == Kind::Unknown => Kind::Unknown,
        _ if plane > 0 => Kind::Data,
        Place::Memory(_) | Place::Slot(_) => Kind::Data,
        Place::Zero => Kind::Zero,
        Place::Lost => Kind::Lost,
    };
    let sum = if plane == 0 { version.sum } else { 0 };
    let stamp = known.unwrap_or(old.stamp);
    page.set_entry(lba, Entry { kind, stamp, sum });
}

/// The room that a layer found in the journal needs.
pub(crate) fn need_of(layer: &Overlay, running: &Running) -> Need {
    let mut keys = BTreeSet::new();
    let mut slots = 0;
    for (volume, number, group) in layer.groups() {
        slots += u32::from(group.is_in_memory() && group.slot.is_none() && !running.has_slot(volume, number));
        let page = number * SLOT_BLOCKS / PAGE_BLOCKS;
        let planes = running.planes_of(volume, page, group);
        keys.extend(planes.map(|plane| Key { volume, page, plane }));
    }
    let pages = keys.into_iter().filter(|&key| running.pages.home(key).is_none()).count() as u32;
    Need { slots, pages }
}
