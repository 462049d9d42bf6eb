//! Reading blocks of one data unit, or of mirrors.
//!
//! One member's answer is enough while it holds a lease of its view: a write is acknowledged only when all current
//! members have it, so a current member has every acknowledged write, and it answers only from blocks without a write
//! in doubt. Without a lease all writers that take part bear witness that no later view had begun: one of them is current
//! in any later view, and must have been fenced before. The current ones confirm the stamps as well, from memory.
//!
//! A member that only joins serves nothing and has no say about stamps: it may lack what was acknowledged before. But its
//! witness is needed: it may have become current, and the one that answers been left out, in changes of which the latter
//! heard nothing. Who is asked for neither content nor stamps says just whether the view is in force with it.
//!
//! Who is asked, and who else when that takes long, is in [`choice`].
//!
//! Blocks that do not match their checksum are read elsewhere or reconstructed, and repaired behind the reader's back.

mod choice;

use super::coordinator::{Answer, Operate, Operation, Outcome, Shared, participants, width_at};
use super::reconstruct::ReconstructOperation;
use super::repair::RepairOperation;
use super::settle::settle_foreign;
use crate::counters::Counter;
use crate::layout::Geometry;
use base::{BrickId, GroupId, Payload, Stamp, Time, VolumeId};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::{Contest, GroupView, IoError, Message, ReadOutcome, ReadPolicy, Scope, Slots, Span, WriteId};

const SOON: Duration = Duration::from_millis(10);
/// How long an operation waits for a view that knows its volume.
pub(super) const UNKNOWN_VOLUME: Duration = Duration::from_millis(50);
/// How often a read that is in doubt asks again before it settles the writes that hold it up: each time the member
/// has waited for the decision in vain.
const DOUBTS_BEFORE_SETTLING: u32 = 2;

/// Reads one span of one unit.
pub struct ReadOperation {
    group: GroupId,
    /// The volume whose branch is read; none where the span names the branch.
    volume: Option<VolumeId>,
    span: Span,
    data_index: u8,
    want_stamps: bool,
    confirm: bool,
    answers: BTreeMap<u8, Vec<Stamp>>,
    content: Option<(u8, Payload)>,
    /// Who was asked for the content.
    asked: Slots,
    /// Of these who must answer, since it was asked alone or beside others, not as one of several.
    direct: Slots,
    /// What the others are asked that were not asked at first.
    tie: Option<(u8, Contest)>,
    /// When all is asked anew.
    retry_at: Time,
    /// Members that are not to be read from: the content is for them.
    excluded: Slots,
    bad: Slots,
    settling: usize,
    is_reconstructing: bool,
    doubts: u32,
    attempt: u32,
}

impl ReadOperation {
    /// Of `span` of a volume, which is data unit `data_index` of its rows on `group`.
    pub fn new(group: GroupId, span: Span, data_index: u8, want_stamps: bool) -> ReadOperation {
        let branch = ReadOperation::of_branch(group, span, Slots::default());
        ReadOperation { volume: Some(span.volume), data_index, want_stamps, ..branch }
    }

    /// Of `span` of a branch of mirrors, with its stamps, from other members than those at `excluded`.
    pub fn of_branch(group: GroupId, span: Span, excluded: Slots) -> ReadOperation {
        ReadOperation {
            group,
            volume: None,
            span,
            data_index: 0,
            want_stamps: true,
            confirm: false,
            answers: BTreeMap::new(),
            content: None,
            asked: Slots::default(),
            direct: Slots::default(),
            tie: None,
            retry_at: Time::ZERO,
            excluded,
            bad: Slots::default(),
            settling: 0,
            is_reconstructing: false,
            doubts: 0,
            attempt: 0,
        }
    }

    /// Answers so far are of no interest; begins again after `delay`, and asks nobody else before that.
    fn again(&mut self, shared: &mut Shared, delay: Duration) -> Option<Outcome> {
        self.retry_at = Time::ZERO;
        shared.again_after(delay)
    }

    fn geometry(&self, shared: &Shared) -> Geometry {
        shared.geometry(self.group)
    }

    /// Who takes part in writes of this unit, as a current member or one that joins.
    fn witnesses(&self, shared: &Shared, view: &GroupView) -> Slots {
        let geometry = self.geometry(shared);
        let scope = if is_mirrored(&geometry) { Scope::Row } else { Scope::Unit { index: self.data_index } };
        let write = WriteId { group: self.group, span: self.span, stamp: Stamp::ZERO, scope };
        participants(&geometry, view.writers(), &write)
    }

