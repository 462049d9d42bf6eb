//! Merging: what a deleted snapshot's branch has and its only child lacks moves to the child, in each group, by this brick
//! alone, for its own blocks.
//!
//! Nothing is added to a branch that is merging: whoever catches up or scrubs looks at the child instead, which inherits
//! from it ([`Merging::heir`]). So a branch that was empty once stays so, and saying that it is needs no view. A block is
//! copied up as it is here, old or not; one that is old is old in the child as well, and found there.

use super::{Job, Maintenance, Wish};
use crate::netraid::coordinator::{Operation, Outcome, width_at};
use crate::netraid::list::{ListOperation, Listed};
use crate::netraid::repair::RepairOperation;
use crate::view::Families;
use base::{GroupId, Time, VolumeId};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use wire::disk::StoreError;
use wire::{Lineage, Span};

const AGAIN: Duration = Duration::from_millis(100);

/// One branch of one group.
#[derive(Debug)]
struct MergeRun {
    child: VolumeId,
    after: Option<(VolumeId, u64)>,
    /// All stretches are known.
    is_listed: bool,
    stretches: VecDeque<u64>,
    /// The next block of the first of them.
    lba: u64,
    is_waiting: bool,
    due: Option<Time>,
}

/// All branches that merge.
#[derive(Debug, Default)]
pub(super) struct Merging {
    runs: BTreeMap<(GroupId, VolumeId), MergeRun>,
    merged: Vec<(GroupId, VolumeId)>,
}

/// The only child of a branch that is merging.
fn child_of(lineage: &Lineage, branch: VolumeId) -> Option<VolumeId> {
    let mut children = lineage.children_of(branch);
    let child = children.next().filter(|_| lineage.merging.contains(&branch))?;
    children.next().is_none().then_some(child)
}

impl Merging {
    /// The branch to look at instead of one that is merging.
    pub(super) fn heir(lineage: &Lineage, branch: VolumeId) -> VolumeId {
        let mut heir = branch;
        // Bounded: a lineage has no circle, and a stranger's may have one.
        for _ in 0..lineage.parents.len() {
            match child_of(lineage, heir) {
                Some(child) => heir = child,
                None => break,
            }
        }
        heir
    }

    pub(super) fn merged(&self) -> Vec<(GroupId, VolumeId)> {
        self.merged.clone()
    }

    pub(super) fn deadline(&self) -> Option<(Time, &'static str)> {
        let due = self.runs.values().filter(|run| !run.is_waiting).map(|run| run.due.unwrap_or(Time::ZERO));
        due.min().map(|due| (due, "a branch is merged"))
    }

    pub(super) fn on_lineage(&mut self, group: GroupId, lineage: &Lineage) {
        let merges = |of: &GroupId, branch: &VolumeId| *of != group || child_of(lineage, *branch).is_some();
        self.runs.retain(|(of, branch), run| *of != group || child_of(lineage, *branch) == Some(run.child));
        self.merged.retain(|(of, branch)| merges(of, branch));
        for branch in &lineage.merging {
            let Some(child) = child_of(lineage, *branch) else { continue };
            if self.merged.contains(&(group, *branch)) {
                continue;
            }
            let run = self.runs.entry((group, *branch)).or_insert(MergeRun {
                child,
                after: None,
                is_listed: false,
                stretches: VecDeque::new(),
                lba: 0,
                is_waiting: false,
                due: None,
            });
            run.is_waiting = false;
        }
    }

    pub(super) fn on_group_gone(&mut self, group: GroupId) {
        self.runs.retain(|(of, _), _| *of != group);
        self.merged.retain(|(of, _)| *of != group);
    }
}

impl Maintenance {
    pub(super) fn merge(&mut self, families: &Families) {
        let now = self.now;
        let ready = self
            .merging
            .runs
            .iter()
            .filter(|(_, run)| !run.is_waiting && run.due.is_none_or(|due| due <= now));
        for (group, branch) in ready.map(|(of, _)| *of).collect::<Vec<_>>() {
            self.merge_step(group, branch, families);
        }
    }

