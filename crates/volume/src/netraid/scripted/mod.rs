//! A coordinator whose members are played by a test: what it asks is looked at, and answered by hand.

mod branches;
mod busy;
mod computing;
mod confirming;
mod gates;
mod joining;
mod links;
mod loans;
mod moving;
mod paused;
mod policies;
mod protocols;
mod read_modify_write;
mod turns;
mod versions;

use super::answer::{Answer, CallId};
use super::context::computations::ComputationId;
use super::coordinator::Coordinator;
use super::operate::Operation;
use super::outcome::{Outcome, Parent};
use base::{BLOCK, BrickId, ClusterTime, GroupId, Loan, Payload, Stamp, Time, ViewNumber, VolumeId};
use code::Computation;
use core::time::Duration;
use rules::counters::Counter;
use rules::layout::Geometry;
use wire::{Decision, Fate, GroupView, Message, Packet, PrepareOutcome, ReadOutcome, Slots, Span};

pub(super) const GROUP: GroupId = GroupId(1);
pub(super) const FAMILY: VolumeId = VolumeId(7);

/// A question to the member at a slot.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) slot: u8,
    pub(super) message: Message,
    pub(super) payload: Payload,
}

impl Asked {
    pub(super) fn call(&self) -> CallId {
        CallId(match self.message {
            Message::Prepare { operation, .. }
            | Message::Read { operation, .. }
            | Message::Query { operation, .. }
            | Message::Repair { operation, .. }
            | Message::Allocation { operation, .. }
            | Message::Lock { operation, .. }
            | Message::AreDecided { operation, .. } => operation,
            _ => panic!("no question: {:?}", self.message),
        })
    }

    pub(super) fn span(&self) -> Span {
        match &self.message {
            Message::Prepare { write, .. } | Message::Query { write, .. } => write.span,
            Message::Read { span, .. } | Message::Repair { span, .. } | Message::Allocation { span, .. } => {
                *span
            }
            _ => panic!("no question: {:?}", self.message),
        }
    }

    pub(super) fn is_prepare(&self) -> bool {
        matches!(self.message, Message::Prepare { .. })
    }
}

/// The group's view `number`: bricks 1, 2, ... at slots 0, 1, ...
pub(super) fn view(layout: &str, number: u64, current: u32, joining: u32) -> GroupView {
    GroupView {
        group: GROUP,
        volume: FAMILY,
        number: ViewNumber(number),
        members: (1..=u32::from(geometry(layout).layout().width())).map(BrickId).collect(),
        current: Slots(current),
        joining: Slots(joining),
        lineage: Box::default(),
        sealed: Vec::new(),
    }
}

pub(super) fn geometry(layout: &str) -> Geometry {
    Geometry::usual(layout.parse().expect("a layout")).expect("the usual measures")
}

pub(super) fn span(volume: VolumeId) -> Span {
    Span { volume, lba: 0, count: 1 }
}

pub(super) fn block(byte: u8) -> Payload {
    Payload::from(vec![byte; BLOCK])
}

pub(super) struct Script {
    pub(super) coordinator: Coordinator,
    kept: Vec<Asked>,
    decided: Vec<(u8, Vec<Decision>, Vec<Decision>)>,
    /// What was called off, and at which slot.
    pub(super) called_off: Vec<(u8, CallId)>,
    /// The locks that were given back, and at which slot.
    pub(super) unlocked: Vec<(u8, u64)>,
    /// For how long each answer's disk took; 0 where it came from memory.
    pub(super) disk_us: u32,
    /// Whether the test computes by itself what is to be computed.
    pub(super) computes: bool,
}

impl Script {
    pub(super) fn new(layout: &str, current: u32, joining: u32) -> Script {
        let mut coordinator = Coordinator::default();
        coordinator.set_now(Time(1_000_000_000_000));
        coordinator.lend(ClusterTime::FIRST, 3, Loan::UNBOUNDED);
        coordinator.open_family(FAMILY, geometry(layout));
        assert!(coordinator.shared().views.adopt(view(layout, 1, current, joining)));
        (1..=8).for_each(|brick| coordinator.on_brick_up(BrickId(brick)));
        Script {
            coordinator,
            kept: Vec::new(),
            decided: Vec::new(),
            called_off: Vec::new(),
            unlocked: Vec::new(),
            disk_us: 1,
            computes: false,
        }
    }

    pub(super) fn begin(&mut self, operation: Operation) {
        self.coordinator.begin(Parent::Part(1, 0), operation);
    }

    /// What is asked since the last look.
    pub(super) fn asked(&mut self) -> Vec<Asked> {
        self.collect();
        self.kept.sort_by_key(|asked| asked.slot);
        core::mem::take(&mut self.kept)
    }

    /// For the next look.
    pub(super) fn keep(&mut self, asked: Vec<Asked>) {
        self.kept.extend(asked);
    }

