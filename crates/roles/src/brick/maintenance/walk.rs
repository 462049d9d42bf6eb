//! The way over a group's blocks at one member: which span is looked at next, which is to be looked at again and when, and
//! how far it is.

use super::job::{Place, Stretch};
use base::{BLOCK_U64, GroupId, Time, VolumeId};
use core::time::Duration;
use rules::layout::Geometry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use volume::view::Families;
use wire::Span;

/// How long a span that could not be settled waits before it is looked at again; doubled each time.
const AGAIN: Duration = Duration::from_millis(20);
pub(super) const AGAIN_DOUBLINGS_MAX: u32 = 8;
/// The most spans that wait while ones that were looked at in vain are still halved.
const HALVED_MAX: usize = 1024;

/// Which blocks are walked over, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) group: GroupId,
    pub(super) family: VolumeId,
    /// The slot of whose blocks it looks at.
    pub(super) slot: u8,
    /// Whether the disk is checked, too.
    pub(super) verify: bool,
}

/// A span to look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) span: Span,
    /// How often it was looked at in vain.
    pub(super) attempts: u32,
}

/// How far a walk is.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Progress {
    pub(super) compared_blocks: u64,
    pub(super) total_blocks: u64,
    pub(super) found_blocks: u64,
    pub(super) repaired_blocks: u64,
    pub(super) fetched_bytes: u64,
}

/// When a span is looked at again, and where it begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Due {
    at: Time,
    place: Place,
}

fn first_of(span: Span) -> Place {
    Place { branch: span.volume, lba: span.lba }
}

#[derive(Debug)]
pub(super) struct Walk {
    route: Route,
    stretches: VecDeque<Stretch>,
    /// Where in the first of them.
    lba: u64,
    again: BTreeMap<Due, Visit>,
    /// Spans that are being looked at.
    outstanding: usize,
    progress: Progress,
    /// Blocks that nobody can make out.
    lost: BTreeSet<Place>,
}

impl Walk {
    pub(super) fn new(route: Route, stretches: BTreeSet<Stretch>) -> Walk {
        let total_blocks = stretches.len() as u64 * Span::STRETCH_BLOCKS;
        Walk {
            route,
            lba: stretches.first().map_or(0, |(_, stretch)| stretch * Span::STRETCH_BLOCKS),
            stretches: stretches.into_iter().collect(),
            again: BTreeMap::new(),
            outstanding: 0,
            progress: Progress { total_blocks, ..Progress::default() },
            lost: BTreeSet::new(),
        }
    }

    /// Over these blocks alone.
    pub(super) fn over(route: Route, places: BTreeSet<Place>, now: Time) -> Walk {
        let mut walk = Walk::new(route, BTreeSet::new());
        walk.progress.total_blocks = places.len() as u64;
        walk.visit_alone(places, now);
        walk
    }

    fn visit_alone(&mut self, places: BTreeSet<Place>, now: Time) {
        let visits = places.into_iter().map(|place| {
            let span = Span { volume: place.branch, lba: place.lba, count: 1 };
            (Due { at: now, place }, Visit { span, attempts: 0 })
        });
        self.again.extend(visits);
    }

    /// What nobody could make out is looked at again: a member that can may be back. It counts as not looked at so far.
    pub(super) fn revisit_lost(&mut self, now: Time) {
        let waiting = self.again.values().map(|visit| (first_of(visit.span), visit.span));
        // No two of them overlap.
        let waiting: BTreeMap<Place, Span> = waiting.collect();
        let waits = |place: &Place| {
            let before = waiting.range(..=*place).next_back();
            before.is_some_and(|(first, span)| first.branch == place.branch && place.lba < span.end())
        };
        let lost: BTreeSet<Place> = self.lost.iter().copied().filter(|place| !waits(place)).collect();
        self.progress.compared_blocks -= lost.len() as u64;
        self.progress.found_blocks -= lost.len() as u64;
        self.visit_alone(lost, now);
    }

    pub(super) fn route(&self) -> Route {
        self.route
    }

    pub(super) fn progress(&self) -> Progress {
        self.progress
    }

    pub(super) fn lost(&self) -> &BTreeSet<Place> {
        &self.lost
    }