    /// The members that have the content itself and have not shown it to be bad.
    fn holders(&self, shared: &Shared, view: &GroupView) -> Vec<(u8, BrickId)> {
        let geometry = self.geometry(shared);
        let holders = match is_mirrored(&geometry) {
            true => view.current,
            false => Slots::one(geometry.slot_of(self.span.lba, self.data_index)).and(view.current),
        };
        let good = holders.iter().filter(|slot| !self.bad.has(*slot) && !self.excluded.has(*slot));
        let with_brick: Vec<(u8, BrickId)> =
            good.map(|slot| (slot, view.members[usize::from(slot)])).collect();
        let reachable: Vec<(u8, BrickId)> =
            with_brick.iter().copied().filter(|(_, brick)| shared.up.contains(brick)).collect();
        if reachable.is_empty() { with_brick } else { reachable }
    }

    fn ask(
        &mut self,
        shared: &mut Shared,
        view: &GroupView,
        slot: u8,
        content: bool,
        contest: Option<Contest>,
    ) {
        let width = width_at(&self.geometry(shared), self.span.lba, slot);
        let (group, span) = (self.group, self.span);
        let has_say = view.current.has(slot);
        let stamps = has_say && (self.want_stamps || self.confirm || !self.bad.is_empty());
        if content {
            self.asked = self.asked.with(slot);
        }
        shared.call(view, slot, Payload::new(), |operation| Message::Read {
            operation,
            group,
            view: view.number,
            span,
            width,
            stamps,
            content,
            contest,
        });
    }

    fn on_done(
        &mut self,
        shared: &mut Shared,
        slot: u8,
        leased: bool,
        stamps: Vec<Stamp>,
        unreadable: bool,
        content: Payload,
    ) -> Option<Outcome> {
        let is_asked = self.asked.has(slot);
        if unreadable && is_asked {
            shared.counters.count(Counter::UnreadableBlocksMetByARead);
            self.bad = self.bad.with(slot);
            shared.forget_calls();
            return self.start(shared);
        }
        if unreadable {
            // It has no say about the stamps, and its answer still shows that no later view had begun.
            self.bad = self.bad.with(slot);
        }
        let view = shared.view(self.group);
        if is_asked {
            if content.len() != self.span.bytes() {
                return self.again(shared, SOON);
            }
            self.content = Some((slot, content));
            let others = self.witnesses(shared, &view).without(slot);
            if leased && !self.confirm || others.is_empty() {
                return self.finish(shared, &view, stamps);
            }
            if !self.confirm {
                // Without a lease it takes the others' word; begin again and ask them all.
                shared.counters.count(Counter::ReadConfirmedWithoutALease);
                self.confirm = true;
                shared.forget_calls();
                return self.start(shared);
            }
        }
        self.answers.insert(slot, stamps);
        self.compare(shared, &view)
    }

    /// All witnesses must have answered, and the current ones have the same stamps.
    fn compare(&mut self, shared: &mut Shared, view: &GroupView) -> Option<Outcome> {
        let witnesses = self.witnesses(shared, view);
        let members = witnesses.and(view.current);
        let (from, _) = self.content.as_ref()?;
        let from = *from;
        if witnesses.iter().any(|slot| !self.answers.contains_key(&slot)) {
            return None;
        }
        let geometry = self.geometry(shared);
        let entry = |slot: u8, block: usize| {
            let width = usize::from(width_at(&geometry, self.span.lba, slot));
            let entry = if width > 1 { usize::from(self.data_index) } else { 0 };
            self.answers[&slot].get(block * width + entry).copied()
        };
        let same = (0..self.span.count as usize).all(|block| {
            let here = entry(from, block);
            here.is_some() && members.iter().all(|slot| self.bad.has(slot) || entry(slot, block) == here)
        });
        if !same {
            return self.again(shared, SOON);
        }
        let stamps = self.answers.remove(&from).expect("a member");
        self.finish(shared, view, stamps)
    }

    fn finish(&mut self, shared: &mut Shared, view: &GroupView, stamps: Vec<Stamp>) -> Option<Outcome> {
        let (_, content) = self.content.take().expect("set before");
        shared.traffic.reads += 1;
        let geometry = self.geometry(shared);
        for slot in self.bad.and(view.current).iter() {
            let repair = match geometry.data_index_at(self.span.lba, slot) {
                Some(_) => RepairOperation::new(self.group, slot, self.span, stamps.clone(), content.clone()),
                None => RepairOperation::from_row(self.group, slot, self.span),
            };
            shared.begin_alone(Operation::Repair(Box::new(repair)));
        }
        Some(Outcome::Read { content, stamps })
    }

    fn on_doubt(&mut self, shared: &mut Shared, writes: Vec<WriteId>) -> Option<Outcome> {
        self.doubts += 1;
        shared.counters.count(Counter::ReadMetWritesInDoubt);
        shared.forget_calls();
        if self.doubts >= DOUBTS_BEFORE_SETTLING {
            self.settling = settle_foreign(shared, self.group, self.span, writes);
        }
        if self.settling == 0 { self.again(shared, SOON) } else { None }
    }
}

