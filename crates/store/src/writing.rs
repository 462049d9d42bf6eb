//! One cycle's writes to final places: what is to be written, page by page, and what room that gives back.

use crate::blocks::Blocks;
use crate::device::{Device, WritePurpose};
use crate::group_commit::Log;
use crate::metadata::{self, Key, Kind, PAGE_SLOTS, Page};
use crate::overlay::{Group, Place, Version};
use crate::page_map::{Entry, Said};
use crate::record::aligned_copy;
use crate::superblock::SLOT_BLOCKS;
use base::{BLOCK_U64, Payload, VolumeId};
use std::collections::{BTreeSet, VecDeque};
use wire::FragmentId;

/// Writes outstanding at the same time.
const WINDOW: usize = 64;
/// Pages read ahead of their turn.
const AHEAD: usize = 32;

/// The disk has less room than was set aside: its metadata or its journal are damaged.
pub(crate) struct NoRoom(pub(crate) &'static str);

/// The work of a cycle.
pub(crate) struct Writing {
    /// Where the checkpoint is that becomes the journal's tail.
    tail: u64,
    todo: VecDeque<Todo>,
    outstanding: usize,
    freed_slots: Vec<u32>,
    freed_places: Vec<u32>,
    /// What is at the places that it has written, for the map of pages.
    said: Vec<Entry>,
    written_blocks: u64,
    /// Of these, those that are in their places.
    home_blocks: u64,
}

/// What is to be done with one page, or one page of each plane.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Todo {
    /// Write the content of its blocks to their final places, then the page.
    Update { volume: VolumeId, page: u64, planes: BTreeSet<u8> },
    /// It is damaged on the disk.
    Rewrite(Key),
    /// Its blocks are discarded.
    Erase(Key),
}

impl Writing {
    pub(crate) fn new(tail: u64, todo: VecDeque<Todo>) -> Writing {
        let (freed_slots, freed_places) = (Vec::new(), Vec::new());
        Writing {
            tail,
            todo,
            outstanding: 0,
            freed_slots,
            freed_places,
            said: Vec::new(),
            written_blocks: 0,
            home_blocks: 0,
        }
    }

    /// The places that it is going to write at most.
    pub(crate) fn places(&self, blocks: &Blocks) -> BTreeSet<u32> {
        let home = |key: Key| blocks.pages.home(key).map(|home| home.place);
        let (mut places, mut new) = (BTreeSet::new(), 0);
        for todo in &self.todo {
            if let Todo::Rewrite(key) = todo {
                places.extend(home(*key));
            }
            for key in todo.keys() {
                match home(key) {
                    Some(place) => drop(places.insert(place)),
                    None => new += 1,
                }
            }
        }
        places.extend(blocks.pages.places().next_free(new));
        places
    }

    /// What is at the places that it has written.
    pub(crate) fn said(&mut self) -> &mut Vec<Entry> {
        &mut self.said
    }

    pub(crate) fn tail(&self) -> u64 {
        self.tail
    }

    /// Whether everything is written.
    pub(crate) fn is_done(&self) -> bool {
        !self.has_more() && !self.is_under_way()
    }

    /// Whether something is still to be begun with.
    pub(crate) fn has_more(&self) -> bool {
        !self.todo.is_empty()
    }

    /// Whether writes are outstanding.
    pub(crate) fn is_under_way(&self) -> bool {
        self.outstanding > 0
    }

    /// About how many blocks and pages are still to be begun with.
    pub(crate) fn blocks_left(&self, blocks: &Blocks) -> u32 {
        let all = (blocks.layers.destaging().bytes() as u64).div_ceil(BLOCK_U64);
        let left = all.saturating_sub(self.written_blocks) + self.todo.len() as u64;
        u32::try_from(left).unwrap_or(u32::MAX)
    }

    pub(crate) fn written_blocks(&self) -> u64 {
        self.written_blocks
    }

    /// How many blocks are in their final places.
    pub(crate) fn home_blocks(&self) -> u64 {
        self.home_blocks
    }

