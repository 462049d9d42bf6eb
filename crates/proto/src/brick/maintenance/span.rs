//! One span on its way: what is here, what should be here, and mending where they differ.

use super::walk::{AGAIN_DOUBLINGS_MAX, Walk};
use super::{Job, Maintenance, Owner, Wish};
use crate::netraid::coordinator::{Operation, Outcome, width_at};
use crate::netraid::expected::ExpectedOperation;
use crate::netraid::repair::RepairOperation;
use crate::planted::Plant;
use base::{GroupId, Stamp};
use std::collections::BTreeSet;
use wire::disk::{Blocks, StoreError};
use wire::{IoError, Span};

/// The part of a job that asks for stamps; the others mend, and are named by their first block.
const EXPECTED: u64 = u64::MAX;

/// A span being looked at.
pub(super) struct SpanJob {
    pub(super) owner: Owner,
    pub(super) group: GroupId,
    pub(super) span: Span,
    pub(super) attempts: u32,
    slot: u8,
    here: Option<Blocks>,
    /// The stamps that should be here, and the blocks, from 0, of which nobody knows them.
    expected: (Vec<Stamp>, Vec<u32>),
    /// Blocks being mended, by the first of each run.
    mending: Vec<Span>,
    /// Blocks found unreadable or old, and not repaired so far.
    pub(super) unrepaired: u64,
    /// Whether it has to be looked at again.
    is_open: bool,
}

impl Maintenance {
    pub(super) fn begin_span(&mut self, owner: Owner, group: GroupId, span: Span, attempts: u32) {
        let Some(walk) = self.walk_of(owner) else { return };
        let (slot, verify, family) = (walk.slot, walk.verify, walk.family);
        let Some(geometry) = self.coordinator.shared.geometries.get(&family).copied() else { return };
        if verify {
            self.checking.take(span.bytes() as u64);
        }
        let width = width_at(&geometry, span.lba, slot);
        let (here, expected, mending, unrepaired) = (None, Default::default(), Vec::new(), 0);
        let is_open = false;
        let job =
            SpanJob { owner, group, span, attempts, slot, here, expected, mending, unrepaired, is_open };
        let job = self.begin_job(Job::Span(job));
        self.wishes.push(Wish::Examine { job, group, span, width, verify });
    }

    pub(super) fn on_examined(&mut self, id: u64, result: Result<Blocks, StoreError>) {
        let Some(Job::Span(job)) = self.jobs.get_mut(&id) else { return };
        let Ok(blocks) = result else {
            return self.settle(id, true);
        };
        job.here = Some(blocks);
        let expected = ExpectedOperation::new(job.group, job.slot, job.span);
        self.operate(id, EXPECTED, Operation::Expected(expected));
    }

    pub(super) fn on_span_outcome(&mut self, id: u64, part: u64, outcome: Outcome) {
        match outcome {
            Outcome::Expected { stamps, unknown } if part == EXPECTED => {
                self.on_expected(id, stamps, unknown);
            }
            Outcome::Written => self.on_mended(id, part),
            Outcome::Failed(IoError::Unreadable) => self.on_not_made_out(id, part),
            Outcome::Failed(IoError::NoSpace) => self.on_no_room(id, part),
            _ => self.on_mend_refused(id, part),
        }
    }

    fn on_expected(&mut self, id: u64, stamps: Vec<Stamp>, unknown: Vec<u32>) {
        let plant = self.plant;
        let Some(Job::Span(job)) = self.jobs.get_mut(&id) else { return };
        let here = job.here.take().expect("examined before");
        let width = stamps.len() / job.span.count as usize;
        let joins = job.owner != Owner::Scrub;
        let differs = |block: u32| {
            let at = block as usize * width..(block as usize + 1) * width;
            let older = here.stamps[at.clone()].iter().zip(&stamps[at]).any(|(here, good)| here < good);
            // Who is current has what it has; who joins cannot tell.
            older || here.unreadable.contains(&block) || joins && unknown.contains(&block)
        };
        let skips = |block: u32| {
            plant.has(Plant::ResyncSkipsABlock) && joins && (job.span.lba + u64::from(block)) % 8 == 3
        };
        let blocks: Vec<u32> =
            (0..job.span.count).filter(|block| differs(*block) && !skips(*block)).collect();
        let runs = blocks.chunk_by(|a, b| a + 1 == *b).map(|run| Span {
            lba: job.span.lba + u64::from(run[0]),
            count: run.len() as u32,
            ..job.span
        });
        let runs: Vec<Span> = runs.collect();
        let (owner, span) = (job.owner, job.span);
        job.expected = (stamps, unknown);
        job.unrepaired = blocks.len() as u64;
        if let Some(walk) = self.walk_of(owner) {
            walk.found_blocks += blocks.len() as u64;
            // What is lost is found anew each time.
            let sound: BTreeSet<u64> = (0..span.count).map(|block| span.lba + u64::from(block)).collect();
            walk.lost.retain(|(branch, lba)| *branch != span.volume || !sound.contains(lba));
        }
        runs.into_iter().for_each(|run| self.mend(id, run));
        self.settle_if_done(id);
    }

    fn mend(&mut self, id: u64, run: Span) {
        if let Some(Job::Span(job)) = self.jobs.get_mut(&id) {
            job.mending.push(run);
            self.mends.push_back((id, run));
            self.begin_mends();
        }
    }

