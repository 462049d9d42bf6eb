//! The way over a group's blocks at one member: which span is looked at next, which is to be looked at again and when, and
//! how far it is.

use crate::layout::Geometry;
use crate::view::Families;
use base::{BLOCK_U64, GroupId, Time, ViewNumber, VolumeId};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::Span;

/// How long a span that could not be settled waits before it is looked at again; doubled each time.
const AGAIN: Duration = Duration::from_millis(20);
pub(super) const AGAIN_DOUBLINGS_MAX: u32 = 8;
/// The most spans that wait while ones that were looked at in vain are still halved.
const HALVED_MAX: usize = 1024;

/// The walk.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) group: GroupId,
    pub(super) family: VolumeId,
    /// The view under which it goes, and the slot of whose blocks it looks at.
    pub(super) number: ViewNumber,
    pub(super) slot: u8,
    /// Whether the disk is checked, too.
    pub(super) verify: bool,
    stretches: VecDeque<(VolumeId, u64)>,
    /// Where in the first of them.
    lba: u64,
    again: BTreeMap<(Time, VolumeId, u64), (Span, u32)>,
    pub(super) in_flight: usize,
    pub(super) compared_blocks: u64,
    pub(super) total_blocks: u64,
    pub(super) found_blocks: u64,
    pub(super) repaired_blocks: u64,
    pub(super) fetched_bytes: u64,
    /// Blocks that nobody can make out.
    pub(super) lost: BTreeSet<(VolumeId, u64)>,
}

impl Walk {
    pub(super) fn new(
        (group, family): (GroupId, VolumeId),
        (number, slot): (ViewNumber, u8),
        verify: bool,
        stretches: BTreeSet<(VolumeId, u64)>,
    ) -> Walk {
        Walk {
            group,
            family,
            number,
            slot,
            verify,
            lba: stretches.first().map_or(0, |(_, stretch)| stretch * Span::STRETCH_BLOCKS),
            total_blocks: stretches.len() as u64 * Span::STRETCH_BLOCKS,
            stretches: stretches.into_iter().collect(),
            again: BTreeMap::new(),
            in_flight: 0,
            compared_blocks: 0,
            found_blocks: 0,
            repaired_blocks: 0,
            fetched_bytes: 0,
            lost: BTreeSet::new(),
        }
    }

    /// The next span to look at, and how often it was looked at in vain.
    pub(super) fn next(&mut self, now: Time, families: &Families) -> Option<(Span, u32)> {
        if let Some(first) = self.again.first_entry()
            && first.key().0 <= now
        {
            self.in_flight += 1;
            return Some(first.remove());
        }
        let geometry = families.geometry(self.family)?;
        while let Some(&(volume, stretch)) = self.stretches.front() {
            let end = (stretch + 1) * Span::STRETCH_BLOCKS;
            let lba = self.lba;
            if lba >= end {
                self.stretches.pop_front();
                self.lba = self.stretches.front().map_or(0, |(_, stretch)| stretch * Span::STRETCH_BLOCKS);
                continue;
            }
            let count = span_blocks(&geometry, lba).min(end - lba);
            self.lba = lba + count;
            if families.group_at(self.family, lba) == Some(self.group) {
                self.in_flight += 1;
                return Some((Span { volume, lba, count: count as u32 }, 0));
            }
            self.compared_blocks += count;
        }
        None
    }

    /// A span is settled.
    pub(super) fn done(&mut self, span: Span) {
        self.in_flight -= 1;
        self.compared_blocks += u64::from(span.count);
    }

    /// A span is to be looked at again. Where one block of it is always busy it comes to be looked at alone: the span is
    /// halved each time.
    ///
    /// What was found there is found again, but for what was repaired: `unrepaired` blocks count from then on only.
    pub(super) fn again(&mut self, now: Time, span: Span, attempts: u32, unrepaired: u64) {
        self.in_flight -= 1;
        self.found_blocks -= unrepaired;
        let due = now + AGAIN * (1 << attempts.min(AGAIN_DOUBLINGS_MAX));
        let half = if self.again.len() < HALVED_MAX { span.count / 2 } else { 0 };
        let upper = Span { lba: span.lba + u64::from(half), count: span.count - half, ..span };
        for part in [Span { count: half, ..span }, upper].into_iter().filter(|part| part.count > 0) {
            self.again.insert((due, part.volume, part.lba), (part, attempts + 1));
        }
    }

    /// Whether all is settled.
    pub(super) fn is_through(&self) -> bool {
        self.stretches.is_empty() && self.again.is_empty() && self.in_flight == 0
    }

    /// Whether there is something to begin with now.
    pub(super) fn has_more(&self) -> bool {
        !self.stretches.is_empty()
    }

    /// When a span is to be looked at again.
    pub(super) fn due(&self) -> Option<Time> {
        self.again.keys().next().map(|(due, ..)| *due)
    }

    /// How many bytes it takes to make out one block of it.
    pub(super) fn fetch_bytes(geometry: &Geometry) -> u64 {
        BLOCK_U64 * if geometry.layout().copies() > 1 { 1 } else { u64::from(geometry.layout().data()) }
    }
}

/// How many blocks from `lba` on are looked at together: all in one stripe unit (mirrors have none) and one extent.
pub(super) fn span_blocks(geometry: &Geometry, lba: u64) -> u64 {
    let extent_end = geometry.lbas(geometry.extent_of_lba(lba)).end;
    let unit = match geometry.layout().copies() > 1 {
        true => u64::from(Span::BLOCKS_MAX),
        false => u64::from(geometry.stripe_unit_blocks().min(Span::BLOCKS_MAX)),
    };
    // A stripe unit may be longer than a span may be.
    let unit_end = match geometry.layout().copies() > 1 {
        true => (lba / unit + 1) * unit,
        false => {
            let stripe = u64::from(geometry.stripe_unit_blocks());
            ((lba / stripe + 1) * stripe).min(lba + unit)
        }
    };
    extent_end.min(unit_end) - lba
}
