//! Questions that are outstanding, and the numbers that name them.

use crate::distribute::pace::Kind;
use crate::netraid::answer::{Answer, CallId, Question};
use crate::netraid::outcome::OperationId;
use base::{BrickId, HashMap, Time};
use std::collections::BTreeSet;
use wire::{Message, Packet};

/// A question to a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) operation: OperationId,
    pub(crate) brick: BrickId,
    pub(crate) slot: u8,
    pub(crate) since: Time,
    question: Question,
    /// As what its answer's time counts; none where it is not measured.
    pub(crate) kind: Option<Kind>,
    /// Of several that were asked the same only one answers: silence says nothing.
    pub(crate) is_contested: bool,
}

impl Call {
    /// `message` to `brick`, the member at `slot`, on behalf of an operation.
    pub(crate) fn new(
        now: Time,
        operation: OperationId,
        (slot, brick): (u8, BrickId),
        message: &Message,
    ) -> Call {
        let is_contested = matches!(message, Message::Read { contest: Some(_), .. });
        let (question, kind) = (Question::of(message), Kind::of(message));
        Call { operation, brick, slot, since: now, question, kind, is_contested }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Of questions, operations and contests alike.
    last_number: u64,
    outstanding: HashMap<CallId, Call>,
    out: Vec<(BrickId, Packet)>,
}

impl Calls {
    /// A number that names nothing else.
    pub(crate) fn draw_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// A question goes out.
    pub(crate) fn begin(&mut self, id: CallId, call: Call, packet: Packet) {
        self.out.push((call.brick, packet));
        self.outstanding.insert(id, call);
    }

    /// The question is answered, or of no interest any more. `None` where it was so before.
    pub(crate) fn end(&mut self, id: CallId) -> Option<Call> {
        self.outstanding.remove(&id)
    }

    /// Whether `answer` answers another question than the one outstanding under its number: its sender does not keep to
    /// the protocol.
    pub(crate) fn is_crossed(&self, id: CallId, answer: &Answer) -> bool {
        self.outstanding.get(&id).is_some_and(|call| call.question != answer.question())
    }

    /// The operations that wait for an answer of `brick`.
    pub(crate) fn waiting_for(&self, brick: BrickId) -> BTreeSet<OperationId> {
        self.outstanding.values().filter(|call| call.brick == brick).map(|call| call.operation).collect()
    }

    /// The questions that were asked since the last time.
    pub(crate) fn take_out(&mut self) -> Vec<(BrickId, Packet)> {
        core::mem::take(&mut self.out)
    }
}
