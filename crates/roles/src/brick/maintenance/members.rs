//! What maintenance asks of the members of its groups, this brick among them, by operations of a [`Coordinator`] of its
//! own. Each operation is kept with whom it is for, and paired with its outcome here.
//!
//! Only this file knows the coordinator. It never writes, so it draws no stamps.

use super::job::{Merge, SpanId, Stretch};
use base::{BrickId, GroupId, Stamp, StreamId, Time, VolumeId};
use code::{Computation, Computed};
use rules::counters::Counters;
use rules::layout::Geometry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use volume::netraid::answer::{Answer, CallId};
use volume::netraid::context::computations::ComputationId;
use volume::netraid::coordinator::Coordinator;
use volume::netraid::expected::ExpectedOperation;
use volume::netraid::list::{ListOperation, Listed};
use volume::netraid::operate::Operation;
use volume::netraid::outcome::{self, Outcome, Parent};
use volume::netraid::repair::RepairOperation;
use wire::{Completion, GroupView, Inventory, IoError, Packet, Span, Wait};

/// The blocks of one member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) group: GroupId,
    pub(super) slot: u8,
}

/// The stamps that blocks should have, as many a block as the member keeps; and the blocks, from 0, of which nobody can
/// say, whose stamps are zero here.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub(super) stamps: Vec<Stamp>,
    pub(super) unknown: Vec<u32>,
}

/// A page of what a member has.
pub(super) enum Page {
    Completions(Vec<Completion>),
    Stretches(Inventory),
    /// The member did not answer, or not what it was asked.
    None,
}

/// How a repair of a run of blocks ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Repaired {
    Done,
    /// Nobody can make the blocks out.
    NotMadeOut,
    /// The disk has no room for them.
    NoRoom,
    /// Something newer came meanwhile.
    Refused,
}

/// For whom an operation is.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Expected(SpanId),
    /// Of the run that begins there.
    Repair(SpanId, u64),
    CatchUpPage,
    ScrubPage,
    MergePage(Merge),
}

/// What came of an operation, for whoever asked.
pub(super) enum Told {
    /// Nothing where the group went.
    Expected(SpanId, Option<Expected>),
    Repaired(SpanId, u64, Repaired),
    CatchUpPage(GroupId, Page),
    ScrubPage(Page),
    MergePage(Merge, Page),
}

/// Operations that are outstanding.
pub(super) struct Members {
    coordinator: Coordinator,
    down: BTreeSet<BrickId>,
    asked: BTreeMap<u64, (GroupId, Asked)>,
    serial: u64,
}

impl Default for Members {
    fn default() -> Members {
        Members {
            coordinator: Coordinator::new(0, StreamId::MAINTENANCE),
            down: BTreeSet::new(),
            asked: BTreeMap::new(),
            serial: 0,
        }
    }
}

impl Members {
    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub(super) fn set_rules(&mut self, rules: &'static dyn rules::promises::Rules) {
        self.coordinator.set_rules(rules);
    }

    pub(super) fn set_now(&mut self, now: Time) {
        self.coordinator.set_now(now);
    }

    pub(super) fn counters(&mut self) -> &mut Counters {
        self.coordinator.counters_mut()
    }

    pub(super) fn geometry(&self, family: VolumeId) -> Option<Geometry> {
        self.coordinator.views().geometry_of_family(family)
    }

    /// The geometry of a group of which there is a view.
    pub(super) fn geometry_of(&self, group: GroupId) -> Geometry {
        self.coordinator.views().geometry(group)
    }

    // ---- questions ----

    /// The stamps that own blocks should have.
    pub(super) fn expect(&mut self, id: SpanId, column: Column, span: Span) {
        let operation = ExpectedOperation::new(column.group, column.slot, span);
        self.begin(column.group, Asked::Expected(id), Operation::new(operation));
    }

    /// Has own blocks fetched and put in place.
    pub(super) fn repair(&mut self, id: SpanId, column: Column, run: Span) {
        let operation = RepairOperation::from_row(column.group, column.slot, run);
        self.begin(column.group, Asked::Repair(id, run.lba), Operation::new(operation));
    }

    /// The same, for nobody: begins with the next operation.
    pub(super) fn repair_alone(&mut self, column: Column, run: Span) {
        let operation = RepairOperation::from_row(column.group, column.slot, run);
        self.coordinator.begin_alone(operation);
    }

    pub(super) fn list_for_catch_up(&mut self, column: Column, listed: Listed) {
        self.list(column, listed, Asked::CatchUpPage);
    }

    pub(super) fn list_for_scrub(&mut self, column: Column, after: Option<Stretch>) {
        self.list(column, Listed::Stretches(after), Asked::ScrubPage);
    }

    pub(super) fn list_for_merge(&mut self, merge: Merge, slot: u8, after: Option<Stretch>) {
        let column = Column { group: merge.group, slot };
        self.list(column, Listed::Stretches(after), Asked::MergePage(merge));
    }

    fn list(&mut self, column: Column, listed: Listed, asked: Asked) {
        let operation = ListOperation::new(column.group, column.slot, listed);
        self.begin(column.group, asked, Operation::new(operation));
    }