    /// Goes on writing as far as the window and the pages in memory allow, and until `blocks_max` are begun with; how many that are.
    pub(crate) fn go_on(
        &mut self,
        blocks_max: u32,
        blocks: &mut Blocks,
        log: &Log,
        device: &mut Device,
    ) -> Result<u32, NoRoom> {
        let mut begun = 0;
        while let Some(next) = self.todo.front().filter(|_| self.outstanding < WINDOW && begun < blocks_max) {
            if next.keys().any(|key| is_missing(key, blocks)) {
                self.read_ahead(blocks, device);
                break;
            }
            let next = self.todo.pop_front().expect("just seen");
            let written = self.written_blocks;
            match next {
                Todo::Update { volume, page, planes } => {
                    let home = Home { volume, page, planes };
                    self.update(&home, blocks, log, device)?;
                }
                Todo::Rewrite(key) => self.rewrite(key, blocks, device),
                Todo::Erase(key) => self.erase(key, blocks, device),
            }
            begun += (self.written_blocks - written) as u32 + 1;
        }
        Ok(begun)
    }

    /// A write is done.
    pub(crate) fn on_written(&mut self, purpose: &WritePurpose, blocks: &mut Blocks) {
        match purpose {
            WritePurpose::Blocks(count) => self.home_blocks += count,
            WritePurpose::Page(Some(key)) => blocks.pages.unpin(*key),
            _ => {}
        }
        self.outstanding -= 1;
    }

    /// The cycle is durable: no crash brings back what it gave up.
    pub(crate) fn free(self, blocks: &mut Blocks) {
        self.freed_slots.into_iter().for_each(|slot| blocks.slots.free(slot));
        self.freed_places.into_iter().for_each(|place| blocks.pages.free_place(place));
    }

    fn read_ahead(&self, blocks: &mut Blocks, device: &mut Device) {
        let keys: Vec<Key> = self.todo.iter().take(AHEAD).flat_map(Todo::keys).collect();
        for key in keys {
            if is_missing(key, blocks) {
                blocks.load_page(key, None, None, device);
            }
        }
    }

    /// Writes one page's blocks to their final places, and the page.
    fn update(
        &mut self,
        home: &Home,
        blocks: &mut Blocks,
        log: &Log,
        device: &mut Device,
    ) -> Result<(), NoRoom> {
        home.create_pages(blocks)?;
        for number in home.slots() {
            let Some(group) = blocks.layers.destaging().group(home.volume, number).cloned() else { continue };
            self.update_group(home.volume, number, &group, blocks, log, device)?;
        }
        for &plane in &home.planes {
            let key = home.key(plane);
            // A slot that was left to a write which never came, as power went, goes with its page.
            if is_over(key, blocks, log) {
                self.erase(key, blocks, device);
            } else {
                self.write_page(key, blocks, device);
            }
        }
        Ok(())
    }

    fn update_group(
        &mut self,
        volume: VolumeId,
        number: u64,
        group: &Group,
        blocks: &mut Blocks,
        log: &Log,
        device: &mut Device,
    ) -> Result<(), NoRoom> {
        let first = number * SLOT_BLOCKS;
        let key = Key::of(volume, first, 0);
        let old = blocks.pages.update(key, |page| {
            let versions = group.versions.iter();
            versions.for_each(|(index, version)| set_entry(page, first + u64::from(*index), 0, version));
            if is_erasable(volume) {
                page.forget_erased(first);
            }
            page.slot(first)
        });
        update_planes(volume, first, group, blocks);
        let page = blocks.pages.get(key).expect("just changed");
        let holds_data = (first..first + SLOT_BLOCKS).any(|lba| page.entry(lba).kind == Kind::Data);
        let new = if holds_data {
            let slot = group.slot.or(old).or_else(|| allocate_slot(blocks));
            Some(slot.ok_or(NoRoom("no slot is left for content, although it was set aside"))?)
        } else {
            // Writes that found a slot here set none aside: it stays theirs, although it holds nothing now.
            old.filter(|_| is_awaited(volume, number, blocks, log))
        };
        blocks.pages.update(key, |page| page.set_slot(first, new));
        let given_up = [old, group.slot].into_iter().flatten().filter(|&slot| Some(slot) != new);
        let given_up: BTreeSet<u32> = given_up.chain(group.replaced.iter().copied()).collect();
        self.freed_slots.extend(given_up);
        if let Some(slot) = new {
            self.write_blocks(slot, group, blocks, device);
        }
        Ok(())
    }

