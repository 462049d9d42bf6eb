//! How a brick looks after its blocks: it *catches up* where it joins a group, *scrubs* where it is current, *leaves* groups
//! that it was left out of for good, *merges* branches of deleted snapshots into their children, gives *garbage* of objects back,
//! *restores* what bricks have lost of objects, and *rebalances* what one has more of than others.
//!
//! To catch up and to scrub are walks over the blocks of a group ([`walk`]). For each span ([`spans`]): look at what is here
//! (a scrub checks the disk, too), ask the current members which stamps should be here ([`ExpectedOperation`]), and have
//! what differs fetched and put in place ([`RepairOperation`]), which is the very operation that repairs a rotten block for
//! a gateway. The questions to other members are those of a gateway; those to this brick itself come back to it without the
//! network.
//!
//! What it costs others is bounded by a [`budget`]: bytes a second, and spans at a time, which are few while clients wait
//! here.
//!
//! From below to above: [`disks`] and [`members`] (questions that are outstanding, each paired with its answer), [`context`]
//! (what all parts share), the parts [`catch_up`], [`scrub`], [`leave`], [`merge`], [`garbage`], [`restoration`], [`rebalancing`] and [`spans`], and this file, which hands
//! each what happened.
//!
//! [`ExpectedOperation`]: volume::netraid::expected::ExpectedOperation
//! [`RepairOperation`]: volume::netraid::repair::RepairOperation

mod bucket;
mod budget;
mod catch_up;
mod context;
mod disks;
mod garbage;
mod job;
mod leave;
mod lineage;
mod members;
mod merge;
mod rebalancing;
mod restoration;
mod scrub;
mod spans;
mod turn;
mod versions;
mod walk;
mod walks;

pub(super) use disks::{DiskQuestion, Effect};

use base::{BrickId, GroupId, ObjectVersion, Time};
use budget::SPANS_MAX_UNDER_LOAD;
use code::{Computation, Computed};
use context::Context;
use core::time::Duration;
use disks::{Found, Walker};
use garbage::Garbage;
use job::{Owner, Stretch};
use leave::Leaving;
use members::Told;
use merge::Merging;
use objects::object::{ObjectError, Rebalanced, Restored, Room};
use rebalancing::Rebalancing;
use restoration::Restoration;
use rules::counters::Counters;
use spans::Spans;
use std::collections::BTreeSet;
use volume::netraid::answer::{Answer, CallId};
use volume::netraid::context::computations::ComputationId;
use volume::netraid::participant::jobs::Finding;
use volume::view::{Families, Groups};
use walks::Walks;
use wire::{BrickStatus, Care, FragmentId, GroupView, Packet, Share};

pub(super) struct Maintenance {
    cx: Context,
    walks: Walks,
    spans: Spans,
    leaving: Leaving,
    merging: Merging,
    garbage: Garbage,
    restoration: Restoration,
    rebalancing: Rebalancing,
}

