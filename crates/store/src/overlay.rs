//! Committed content that is not at home yet, in layers. A version in an upper layer hides the ones below, but for stamps
//! that it does not change.

use crate::discard::Region;
use crate::metadata::{Key, PAGE_SLOTS};
use crate::record::{Body, Extent};
use crate::superblock::SLOT_BLOCKS;
use base::{BLOCK, Checksum, Stamp, VolumeId};
use bytes::Bytes;
use std::collections::BTreeMap;
use wire::{Change, Span};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Need {
    pub(crate) slots: u32,
    pub(crate) pages: u32,
}

impl Need {
    pub(crate) fn add(&mut self, other: Need) {
        self.slots += other.slots;
        self.pages += other.pages;
    }
}

/// The stamps that a version changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stamps {
    One(u8, Stamp),
    Many(Vec<(u8, Stamp)>),
}

impl Stamps {
    /// Entry `index`, if the version changes it.
    pub(crate) fn get(&self, index: u8) -> Option<Stamp> {
        self.as_slice().find(|(i, _)| *i == index).map(|(_, stamp)| stamp)
    }

    /// All that it changes.
    pub(crate) fn as_slice(&self) -> impl Iterator<Item = (u8, Stamp)> {
        let (one, many) = match self {
            Stamps::One(index, stamp) => (Some((*index, *stamp)), &[][..]),
            Stamps::Many(all) => (None, all.as_slice()),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// Takes over what the version below changes and this one does not.
    fn inherit(&mut self, below: &Stamps) {
        let missing: Vec<_> = below.as_slice().filter(|(i, _)| self.get(*i).is_none()).collect();
        if !missing.is_empty() {
            *self = Stamps::Many(self.as_slice().chain(missing).collect());
        }
    }
}

/// Where a version's content is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Memory(Bytes),
    Slot(u32),
    Zero,
    Lost,
}

/// A committed block.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) writer: Stamp,
    pub(crate) stamps: Stamps,
    pub(crate) sum: Checksum,
    pub(crate) place: Place,
}

/// The versions of the blocks of one slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// By index within the slot.
    pub(crate) versions: Vec<(u8, Version)>,
    /// The slot that a large write has brought.
    pub(crate) slot: Option<u32>,
    /// Such slots that a later large write has replaced.
    pub(crate) replaced: Vec<u32>,
}

impl Group {
    fn get(&self, index: u8) -> Option<&Version> {
        let at = self.versions.binary_search_by_key(&index, |(i, _)| *i).ok()?;
        Some(&self.versions[at].1)
    }

    /// Whether any of its content has yet to get to a slot.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.versions.iter().any(|(_, version)| matches!(version.place, Place::Memory(_)))
    }
}

/// Which stamps a write sets.
#[derive(Clone, Copy)]
pub(crate) enum Setting<'a> {
    One(u8, Stamp),
    All(u8, Stamp),
    Each(u8, &'a [Stamp]),
}

