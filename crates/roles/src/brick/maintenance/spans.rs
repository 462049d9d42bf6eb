//! Spans on their way: what is here, what should be here, and repairs where they differ.

use super::context::Context;
use super::job::{Owner, Place, SpanId};
use super::members::{Column, Expected, Repaired};
use super::walk::{AGAIN_DOUBLINGS_MAX, Visit, fetch_bytes};
use super::walks::Walks;
use base::{GroupId, Stamp};
use rules::counters::Counter;
use rules::promises::{Rules, SOUND};
use std::collections::{BTreeMap, VecDeque};
use volume::netraid::members::width_at;
use wire::Span;
use wire::disk::{Blocks, StoreError};

/// How far a span is.
enum State {
    /// The disk is asked for what is here.
    Examining,
    /// The members are asked for what should be here.
    Comparing(Blocks),
    Repairing(Repairing),
}

/// What is known of a span in which something is to be repaired.
struct Repairing {
    expected: Expected,
    /// Runs of blocks that are being repaired, or that wait for the rate.
    runs: Vec<Span>,
    /// Blocks found unreadable or old, and not repaired so far.
    unrepaired: u64,
    /// Whether the span has to be looked at again.
    is_open: bool,
}

/// A span that is being looked at.
struct SpanJob {
    owner: Owner,
    column: Column,
    visit: Visit,
    state: State,
}

pub(super) struct Spans {
    jobs: BTreeMap<SpanId, SpanJob>,
    serial: u64,
    /// Runs to be fetched when the rate allows it.
    waiting: VecDeque<(SpanId, Span)>,
    /// By scrubs, since the start.
    repaired_blocks: u64,
    rules: &'static dyn Rules,
}

impl Default for Spans {
    fn default() -> Spans {
        Spans { jobs: BTreeMap::new(), serial: 0, waiting: VecDeque::new(), repaired_blocks: 0, rules: SOUND }
    }
}

impl SpanJob {
    fn is_scrub(&self) -> bool {
        self.owner == Owner::Scrub
    }

    fn repairing(&mut self) -> Option<&mut Repairing> {
        match &mut self.state {
            State::Repairing(repairing) => Some(repairing),
            State::Examining | State::Comparing(_) => None,
        }
    }

    fn unrepaired(&self) -> u64 {
        match &self.state {
            State::Repairing(repairing) => repairing.unrepaired,
            State::Examining | State::Comparing(_) => 0,
        }
    }

    /// The blocks, from 0, that are not what they should be.
    fn differing(&self, here: &Blocks, expected: &Expected) -> Vec<u32> {
        let span = self.visit.span;
        let width = expected.stamps.len() / span.count as usize;
        let differs = |block: &u32| {
            let at = *block as usize * width..(*block as usize + 1) * width;
            let mut pairs = here.stamps[at.clone()].iter().zip(&expected.stamps[at]);
            // Who is current has what it has; who joins cannot tell.
            pairs.any(|(here, good)| here < good)
                || here.unreadable.contains(block)
                || !self.is_scrub() && expected.unknown.contains(block)
        };
        (0..span.count).filter(differs).collect()
    }
}

impl Repairing {
    /// The stamps that a block should have; none where nobody can say.
    fn expected_of(&self, span: Span, lba: u64) -> Option<Vec<Stamp>> {
        let block = (lba - span.lba) as usize;
        let width = self.expected.stamps.len() / span.count as usize;
        let is_known = !self.expected.unknown.contains(&(block as u32));
        is_known.then(|| self.expected.stamps[block * width..(block + 1) * width].to_vec())
    }
}

impl Spans {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn repaired_blocks(&self) -> u64 {
        self.repaired_blocks
    }