impl Maintenance {
    /// Of the brick `me` with so many disks; the scrub numbered `scrubbed` was the last that it completed on request.
    pub(super) fn new(
        (me, disks): (BrickId, usize),
        scrubbed: u64,
        garbage_every: Duration,
        rebalance_above: f64,
        now: Time,
    ) -> Maintenance {
        Maintenance {
            cx: Context::new(me, disks, now),
            walks: Walks::new(me, scrubbed),
            spans: Spans::default(),
            leaving: Leaving::default(),
            merging: Merging::default(),
            garbage: Garbage::new(garbage_every),
            restoration: Restoration::new(garbage_every),
            rebalancing: Rebalancing::new(rebalance_above),
        }
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub(super) fn set_rules(&mut self, rules: &'static dyn rules::promises::Rules) {
        self.cx.members().set_rules(rules);
        self.spans.set_rules(rules);
        self.restoration.set_rules(rules);
        self.garbage.set_rules(rules);
    }

    // ---- what happens ----

    /// How blocks are looked after from now on.
    pub(super) fn on_care(&mut self, now: Time, care: Care) {
        self.cx.set_now(now);
        self.walks.scrub().on_care(&mut self.cx, care);
    }

    /// The views under which the brick works changed, or what it knows of families did.
    pub(super) fn on_groups(&mut self, now: Time, groups: &Groups, families: &Families) {
        let known = groups.working().map(|view| view.group).chain(self.cx.groups());
        for group in known.collect::<BTreeSet<GroupId>>() {
            self.on_group(now, group, groups, families);
        }
    }

    /// How often it was looked what became of a group.
    #[cfg(test)]
    pub(super) fn looked(&self) -> usize {
        self.cx.looked
    }

    /// The view of one group changed.
    pub(super) fn on_group(&mut self, now: Time, group: GroupId, groups: &Groups, families: &Families) {
        self.cx.set_now(now);
        #[cfg(test)]
        {
            self.cx.looked += 1;
        }
        match groups.working_view(group) {
            Some(view) if self.cx.view(group) == Some(view) => {}
            Some(view) => self.on_view(view, families),
            None if self.cx.view(group).is_some() => {
                self.cx.forget_view(group);
                self.abandon(group);
                self.walks.on_group_gone(group);
                self.merging.on_group_gone(group);
            }
            None => {}
        }
    }

    fn on_view(&mut self, view: &GroupView, families: &Families) {
        self.abandon(view.group);
        if !self.cx.members().on_view(view, families.geometry(view.volume)) {
            // It is a view all the same, and looked at once its family has been heard of.
            return self.cx.forget_view(view.group);
        }
        self.cx.set_view(view.clone());
        self.walks.on_view(self.cx.now(), view, self.cx.me());
        self.merging.on_lineage(view.group, &view.lineage);
    }

    /// What was outstanding for a group counts for nothing under another view.
    fn abandon(&mut self, group: GroupId) {
        self.cx.members().abandon(group);
        self.cx.disks().abandon(group);
        self.spans.abandon(&self.cx, &mut self.walks, group);
        self.walks.scrub().list_again(group);
    }

    /// A brick can be reached again.
    pub(super) fn on_up(&mut self, brick: BrickId) {
        self.cx.members().on_up(brick);
    }

    /// A brick cannot be reached.
    pub(super) fn on_down(&mut self, now: Time, brick: BrickId) {
        self.cx.set_now(now);
        self.cx.members().on_down(brick);
        self.hear_members();
    }

    pub(super) fn on_answer(&mut self, now: Time, call: CallId, answer: Answer, wait: wire::Wait) {
        self.cx.set_now(now);
        self.cx.members().on_answer(call, answer, wait);
        self.hear_members();
    }

    pub(super) fn on_computed(&mut self, now: Time, id: ComputationId, made: Computed) {
        self.cx.set_now(now);
        self.cx.members().on_computed(id, made);
        self.hear_members();
    }

    /// These questions to a brick wait for their turn there.
    pub(super) fn on_waiting(&mut self, now: Time, brick: BrickId, calls: &[CallId]) {
        self.cx.set_now(now);
        self.cx.members().on_waiting(brick, calls);
    }

    /// What became of questions that were called off.
    pub(super) fn on_cancelled(&mut self, now: Time, brick: BrickId, withdrawn: &[CallId], late: &[CallId]) {
        self.cx.set_now(now);
        self.cx.members().on_cancelled(brick, withdrawn, late);
    }

    /// A disk of this brick answers.
    pub(super) fn on_own(&mut self, now: Time, question: DiskQuestion, own: Finding) {
        self.cx.set_now(now);
        if let Some(found) = self.cx.disks().take(question, own) {
            self.on_found(found);
        }
        self.hear_members();
    }

    fn on_found(&mut self, found: Found) {
        let Maintenance { cx, walks, spans, leaving, merging, garbage, restoration, rebalancing } = self;
        match found {
            Found::Examined(id, result) => spans.on_examined(cx, walks, id, result),
            Found::Lost(id, span, marked) => spans.on_lost(cx, walks, id, span, marked),
            Found::Remembered(group, durable) => walks.catch_ups().on_remembered(cx.now(), group, durable),
            Found::Stretches(result) => {
                let is_version = |(volume, _): &Stretch| FragmentId::version_of(*volume).is_some();
                if result.as_ref().is_ok_and(|page| page.last().is_some_and(is_version)) {
                    garbage.notice(cx.now());
                    restoration.notice(cx.now());
                }
                leaving.on_stretches(cx.now(), result);
            }
            Found::Versions(Walker::Garbage, listed) => garbage.on_listed(cx.now(), listed),
            Found::Versions(Walker::Shares, listed) => rebalancing.on_listed(listed),
            Found::Versions(of, listed) => restoration.on_listed(of, listed),
            Found::Settled(durable) => leaving.on_settled(cx, durable),
            Found::CopiedUp(merge, span, result) => merging.on_copied_up(cx, merge, span, result),
            Found::Discarded(merge) => merging.on_discarded(merge),
        }
    }

    /// Takes in what came of operations, and of those that this begins.
    fn hear_members(&mut self) {
        loop {
            let told = self.cx.members().take_told();
            if told.is_empty() {
                return;
            }
            told.into_iter().for_each(|told| self.on_told(told));
        }
    }

    fn on_told(&mut self, told: Told) {
        let Maintenance { cx, walks, spans, merging, .. } = self;
        match told {
            Told::Expected(id, expected) => spans.on_expected(cx, walks, id, expected),
            Told::Repaired(id, lba, repaired) => spans.on_repaired(cx, walks, id, lba, repaired),
            Told::CatchUpPage(group, page) => walks.catch_ups().on_page(cx, group, page),
            Told::ScrubPage(page) => walks.scrub().on_page(cx.now(), page),
            Told::MergePage(merge, page) => merging.on_page(cx.now(), merge, page),
        }
    }

    /// A group was forgotten, durably.
    pub(super) fn on_dropped(&mut self, group: GroupId) {
        self.leaving.on_dropped(group);
    }

    /// The groups that the directory has this brick leave.
    pub(super) fn on_left(&mut self, views: Vec<GroupView>, groups: &Groups) {
        self.leaving.on_left(&mut self.cx, views, groups);
    }

    /// What the disks have of the group is of another slot than the one that `view` gives this brick.
    pub(super) fn leave_slot(&mut self, view: &GroupView) {
        self.leaving.leave_slot(&mut self.cx, view);
    }

    /// Whether nothing is on the disks of a group of which the brick has no view.
    pub(super) fn is_clean(&self, group: GroupId) -> bool {
        self.leaving.is_clean(group)
    }

    /// Space may be held for nobody: looks for it.
    pub(super) fn give_back(&mut self) {
        self.leaving.give_back();
    }

    /// A fragment is put here.
    pub(super) fn on_fragment(&mut self, now: Time) {
        self.garbage.notice(now);
        self.restoration.notice(now);
    }

    /// Of the versions that the index was asked about these are gone, and of those only some segments are wanted.
    pub(super) fn on_gone(&mut self, now: Time, operation: u64, gone: &[ObjectVersion], partly: &[Share]) {
        self.cx.set_now(now);
        self.garbage.on_gone(&mut self.cx, operation, gone, partly);
    }

    /// What the directory says of bricks.
    pub(super) fn on_bricks(&mut self, now: Time, room: Room) {
        self.restoration.on_bricks(now, room);
        if self.restoration.is_calm(room.fingerprint) {
            self.rebalancing.on_bricks(now, room);
        }
    }

    /// What [`Effect::Restore`] or [`Effect::Rebalance`] asked for wants to read so much.
    pub(super) fn on_wants_to_read(&mut self, tag: u64, bytes: u64) {
        match Rebalancing::owns(tag) {
            true => self.rebalancing.on_wants(tag, bytes),
            false => self.restoration.on_wants(tag, bytes),
        }
    }

    /// What [`Effect::Rebalance`] asked for: nobody looks for anything of this segment here any more.
    pub(super) fn on_left_segment(&mut self, now: Time, tag: u64, segment: u32) {
        self.cx.set_now(now);
        self.rebalancing.on_left(&mut self.cx, tag, segment);
    }

    /// What [`Effect::Rebalance`] asked for has ended.
    pub(super) fn on_rebalanced(&mut self, now: Time, tag: u64, result: Result<Rebalanced, ObjectError>) {
        self.cx.set_now(now);
        self.rebalancing.on_rebalanced(&mut self.cx, tag, result);
    }

    /// What [`Effect::Restore`] asked for has ended.
    pub(super) fn on_restored(&mut self, now: Time, tag: u64, result: Result<Restored, ObjectError>) {
        self.cx.set_now(now);
        self.restoration.on_restored(&mut self.cx, tag, result);
    }

    // ---- what is to be done ----

    /// Begins what can be begun. `load` is how many requests of clients wait here.
    pub(super) fn advance(&mut self, now: Time, groups: &Groups, families: &Families, load: usize) {
        self.cx.set_now(now);
        self.cx.budget_mut().set_load(load);
        self.cx.members().wake();
        self.hear_members();
        // Of the rate that they share it takes a segment at a time, and what catches up all that is left.
        self.restoration.advance(&mut self.cx);
        self.rebalancing.advance(&mut self.cx);
        self.walks.catch_ups().list(&mut self.cx);
        self.spans.begin_repairs(&mut self.cx, &mut self.walks);
        self.catch_up(families);
        self.scrub(families);
        self.leaving.advance(&mut self.cx, groups, families);
        self.merging.advance(&mut self.cx, families);
        self.garbage.advance(&mut self.cx);
    }

    fn catch_up(&mut self, families: &Families) {
        let Maintenance { cx, walks, spans, .. } = self;
        for group in walks.catch_ups().groups() {
            while spans.len() < cx.budget().catch_up_spans_max() && cx.is_fetching_open() {
                let Some(visit) = walks.catch_ups().next(group, cx.now(), families) else { break };
                spans.begin(cx, walks, Owner::CatchUp(group), visit);
            }
        }
    }

    fn scrub(&mut self, families: &Families) {
        let Maintenance { cx, walks, spans, restoration, rebalancing, .. } = self;
        if walks.scrub().is_due(cx.now()) {
            spans.forget_scrub();
            walks.scrub().begin(cx);
            restoration.scrub(cx.now());
            rebalancing.scrub();
        }
        walks.advance_scrub(cx);
        while cx.is_checking_open() {
            let Some(visit) = walks.scrub().next(cx, families) else { return };
            spans.begin(cx, walks, Owner::Scrub, visit);
        }
    }

    /// What was counted since the last call.
    pub(super) fn take_counters(&mut self) -> Counters {
        self.cx.members().counters().take()
    }

    /// What the brick is to do, since the last call.
    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        self.cx.disks().take_effects()
    }

