//! Questions that are outstanding, and the numbers that name them.

use super::charges::Charge;
use crate::netraid::answer::{Answer, CallId, Question};
use crate::netraid::outcome::OperationId;
use base::{BrickId, HashMap, Time};
use core::time::Duration;
use reads::distribute::pace::Kind;
use reads::distribute::policy;
use reads::seat::NOTICE_EVERY;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Message, OPERATIONS_MAX, Packet};

/// A question to a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) operation: OperationId,
    pub(crate) brick: BrickId,
    pub(crate) slot: u8,
    since: Time,
    /// Of the time since then it has waited for its turn for so long, as far as the member has said.
    excused: Duration,
    /// When the member said last that it waits.
    told: Option<Time>,
    question: Question,
    /// As what its answer's time counts; none where it is not measured.
    pub(crate) kind: Option<Kind>,
    /// What is read, as policies know it; none of other questions.
    pub(crate) address: Option<u64>,
    /// Of several that were asked the same only one answers: silence says nothing.
    pub(crate) is_contested: bool,
    /// Whether the member was asked to withdraw it.
    is_called_back: bool,
    /// What it costs its stream; none where it leads to no access of a disk.
    pub(crate) charge: Option<Charge>,
}

impl Call {
    /// `message` to `brick`, the member at `slot`, on behalf of an operation.
    pub(crate) fn new(
        now: Time,
        operation: OperationId,
        (slot, brick): (u8, BrickId),
        (message, charge): (&Message, Option<Charge>),
    ) -> Call {
        let is_contested = matches!(message, Message::Read { contest: Some(_), .. });
        let (question, kind) = (Question::of(message), Kind::of(message));
        let address = match message {
            Message::Read { content: true, span, .. } => Some(policy::address(span)),
            _ => None,
        };
        Call {
            operation,
            brick,
            slot,
            since: now,
            excused: Duration::ZERO,
            told: None,
            question,
            kind,
            address,
            is_contested,
            is_called_back: false,
            charge,
        }
    }

    /// What was asked, and when. For people.
    pub(crate) fn describe(&self, id: CallId, now: Time) -> String {
        let Call { brick, question, .. } = self;
        let since = now.since(self.since);
        let waits = if self.told.is_some() { ", which says that it waits for its turn" } else { "" };
        format!("asked {brick} {since:.1?} ago ({question:?}, operation {}){waits}", id.0)
    }

    /// From when on its time counts: as if it had been asked later by as much as it has waited for its turn.
    pub(crate) fn counts_from(&self) -> Time {
        self.since + self.excused
    }

    /// The member says that it waited for its turn for so long: no longer than it has lasted, whatever is said.
    pub(crate) fn excuse(&mut self, now: Time, turn: Duration) {
        self.excused = self.excused.max(turn.min(now.since(self.since)));
    }

    /// For how long it has waited for its turn, as far as the member has said.
    pub(crate) fn excused(&self) -> Duration {
        self.excused
    }

    /// The same of a question that is not answered: as long as the member's word holds that it waits, it waits.
    pub(crate) fn excused_by(&self, now: Time) -> Duration {
        let is_waiting = self.waits_until().is_some_and(|until| now < until);
        if is_waiting { now.since(self.since) } else { self.excused }
    }

    /// Until when the member's word that it waits holds.
    fn waits_until(&self) -> Option<Time> {
        self.told.map(|told| told + NOTICE_KEPT)
    }
}

/// How long the word of a member that a question waits is taken for true: it says so again before that.
const NOTICE_KEPT: Duration = Duration::from_millis(3 * NOTICE_EVERY.as_millis() as u64);

#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Of questions, operations and contests alike.
    last_number: u64,
    outstanding: HashMap<CallId, Call>,
    out: Vec<(BrickId, Packet)>,
    /// Questions to be called off.
    cancelled: BTreeMap<BrickId, Vec<u64>>,
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

    /// The question, while it is outstanding.
    pub(crate) fn get(&self, id: CallId) -> Option<&Call> {
        self.outstanding.get(&id)
    }

    /// `brick` says that the question waits for its turn: the call before and now.
    pub(crate) fn on_waiting(&mut self, now: Time, brick: BrickId, id: CallId) -> Option<(Call, Call)> {
        let call = self.outstanding.get_mut(&id).filter(|call| call.brick == brick)?;
        let before = *call;
        call.excuse(now, now.since(call.since));
        call.told = Some(now);
        Some((before, *call))
    }

    /// Until when all these questions wait for their turn, as far as is known now; `None` where one may be at work.
    pub(crate) fn wait_until(&self, now: Time, ids: &[CallId]) -> Option<Time> {
        let each = ids.iter().filter_map(|id| self.outstanding.get(id)).map(Call::waits_until);
        let until = each.reduce(|all, one| Some(all?.min(one?))).flatten();
        until.filter(|until| now < *until)
    }

    /// Nobody waits for the answer to a question any more: the brick need not begin with it. (Reads of content alone: others cost
    /// the disk less than the message. Of contested ones, who does not serve it has dropped it by itself.)
    pub(crate) fn call_off(&mut self, id: CallId, call: &Call) {
        let is_content = call.question == Question::Read && call.kind.is_some();
        if is_content && !call.is_contested {
            self.cancelled.entry(call.brick).or_default().push(id.0);
        }
    }

    /// A question is to be withdrawn, if its brick has not begun with it; its answer is waited for all the same.
    pub(crate) fn call_back(&mut self, id: CallId) {
        if let Some(call) = self.outstanding.get_mut(&id) {
            call.is_called_back = true;
            let call = *call;
            self.call_off(id, &call);
        }
    }

    /// `brick` has withdrawn a question that it was asked back: it is outstanding no more. `None` for any other, whatever a brick says.
    pub(crate) fn withdrawn(&mut self, brick: BrickId, id: CallId) -> Option<Call> {
        self.outstanding.get(&id).filter(|call| call.brick == brick && call.is_called_back)?;
        self.outstanding.remove(&id)
    }

    /// The operations that wait for an answer of `brick`.
    pub(crate) fn waiting_for(&self, brick: BrickId) -> BTreeSet<OperationId> {
        self.outstanding.values().filter(|call| call.brick == brick).map(|call| call.operation).collect()
    }

    /// The questions that were called off or asked since the last time.
    pub(crate) fn take_out(&mut self) -> Vec<(BrickId, Packet)> {
        let mut out = Vec::new();
        for (brick, operations) in core::mem::take(&mut self.cancelled) {
            let cancels =
                operations.chunks(OPERATIONS_MAX).map(|some| Message::Cancel { operations: some.to_vec() });
            out.extend(cancels.map(|cancel| (brick, cancel.into())));
        }
        out.append(&mut self.out);
        out
    }
}