    /// What is to be computed since the last look.
    pub(super) fn computing(&mut self) -> Vec<(ComputationId, Computation)> {
        self.coordinator.take_computations()
    }

    /// Computes all that is to be computed, at once.
    pub(super) fn compute(&mut self) {
        for (id, computation) in self.computing() {
            self.coordinator.on_computed(id, computation.run());
        }
    }

    fn collect(&mut self) {
        if !self.computes {
            self.compute();
        }
        for (brick, Packet { message, payload }) in self.coordinator.take_messages() {
            let slot = (brick.0 - 1) as u8;
            match message {
                Message::Decide { commits, aborts } => self.decided.push((slot, commits, aborts)),
                Message::Cancel { operations } => {
                    self.called_off.extend(operations.into_iter().map(|operation| (slot, CallId(operation))));
                }
                Message::Unlock { holders } => {
                    self.unlocked.extend(holders.into_iter().map(|holder| (slot, holder)));
                }
                message => self.kept.push(Asked { slot, message, payload }),
            }
        }
    }

    pub(super) fn slots(asked: &[Asked]) -> Vec<u8> {
        asked.iter().map(|asked| asked.slot).collect()
    }

    pub(super) fn answer(&mut self, asked: &Asked, answer: Answer) {
        self.coordinator.on_heard(BrickId(u32::from(asked.slot) + 1));
        let wait = wire::Wait { disk_us: self.disk_us, ..wire::Wait::default() };
        self.coordinator.on_answer(asked.call(), answer, wait);
    }

    pub(super) fn prepared(&mut self, asked: &Asked, outcome: PrepareOutcome) {
        self.answer(asked, Answer::Prepared(outcome, Payload::new()));
    }

    /// The member takes the write; it had `old` there, under `stamp`.
    pub(super) fn takes(&mut self, asked: &Asked, old: u8, stamp: Stamp) {
        let Message::Prepare { want_delta, .. } = &asked.message else { panic!("asked: {asked:?}") };
        let (previous, delta) = match want_delta {
            true => (vec![stamp], asked.payload.xor(&block(old))),
            false => (Vec::new(), Payload::new()),
        };
        self.answer(asked, Answer::Prepared(PrepareOutcome::Prepared { previous }, delta));
    }

    /// The member shows `byte` under `stamps`.
    pub(super) fn shows(&mut self, asked: &Asked, byte: u8, stamps: &[Stamp], leased: bool) {
        let outcome = ReadOutcome::Done { leased, stamps: stamps.to_vec(), unreadable: Vec::new() };
        self.answer(asked, Answer::Read(outcome, block(byte)));
    }

    /// All that is asked about fates is answered: refused.
    pub(super) fn refuse_queries(&mut self) -> Vec<Asked> {
        let (queries, rest): (Vec<Asked>, Vec<Asked>) =
            self.asked().into_iter().partition(|asked| matches!(asked.message, Message::Query { .. }));
        for query in &queries {
            self.answer(query, Answer::Fate(Ok(Fate::Refused)));
        }
        rest
    }

    /// Time passes; what is asked meanwhile is kept for the next look.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.coordinator.now() + time;
        while self.step(end) {}
        self.coordinator.shared().now = end;
    }

    /// Time passes until something is asked.
    pub(super) fn wait(&mut self) -> Vec<Asked> {
        let end = self.coordinator.now() + Duration::from_secs(10);
        loop {
            let asked = self.asked();
            if !asked.is_empty() || !self.step(end) {
                return asked;
            }
        }
    }

    fn step(&mut self, end: Time) -> bool {
        let Some((due, _)) = self.coordinator.deadline().filter(|(due, _)| *due <= end) else { return false };
        self.coordinator.shared().now = self.coordinator.now().max(due);
        self.coordinator.wake();
        self.collect();
        true
    }

    pub(super) fn counted(&self, what: Counter) -> u64 {
        self.coordinator.counters().get(what)
    }

    /// The slots that were told of a commit.
    pub(super) fn committed_at(&mut self) -> Vec<u8> {
        self.pass(Duration::from_millis(2));
        assert!(self.asked().is_empty(), "nothing is left to ask");
        let mut slots: Vec<u8> = self
            .decided
            .iter()
            .filter(|(_, commits, _)| !commits.is_empty())
            .map(|(slot, ..)| *slot)
            .collect();
        slots.sort_unstable();
        slots
    }

    /// Nothing was told to be committed, and only fates are asked.
    pub(super) fn committed_at_most_queries(&mut self) -> bool {
        self.asked().iter().all(|asked| matches!(asked.message, Message::Query { .. }))
            && self.decided.iter().all(|(_, commits, _)| commits.is_empty())
    }

    /// How the operation ended, if it did.
    pub(super) fn outcome(&mut self) -> Option<Outcome> {
        self.collect();
        self.coordinator.take_finished().pop_front().map(|(_, outcome)| outcome)
    }
}
