//! What the brick has of objects and others have more room for is moved, and what nobody looks for here any more is given back.
//!
//! The brick goes through the stretches of versions that its disks have, and has its share of each looked after ([`Rebalance`]). It does so when a brick
//! has come or is lost, after lost fragments were made again ([`super::restoration`]); with each scrub; whenever it is much fuller than all bricks are on average; and again and again while it
//! is to be emptied.
//! What it reads to move it is within the rate of rebuilding.

use super::context::Context;
use super::disks::{Effect, Walker};
use super::versions::{Held, Listed, Versions};
use base::{ObjectVersion, Time};
use core::time::Duration;
use objects::object::{ObjectError, Rebalance, Rebalanced, Room};
use rules::counters::Counter;
use std::collections::{BTreeMap, VecDeque};

/// So many versions are looked after together.
const VERSIONS_TOGETHER: usize = 8;
/// Between two passes is so much time at least.
const PAUSE: Duration = Duration::from_secs(60);
/// A pass that did nothing is followed by a pause that is so many times as long, and no longer than this, or than the pass.
const PAUSES: u32 = 20;
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// Tags of this kind are not those of what is restored.
const TAGS: u64 = 1 << 62;

/// What the brick has of a version on one page of a disk's list.
#[derive(Debug)]
struct Item {
    version: ObjectVersion,
    held: Vec<Held>,
}

#[derive(Debug)]
struct Pass {
    begun: Time,
    fingerprint: u64,
    moves: bool,
    versions: Versions,
    to_come: VecDeque<Item>,
    under_way: BTreeMap<u64, Item>,
    /// Who wants to read, and how much.
    wanting: VecDeque<(u64, u64)>,
    /// Who reads.
    reading: Option<u64>,
    is_last_page: bool,
    /// Whether something was left undone.
    is_lacking: bool,
    /// Whether something was moved or given back.
    has_done: bool,
    /// Whether the brick is to be emptied.
    is_evicted: bool,
    /// Whether a scrub has begun meanwhile.
    again: bool,
}

#[derive(Debug)]
pub(super) struct Rebalancing {
    /// By so much the brick has to be fuller than all are on average, as a share of its capacity.
    above: f64,
    /// With these bricks all was looked after.
    done: Option<u64>,
    /// The next pass does not begin before.
    next: Time,
    pass: Option<Pass>,
    tags: u64,
}

impl Rebalancing {
    pub(super) fn new(above: f64) -> Rebalancing {
        Rebalancing { above, done: None, next: Time(0), pass: None, tags: TAGS }
    }

    /// A scrub has begun: what is here and nobody looks for is found with it.
    pub(super) fn scrub(&mut self) {
        self.done = None;
        self.pass.iter_mut().for_each(|pass| pass.again = true);
    }

    /// Whether what is told of this tag is for here.
    pub(super) fn owns(tag: u64) -> bool {
        tag & TAGS != 0
    }

    /// The directory says which bricks there are, and nothing lost is being made again.
    pub(super) fn on_bricks(&mut self, now: Time, room: Room) {
        let Some(excess) = room.excess else { return };
        let moves = excess > self.above && !room.is_evicted;
        let is_due = moves || room.is_evicted || self.done != Some(room.fingerprint);
        if self.pass.is_none() && now >= self.next && is_due {
            self.pass = Some(Pass {
                begun: now,
                fingerprint: room.fingerprint,
                moves,
                versions: Versions::of(Walker::Shares),
                to_come: VecDeque::new(),
                under_way: BTreeMap::new(),
                wanting: VecDeque::new(),
                reading: None,
                is_last_page: false,
                is_lacking: false,
                has_done: false,
                is_evicted: room.is_evicted,
                again: false,
            });
        }
    }

    pub(super) fn deadline(&self, may_fetch_at: Time) -> Option<(Time, &'static str)> {
        let waits = self.pass.as_ref().is_some_and(|pass| pass.reading.is_none() && !pass.wanting.is_empty());
        let waits =
            waits.then_some((may_fetch_at, "the rate of rebuilding allows a share of an object to be moved"));
        let again = self.pass.as_ref().and_then(|pass| pass.versions.again());
        let again = again.map(|again| (again, "a disk that was busy is asked again what it has"));
        waits.into_iter().chain(again).min()
    }