    /// Writes a group's blocks, adjacent ones together.
    fn write_blocks(&mut self, slot: u32, group: &Group, blocks: &mut Blocks, device: &mut Device) {
        let in_memory = |(_, version): &&(u8, Version)| matches!(version.place, Place::Memory(_));
        let versions: Vec<&(u8, Version)> = group.versions.iter().filter(in_memory).collect();
        for run in versions.chunk_by(|before, after| before.0 + 1 == after.0) {
            let first = u64::from(slot) * SLOT_BLOCKS + u64::from(run[0].0);
            self.write_run(first, run, blocks, device);
        }
    }

    fn write_run(&mut self, first: u64, run: &[&(u8, Version)], blocks: &mut Blocks, device: &mut Device) {
        let mut payload = Payload::new();
        blocks.cache.forget(first, run.len() as u64);
        for (i, (_, version)) in run.iter().enumerate() {
            let Place::Memory(bytes) = &version.place else { continue };
            payload.push(bytes.clone());
            // A copy of its own: the block shares the memory of a whole journal frame, which must not stay for its sake.
            blocks.cache.insert(first + i as u64, vec![version.sum], aligned_copy(bytes));
        }
        self.written_blocks += run.len() as u64;
        self.write(
            WritePurpose::Blocks(run.len() as u64),
            device.geometry().block_offset(first),
            payload,
            device,
        );
    }

    /// Writes a page again that the cycle does not change.
    fn rewrite(&mut self, key: Key, blocks: &mut Blocks, device: &mut Device) {
        if blocks.pages.home(key).is_some() && blocks.pages.is_resident(key) {
            self.write_page(key, blocks, device);
        }
        // Since it was found damaged; one that is gone by now has its pin still.
        blocks.pages.unpin(key);
    }

    fn write_page(&mut self, key: Key, blocks: &mut Blocks, device: &mut Device) {
        let place = blocks.pages.home(key).expect("an updated page has a home").place;
        let site = blocks.pages.site(place);
        let page = blocks.pages.get(key).expect("an updated page is in memory");
        let bytes = page.encode(key, site, device.seed());
        self.said.push(Entry { place, is_after_loss: site.is_after_loss, said: Said::of(key, page) });
        blocks.pages.pin(key);
        let offset = device.geometry().page_offset(place);
        self.write(WritePurpose::Page(Some(key)), offset, Payload::from(aligned_copy(&bytes)), device);
    }

    /// Marks a page as free that was discarded, or says nothing any more, and gives up its slots.
    fn erase(&mut self, key: Key, blocks: &mut Blocks, device: &mut Device) {
        // The same cycle may have an update of it, if content was journalled behind the discard.
        let Some(home) = blocks.pages.home(key) else { return };
        let slots = blocks.pages.get(key).map(|page| page.slots().collect::<Vec<u32>>());
        blocks.pages.remove(key);
        self.freed_slots.extend(slots.unwrap_or_default());
        self.freed_places.push(home.place);
        let site = blocks.pages.site(home.place);
        let bytes = aligned_copy(&Page::encode_free(site, device.seed()));
        self.said.push(Entry { place: home.place, is_after_loss: site.is_after_loss, said: Said::Free });
        let offset = device.geometry().page_offset(home.place);
        self.write(WritePurpose::Page(None), offset, Payload::from(bytes), device);
    }

    fn write(&mut self, purpose: WritePurpose, offset: u64, payload: Payload, device: &mut Device) {
        self.outstanding += 1;
        device.write(purpose, offset, payload, false);
    }
}

/// The pages of one stretch of a volume's blocks, one a plane.
struct Home {
    volume: VolumeId,
    page: u64,
    planes: BTreeSet<u8>,
}

