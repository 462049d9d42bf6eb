//! Settling a write in doubt: any gateway may, whoever wrote it.
//!
//! A member that does not have the write refuses it for ever, durably; so either all members that can say have it,
//! then it may have been acknowledged and is committed, or it never can be, and is aborted. Both answers stay true.
//!
//! That holds of the members of the view under which the write was made. A gateway that has not heard of it may know members that were
//! left out, and do not know that: they refuse what was never sent to them. So a write that a brick has reported is not aborted
//! before that brick has answered, which it does under its own view only.

use crate::counters::Counter;
use crate::netraid::answer::{Answer, FromAnswer};
use crate::netraid::context::gates::Leaving;
use crate::netraid::members::participants;
use crate::netraid::operate::{Context, Operate, retry_delay};
use crate::netraid::outcome::{NoChild, OperationId, Progress, Settled};
use base::{BrickId, GroupId};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::{Fate, GroupView, Slots, Span, WriteId};

/// Begins to settle those of `writes` that hold up a reader of `span`, on behalf of the current operation; how many. Not
/// those of this gateway's own writers: they are at work on them.
pub(crate) fn settle_foreign(
    cx: &mut Context<'_>,
    group: GroupId,
    span: Span,
    writes: Vec<WriteId>,
) -> usize {
    let holds_up =
        |write: &WriteId| write.group == group && write.span.volume == span.volume && write.span.is_valid();
    let foreign: Vec<WriteId> =
        writes.into_iter().filter(|write| holds_up(write) && !cx.stamps.is_own(write.stamp)).collect();
    let count = foreign.len();
    foreign.into_iter().for_each(|write| cx.begin(SettleOperation::new(write)));
    count
}

/// How often members are asked on a report. Whoever reported the write may be dead, and nobody is to wait for it alone: every other
/// brick that has the write reports it each second, and is then the one to be waited for.
const REPORT_TRIES: u32 = 3;

/// Finds out and tells a write's fate.
pub(crate) struct SettleOperation {
    write: WriteId,
    asked: Slots,
    fates: BTreeMap<u8, Fate>,
    /// A member that told the writer that it does not take the write: newer writes there do not hide it.
    refused_by: Option<u8>,
    /// Who said that it is in doubt, without saying under which view.
    reported_by: Option<BrickId>,
    /// Whether the members that have it were asked again after another had no say.
    asked_again: bool,
    attempt: u32,
}

impl SettleOperation {
    pub(crate) fn new(write: WriteId) -> SettleOperation {
        SettleOperation {
            write,
            asked: Slots::default(),
            fates: BTreeMap::new(),
            refused_by: None,
            reported_by: None,
            asked_again: false,
            attempt: 0,
        }
    }

    /// Of this write, which the member at `slot` refused.
    pub(crate) fn refused(write: WriteId, slot: u8) -> SettleOperation {
        SettleOperation { refused_by: Some(slot), ..SettleOperation::new(write) }
    }

    /// Of this write, which `brick` reports.
    pub(crate) fn reported(write: WriteId, brick: BrickId) -> SettleOperation {
        SettleOperation { reported_by: Some(brick), ..SettleOperation::new(write) }
    }

    /// Whether the write is known to be of this view, or of an earlier one.
    fn is_of_view(&self, view: &GroupView) -> bool {
        self.reported_by
            .is_none_or(|brick| view.slot_of(brick).is_some_and(|slot| self.fates.contains_key(&slot)))
    }

    fn ask(&mut self, cx: &mut Context<'_>) -> Progress<Settled> {
        let view = cx.views.view(self.write.group);
        for slot in self.asked.iter().filter(|slot| !self.fates.contains_key(slot)) {
            cx.query(&view, slot, self.write, false);
        }
        Progress::WaitsFor(retry_delay(self.attempt))
    }

    fn decide(&mut self, cx: &mut Context<'_>) -> Progress<Settled> {
        let any = |fate| self.fates.values().any(|known| *known == fate);
        let all = self.asked.iter().all(|slot| self.fates.contains_key(&slot));
        if all && any(Fate::Prepared) && any(Fate::Unreadable) && !self.asked_again {
            // A member may have no say because a later write went over it: then this one was decided meanwhile, and
            // who had it before may not have it any more.
            self.asked_again = true;
            self.fates.retain(|_, fate| *fate != Fate::Prepared);
            return self.ask(cx);
        }
        let commit = match () {
            () if any(Fate::Committed) => true,
            () if any(Fate::Refused) && self.is_of_view(&cx.views.view(self.write.group)) => false,
            () if all => any(Fate::Prepared),
            () => return Progress::Waits,
        };
        cx.counters.count(if commit { Counter::WriteInDoubtCommitted } else { Counter::WriteInDoubtAborted });
        if !cx.stamps.is_own_writer(self.write.stamp) {
            cx.counters.count(Counter::InDoubtWriteSettledByAnotherGateway);
        }
        let view = cx.views.view(self.write.group);
        cx.decisions.decide(cx.now, &view, self.asked, &self.write, commit);
        Progress::Ended(if commit { Settled::Committed } else { Settled::Aborted })
    }
}

/// What a member says of the write: its fate there, or the view under which it would answer.
pub(crate) struct FateAnswer(Result<Fate, Option<GroupView>>);

impl FateAnswer {
    pub(crate) fn fate(self) -> Result<Fate, Option<GroupView>> {
        self.0
    }
}

impl FromAnswer for FateAnswer {
    fn from_answer(answer: Answer) -> Option<FateAnswer> {
        match answer {
            Answer::Fate(fate) => Some(FateAnswer(fate)),
            _ => None,
        }
    }
}

impl Operate for SettleOperation {
    type Answer = FateAnswer;
    type Child = NoChild;
    type Outcome = Settled;

    fn start(&mut self, cx: &mut Context<'_>) -> Progress<Settled> {
        cx.stamps.begin_settling(self.write.stamp);
        let view = cx.views.view(self.write.group);
        let geometry = cx.views.geometry(self.write.group);
        self.asked = participants(&geometry, view.writers(), &self.write);
        self.fates.clear();
        self.asked_again = false;
        let takes_part = |brick| view.slot_of(brick).is_some_and(|slot| self.asked.has(slot));
        if self.asked.is_empty() || !self.reported_by.is_none_or(takes_part) {
            return Progress::Ended(Settled::ByView);
        }
        self.ask(cx)
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: FateAnswer) -> Progress<Settled> {
        match answer.0 {
            Ok(fate) => {
                let refused = fate == Fate::Unreadable && self.refused_by == Some(slot);
                self.fates.insert(slot, if refused { Fate::Refused } else { fate });
                self.decide(cx)
            }
            Err(view) => {
                cx.on_stale(self.write.group, view);
                Progress::WaitsFor(Duration::from_millis(20 << self.attempt.min(5)))
            }
        }
    }

    fn on_child(&mut self, _: &mut Context<'_>, child: NoChild) -> Progress<Settled> {
        match child {}
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Progress<Settled> {
        self.attempt += 1;
        cx.forget_calls();
        if self.reported_by.is_some() && self.attempt > REPORT_TRIES {
            return Progress::Ended(Settled::ByView);
        }
        self.ask(cx)
    }

    fn group(&self) -> GroupId {
        self.write.group
    }

    /// The new view has settled it.
    fn on_view(&mut self, _: &mut Context<'_>) -> Progress<Settled> {
        Progress::Ended(Settled::ByView)
    }

    fn release(&self, _id: OperationId, left: &mut Leaving<'_>) {
        left.stamps.end_settling(self.write.stamp);
    }
}