    pub(super) fn take_lost(&mut self) -> BTreeSet<Place> {
        core::mem::take(&mut self.lost)
    }

    pub(super) fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// The brick has this slot under a new view.
    pub(super) fn set_slot(&mut self, slot: u8) {
        self.route.slot = slot;
    }

    /// The next span to look at.
    pub(super) fn next(&mut self, now: Time, families: &Families) -> Option<Visit> {
        if let Some(first) = self.again.first_entry()
            && first.key().at <= now
        {
            self.outstanding += 1;
            return Some(first.remove());
        }
        let Route { group, family, .. } = self.route;
        let geometry = families.geometry(family)?;
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
            if families.group_at(family, lba) == Some(group) {
                self.outstanding += 1;
                return Some(Visit { span: Span { volume, lba, count: count as u32 }, attempts: 0 });
            }
            self.progress.compared_blocks += count;
        }
        None
    }

    /// So many blocks of a span are unreadable or old. What is lost there is found anew each time.
    pub(super) fn note_found(&mut self, span: Span, blocks: u64) {
        self.progress.found_blocks += blocks;
        let first = first_of(span);
        let there: Vec<Place> = self.lost.range(first..Place { lba: span.end(), ..first }).copied().collect();
        for place in there {
            self.lost.remove(&place);
        }
    }

    pub(super) fn note_fetched(&mut self, bytes: u64) {
        self.progress.fetched_bytes += bytes;
    }

    pub(super) fn note_repaired(&mut self, blocks: u64) {
        self.progress.repaired_blocks += blocks;
    }

    /// Nobody can make a block out.
    pub(super) fn note_lost(&mut self, place: Place) {
        self.lost.insert(place);
    }

    /// A span is settled.
    pub(super) fn done(&mut self, span: Span) {
        self.outstanding -= 1;
        self.progress.compared_blocks += u64::from(span.count);
    }

    /// A span is to be looked at again. Where one block of it is always busy it comes to be looked at alone: the span is
    /// halved each time.
    ///
    /// What was found there is found again, but for what was repaired: `unrepaired` blocks count from then on only.
    pub(super) fn again(&mut self, now: Time, visit: Visit, unrepaired: u64) {
        let Visit { span, attempts } = visit;
        self.outstanding -= 1;
        self.progress.found_blocks -= unrepaired;
        let at = now + AGAIN * (1 << attempts.min(AGAIN_DOUBLINGS_MAX));
        let half = if self.again.len() < HALVED_MAX { span.count / 2 } else { 0 };
        let upper = Span { lba: span.lba + u64::from(half), count: span.count - half, ..span };
        for span in [Span { count: half, ..span }, upper].into_iter().filter(|part| part.count > 0) {
            self.again.insert(Due { at, place: first_of(span) }, Visit { span, attempts: attempts + 1 });
        }
    }

    /// Whether all is settled.
    pub(super) fn is_through(&self) -> bool {
        self.stretches.is_empty() && self.again.is_empty() && self.outstanding == 0
    }

    /// Whether there is something to begin with now.
    pub(super) fn has_more(&self) -> bool {
        !self.stretches.is_empty()
    }

    /// When a span is to be looked at again.
    pub(super) fn due(&self) -> Option<Time> {
        self.again.keys().next().map(|due| due.at)
    }
}

/// How many bytes it takes to make out one block.
pub(super) fn fetch_bytes(geometry: &Geometry) -> u64 {
    BLOCK_U64 * if geometry.layout().copies() > 1 { 1 } else { u64::from(geometry.layout().data()) }
}

/// How many blocks from `lba` on are looked at together: all in one stripe unit (mirrors have none) and one extent.
pub(super) fn span_blocks(geometry: &Geometry, lba: u64) -> u64 {
    let extent_end = geometry.lbas(geometry.extent_of_lba(lba)).end;
    let most = u64::from(Span::BLOCKS_MAX);
    if geometry.layout().copies() > 1 {
        return extent_end.min((lba / most + 1) * most) - lba;
    }
    // A stripe unit may be longer than a span may be.
    let unit = u64::from(geometry.stripe_unit_blocks());
    let unit_end = ((lba / unit + 1) * unit).min(lba + most);
    extent_end.min(unit_end) - lba
}