impl Home {
    fn key(&self, plane: u8) -> Key {
        Key { volume: self.volume, page: self.page, plane }
    }

    /// Its slots' addresses.
    fn slots(&self) -> core::ops::Range<u64> {
        self.page * PAGE_SLOTS..(self.page + 1) * PAGE_SLOTS
    }

    /// Creates the pages that do not exist.
    fn create_pages(&self, blocks: &mut Blocks) -> Result<(), NoRoom> {
        for key in self.planes.iter().map(|&plane| self.key(plane)) {
            if blocks.pages.home(key).is_none() && !create_page(key, blocks) {
                return Err(NoRoom("no place is left for a metadata page, although it was set aside"));
            }
        }
        Ok(())
    }
}

/// Lets updates write pages for zeros, too, as far as pages are left over when all others are created. Zeros that have none
/// stay unknown, and can be mended.
pub(crate) fn add_zeros(todo: &mut VecDeque<Todo>, blocks: &mut Blocks) {
    let is_new = |key: &Key| blocks.pages.home(*key).is_none();
    let for_stamps = todo.iter().map(|todo| todo.keys().filter(is_new).count() as u32).sum();
    let zeros = |todo: &Todo| match todo {
        Todo::Update { volume, page, planes } => &blocks.zero_planes(*volume, *page) - planes,
        Todo::Rewrite(_) | Todo::Erase(_) => BTreeSet::new(),
    };
    let zeros: Vec<BTreeSet<u8>> = todo.iter().map(zeros).collect();
    let for_zeros = zeros.iter().map(|planes| planes.len() as u32).sum();
    let mut left = blocks.set_aside_for_cycle(for_stamps, for_zeros) as usize;
    for (todo, zeros) in todo.iter_mut().zip(zeros) {
        let Todo::Update { planes, .. } = todo else { continue };
        let given = zeros.len().min(left);
        planes.extend(zeros.into_iter().take(given));
        left -= given;
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

fn is_missing(key: Key, blocks: &Blocks) -> bool {
    blocks.pages.home(key).is_some() && !blocks.pages.is_resident(key)
}

fn create_page(key: Key, blocks: &mut Blocks) -> bool {
    if blocks.layers.spend_page() {
        blocks.pages.release(1);
    }
    let page = Page::of(blocks.nowhere().kind);
    blocks.pages.create(key, page).is_some()
}

fn allocate_slot(blocks: &mut Blocks) -> Option<u32> {
    if blocks.layers.spend_slot() {
        blocks.slots.release(1);
    }
    blocks.slots.allocate()
}

/// Whether blocks of a volume can be as if they were never written: fragments of objects, which nobody looks for any more.
fn is_erasable(volume: VolumeId) -> bool {
    FragmentId::version_of(volume).is_some()
}

/// Whether a page says nothing any more, and need not be there. Writes that found it here set none aside: it stays theirs.
fn is_over(key: Key, blocks: &Blocks, log: &Log) -> bool {
    // Without a page nothing is known of its blocks once some page was lost.
    is_erasable(key.volume)
        && blocks.pages.lost() == 0
        && blocks.pages.get(key).is_some_and(Page::is_blank)
        && !blocks.layers.durable().has_page(key)
        && !log.changes_page(key)
}

/// Whether content that is not in this cycle will need a slot at these blocks.
fn is_awaited(volume: VolumeId, number: u64, blocks: &Blocks, log: &Log) -> bool {
    let journalled = blocks.layers.durable().group(volume, number);
    journalled.is_some_and(Group::is_in_memory) || log.brings_content(volume, number)
}

fn update_planes(volume: VolumeId, first: u64, group: &Group, blocks: &mut Blocks) {
    for (index, version) in &group.versions {
        let lba = first + u64::from(*index);
        for (plane, _) in version.stamps.as_slice().filter(|(plane, _)| *plane > 0) {
            let key = Key::of(volume, lba, plane);
            if blocks.pages.home(key).is_some() {
                blocks.pages.update(key, |page| set_entry(page, lba, plane, version));
            }
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
    page.set_entry(lba, metadata::Entry { kind, stamp, sum });
}
