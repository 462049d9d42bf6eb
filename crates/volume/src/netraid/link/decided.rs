//! Whether writes of a group are decided on stable storage, at all members that take writes; those that are not are settled.

use crate::netraid::answer::{Answer, FromAnswer};
use crate::netraid::operate::{Context, Operate, retry_delay};
use crate::netraid::outcome::{AllDecided, Child, Outcome, Progress};
use crate::netraid::settle::SettleOperation;
use base::{GroupId, Payload};
use core::time::Duration;
use wire::{GroupView, Message, Slots, WriteId};

/// How often members are asked before it is left to a later try: a group may be away for long.
const TRIES: u32 = 6;

/// How long a settler's decisions are given to reach the members.
const TOLD: Duration = Duration::from_millis(50);

/// Asks all members, and settles what is in doubt, until nothing is or it takes too long.
pub(super) struct DecidedOperation {
    group: GroupId,
    writes: Vec<WriteId>,
    answered: Slots,
    attempt: u32,
}

/// Those that are undecided, or the view under which the member would answer.
pub(crate) struct Undecided(Result<Vec<WriteId>, Option<GroupView>>);

impl FromAnswer for Undecided {
    fn from_answer(answer: Answer) -> Option<Undecided> {
        match answer {
            Answer::Undecided(undecided) => Some(Undecided(undecided)),
            _ => None,
        }
    }
}

/// What became of one of the writes; whatever it is, the members are asked again.
pub(crate) struct SettledOne;

impl Child for SettledOne {
    fn from_outcome(outcome: Outcome) -> Option<SettledOne> {
        matches!(outcome, Outcome::Settled(_)).then_some(SettledOne)
    }
}

impl DecidedOperation {
    /// Of these writes of one group.
    pub(super) fn new(group: GroupId, writes: Vec<WriteId>) -> DecidedOperation {
        DecidedOperation { group, writes, answered: Slots::default(), attempt: 0 }
    }

    fn ask(&mut self, cx: &mut Context<'_>) -> Progress<AllDecided> {
        let view = cx.views.view(self.group);
        let left: Vec<u8> = view.writers().iter().filter(|slot| !self.answered.has(*slot)).collect();
        if left.is_empty() && !view.current.is_empty() {
            return Progress::Ended(AllDecided::Yes);
        }
        if self.attempt >= TRIES {
            return Progress::Ended(AllDecided::Unknown);
        }
        for slot in left {
            let (group, view_number, writes) = (self.group, view.number, self.writes.clone());
            cx.call(&view, slot, Payload::new(), |operation| Message::AreDecided {
                operation,
                group,
                view: view_number,
                writes,
            });
        }
        Progress::WaitsFor(retry_delay(self.attempt))
    }
}

impl Operate for DecidedOperation {
    type Answer = Undecided;
    type Child = SettledOne;
    type Outcome = AllDecided;

    fn start(&mut self, cx: &mut Context<'_>) -> Progress<AllDecided> {
        // A member that the new view has is asked as well. It has none of these writes, but who was in its place may have had.
        self.answered = Slots::default();
        self.ask(cx)
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: Undecided) -> Progress<AllDecided> {
        match answer.0 {
            Ok(undecided) if undecided.is_empty() => {
                self.answered = self.answered.with(slot);
                let writers = cx.views.view(self.group).writers();
                match writers.and(self.answered) == writers {
                    true => Progress::Ended(AllDecided::Yes),
                    false => Progress::Waits,
                }
            }
            Ok(undecided) => {
                let own = undecided.into_iter().filter(|write| self.writes.contains(write));
                for write in own.filter(|write| cx.stamps.is_left(write.stamp)).collect::<Vec<_>>() {
                    cx.begin(SettleOperation::new(write));
                }
                Progress::WaitsFor(TOLD)
            }
            Err(view) => {
                cx.on_stale(self.group, view);
                Progress::WaitsFor(TOLD)
            }
        }
    }

    fn on_child(&mut self, _: &mut Context<'_>, _: SettledOne) -> Progress<AllDecided> {
        Progress::WaitsFor(TOLD)
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Progress<AllDecided> {
        self.attempt += 1;
        cx.forget_calls();
        self.ask(cx)
    }

    fn group(&self) -> GroupId {
        self.group
    }
}