    /// Begins to fetch as far as the rate allows.
    pub(super) fn begin_mends(&mut self) {
        while !self.mends.is_empty() && self.fetching.is_open(self.now) {
            let (id, run) = self.mends.pop_front().expect("not empty");
            let Some(Job::Span(job)) = self.jobs.get(&id) else { continue };
            let (owner, group, slot) = (job.owner, job.group, job.slot);
            let geometry = self.coordinator.shared.geometry(group);
            let bytes = Walk::fetch_bytes(&geometry) * u64::from(run.count);
            self.fetching.take(bytes);
            if let Some(walk) = self.walk_of(owner) {
                walk.fetched_bytes += bytes;
            }
            let repair = RepairOperation::from_row(group, slot, run);
            self.operate(id, run.lba, Operation::Repair(Box::new(repair)));
        }
    }

    fn end_mend(&mut self, id: u64, part: u64) -> Option<(Owner, Span)> {
        let Some(Job::Span(job)) = self.jobs.get_mut(&id) else { return None };
        let at = job.mending.iter().position(|run| run.lba == part)?;
        Some((job.owner, job.mending.swap_remove(at)))
    }

    fn on_mended(&mut self, id: u64, part: u64) {
        let Some((owner, run)) = self.end_mend(id, part) else { return };
        if let Some(Job::Span(job)) = self.jobs.get_mut(&id) {
            job.unrepaired -= u64::from(run.count);
        }
        if let Some(walk) = self.walk_of(owner) {
            walk.repaired_blocks += u64::from(run.count);
        }
        if owner == Owner::Scrub {
            self.repaired_blocks += u64::from(run.count);
        }
        self.settle_if_done(id);
    }

    /// Nobody can make the run out: block by block, as one may be the reason.
    fn on_not_made_out(&mut self, id: u64, part: u64) {
        let Some((owner, run)) = self.end_mend(id, part) else { return };
        if run.count > 1 {
            (run.lba..run.end()).for_each(|lba| self.mend(id, Span { lba, count: 1, ..run }));
            return;
        }
        if let Some(walk) = self.walk_of(owner) {
            walk.lost.insert((run.volume, run.lba));
        }
        // A scrub names it and goes on.
        if owner == Owner::Scrub || !self.lose(id, run) {
            if let Some(Job::Span(job)) = self.jobs.get_mut(&id) {
                job.is_open |= owner != Owner::Scrub;
            }
            self.settle_if_done(id);
        }
    }

    /// Who joins and cannot fetch a block must not pass for current with what is here: it may be older than what was
    /// acknowledged. So it is marked as lost, under the stamps that it should have: reads of it fail here as they do
    /// elsewhere, and the group has its redundancy for all other blocks. Where nobody knows the stamps what is here may
    /// be the last copy: then it looks again, until somebody who has it is back or it is overwritten.
    fn lose(&mut self, id: u64, run: Span) -> bool {
        let Some(Job::Span(job)) = self.jobs.get_mut(&id) else { return false };
        let Some(view) = self.views.get(&job.group) else { return false };
        let block = (run.lba - job.span.lba) as usize;
        let (stamps, unknown) = &job.expected;
        let width = stamps.len() / job.span.count as usize;
        if unknown.contains(&(block as u32)) {
            return false;
        }
        let stamps = stamps[block * width..(block + 1) * width].to_vec();
        job.mending.push(run);
        let (group, view, width) = (job.group, view.number, width as u8);
        self.coordinator.shared.counters.count("block that nobody can make out marked as lost");
        self.wishes.push(Wish::Lose { job: id, group, view, span: run, width, stamps });
        true
    }

    pub(super) fn on_lost(&mut self, id: u64, span: Span, marked: bool) {
        if self.end_mend(id, span.lba).is_none() {
            return;
        }
        if let Some(Job::Span(job)) = self.jobs.get_mut(&id) {
            job.is_open |= !marked;
        }
        self.settle_if_done(id);
    }

    /// The disk has no room for the run. Room may come, or another mend make this one needless: it is tried for as long as
    /// the waits grow. But a scrub must end on a disk that stays full, too, or it would never get to what else has rotted:
    /// it has found more than it has repaired then, and the next one tries again. Who joins goes on, as it is not current
    /// without.
    fn on_no_room(&mut self, id: u64, part: u64) {
        let Some(Job::Span(job)) = self.jobs.get(&id) else { return };
        if job.owner != Owner::Scrub || job.attempts < AGAIN_DOUBLINGS_MAX {
            return self.on_mend_refused(id, part);
        }
        self.coordinator.shared.counters.count("scrub found no room for a repair");
        self.end_mend(id, part);
        self.settle_if_done(id);
    }

    /// Something newer came meanwhile, or there is no room so far.
    fn on_mend_refused(&mut self, id: u64, part: u64) {
        let Some(Job::Span(job)) = self.jobs.get_mut(&id) else { return };
        job.is_open = true;
        if part == EXPECTED {
            return self.settle(id, true);
        }
        self.end_mend(id, part);
        self.settle_if_done(id);
    }

    fn settle_if_done(&mut self, id: u64) {
        if let Some(Job::Span(job)) = self.jobs.get(&id)
            && job.mending.is_empty()
        {
            let again = job.is_open;
            self.settle(id, again);
        }
    }

    fn settle(&mut self, id: u64, again: bool) {
        let Some(Job::Span(job)) = self.jobs.remove(&id) else { return };
        let now = self.now;
        let Some(walk) = self.walk_of(job.owner).filter(|walk| walk.group == job.group) else { return };
        match again {
            true => walk.again(now, job.span, job.attempts, job.unrepaired),
            false => walk.done(job.span),
        }
        self.on_settled(job.owner);
    }

    fn on_settled(&mut self, owner: Owner) {
        match owner {
            Owner::CatchUp(group) => self.finish_catch_up(group),
            Owner::Scrub => self.finish_scrub(),
        }
    }
}