    /// What is to be computed by others, since the last call.
    pub(super) fn take_computations(&mut self) -> Vec<(ComputationId, Computation)> {
        self.cx.members().take_computations()
    }

    /// What is to be sent, since the last call; to this brick itself, too.
    pub(super) fn take_messages(&mut self) -> Vec<(BrickId, Packet)> {
        self.cx.members().take_messages()
    }

    /// When something is to be done, and what.
    pub(super) fn deadline(&self) -> Option<(Time, &'static str)> {
        let (catch_ups, scrub) = self.walks.parts();
        let budget = self.cx.budget();
        // Where spans are looked at their ends begin what is due; where the rate is used up it begins nothing.
        let again = catch_ups.due().filter(|_| self.spans.len() < SPANS_MAX_UNDER_LOAD);
        let again = again.map(|due| (due.max(budget.may_fetch_at()), "a span is looked at again"));
        let waits = self.spans.has_waiting() || catch_ups.has_more() && self.spans.len() == 0;
        let rate = waits.then(|| (budget.may_fetch_at(), "the rate of rebuilding allows more"));
        [
            self.cx.operations_due(),
            again,
            rate,
            scrub.deadline(budget.may_check_at()),
            self.leaving.deadline(),
            self.merging.deadline(),
            self.garbage.deadline(),
            self.restoration.deadline(budget.may_fetch_at(), budget.may_check_at()),
            self.rebalancing.deadline(budget.may_fetch_at()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Writes down how far all is.
    pub(super) fn report(&self, status: &mut BrickStatus, families: &Families, groups: &Groups) {
        self.walks.report(&self.cx, status, families, groups);
        status.groups.left = self.leaving.left();
        status.groups.merged = self.merging.merged();
        status.rot.repaired_blocks = self.spans.repaired_blocks();
    }
}
