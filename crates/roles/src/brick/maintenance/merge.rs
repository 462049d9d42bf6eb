//! Merging: what a deleted snapshot's branch has and its only child lacks moves to the child, in each group, by this brick
//! alone, for its own blocks.
//!
//! A block is copied up as it is here, old or not; one that is old is old in the child as well, and found there. Why nothing
//! is added to the branch meanwhile: see [`super::lineage`].

use super::context::Context;
use super::job::{Merge, Stretch};
use super::lineage::child_of;
use super::members::{Column, Page};
use super::turn::Turn;
use super::walk::span_blocks;
use base::{GroupId, Time, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use std::collections::{BTreeMap, VecDeque};
use volume::netraid::members::width_at;
use volume::view::Families;
use wire::disk::StoreError;
use wire::{Lineage, Span};

const AGAIN: Duration = Duration::from_millis(100);
/// How long a repair of what could not be copied up is given.
const REPAIRED_WITHIN: Duration = Duration::from_millis(500);

/// How far a merge is.
#[derive(Debug)]
enum Phase {
    /// Which stretches there are, page by page.
    Listing { after: Option<Stretch> },
    /// All are known: the next block to copy up, in the first of them or before it.
    Copying { lba: u64 },
}

#[derive(Debug)]
struct MergeRun {
    child: VolumeId,
    phase: Phase,
    stretches: VecDeque<u64>,
    turn: Turn,
}

/// All branches that merge.
#[derive(Debug, Default)]
pub(super) struct Merging {
    runs: BTreeMap<Merge, MergeRun>,
    merged: Vec<Merge>,
}

impl Merging {
    pub(super) fn merged(&self) -> Vec<(GroupId, VolumeId)> {
        self.merged.iter().map(|merge| (merge.group, merge.branch)).collect()
    }

    pub(super) fn deadline(&self) -> Option<(Time, &'static str)> {
        let due = self.runs.values().filter_map(|run| match run.turn {
            Turn::Ready => Some(Time::ZERO),
            turn => turn.due(),
        });
        due.min().map(|due| (due, "a branch is merged"))
    }

    pub(super) fn on_lineage(&mut self, group: GroupId, lineage: &Lineage) {
        let is_child = |merge: &Merge, child| child_of(lineage, merge.branch) == Some(child);
        self.runs.retain(|merge, run| merge.group != group || is_child(merge, run.child));
        self.merged.retain(|merge| merge.group != group || child_of(lineage, merge.branch).is_some());
        for branch in &lineage.merging {
            let merge = Merge { group, branch: *branch };
            let Some(child) = child_of(lineage, *branch).filter(|_| !self.merged.contains(&merge)) else {
                continue;
            };
            let (phase, stretches) = (Phase::Listing { after: None }, VecDeque::new());
            let run =
                self.runs.entry(merge).or_insert(MergeRun { child, phase, stretches, turn: Turn::Ready });
            if run.turn == Turn::Waiting {
                run.turn = Turn::Ready;
            }
        }
    }

    pub(super) fn on_group_gone(&mut self, group: GroupId) {
        self.runs.retain(|merge, _| merge.group != group);
        self.merged.retain(|merge| merge.group != group);
    }

    pub(super) fn advance(&mut self, cx: &mut Context, families: &Families) {
        let ready = self.runs.iter().filter(|(_, run)| run.turn.is_ready(cx.now()));
        for merge in ready.map(|(merge, _)| *merge).collect::<Vec<_>>() {
            self.step(cx, merge, families);
        }
    }

    fn step(&mut self, cx: &mut Context, merge: Merge, families: &Families) {
        let run = self.runs.get_mut(&merge).expect("listed by the caller");
        run.turn = Turn::After(cx.now() + AGAIN);
        let Some(view) = cx.view(merge.group) else { return };
        let Some((slot, geometry)) = view.slot_of(cx.me()).zip(families.geometry(view.volume)) else {
            return;
        };
        run.turn = Turn::Waiting;
        let lba = match run.phase {
            Phase::Listing { after } => return cx.members().list_for_merge(merge, slot, after),
            Phase::Copying { lba } => lba,
        };
        let Some(&stretch) = run.stretches.front() else {
            return self.end(cx, merge);
        };
        let end = (stretch + 1) * Span::STRETCH_BLOCKS;
        let lba = lba.max(stretch * Span::STRETCH_BLOCKS);
        if lba >= end {
            run.stretches.pop_front();
            return cx.disks().discard_merged(merge, stretch);
        }
        let count = span_blocks(&geometry, lba).min(end - lba) as u32;
        let span = Span { volume: run.child, lba, count };
        cx.disks().copy_up(merge, span, width_at(&geometry, lba, slot));
    }

    fn end(&mut self, cx: &mut Context, merge: Merge) {
        self.runs.remove(&merge);
        self.merged.push(merge);
        cx.count(Counter::BranchMergedIntoItsChild);
        cx.report();
    }

    /// A page of this brick's stretches.
    pub(super) fn on_page(&mut self, now: Time, merge: Merge, page: Page) {
        let Some(run) = self.runs.get_mut(&merge) else { return };
        let Page::Stretches(page) = page else {
            run.turn = Turn::After(now + AGAIN);
            return;
        };
        run.turn = Turn::Ready;
        let own = page.stretches.into_iter().filter(|(of, _)| *of == merge.branch);
        run.stretches.extend(own.map(|(_, stretch)| stretch));
        run.phase = match page.next {
            None => Phase::Copying { lba: 0 },
            after => Phase::Listing { after },
        };
    }

    /// A span was copied up, with the blocks that could not be read; or the disk was busy.
    pub(super) fn on_copied_up(
        &mut self,
        cx: &mut Context,
        merge: Merge,
        span: Span,
        result: Result<Vec<u32>, StoreError>,
    ) {
        let Some(view) = cx.view(merge.group) else { return };
        let slot = view.slot_of(cx.me());
        let Some(run) = self.runs.get_mut(&merge) else { return };
        match result {
            Ok(unreadable) if unreadable.is_empty() => {
                (run.phase, run.turn) = (Phase::Copying { lba: span.end() }, Turn::Ready);
            }
            Ok(unreadable) => {
                // The others' blocks tell what the child's should be.
                run.turn = Turn::After(cx.now() + REPAIRED_WITHIN);
                let Some(slot) = slot else { return };
                for block in unreadable {
                    let span = Span { lba: span.lba + u64::from(block), count: 1, ..span };
                    cx.members().repair_alone(Column { group: merge.group, slot }, span);
                }
            }
            Err(_) => run.turn = Turn::After(cx.now() + AGAIN),
        }
    }

    /// A stretch of a branch is given back.
    pub(super) fn on_discarded(&mut self, merge: Merge) {
        if let Some(run) = self.runs.get_mut(&merge) {
            run.turn = Turn::Ready;
        }
    }
}
