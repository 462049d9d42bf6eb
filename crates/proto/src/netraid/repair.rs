//! Puts good content in place of blocks that a member could not read, or has an older version of. A member that has
//! something newer, or a write under way, refuses it: then it ends with [`Outcome::Changed`], otherwise with
//! [`Outcome::Written`].

use super::coordinator::{Answer, Operate, Operation, Outcome, Shared, width_at};
use super::read::{ReadOperation, is_mirrored};
use super::reconstruct::ReconstructOperation;
use base::{GroupId, Payload, Stamp};
use wire::{Message, Slots, Span};

/// Repairs one span at one member.
pub struct RepairOperation {
    group: GroupId,
    slot: u8,
    span: Span,
    good: Option<(Vec<Stamp>, Payload)>,
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
        RepairOperation { group, slot, span, good: Some((stamps, content)), attempt: 0 }
    }

    /// With what the rest of the rows, or another copy, says.
    pub fn from_row(group: GroupId, slot: u8, span: Span) -> RepairOperation {
        RepairOperation { group, slot, span, good: None, attempt: 0 }
    }
}

impl Operate for RepairOperation {
    fn start(&mut self, shared: &mut Shared) -> Option<Outcome> {
        let view = shared.view(self.group);
        if !view.writers().has(self.slot) || self.attempt > 3 {
            return Some(Outcome::Changed);
        }
        let geometry = shared.geometries[&self.span.volume];
        let Some((stamps, content)) = self.good.clone() else {
            let excluded = Slots::one(self.slot);
            shared.begin(if is_mirrored(&geometry) {
                Operation::Read(ReadOperation::new(self.group, self.span, 0, true).without(excluded))
            } else {
                let wanted = geometry.shard_at(self.span.lba, self.slot);
                let reconstruct = ReconstructOperation::new(self.group, self.span, wanted, excluded);
                Operation::Reconstruct(Box::new(reconstruct))
            });
            return None;
        };
        let (group, span) = (self.group, self.span);
        let width = width_at(&geometry, span.lba, self.slot);
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
        if !matches!(answer, Answer::Repaired(true)) {
            return Some(Outcome::Changed);
        }
        shared.counters.count("repair taken by a member");
        Some(Outcome::Written)
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
        Some(Outcome::Changed)
    }
}