impl Setting<'_> {
    /// What a staged write sets.
    pub(crate) fn of(change: &Change, stamp: Stamp) -> Setting<'static> {
        match change {
            Change::Data | Change::Zero => Setting::One(0, stamp),
            Change::Xor { index, .. } | Change::Replace { index, .. } => Setting::One(*index, stamp),
            Change::Parity { width } => Setting::All(*width, stamp),
        }
    }

    /// The planes that it touches; always the first, where the place is kept. Those in which it sets no stamp but zero
    /// are among them if `zeros` are asked for.
    pub(crate) fn planes_used(&self, zeros: bool) -> impl Iterator<Item = u8> {
        let (from, to) = match self {
            Setting::One(0, _) => (1, 1),
            Setting::One(index, _) => (*index, index + 1),
            Setting::All(width, _) | Setting::Each(width, _) => (1, *width),
        };
        core::iter::once(0).chain((from..to).filter(move |&plane| zeros || self.sets(plane)))
    }

    /// Whether it sets a stamp other than zero in a plane that it touches.
    fn sets(&self, plane: u8) -> bool {
        match self {
            Setting::Each(width, stamps) => {
                let mut entries = stamps.iter().skip(usize::from(plane)).step_by(usize::from(*width));
                entries.any(|stamp| !stamp.is_zero())
            }
            Setting::One(..) | Setting::All(..) => true,
        }
    }

    fn stamps(&self, block: u32) -> Stamps {
        match *self {
            Setting::One(index, stamp) => Stamps::One(index, stamp),
            Setting::All(1, stamp) => Stamps::One(0, stamp),
            Setting::All(width, stamp) => Stamps::Many((0..width).map(|i| (i, stamp)).collect()),
            Setting::Each(width, stamps) => {
                let own = &stamps[block as usize * width as usize..][..width as usize];
                Stamps::Many((0..width).zip(own.iter().copied()).collect())
            }
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Overlay {
    groups: BTreeMap<(VolumeId, u64), Group>,
    bytes: usize,
    /// Space set aside for bringing the layer home.
    pub(crate) need: Need,
}

impl Overlay {
    /// The version of a block.
    pub(crate) fn get(&self, volume: VolumeId, lba: u64) -> Option<&Version> {
        self.groups.get(&(volume, lba / SLOT_BLOCKS))?.get((lba % SLOT_BLOCKS) as u8)
    }

    /// Puts a write's blocks over what is there.
    pub(crate) fn put(&mut self, span: Span, writer: Stamp, setting: Setting<'_>, extents: &[Extent]) {
        for extent in extents {
            if let Body::Slot(slot) = extent.body {
                self.put_slot(span.volume, (span.lba + u64::from(extent.offset)) / SLOT_BLOCKS, slot);
            }
            for i in 0..extent.count {
                let block = extent.offset + i;
                let sum = extent.sums.get(i as usize).copied().unwrap_or_default();
                let place = place(extent, i);
                let version = Version { writer, stamps: setting.stamps(block), sum, place };
                self.put_version(span.volume, span.lba + u64::from(block), version);
            }
        }
    }

    fn put_slot(&mut self, volume: VolumeId, number: u64, slot: u32) {
        let group = self.groups.entry((volume, number)).or_default();
        group.replaced.extend(group.slot.replace(slot));
    }

    fn put_version(&mut self, volume: VolumeId, lba: u64, mut version: Version) {
        let group = self.groups.entry((volume, lba / SLOT_BLOCKS)).or_default();
        let index = (lba % SLOT_BLOCKS) as u8;
        self.bytes += in_memory(&version);
        match group.versions.binary_search_by_key(&index, |(i, _)| *i) {
            Ok(at) => {
                let old = &mut group.versions[at].1;
                self.bytes -= in_memory(old);
                version.stamps.inherit(&old.stamps);
                *old = version;
            }
            Err(at) => group.versions.insert(at, (index, version)),
        }
    }

    /// Takes away what `writer` put in `span` and nothing hides. Slots that it brought belong to the caller.
    pub(crate) fn remove(&mut self, span: Span, writer: Stamp) {
        for number in span.lba / SLOT_BLOCKS..=(span.end() - 1) / SLOT_BLOCKS {
            let Some(group) = self.groups.get_mut(&(span.volume, number)) else { continue };
            let before: usize = group.versions.iter().map(|(_, version)| in_memory(version)).sum();
            group.versions.retain(|(_, version)| version.writer != writer);
            self.bytes -= before - group.versions.iter().map(|(_, v)| in_memory(v)).sum::<usize>();
            if group.versions.is_empty() {
                self.groups.remove(&(span.volume, number));
            }
        }
    }

    /// Whether it has anything of a region.
    pub(crate) fn holds_any(&self, region: Region) -> bool {
        self.groups.range(region.groups()).next().is_some()
    }

    /// Takes away all of a region; the slots that its large writes brought are given back.
    pub(crate) fn remove_region(&mut self, region: Region) -> Vec<u32> {
        let keys: Vec<_> = self.groups.range(region.groups()).map(|(&key, _)| key).collect();
        let mut slots = Vec::new();
        for key in keys {
            let group = self.groups.remove(&key).expect("just seen");
            self.bytes -= group.versions.iter().map(|(_, version)| in_memory(version)).sum::<usize>();
            slots.extend(group.slot.into_iter().chain(group.replaced));
        }
        slots
    }

    /// Its groups, in order of their address.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (VolumeId, u64, &Group)> {
        self.groups.iter().map(|(&(volume, number), group)| (volume, number, group))
    }

    /// Whether it has blocks that a page describes.
    pub(crate) fn has_page(&self, key: Key) -> bool {
        let first = (key.volume, key.page * PAGE_SLOTS);
        self.groups.range(first..=(key.volume, first.1 + PAGE_SLOTS - 1)).next().is_some()
    }

    /// The first one's address from `key` on.
    pub(crate) fn first_from(&self, key: (VolumeId, u64)) -> Option<(VolumeId, u64)> {
        self.groups.range(key..).next().map(|(&key, _)| key)
    }

    pub(crate) fn group(&self, volume: VolumeId, number: u64) -> Option<&Group> {
        self.groups.get(&(volume, number))
    }

    /// Slots that its large writes brought.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> {
        self.groups.values().flat_map(|group| group.slot.into_iter().chain(group.replaced.iter().copied()))
    }

    /// Recovery counts slots anew: those that were replaced are free.
    pub(crate) fn forget_replaced(&mut self) {
        self.groups.values_mut().for_each(|group| group.replaced.clear());
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Bytes of content that it keeps in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Asserts that the accounts are true.
    pub(crate) fn check(&self) {
        let versions = || self.groups.values().flat_map(|group| &group.versions);
        assert_eq!(
            versions().map(|(_, v)| in_memory(v)).sum::<usize>(),
            self.bytes,
            "the overlay's accounts"
        );
        assert!(self.groups.values().all(|g| g.versions.is_sorted_by(|a, b| a.0 < b.0)));
    }
}

fn place(extent: &Extent, index: u32) -> Place {
    match &extent.body {
        Body::Inline(payload) => Place::Memory(payload.block(index as usize).contiguous()),
        Body::Slot(slot) => Place::Slot(*slot),
        Body::Zero => Place::Zero,
        Body::Lost => Place::Lost,
    }
}

fn in_memory(version: &Version) -> usize {
    if matches!(version.place, Place::Memory(_)) { BLOCK } else { 0 }
}
