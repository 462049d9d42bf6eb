//! Catching up in one group: the requests that took effect, then the stretches there are, then every block.
//!
//! # Why who is through has everything
//!
//! A write acknowledged under an earlier view was applied by each current member when this view began, before it answers
//! anything under it; so it shows in the stamps that are compared after. A write of this view is not acknowledged
//! without this brick. A new view sends the comparison back to its beginning: what was committed by its making need not
//! have been here. Branches are compared parents first, as an inherited block is only as good as the parent's.
//!
//! # Why a retry takes effect once
//!
//! The effects are asked for under this view, too: each current member has by then those of all writes that it committed
//! earlier. Later ones reach this brick as writes when it takes part in them, and when it does not, nobody will ask it
//! about them: the parts of a request always go to the same slots. They are put on every disk, as nobody knows on
//! which of them a retry will ask, and are durable before the brick says that it is through; so whoever is asked after
//! it is promoted says `Duplicate` where a current member before it did. What other clients' floors made the members
//! forget is not asked again.
//!
//! # What it says of older writes
//!
//! A brick that joins is a voter only from its view on. Of a write of that view that is not here it can say that it
//! never was: it takes part in all of them. Of older ones it is not asked: the making of the view decided them, and
//! settlers begin anew under it. The effects that it takes over only ever add knowledge, and it forgets its say about
//! everything up to the latest of them (see [`crate::netraid::participant::own`]).

use super::merge::Merging;
use super::walk::Walk;
use super::{Job, Maintenance, Wish};
use crate::netraid::coordinator::{Operation, Outcome};
use crate::netraid::list::{ListOperation, Listed};
use crate::view::Families;
use base::{BrickId, GroupId, RequestId, Time, ViewNumber, VolumeId};
use core::time::Duration;
use std::collections::BTreeSet;
use wire::{COMPLETIONS_MAX, CatchUp, Completion, GroupView, Span};

const AGAIN: Duration = Duration::from_millis(200);

enum Phase {
    Completions { slots: Vec<u8>, after: Option<(RequestId, u64)> },
    Stretches { slots: Vec<u8>, after: Option<(VolumeId, u64)>, found: BTreeSet<(VolumeId, u64)> },
    Comparing(Walk),
    Done(Walk),
}

/// One group that this brick joins.
pub(super) struct CatchUpRun {
    pub(super) group: GroupId,
    family: VolumeId,
    number: ViewNumber,
    slot: u8,
    current: Vec<u8>,
    phase: Phase,
    /// Whether an answer is waited for.
    is_waiting: bool,
    due: Option<Time>,
}

impl CatchUpRun {
    pub(super) fn new(view: &GroupView, me: BrickId) -> CatchUpRun {
        let current: Vec<u8> = view.current.iter().collect();
        CatchUpRun {
            group: view.group,
            family: view.volume,
            number: view.number,
            slot: view.slot_of(me).expect("a member that joins"),
            phase: Phase::Completions { slots: current.clone(), after: None },
            current,
            is_waiting: false,
            due: None,
        }
    }

    pub(super) fn status(&self) -> CatchUp {
        let (compared_blocks, total_blocks, fetched_bytes) = self
            .walk()
            .map_or((0, 0, 0), |walk| (walk.compared_blocks, walk.total_blocks, walk.fetched_bytes));
        let done = matches!(self.phase, Phase::Done(_));
        let (group, number) = (self.group, self.number);
        CatchUp { group, number, compared_blocks, total_blocks, fetched_bytes, done }
    }

    pub(super) fn walk(&self) -> Option<&Walk> {
        match &self.phase {
            Phase::Comparing(walk) | Phase::Done(walk) => Some(walk),
            _ => None,
        }
    }

    pub(super) fn walk_mut(&mut self) -> Option<&mut Walk> {
        match &mut self.phase {
            Phase::Comparing(walk) | Phase::Done(walk) => Some(walk),
            _ => None,
        }
    }

    pub(super) fn next(&mut self, now: Time, families: &Families) -> Option<(Span, u32)> {
        match &mut self.phase {
            Phase::Comparing(walk) => walk.next(now, families),
            _ => None,
        }
    }

    pub(super) fn has_more(&self) -> bool {
        self.walk().is_some_and(Walk::has_more)
    }

    pub(super) fn due(&self) -> Option<Time> {
        [self.due, self.walk().and_then(Walk::due)].into_iter().flatten().min()
    }