    pub(super) fn advance(&mut self, cx: &mut Context) {
        let Some(pass) = &mut self.pass else { return };
        pass.advance(cx, &mut self.tags);
        if let Some(pass) = self.pass.take_if(|pass| pass.is_over()) {
            let now = cx.now();
            let took = now.since(pass.begun);
            // Others may have taken over by then what is to be given back.
            let pause = if pass.has_done || pass.is_evicted {
                took
            } else {
                (took * PAUSES).min(PAUSE_MAX).max(took)
            };
            self.next = now + pause.max(PAUSE);
            self.done = (!pass.is_lacking && !pass.again).then_some(pass.fingerprint);
        }
    }

    /// What a disk has.
    pub(super) fn on_listed(&mut self, listed: Listed) {
        let Some(pass) = &mut self.pass else { return };
        for held in pass.versions.on_listed(listed, false) {
            let version = held.version;
            match pass.to_come.back_mut().filter(|item| item.version == version) {
                Some(item) => item.held.push(held),
                None => pass.to_come.push_back(Item { version, held: vec![held] }),
            }
        }
    }

    /// Whoever moves something wants to read so much.
    pub(super) fn on_wants(&mut self, tag: u64, bytes: u64) {
        let Some(pass) = &mut self.pass else { return };
        pass.reading.take_if(|reading| *reading == tag);
        pass.wanting.push_back((tag, bytes));
    }

    /// Nobody looks for anything of the segment here any more.
    pub(super) fn on_left(&mut self, cx: &mut Context, tag: u64, segment: u32) {
        let Some(pass) = &mut self.pass else { return };
        let Some(item) = pass.under_way.get(&tag) else { return };
        pass.has_done = true;
        for held in item.held.iter().filter(|held| held.segment() == segment) {
            cx.count(Counter::UnnamedStretchesGivenBack);
            held.give_back(cx);
        }
    }

    /// A version was looked after.
    pub(super) fn on_rebalanced(
        &mut self,
        cx: &mut Context,
        tag: u64,
        result: Result<Rebalanced, ObjectError>,
    ) {
        let Some(pass) = &mut self.pass else { return };
        if pass.under_way.remove(&tag).is_none() {
            return;
        }
        pass.reading.take_if(|reading| *reading == tag);
        let Rebalanced { moved, lacking } =
            result.unwrap_or(Rebalanced { lacking: 1, ..Rebalanced::default() });
        (0..moved).for_each(|_| cx.count(Counter::FragmentsMoved));
        pass.is_lacking |= lacking > 0;
    }
}

impl Pass {
    fn advance(&mut self, cx: &mut Context, tags: &mut u64) {
        while self.under_way.len() < VERSIONS_TOGETHER
            && let Some(item) = self.to_come.pop_front()
        {
            *tags += 1;
            let mut segments: Vec<u32> = item.segments().collect();
            segments.dedup();
            let moves = self.moves.then_some(self.begun.0);
            let wanted = Rebalance { version: item.version, me: cx.me(), segments, moves };
            self.under_way.insert(*tags, item);
            cx.disks().tell(Effect::Rebalance { tag: *tags, wanted });
        }
        // One page after another: a segment may go on on the next one, and is to be looked after by one at a time.
        if self.under_way.is_empty() {
            self.is_last_page = !self.versions.list(cx);
        }
        if self.reading.is_none()
            && cx.is_fetching_open()
            && let Some((tag, bytes)) = self.wanting.pop_front()
        {
            cx.budget_mut().fetching().take(bytes);
            self.reading = Some(tag);
            cx.disks().tell(Effect::ReadMore { tag });
        }
    }

    fn is_over(&self) -> bool {
        self.is_last_page && self.to_come.is_empty() && self.under_way.is_empty()
    }
}

impl Item {
    fn segments(&self) -> impl Iterator<Item = u32> {
        self.held.iter().map(Held::segment)
    }
}
