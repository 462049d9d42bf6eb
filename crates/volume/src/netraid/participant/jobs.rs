//! What the brick itself asks of a disk, to catch up, to scrub, to merge and to answer other bricks: its own blocks, past
//! any reader; its stretches; the requests that took effect.

use super::arrivals::MergeJob;
use super::branches::{Found, Look, Wanted};
use super::copy_ups::{self, Merged, Merges};
use super::disk::{Looking, MergeRequest, Noting, Staging};
use super::writes::{Around, Writes};
use crate::netraid::pending::WriteKey;
use base::{Stamp, VolumeId};
use wire::disk::{Blocks, StoreError};
use wire::{Completion, Span};

const SETTLED_KEY: &[u8] = b"b";

/// What was found, for the brick's own question of that number.
#[derive(Debug)]
pub enum Finding {
    /// Blocks as they are here, what they inherit included.
    Blocks(Result<Blocks, StoreError>),
    /// The stretches that hold stamps at one disk.
    Stretches(Result<Vec<(VolumeId, u64)>, StoreError>),
    /// Whether completions of other members are on stable storage here.
    Remembered(bool),
    /// Whether a block is marked as lost.
    Lost(Span, bool),
    /// Blocks were copied up into a branch, but for those, from 0, that could not be read.
    CopiedUp(Span, Result<Vec<u32>, StoreError>),
}

/// The brick's own questions to a disk.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    found: Vec<(u64, Finding)>,
    merges: Merges,
}

impl Jobs {
    /// What was found since the last call.
    pub(super) fn take(&mut self) -> Vec<(u64, Finding)> {
        core::mem::take(&mut self.found)
    }

    /// Looks up own blocks, unless a write of them is in doubt.
    pub(super) fn examine(&mut self, writes: &Writes, at: &mut Around<'_, '_>, job: u64, look: Look) {
        if writes.undecided().in_doubt(look.span).next().is_some() {
            return self.on_blocks(job, Err(StoreError::Busy));
        }
        at.disk.look(at.cx, look, Looking::Own { job });
    }

    pub(super) fn on_blocks(&mut self, job: u64, result: Result<Blocks, StoreError>) {
        self.found.push((job, Finding::Blocks(result)));
    }

    pub(super) fn on_stretches(&mut self, job: u64, result: Result<Vec<(VolumeId, u64)>, StoreError>) {
        self.found.push((job, Finding::Stretches(result)));
    }

    pub(super) fn on_lost(&mut self, job: u64, span: Span, is_marked: bool) {
        self.found.push((job, Finding::Lost(span, is_marked)));
    }

    pub(super) fn on_copied_up(&mut self, job: u64, span: Span, result: Result<Vec<u32>, StoreError>) {
        self.found.push((job, Finding::CopiedUp(span, result)));
    }

    /// What was to be remembered, or to go, is.
    pub(super) fn on_durable(&mut self, job: u64, durable: bool) {
        self.found.push((job, Finding::Remembered(durable)));
    }

    /// The note of a horizon is durable: the completions behind it can be.
    pub(super) fn on_horizon(
        &mut self,
        writes: &mut Writes,
        at: &mut Around<'_, '_>,
        (job, latest): (u64, Stamp),
        completions: Vec<Completion>,
        durable: bool,
    ) {
        if !durable {
            return self.on_durable(job, false);
        }
        writes.outcomes_mut().raise_noted_horizon(latest);
        at.disk.remember(at.cx, job, completions);
    }

    pub(super) fn on_remembered(
        &mut self,
        writes: &mut Writes,
        job: u64,
        completions: Vec<Completion>,
        durable: bool,
    ) {
        if durable {
            completions.into_iter().for_each(|completion| writes.outcomes_mut().note(completion));
        }
        self.on_durable(job, durable);
    }

    /// Says so once all that was asked of the disk so far is durable.
    pub(super) fn settle(at: &mut Around<'_, '_>, job: u64) {
        at.disk.note_serial(at.cx, SETTLED_KEY, Noting::Settle { job });
    }

    /// Copies the blocks of `from`, an ancestor, up that the branch of `span` lacks.
    pub(super) fn merge(&mut self, writes: &mut Writes, at: &mut Around<'_, '_>, job: MergeJob) {
        let MergeJob { job: number, group, span, width, .. } = job;
        if writes.undecided().overlapping(span).next().is_some() {
            return self.on_copied_up(number, span, Err(StoreError::Busy));
        }
        let key = writes.hold(at.disk, group, span);
        let look = Look { group, span, width, wanted: Wanted::Content };
        at.disk.look(at.cx, look, Looking::Merge(MergeRequest { job, key }));
    }

    pub(super) fn on_merge_found(
        &mut self,
        writes: &mut Writes,
        at: &mut Around<'_, '_>,
        request: MergeRequest,
        result: Result<Found, StoreError>,
    ) {
        let found = match result {
            Ok(found) => found,
            Err(error) => return self.end_merge(writes, at, Merged { request, result: Err(error) }),
        };
        let MergeRequest { key, job: MergeJob { span, width, from, .. } } = request;
        let of_ancestor =
            found.inherited.iter().filter(|(_, branch)| *branch == from).map(|(block, _)| *block);
        let (unreadable, blocks): (Vec<u32>, Vec<u32>) =
            of_ancestor.partition(|block| found.blocks.unreadable.contains(block));
        let runs = copy_ups::runs(span, width, &found, blocks);
        if runs.is_empty() {
            return self.end_merge(writes, at, Merged { request, result: Ok(unreadable) });
        }
        self.merges.begin(request, runs.len(), unreadable);
        for run in runs {
            at.disk.stage(at.cx, Staging::Merge(key), |token| run.mend(token));
        }
    }

    pub(super) fn on_merged(
        &mut self,
        writes: &mut Writes,
        at: &mut Around<'_, '_>,
        key: WriteKey,
        result: Result<(), StoreError>,
    ) {
        if let Some(merged) = self.merges.on_run(key, result) {
            self.end_merge(writes, at, merged);
        }
    }

    fn end_merge(&mut self, writes: &mut Writes, at: &mut Around<'_, '_>, merged: Merged) {
        let Merged { request: MergeRequest { key, job: MergeJob { job, span, .. } }, result } = merged;
        writes.end_hold(at, key);
        self.on_copied_up(job, span, result);
    }
}
