//! What is being given back: whole volumes, and stretches of them.
//!
//! A discard hides its blocks at once, goes into the journal with the next group, and is over when a cycle has erased the
//! last page. Until then the blocks take no writes, so that a record behind a discard is one from after it.

use crate::metadata::{Key, PAGE_BLOCKS};
use crate::superblock::SLOT_BLOCKS;
use base::VolumeId;
use core::ops::RangeInclusive;
use std::collections::{BTreeMap, BTreeSet};
use wire::Span;

/// The least bound of discards in the journal at a time.
const PENDING_MAX_MIN: usize = 256;
/// A bound of what a discard takes of a checkpoint, in bytes.
const PENDING_BYTES: usize = 32;

/// A volume, or a stretch of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Region {
    pub(crate) volume: VolumeId,
    /// The address in [`Span::STRETCH_BLOCKS`]; all of them when absent.
    pub(crate) stretch: Option<u64>,
}

impl Region {
    /// All of a volume.
    pub(crate) fn volume(volume: VolumeId) -> Region {
        Region { volume, stretch: None }
    }

    /// Whether its addresses exist.
    pub(crate) fn is_sound(&self) -> bool {
        self.stretch.is_none_or(|stretch| stretch < u64::MAX / Span::STRETCH_BLOCKS)
    }

    /// Whether a block is in it.
    pub(crate) fn holds(&self, volume: VolumeId, lba: u64) -> bool {
        self.volume == volume && self.stretch.is_none_or(|stretch| stretch == lba / Span::STRETCH_BLOCKS)
    }

    /// Whether a write is in it; none crosses a stretch's border.
    pub(crate) fn holds_span(&self, span: &Span) -> bool {
        self.holds(span.volume, span.lba)
    }

    pub(crate) fn pages(&self) -> RangeInclusive<Key> {
        let (first, last) = self.numbers(Span::STRETCH_BLOCKS / PAGE_BLOCKS);
        let key = |page, plane| Key { volume: self.volume, page, plane };
        key(first, 0)..=key(last, u8::MAX)
    }

    /// Its slots' addresses.
    pub(crate) fn groups(&self) -> RangeInclusive<(VolumeId, u64)> {
        let (first, last) = self.numbers(Span::STRETCH_BLOCKS / SLOT_BLOCKS);
        (self.volume, first)..=(self.volume, last)
    }

    /// The first and the last of what there are `count` of in a stretch.
    fn numbers(&self, count: u64) -> (u64, u64) {
        self.stretch.map_or((0, u64::MAX), |stretch| (stretch * count, stretch * count + count - 1))
    }
}

/// All discards that are not over.
#[derive(Debug, Default)]
pub(crate) struct Discards {
    /// `true` once the journal knows.
    pending: BTreeMap<Region, bool>,
    /// The most of these; more wait in memory.
    pending_max: usize,
    waiting: BTreeSet<Region>,
}

impl Discards {
    /// None. Those in the journal take at most a twentieth of it in a checkpoint.
    pub(crate) fn new(journal_bytes: u64) -> Discards {
        let pending_max = (journal_bytes as usize / 20 / PENDING_BYTES).max(PENDING_MAX_MIN);
        Discards { pending_max, ..Discards::default() }
    }

    /// Whether the journal knows all that were asked for.
    pub(crate) fn are_logged(&self) -> bool {
        self.waiting.is_empty() && self.pending.values().all(|logged| *logged)
    }

    /// Whether a block is being given back.
    pub(crate) fn cover(&self, volume: VolumeId, lba: u64) -> bool {
        !self.is_empty() && self.covering(volume, lba).any(|region| self.has(region))
    }

    /// Whether a write's blocks are.
    pub(crate) fn cover_span(&self, span: &Span) -> bool {
        self.cover(span.volume, span.lba)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.waiting.is_empty()
    }

    /// Adds one; true when it is to go into the journal now.
    pub(crate) fn add(&mut self, region: Region) -> bool {
        if self.has(region) {
            return false;
        }
        if self.pending.len() >= self.pending_max {
            self.waiting.insert(region);
            return false;
        }
        self.pending.insert(region, false);
        true
    }

    /// The journal knows of one.
    pub(crate) fn log(&mut self, region: Region) {
        self.waiting.remove(&region);
        self.pending.insert(region, true);
    }

    /// Those that the journal knows.
    pub(crate) fn logged(&self) -> impl Iterator<Item = Region> {
        self.pending.iter().filter(|(_, logged)| **logged).map(|(&region, _)| region)
    }

    /// A checkpoint says which ones there are.
    pub(crate) fn reset(&mut self, volumes: Vec<VolumeId>) {
        self.pending = volumes.into_iter().map(|volume| (Region::volume(volume), true)).collect();
    }

    /// A write that the journal has behind a discard shows that the discard was over.
    pub(crate) fn end_at(&mut self, span: &Span) {
        self.pending.retain(|region, _| !region.holds_span(span));
    }

    /// Ends those that the journal knows and that have nothing left.
    pub(crate) fn end_logged(&mut self, is_left: impl Fn(Region) -> bool) {
        self.pending.retain(|&region, logged| !*logged || is_left(region));
    }

    /// One that waited and is to go into the journal now.
    pub(crate) fn next_waiting(&mut self) -> Option<Region> {
        let room = self.pending.len() < self.pending_max;
        let region = if room { self.waiting.pop_first() } else { None };
        self.pending.extend(region.map(|region| (region, false)));
        region
    }

    /// A bound of what they take of a checkpoint.
    pub(crate) fn checkpoint_bytes(&self) -> usize {
        self.pending.len() * PENDING_BYTES
    }

    fn has(&self, region: Region) -> bool {
        self.pending.contains_key(&region) || self.waiting.contains(&region)
    }

    fn covering(&self, volume: VolumeId, lba: u64) -> impl Iterator<Item = Region> {
        [None, Some(lba / Span::STRETCH_BLOCKS)].into_iter().map(move |stretch| Region { volume, stretch })
    }
}
