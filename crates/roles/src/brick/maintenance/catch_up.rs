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
//! The completions are asked for under this view, too: each current member has by then those of all writes that it committed
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
//! settlers begin anew under it. The completions that it takes over only ever add knowledge, and it forgets its say about
//! everything up to the latest of them (see `netraid::participant::outcomes`).

use super::context::Context;
use super::lineage::heir;
use super::members::{Column, Page};
use super::turn::Turn;
use super::walk::{Route, Visit, Walk};
use base::{BrickId, GroupId, RequestId, Time, ViewNumber, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use std::collections::{BTreeMap, BTreeSet};
use volume::netraid::list::Listed;
use volume::view::Families;
use wire::{COMPLETIONS_MAX, CatchUp, GroupView};

const AGAIN: Duration = Duration::from_millis(200);

enum Phase {
    Completions { slots: Vec<u8>, after: Option<(RequestId, u64)> },
    Stretches { slots: Vec<u8>, after: Option<(VolumeId, u64)>, found: BTreeSet<(VolumeId, u64)> },
    Comparing(Walk),
    Done(Walk),
}

/// One group in which this brick catches up.
struct CatchUpRun {
    group: GroupId,
    family: VolumeId,
    number: ViewNumber,
    slot: u8,
    current: Vec<u8>,
    phase: Phase,
    turn: Turn,
}

impl CatchUpRun {
    fn new(view: &GroupView, me: BrickId) -> CatchUpRun {
        let current: Vec<u8> = view.current.iter().collect();
        CatchUpRun {
            group: view.group,
            family: view.volume,
            number: view.number,
            slot: view.slot_of(me).expect("a member that joins"),
            phase: Phase::Completions { slots: current.clone(), after: None },
            current,
            turn: Turn::Ready,
        }
    }

    fn status(&self) -> CatchUp {
        let progress = self.walk().map(Walk::progress).unwrap_or_default();
        CatchUp {
            group: self.group,
            number: self.number,
            compared_blocks: progress.compared_blocks,
            total_blocks: progress.total_blocks,
            fetched_bytes: progress.fetched_bytes,
            done: matches!(self.phase, Phase::Done(_)),
        }
    }

    fn walk(&self) -> Option<&Walk> {
        match &self.phase {
            Phase::Comparing(walk) | Phase::Done(walk) => Some(walk),
            Phase::Completions { .. } | Phase::Stretches { .. } => None,
        }
    }

    fn walk_mut(&mut self) -> Option<&mut Walk> {
        match &mut self.phase {
            Phase::Comparing(walk) | Phase::Done(walk) => Some(walk),
            Phase::Completions { .. } | Phase::Stretches { .. } => None,
        }
    }

    fn due(&self) -> Option<Time> {
        [self.turn.due(), self.walk().and_then(Walk::due)].into_iter().flatten().min()
    }

    /// The next page to ask for.
    fn question(&self) -> Option<(u8, Listed)> {
        match &self.phase {
            Phase::Completions { slots, after } => Some((*slots.last()?, Listed::Completions(*after))),
            Phase::Stretches { slots, after, .. } => Some((*slots.last()?, Listed::Stretches(*after))),
            Phase::Comparing(_) | Phase::Done(_) => None,
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
                    let (group, family, slot) = (self.group, self.family, self.slot);
                    let found = core::mem::take(found);
                    self.phase =
                        Phase::Comparing(Walk::new(Route { group, family, slot, verify: false }, found));
                }
            }
            Phase::Comparing(_) | Phase::Done(_) => {}
        }
    }
}

/// All groups in which this brick catches up: not those in which it only stands in.
#[derive(Default)]
pub(super) struct CatchUps {
    runs: BTreeMap<GroupId, CatchUpRun>,
}

impl CatchUps {
    /// A view began: a group is caught up with from the beginning, or not any more. Gives the walk that was made under
    /// the view before.
    pub(super) fn on_view(&mut self, view: &GroupView, me: BrickId) -> Option<Walk> {
        let before = if view.is_catching_up(me) {
            self.runs.insert(view.group, CatchUpRun::new(view, me))
        } else {
            self.runs.remove(&view.group)
        };
        match before?.phase {
            Phase::Comparing(walk) | Phase::Done(walk) => Some(walk),
            Phase::Completions { .. } | Phase::Stretches { .. } => None,
        }
    }