    fn merge_step(&mut self, group: GroupId, branch: VolumeId, families: &Families) {
        let run = self.merging.runs.get_mut(&(group, branch)).expect("listed by the caller");
        run.due = Some(self.now + AGAIN);
        let Some(view) = self.views.get(&group) else { return };
        let Some((slot, geometry)) = view.slot_of(self.me).zip(families.geometry(view.volume)) else {
            return;
        };
        let run = self.merging.runs.get_mut(&(group, branch)).expect("listed by the caller");
        (run.is_waiting, run.due) = (true, None);
        if !run.is_listed {
            let listed = Listed::Stretches(run.after);
            let job = self.begin_job(Job::Merge(group, branch));
            return self.operate(job, 0, Operation::List(ListOperation::new(group, slot, listed)));
        }
        let Some(&stretch) = run.stretches.front() else {
            self.merging.runs.remove(&(group, branch));
            self.merging.merged.push((group, branch));
            self.coordinator.shared.counters.count("branch merged into its child");
            return self.wishes.push(Wish::Report);
        };
        let end = (stretch + 1) * Span::STRETCH_BLOCKS;
        let lba = run.lba.max(stretch * Span::STRETCH_BLOCKS);
        let child = run.child;
        if lba >= end {
            run.stretches.pop_front();
            let job = self.begin_job(Job::Merge(group, branch));
            return self.wishes.push(Wish::DiscardMerged { job, branch, stretch });
        }
        let count = super::walk::span_blocks(&geometry, lba).min(end - lba) as u32;
        let span = Span { volume: child, lba, count };
        let width = width_at(&geometry, lba, slot);
        let job = self.begin_job(Job::Merge(group, branch));
        self.wishes.push(Wish::CopyUp { job, group, span, width, from: branch });
    }

    /// A page of this brick's stretches.
    pub(super) fn on_merge_outcome(&mut self, group: GroupId, branch: VolumeId, outcome: Outcome) {
        let now = self.now;
        let Some(run) = self.merging.runs.get_mut(&(group, branch)) else { return };
        run.is_waiting = false;
        match outcome {
            Outcome::Stretches(page) => {
                let own = page.stretches.into_iter().filter(|(of, _)| *of == branch);
                run.stretches.extend(own.map(|(_, stretch)| stretch));
                run.after = page.next;
                run.is_listed = page.next.is_none();
            }
            // A repair of what could not be copied up: it is looked at again.
            _ => run.due = Some(now + AGAIN),
        }
    }

    /// A span was copied up, with the blocks that could not be read; or the disk was busy.
    pub(super) fn on_copied_up(
        &mut self,
        (group, branch): (GroupId, VolumeId),
        span: Span,
        result: Result<Vec<u32>, StoreError>,
    ) {
        let now = self.now;
        let Some(view) = self.views.get(&group) else { return };
        let slot = view.slot_of(self.me);
        let Some(run) = self.merging.runs.get_mut(&(group, branch)) else { return };
        run.is_waiting = false;
        match result {
            Ok(unreadable) if unreadable.is_empty() => run.lba = span.end(),
            Ok(unreadable) => {
                // The others' blocks tell what the child's should be.
                run.due = Some(now + AGAIN * 5);
                let Some(slot) = slot else { return };
                for block in unreadable {
                    let span = Span { lba: span.lba + u64::from(block), count: 1, ..span };
                    let repair = RepairOperation::from_row(group, slot, span);
                    self.coordinator.shared.begin_alone(Operation::Repair(Box::new(repair)));
                }
            }
            Err(_) => run.due = Some(now + AGAIN),
        }
    }

    /// A stretch of a branch is given back.
    pub(super) fn on_discarded(&mut self, group: GroupId, branch: VolumeId) {
        if let Some(run) = self.merging.runs.get_mut(&(group, branch)) {
            run.is_waiting = false;
        }
    }
}