    /// The next page to ask for.
    fn question(&self) -> Option<(u8, Listed)> {
        match &self.phase {
            Phase::Completions { slots, after } => Some((*slots.last()?, Listed::Completions(*after))),
            Phase::Stretches { slots, after, .. } => Some((*slots.last()?, Listed::Stretches(*after))),
            _ => None,
        }
    }

    /// This member has nothing more: the next one, or the next phase.
    fn next_member(&mut self) {
        match &mut self.phase {
            Phase::Completions { slots, after } => {
                slots.pop();
                *after = None;
                if slots.is_empty() {
                    let slots = self.current.iter().copied().chain([self.slot]).collect();
                    self.phase = Phase::Stretches { slots, after: None, found: BTreeSet::new() };
                }
            }
            Phase::Stretches { slots, after, found } => {
                slots.pop();
                *after = None;
                if slots.is_empty() {
                    let (group, found) = ((self.group, self.family), core::mem::take(found));
                    self.phase = Phase::Comparing(Walk::new(group, (self.number, self.slot), false, found));
                }
            }
            _ => {}
        }
    }
}

impl Maintenance {
    /// Asks for the next page in each group that needs one.
    pub(super) fn list_for_catch_ups(&mut self) {
        let now = self.now;
        let asking: Vec<(GroupId, u8, Listed)> = self
            .catch_ups
            .values_mut()
            .filter(|run| !run.is_waiting && run.due.is_none_or(|due| due <= now))
            .filter_map(|run| {
                let (slot, listed) = run.question()?;
                (run.is_waiting, run.due) = (true, None);
                Some((run.group, slot, listed))
            })
            .collect();
        for (group, slot, listed) in asking {
            let job = self.begin_job(Job::CatchUpPage(group));
            self.operate(job, 0, Operation::List(ListOperation::new(group, slot, listed)));
        }
        for group in self.catch_ups.keys().copied().collect::<Vec<_>>() {
            self.finish_catch_up(group);
        }
    }

    pub(super) fn on_page(&mut self, group: GroupId, outcome: Outcome) {
        let now = self.now;
        let Some(run) = self.catch_ups.get_mut(&group) else { return };
        let Some(view) = self.views.get(&group) else { return };
        run.is_waiting = false;
        match (outcome, &mut run.phase) {
            (Outcome::Completions(page), Phase::Completions { after, .. }) => {
                let is_last = page.len() < COMPLETIONS_MAX;
                *after = page.last().map(|last| (last.request, last.part));
                if is_last {
                    run.next_member();
                }
                self.remember(group, page);
            }
            (Outcome::Stretches(page), Phase::Stretches { after, found, .. }) => {
                let heir = |(branch, stretch)| (Merging::heir(&view.lineage, branch), stretch);
                found.extend(page.stretches.into_iter().map(heir));
                *after = page.next;
                if page.next.is_none() {
                    run.next_member();
                }
            }
            _ => run.due = Some(now + AGAIN),
        }
    }

    fn remember(&mut self, group: GroupId, completions: Vec<Completion>) {
        if completions.is_empty() {
            return;
        }
        self.catch_ups.get_mut(&group).expect("its page came").is_waiting = true;
        let job = self.begin_job(Job::Remember(group, self.disks));
        self.wishes.push(Wish::Remember { job, completions });
    }

    pub(super) fn on_remembered(&mut self, job: u64, group: GroupId, durable: bool) {
        let now = self.now;
        let Some(run) = self.catch_ups.get_mut(&group) else { return };
        if !durable {
            // From the beginning: nothing is through before every page is durable.
            self.jobs.remove(&job);
            run.phase = Phase::Completions { slots: run.current.clone(), after: None };
            (run.is_waiting, run.due) = (false, Some(now + AGAIN));
            return;
        }
        let Some(Job::Remember(_, left)) = self.jobs.get_mut(&job) else { return };
        *left -= 1;
        if *left == 0 {
            run.is_waiting = false;
            self.jobs.remove(&job);
        }
    }

    /// Whether all of a group is compared now.
    pub(super) fn finish_catch_up(&mut self, group: GroupId) {
        let Some(run) = self.catch_ups.get_mut(&group) else { return };
        if !matches!(&run.phase, Phase::Comparing(walk) if walk.is_through()) {
            return;
        }
        let slots = Vec::new();
        let before = core::mem::replace(&mut run.phase, Phase::Completions { slots, after: None });
        if let Phase::Comparing(walk) = before {
            run.phase = Phase::Done(walk);
        }
        self.coordinator.shared.counters.count("caught up with a group");
        self.wishes.push(Wish::Report);
    }
}
