//! Going back to an older version (`log`): a read that meets a write waits for no decision. It takes what was there before, if the write
//! is not complete; a write is complete when all members that take part have it. (Kenchammana-Hosekote et al., section 2.2.2, *version*:
//! "If the versions the client gets are not consistent, then the client can read older versions until it has obtained a consistent set".)
//!
//! A brick has two versions of a block at the most: the one that is decided, in its place or in the journal, and a later one in the journal
//! that is not. The older one stands until the decision, so that no reader finds neither; the journal gives its space back when it is
//! moved to its place.
//!
//! Why the older one may be returned: a write is acknowledged when all have it, and a read returns it only when all have it. So if
//! one did not have it when it was asked, at that time it was neither acknowledged nor seen by anyone, and the read, which began before, comes
//! before it. Once all have it, all will go on having it until it is decided, and no answer can decide otherwise than for it: what a settler does
//! with the same answers ([`crate::netraid::settle`]).

use crate::counters::Counter;
use crate::netraid::members::{participants, width_at};
use crate::netraid::operate::{Context, Operate, retry_delay};
use crate::netraid::outcome::{Completeness, NoChild, Progress};
use crate::netraid::settle::FateAnswer;
use base::{GroupId, Payload};
use core::time::Duration;
use wire::{Fate, Message, Slots, WriteId};

/// Finds out whether a write that a member holds undecided is complete, and has it decided if it is. It changes nothing if not.
pub(crate) struct CompletenessOperation {
    write: WriteId,
    asked: Slots,
    have: Slots,
    attempt: u32,
}

type Looking = Progress<Completeness>;

impl CompletenessOperation {
    pub(crate) fn new(write: WriteId) -> CompletenessOperation {
        CompletenessOperation { write, asked: Slots::default(), have: Slots::default(), attempt: 0 }
    }

    fn ask(&mut self, cx: &mut Context<'_>) -> Looking {
        let (view, geometry) = (cx.views.view(self.write.group), cx.views.geometry(self.write.group));
        for slot in self.asked.iter().filter(|slot| !self.have.has(*slot)) {
            let (write, width) = (self.write, width_at(&geometry, self.write.span.lba, slot));
            cx.call(&view, slot, Payload::new(), |operation| Message::Query {
                operation,
                view: view.number,
                write,
                width,
                only_looks: true,
            });
        }
        Progress::WaitsFor(retry_delay(self.attempt))
    }

    /// All have it: whoever learns that may decide it.
    fn commit(&self, cx: &mut Context<'_>) -> Looking {
        cx.counters.count(Counter::WriteFoundCompleteByAReader);
        let view = cx.views.view(self.write.group);
        cx.decisions.decide(cx.now, &view, self.asked, &self.write, true);
        Progress::Ended(Completeness::Complete)
    }
}

impl Operate for CompletenessOperation {
    type Answer = FateAnswer;
    type Child = NoChild;
    type Outcome = Completeness;

    fn start(&mut self, cx: &mut Context<'_>) -> Looking {
        let (view, geometry) = (cx.views.view(self.write.group), cx.views.geometry(self.write.group));
        self.asked = participants(&geometry, view.writers(), &self.write);
        match self.asked.is_empty() {
            true => Progress::Ended(Completeness::Unknown),
            false => self.ask(cx),
        }
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: FateAnswer) -> Looking {
        match answer.fate() {
            Ok(Fate::Committed) => self.commit(cx),
            Ok(Fate::Prepared) => {
                self.have = self.have.with(slot);
                match self.asked.iter().all(|slot| self.have.has(slot)) {
                    true => self.commit(cx),
                    false => Progress::Waits,
                }
            }
            Ok(Fate::Absent | Fate::Refused) => Progress::Ended(Completeness::Incomplete),
            // Later writes have wiped its traces there.
            Ok(Fate::Unreadable) => Progress::Ended(Completeness::Unknown),
            Err(view) => {
                cx.on_stale(self.write.group, view);
                Progress::WaitsFor(Duration::from_millis(20 << self.attempt.min(5)))
            }
        }
    }

    fn on_child(&mut self, _: &mut Context<'_>, child: NoChild) -> Looking {
        match child {}
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Looking {
        self.attempt += 1;
        cx.forget_calls();
        self.ask(cx)
    }

    fn group(&self) -> GroupId {
        self.write.group
    }

    /// The new view has decided it, one way or the other.
    fn on_view(&mut self, _: &mut Context<'_>) -> Looking {
        Progress::Ended(Completeness::Unknown)
    }
}
