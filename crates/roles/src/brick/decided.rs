//! Whether writes are decided here, on stable storage: then no restart brings them back as in doubt. Gateways ask it before they write over the
//! record by which such writes go (`netraid::context::links`).

use super::tokens::Asker;
use super::{Brick, BrickEffect, reply};
use base::{GroupId, HashMap, NodeId, ViewNumber};
use wire::disk::{Command, Token};
use wire::{Message, OPERATIONS_MAX, WriteId};

/// More questions than this are not answered while the disks are busy with so many.
const WAITING_MAX: usize = 1024;

/// A question that waits for the disks.
#[derive(Debug)]
struct Waiting {
    from: NodeId,
    operation: u64,
    /// The disks that have still to answer.
    left: usize,
    durable: bool,
}

/// The questions that wait.
#[derive(Debug, Default)]
pub(super) struct Decided {
    waiting: HashMap<Token, Waiting>,
    serial: u64,
}

impl Brick {
    pub(super) fn on_are_decided(
        &mut self,
        from: NodeId,
        operation: u64,
        (group, view): (GroupId, ViewNumber),
        mut writes: Vec<WriteId>,
        fx: &mut Vec<BrickEffect>,
    ) {
        if let Err(view) = self.groups.takes(group, view) {
            return reply(fx, from, Message::AreDecidedDone { operation, undecided: Err(view) });
        }
        writes.truncate(OPERATIONS_MAX);
        writes.retain(|write| write.span.is_valid());
        writes.retain(|write| self.participants[self.place_of(write.span)].is_undecided(write));
        if !writes.is_empty() {
            return reply(fx, from, Message::AreDecidedDone { operation, undecided: Ok(writes) });
        }
        if self.decided.waiting.len() >= WAITING_MAX {
            return;
        }
        self.decided.serial += 1;
        let (token, left) = (Asker::Decided.token(self.decided.serial), self.participants.len());
        self.decided.waiting.insert(token, Waiting { from, operation, left, durable: true });
        for disk in 0..left {
            fx.push(BrickEffect::Store { disk, command: Command::Barrier { token } });
        }
    }

    /// A disk has all that was decided before the question. One that failed has not: whoever asked asks again.
    pub(super) fn on_decided_barrier(&mut self, token: Token, durable: bool, fx: &mut Vec<BrickEffect>) {
        let Some(waiting) = self.decided.waiting.get_mut(&token) else { return };
        waiting.left -= 1;
        waiting.durable &= durable;
        if waiting.left > 0 {
            return;
        }
        let Waiting { from, operation, durable, .. } =
            self.decided.waiting.remove(&token).expect("just seen");
        if durable {
            reply(fx, from, Message::AreDecidedDone { operation, undecided: Ok(Vec::new()) });
        }
    }
}