    /// Whether a run waits for the rate of fetching.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub(super) fn set_rules(&mut self, rules: &'static dyn Rules) {
        self.rules = rules;
    }

    /// A span of a walk is looked at.
    pub(super) fn begin(&mut self, cx: &mut Context, walks: &mut Walks, owner: Owner, visit: Visit) {
        let Some(route) = walks.walk_mut(owner).map(|walk| walk.route()) else { return };
        let Some(geometry) = cx.members().geometry(route.family) else { return };
        if route.verify {
            cx.budget_mut().checking().take(visit.span.bytes() as u64);
        }
        let column = Column { group: route.group, slot: route.slot };
        self.serial += 1;
        let id = SpanId(self.serial);
        self.jobs.insert(id, SpanJob { owner, column, visit, state: State::Examining });
        let width = width_at(&geometry, visit.span.lba, route.slot);
        cx.disks().examine(id, route.group, visit.span, width, route.verify);
    }

    /// The view of a group changed: its spans are looked at anew, or found anew.
    pub(super) fn abandon(&mut self, cx: &Context, walks: &mut Walks, group: GroupId) {
        self.jobs.retain(|_, job| {
            let is_abandoned = job.column.group == group;
            if is_abandoned && job.is_scrub() {
                walks.scrub().look_again(cx.now(), group, job.visit, job.unrepaired());
            }
            !is_abandoned
        });
    }

    /// A scrub begins anew.
    pub(super) fn forget_scrub(&mut self) {
        self.jobs.retain(|_, job| !job.is_scrub());
    }

    // ---- what is here, and what should be ----

    pub(super) fn on_examined(
        &mut self,
        cx: &mut Context,
        walks: &mut Walks,
        id: SpanId,
        result: Result<Blocks, StoreError>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Ok(here) = result else {
            return self.settle(cx, walks, id, true);
        };
        job.state = State::Comparing(here);
        cx.members().expect(id, job.column, job.visit.span);
    }

    pub(super) fn on_expected(
        &mut self,
        cx: &mut Context,
        walks: &mut Walks,
        id: SpanId,
        expected: Option<Expected>,
    ) {
        let Some(expected) = expected else {
            return self.settle(cx, walks, id, true);
        };
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let (owner, span) = (job.owner, job.visit.span);
        let State::Comparing(here) = &job.state else { panic!("nobody asked what should be at {span:?}") };
        let lba = |block: u32| span.lba + u64::from(block);
        let mut blocks = job.differing(here, &expected);
        blocks.retain(|block| owner == Owner::Scrub || self.rules.compares(lba(*block)));
        let unrepaired = blocks.len() as u64;
        job.state = State::Repairing(Repairing { expected, runs: Vec::new(), unrepaired, is_open: false });
        if let Some(walk) = walks.walk_mut(owner) {
            walk.note_found(span, unrepaired);
        }
        for run in blocks.chunk_by(|a, b| a + 1 == *b) {
            let run = Span { lba: lba(run[0]), count: run.len() as u32, ..span };
            self.repair(cx, walks, id, run);
        }
        self.settle_if_done(cx, walks, id);
    }

    // ---- repairs ----

    fn repair(&mut self, cx: &mut Context, walks: &mut Walks, id: SpanId, run: Span) {
        if let Some(repairing) = self.jobs.get_mut(&id).and_then(SpanJob::repairing) {
            repairing.runs.push(run);
            self.waiting.push_back((id, run));
            self.begin_repairs(cx, walks);
        }
    }

    /// Begins to fetch as far as the rate allows.
    pub(super) fn begin_repairs(&mut self, cx: &mut Context, walks: &mut Walks) {
        while !self.waiting.is_empty() && cx.is_fetching_open() {
            let (id, run) = self.waiting.pop_front().expect("not empty");
            let Some(job) = self.jobs.get(&id) else { continue };
            let bytes = fetch_bytes(&cx.geometry_of(job.column.group)) * u64::from(run.count);
            cx.budget_mut().fetching().take(bytes);
            if let Some(walk) = walks.walk_mut(job.owner) {
                walk.note_fetched(bytes);
            }
            cx.members().repair(id, job.column, run);
        }
    }

    pub(super) fn on_repaired(
        &mut self,
        cx: &mut Context,
        walks: &mut Walks,
        id: SpanId,
        lba: u64,
        repaired: Repaired,
    ) {
        match repaired {
            Repaired::Done => self.on_done(walks, id, lba),
            Repaired::NotMadeOut => self.on_not_made_out(cx, walks, id, lba),
            Repaired::NoRoom => self.on_no_room(cx, id, lba),
            Repaired::Refused => self.on_refused(id, lba),
        }
        self.settle_if_done(cx, walks, id);
    }

    fn end_run(&mut self, id: SpanId, lba: u64) -> Option<(Owner, Span)> {
        let job = self.jobs.get_mut(&id)?;
        let owner = job.owner;
        let runs = &mut job.repairing()?.runs;
        let at = runs.iter().position(|run| run.lba == lba)?;
        Some((owner, runs.swap_remove(at)))
    }

    fn on_done(&mut self, walks: &mut Walks, id: SpanId, lba: u64) {
        let Some((owner, run)) = self.end_run(id, lba) else { return };
        let blocks = u64::from(run.count);
        if let Some(repairing) = self.jobs.get_mut(&id).and_then(SpanJob::repairing) {
            repairing.unrepaired -= blocks;
        }
        if let Some(walk) = walks.walk_mut(owner) {
            walk.note_repaired(blocks);
        }
        if owner == Owner::Scrub {
            self.repaired_blocks += blocks;
        }
    }

    /// Nobody can make the run out: block by block, as one may be the reason. A scrub names such a block and goes on; who
    /// joins marks it as lost, or looks again.
    fn on_not_made_out(&mut self, cx: &mut Context, walks: &mut Walks, id: SpanId, lba: u64) {
        let Some((owner, run)) = self.end_run(id, lba) else { return };
        if run.count > 1 {
            return (run.lba..run.end())
                .for_each(|lba| self.repair(cx, walks, id, Span { lba, count: 1, ..run }));
        }
        if let Some(walk) = walks.walk_mut(owner) {
            walk.note_lost(Place { branch: run.volume, lba: run.lba });
        }
        if owner != Owner::Scrub && !self.lose(cx, id, run) {
            self.open(id);
        }
    }

    /// Who joins and cannot fetch a block must not pass for current with what is here: it may be older than what was
    /// acknowledged. So it is marked as lost, under the stamps that it should have: reads of it fail here as they do
    /// elsewhere, and the group has its redundancy for all other blocks. Where nobody knows the stamps what is here may
    /// be the last copy: then it looks again, until somebody who has it is back or it is overwritten.
    fn lose(&mut self, cx: &mut Context, id: SpanId, run: Span) -> bool {
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        let (group, span) = (job.column.group, job.visit.span);
        let Some(repairing) = job.repairing() else { return false };
        let Some(stamps) = repairing.expected_of(span, run.lba) else { return false };
        let Some(view) = cx.view(group).cloned() else { return false };
        repairing.runs.push(run);
        cx.count(Counter::BlockThatNobodyCanMakeOutMarkedAsLost);
        cx.disks().lose(id, &view, run, stamps);
        true
    }

    pub(super) fn on_lost(
        &mut self,
        cx: &mut Context,
        walks: &mut Walks,
        id: SpanId,
        span: Span,
        marked: bool,
    ) {
        if self.end_run(id, span.lba).is_none() {
            return;
        }
        if !marked {
            self.open(id);
        }
        self.settle_if_done(cx, walks, id);
    }

    /// The disk has no room for the run. Room may come, or another repair make this one needless: it is tried for as long
    /// as the waits grow. But a scrub must end on a disk that stays full, too, or it would never get to what else has
    /// rotted: it has found more than it has repaired then, and the next one tries again. Who joins goes on, as it is not
    /// current without.
    fn on_no_room(&mut self, cx: &mut Context, id: SpanId, lba: u64) {
        let Some(job) = self.jobs.get(&id) else { return };
        if !job.is_scrub() || job.visit.attempts < AGAIN_DOUBLINGS_MAX {
            return self.on_refused(id, lba);
        }
        cx.count(Counter::ScrubFoundNoRoomForARepair);
        self.end_run(id, lba);
    }

    /// Something newer came meanwhile, or there is no room so far.
    fn on_refused(&mut self, id: SpanId, lba: u64) {
        self.open(id);
        self.end_run(id, lba);
    }

    /// A span has to be looked at again.
    fn open(&mut self, id: SpanId) {
        if let Some(repairing) = self.jobs.get_mut(&id).and_then(SpanJob::repairing) {
            repairing.is_open = true;
        }
    }

    // ---- the end ----

    fn settle_if_done(&mut self, cx: &mut Context, walks: &mut Walks, id: SpanId) {
        if let Some(repairing) = self.jobs.get_mut(&id).and_then(SpanJob::repairing)
            && repairing.runs.is_empty()
        {
            let is_open = repairing.is_open;
            self.settle(cx, walks, id, is_open);
        }
    }

    fn settle(&mut self, cx: &mut Context, walks: &mut Walks, id: SpanId, is_open: bool) {
        let Some(job) = self.jobs.remove(&id) else { return };
        let walk = walks.walk_mut(job.owner).filter(|walk| walk.route().group == job.column.group);
        let Some(walk) = walk else { return };
        if is_open {
            walk.again(cx.now(), job.visit, job.unrepaired());
        } else {
            walk.done(job.visit.span);
        }
        walks.on_settled(cx, job.owner);
    }
}