    pub(super) fn on_group_gone(&mut self, group: GroupId) {
        self.runs.remove(&group);
    }

    pub(super) fn groups(&self) -> Vec<GroupId> {
        self.runs.keys().copied().collect()
    }

    /// The next span of a group to look at.
    pub(super) fn next(&mut self, group: GroupId, now: Time, families: &Families) -> Option<Visit> {
        match &mut self.runs.get_mut(&group)?.phase {
            Phase::Comparing(walk) => walk.next(now, families),
            Phase::Completions { .. } | Phase::Stretches { .. } | Phase::Done(_) => None,
        }
    }

    pub(super) fn walk_mut(&mut self, group: GroupId) -> Option<&mut Walk> {
        self.runs.get_mut(&group)?.walk_mut()
    }

    pub(super) fn walks(&self) -> impl Iterator<Item = &Walk> {
        self.runs.values().filter_map(CatchUpRun::walk)
    }

    pub(super) fn status(&self) -> Vec<CatchUp> {
        self.runs.values().map(CatchUpRun::status).collect()
    }

    /// When a span, or a page, is asked for again.
    pub(super) fn due(&self) -> Option<Time> {
        self.runs.values().filter_map(CatchUpRun::due).min()
    }

    /// Whether there are spans to begin with now.
    pub(super) fn has_more(&self) -> bool {
        self.walks().any(Walk::has_more)
    }

    /// Asks for the next page in each group that needs one.
    pub(super) fn list(&mut self, cx: &mut Context) {
        let now = cx.now();
        for run in self.runs.values_mut().filter(|run| run.turn.is_ready(now)) {
            if let Some((slot, listed)) = run.question() {
                run.turn = Turn::Waiting;
                cx.members().list_for_catch_up(Column { group: run.group, slot }, listed);
            }
        }
        for group in self.groups() {
            self.finish(cx, group);
        }
    }

    pub(super) fn on_page(&mut self, cx: &mut Context, group: GroupId, page: Page) {
        let Some(run) = self.runs.get_mut(&group) else { return };
        let Some(view) = cx.view(group) else { return };
        run.turn = Turn::Ready;
        match (page, &mut run.phase) {
            (Page::Completions(page), Phase::Completions { after, .. }) => {
                let is_last = page.len() < COMPLETIONS_MAX;
                *after = page.last().map(|last| (last.request, last.part));
                if is_last {
                    run.next_member();
                }
                if !page.is_empty() {
                    run.turn = Turn::Waiting;
                    cx.disks().remember(group, page);
                }
            }
            (Page::Stretches(page), Phase::Stretches { after, found, .. }) => {
                found.extend(
                    page.stretches
                        .into_iter()
                        .map(|(branch, stretch)| (heir(&view.lineage, branch), stretch)),
                );
                *after = page.next;
                if page.next.is_none() {
                    run.next_member();
                }
            }
            // A stranger may answer what it was not asked.
            _ => run.turn = Turn::After(cx.now() + AGAIN),
        }
    }

    /// The completions of a page are durable on all disks, or not.
    pub(super) fn on_remembered(&mut self, now: Time, group: GroupId, durable: bool) {
        let Some(run) = self.runs.get_mut(&group) else { return };
        run.turn = Turn::Ready;
        if !durable {
            // From the beginning: nothing is through before every page is durable.
            run.phase = Phase::Completions { slots: run.current.clone(), after: None };
            run.turn = Turn::After(now + AGAIN);
        }
    }

    /// Ends where all of a group is compared now.
    pub(super) fn finish(&mut self, cx: &mut Context, group: GroupId) {
        let Some(run) = self.runs.get_mut(&group) else { return };
        if !matches!(&run.phase, Phase::Comparing(walk) if walk.is_through()) {
            return;
        }
        let nothing = Phase::Completions { slots: Vec::new(), after: None };
        if let Phase::Comparing(walk) = core::mem::replace(&mut run.phase, nothing) {
            run.phase = Phase::Done(walk);
        }
        cx.count(Counter::CaughtUpWithAGroup);
        cx.report();
    }
}