    fn begin(&mut self, group: GroupId, asked: Asked, operation: Operation) {
        self.serial += 1;
        self.asked.insert(self.serial, (group, asked));
        self.coordinator.begin(Parent::Part(self.serial, 0), operation);
    }

    // ---- what happens ----

    /// A view under which this brick works. False where its family has not been heard of yet.
    pub(super) fn on_view(&mut self, view: &GroupView, geometry: Option<Geometry>) -> bool {
        for brick in view.members.iter().filter(|brick| !self.down.contains(brick)) {
            self.coordinator.on_brick_up(*brick);
        }
        let Some(geometry) = geometry else { return false };
        self.coordinator.open_family(view.volume, geometry);
        self.coordinator.on_views(vec![view.clone()]);
        true
    }

    /// What was asked for a group counts for nothing under another view.
    pub(super) fn abandon(&mut self, group: GroupId) {
        self.coordinator.abandon(group);
        self.asked.retain(|_, (of, _)| *of != group);
    }

    /// Pages for a scrub that begins anew are of no use to it.
    pub(super) fn forget_scrub(&mut self) {
        self.asked.retain(|_, (_, asked)| !matches!(asked, Asked::ScrubPage));
    }

    pub(super) fn on_up(&mut self, brick: BrickId) {
        self.down.remove(&brick);
        self.coordinator.on_brick_up(brick);
    }

    pub(super) fn on_down(&mut self, brick: BrickId) {
        self.down.insert(brick);
        self.coordinator.on_brick_down(brick);
    }

    pub(super) fn on_answer(&mut self, call: CallId, answer: Answer, wait: Wait) {
        self.coordinator.on_answer(call, answer, wait);
    }

    /// These questions to a brick wait for their turn there.
    pub(super) fn on_waiting(&mut self, brick: BrickId, calls: &[CallId]) {
        self.coordinator.on_waiting(brick, calls);
    }

    /// What became of questions that were called off.
    pub(super) fn on_cancelled(&mut self, brick: BrickId, withdrawn: &[CallId], late: &[CallId]) {
        self.coordinator.on_cancelled(brick, withdrawn, late);
    }

    pub(super) fn wake(&mut self) {
        self.coordinator.wake();
    }

    pub(super) fn deadline(&self) -> Option<(Time, &'static str)> {
        self.coordinator.deadline()
    }

    pub(super) fn on_computed(&mut self, id: ComputationId, made: Computed) {
        self.coordinator.on_computed(id, made);
    }

    /// What is to be computed by others.
    pub(super) fn take_computations(&mut self) -> Vec<(ComputationId, Computation)> {
        self.coordinator.take_computations()
    }

    /// What is to be sent, to this brick itself, too.
    pub(super) fn take_messages(&mut self) -> Vec<(BrickId, Packet)> {
        self.coordinator.take_messages()
    }

    /// What came of operations that somebody still waits for.
    pub(super) fn take_told(&mut self) -> VecDeque<Told> {
        let finished = self.coordinator.take_finished();
        let asked = finished.into_iter().filter_map(|(parent, outcome)| {
            let Parent::Part(serial, _) = parent else { return None };
            let (group, asked) = self.asked.remove(&serial)?;
            Some(pair(group, asked, outcome))
        });
        asked.collect()
    }
}

fn pair(group: GroupId, asked: Asked, outcome: Outcome) -> Told {
    match asked {
        Asked::Expected(id) => Told::Expected(id, expected(outcome)),
        Asked::Repair(id, lba) => Told::Repaired(id, lba, repaired(&outcome)),
        Asked::CatchUpPage => Told::CatchUpPage(group, page(outcome)),
        Asked::ScrubPage => Told::ScrubPage(page(outcome)),
        Asked::MergePage(merge) => Told::MergePage(merge, page(outcome)),
    }
}

fn expected(outcome: Outcome) -> Option<Expected> {
    match outcome {
        Outcome::Expected(outcome::Expected { stamps, unknown }) => Some(Expected { stamps, unknown }),
        Outcome::Gone(_) => None,
        other => panic!("stamps were asked for and {other:?} came of it"),
    }
}

fn repaired(outcome: &Outcome) -> Repaired {
    match outcome {
        Outcome::Repaired(Ok(outcome::Repaired::Taken | outcome::Repaired::ByView)) => Repaired::Done,
        Outcome::Repaired(Err(IoError::Unreadable)) => Repaired::NotMadeOut,
        Outcome::Repaired(Err(IoError::NoSpace)) => Repaired::NoRoom,
        // It ends with whatever the read of the good content ended with.
        _ => Repaired::Refused,
    }
}

fn page(outcome: Outcome) -> Page {
    match outcome {
        Outcome::Page(Ok(outcome::Page::Completions(completions))) => Page::Completions(completions),
        Outcome::Page(Ok(outcome::Page::Stretches(inventory))) => Page::Stretches(inventory),
        Outcome::Page(Err(_)) | Outcome::Gone(_) => Page::None,
        other => panic!("a page was asked for and {other:?} came of it"),
    }
}