impl Operate for ReadOperation {
    fn start(&mut self, shared: &mut Shared) -> Option<Outcome> {
        self.answers.clear();
        self.content = None;
        let view = shared.view(self.group);
        if let Some(volume) = self.volume {
            let Some(branch) = shared.branch_of(&view, volume) else {
                return self.again(shared, UNKNOWN_VOLUME);
            };
            self.span.volume = branch;
        }
        (self.asked, self.direct, self.tie) = (Slots::default(), Slots::default(), None);
        let holders = self.holders(shared, &view);
        if holders.is_empty() {
            return self.start_elsewhere(shared, &view);
        }
        let patience = self.patience(shared, &holders);
        self.retry_at = shared.now + patience;
        shared.wake_after(patience);
        let is_first = self.attempt == 0 && !self.confirm;
        match self.policy(shared) {
            ReadPolicy::Claim if is_first && holders.len() > 1 => self.contend(shared, &view, &holders),
            ReadPolicy::Tied if is_first && holders.len() > 1 => self.tie(shared, &view, &holders),
            _ => self.ask_one(shared, &view, &holders),
        }
        None
    }

    fn on_answer(&mut self, shared: &mut Shared, slot: u8, answer: Answer) -> Option<Outcome> {
        let Answer::Read(outcome, content) = answer else { return None };
        match outcome {
            ReadOutcome::Done { leased, stamps, unreadable } => {
                self.on_done(shared, slot, leased, stamps, !unreadable.is_empty(), content)
            }
            ReadOutcome::InDoubt { writes } => self.on_doubt(shared, writes),
            ReadOutcome::Stale { view } => {
                shared.on_stale(self.group, view);
                self.again(shared, SOON)
            }
            // Of several that were asked for the content another one may give it.
            ReadOutcome::Busy if self.asked.has(slot) && !self.asked.without(slot).is_empty() => {
                self.asked = self.asked.without(slot);
                None
            }
            ReadOutcome::Busy => self.again(shared, SOON),
            ReadOutcome::Failed => {
                self.bad = self.bad.with(slot);
                self.again(shared, SOON)
            }
        }
    }

    fn on_child(&mut self, shared: &mut Shared, outcome: Outcome) -> Option<Outcome> {
        match outcome {
            Outcome::Read { content, stamps } => {
                self.content = Some((0, content));
                let view = shared.view(self.group);
                self.finish(shared, &view, stamps)
            }
            // The brick itself may still answer.
            Outcome::Failed(_) if self.is_reconstructing => {
                self.is_reconstructing = false;
                if self.asked.is_empty() { self.again(shared, SOON) } else { None }
            }
            Outcome::Failed(error) => Some(Outcome::Failed(error)),
            _ => {
                self.settling = self.settling.saturating_sub(1);
                if self.settling == 0 { self.again(shared, Duration::ZERO) } else { None }
            }
        }
    }

    fn on_timer(&mut self, shared: &mut Shared) -> Option<Outcome> {
        if shared.now < self.retry_at && (self.ask_further(shared) || self.waits_on(shared)) {
            return None;
        }
        self.attempt += 1;
        shared.forget_calls();
        self.start(shared)
    }

    fn group(&self) -> GroupId {
        self.group
    }

    fn volume(&self) -> Option<VolumeId> {
        self.volume
    }

    fn on_view(&mut self, shared: &mut Shared) -> Option<Outcome> {
        self.settling = 0;
        self.is_reconstructing = false;
        self.confirm = false;
        self.bad = Slots::default();
        shared.forget_calls();
        self.start(shared)
    }
}

impl ReadOperation {
    /// No member can give the content itself.
    fn start_elsewhere(&mut self, shared: &mut Shared, view: &GroupView) -> Option<Outcome> {
        let geometry = self.geometry(shared);
        if geometry.layout().parity() == 0 {
            // Copies that are all bad stay so; a member that is merely away comes back.
            return match self.bad.and(view.current).is_empty() {
                false => Some(Outcome::Failed(IoError::Unreadable)),
                true => self.again(shared, Duration::from_millis(100)),
            };
        }
        let excluded = self.bad.and(view.current);
        let wanted = self.data_index;
        let reconstruct = ReconstructOperation::new(self.group, self.span, wanted, excluded);
        // That one asks anew by itself for as long as it takes.
        shared.sleep();
        shared.begin(Operation::Reconstruct(Box::new(reconstruct)));
        None
    }
}

/// Whether each member has the whole content.
pub fn is_mirrored(geometry: &Geometry) -> bool {
    geometry.layout().copies() > 1
}
