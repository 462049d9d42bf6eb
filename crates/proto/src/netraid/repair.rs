//! Puts good content in place of blocks that a member could not read, or that it lacks because it only joins. A member
//! that has something newer, or a write under way there, refuses it: then it ends with [`Outcome::Changed`], and where the
//! member has no room with [`Outcome::Failed`], otherwise with [`Outcome::Written`].
//!
//! Where a write waits for it the repair is *patient*: refused, it fetches what is good by then and offers it again. Both
//! make progress on a hot row. The repair is refused only while writes are under way there; a write that needs the repair
//! is not one of them, as it is settled before the repair begins, and comes back only when the repair has ended. So each
//! write that is kept waiting makes a gap for the repair of all, and the writes that still come in are those that build on
//! what the member has: they go through. When the repair is through (or somebody else's, or a write of the whole block,
//! was before it) all that waited find what they need. What a repair gains is kept: no stamp of the block goes back.

use super::coordinator::{Answer, Operate, Operation, Outcome, Shared, width_at};
use super::read::{ReadOperation, is_mirrored};
use super::reconstruct::ReconstructOperation;
use crate::counters::Counter;
use base::{GroupId, Payload, Stamp};
use core::time::Duration;
use wire::{IoError, Message, ReadOutcome, RepairOutcome, Slots, Span};

/// How often a patient repair is offered before it lets the write that waits for it look again: the block may need no
/// repair any more.
const OFFERS_MAX: u32 = 4;

/// Repairs one span at one member.
pub struct RepairOperation {
    group: GroupId,
    slot: u8,
    span: Span,
    good: Option<(Vec<Stamp>, Payload)>,
    is_patient: bool,
    offers: u32,
    attempt: u32,
}

impl RepairOperation {
    /// With content and stamps that are known.
    pub fn new(
        group: GroupId,
        slot: u8,
        span: Span,
        stamps: Vec<Stamp>,
        content: Payload,
    ) -> RepairOperation {
        RepairOperation { good: Some((stamps, content)), ..RepairOperation::from_row(group, slot, span) }
    }

    /// With what the rest of the rows says: of mirrors any other member, of parity layouts the code.
    pub fn from_row(group: GroupId, slot: u8, span: Span) -> RepairOperation {
        RepairOperation { group, slot, span, good: None, is_patient: false, offers: 0, attempt: 0 }
    }

    /// A write waits for it.
    #[must_use]
    pub fn patient(self) -> RepairOperation {
        RepairOperation { is_patient: true, ..self }
    }

    fn fetch(&mut self, shared: &mut Shared) {
        let geometry = shared.geometry(self.group);
        let excluded = Slots::one(self.slot);
        if let Some(source) = self.sole_source(shared) {
            return self.fetch_from(shared, source);
        }
        shared.begin(match is_mirrored(&geometry) {
            true => Operation::Read(ReadOperation::of_branch(self.group, self.span, excluded)),
            false => {
                let wanted = geometry.shard_at(self.span.lba, self.slot);
                let reconstruct = ReconstructOperation::new(self.group, self.span, wanted, excluded);
                Operation::Reconstruct(Box::new(reconstruct))
            }
        });
    }
}

impl RepairOperation {
    /// The one member to fetch a copy from, by the rules; the first time only.
    fn sole_source(&self, shared: &Shared) -> Option<u8> {
        let is_first = self.attempt == 0 && is_mirrored(&shared.geometry(self.group));
        let source = is_first.then(|| shared.rules.repair_source(&shared.view(self.group), self.slot));
        source.flatten()
    }

    fn fetch_from(&self, shared: &mut Shared, slot: u8) {
        let (view, group, span) = (shared.view(self.group), self.group, self.span);
        let width = width_at(&shared.geometry(group), span.lba, slot);
        shared.call(&view, slot, Payload::new(), |operation| Message::Read {
            operation,
            group,
            view: view.number,
            span,
            width,
            stamps: true,
            content: true,
            contest: None,
        });
        shared.wake_to_retry(self.attempt);
    }
}

impl Operate for RepairOperation {
    fn start(&mut self, shared: &mut Shared) -> Option<Outcome> {
        let view = shared.view(self.group);
        if !view.writers().has(self.slot) || (self.attempt > 3 && !self.is_patient) {
            return Some(Outcome::Changed);
        }
        let Some((stamps, content)) = self.good.clone() else {
            self.fetch(shared);
            return None;
        };
        let (group, span) = (self.group, self.span);
        let width = width_at(&shared.geometry(group), span.lba, self.slot);
        shared.call(&view, self.slot, content, |operation| Message::Repair {
            operation,
            group,
            view: view.number,
            span,
            width,
            stamps,
        });
        shared.wake_to_retry(self.attempt);
        None
    }

    fn on_answer(&mut self, shared: &mut Shared, _slot: u8, answer: Answer) -> Option<Outcome> {
        if let Answer::Read(ReadOutcome::Done { stamps, .. }, content) = answer {
            self.good = Some((stamps, content));
            return self.start(shared);
        }
        let Answer::Repaired(outcome) = answer else { return None };
        if outcome == RepairOutcome::Taken {
            shared.counters.count(Counter::RepairTakenByAMember);
            return Some(Outcome::Written);
        }
        if !self.is_patient || self.offers >= OFFERS_MAX {
            return Some(match outcome {
                RepairOutcome::NoSpace => Outcome::Failed(IoError::NoSpace),
                _ => Outcome::Changed,
            });
        }
        shared.counters.count(Counter::RepairRefusedAndOfferedAgain);
        self.good = None;
        self.offers += 1;
        shared.again_after(Duration::from_millis(1 << self.offers.min(5)))
    }

    fn on_child(&mut self, shared: &mut Shared, outcome: Outcome) -> Option<Outcome> {
        match outcome {
            Outcome::Read { content, stamps } => {
                self.good = Some((stamps, content));
                self.start(shared)
            }
            outcome => Some(outcome),
        }
    }

    fn on_timer(&mut self, shared: &mut Shared) -> Option<Outcome> {
        self.attempt += 1;
        shared.forget_calls();
        self.start(shared)
    }

    fn group(&self) -> GroupId {
        self.group
    }

    fn on_view(&mut self, _shared: &mut Shared) -> Option<Outcome> {
        Some(Outcome::Written)
    }
}
