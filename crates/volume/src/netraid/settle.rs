//! Settling a write in doubt: any gateway may, whoever wrote it.
//!
//! A member that does not have the write refuses it for ever, durably; so either all members that can say have it,
//! then it may have been acknowledged and is committed, or it never can be, and is aborted. Both answers stay true.
//!
//! That holds of the members of the view under which the write was made. A gateway that has not heard of it may know members that were
//! left out, and do not know that: they refuse what was never sent to them. So a write that a brick has reported is not aborted
//! before that brick has answered, which it does under its own view only. If it is joining, another process of it may have reported, or the same one
//! with another disk: it refuses what was decided before it joined. Then a current member has to have answered as well.
//!
//! The view that freezes a branch has decided all writes in it. Who still reports one is another process of a member, or its word was long on its way.
//! Members may have moved the branch's blocks since, or given them back, and would refuse what was decided. So nothing is left to settle there.

use crate::netraid::answer::{Answer, FromAnswer};
use crate::netraid::context::gates::Leaving;
use crate::netraid::link::record_of;
use crate::netraid::members::participants;
use crate::netraid::operate::{Context, Operate, retry_delay};
use crate::netraid::outcome::{Child, OperationId, Outcome, Progress, Settled};
use base::{BrickId, GroupId};
use core::time::Duration;
use rules::counters::Counter;
use std::collections::BTreeMap;
use wire::{Fate, GroupView, Slots, Span, WriteId};

/// Begins to settle those of `writes` that hold up a reader of `span`, on behalf of the current operation; how many. Not
/// those of this gateway's own writers: they are at work on them. Nor those that have a record: their writer makes several writes before it is
/// through, and would have to begin anew with all. They are settled when bricks report them.
pub(crate) fn settle_foreign(
    cx: &mut Context<'_>,
    group: GroupId,
    span: Span,
    writes: Vec<WriteId>,
) -> usize {
    let holds_up =
        |write: &WriteId| write.group == group && write.span.volume == span.volume && write.span.is_valid();
    let is_foreign = |write: &WriteId| write.link.is_none() && !cx.stamps.is_own(write.stamp);
    let foreign: Vec<WriteId> =
        writes.into_iter().filter(|write| holds_up(write) && is_foreign(write)).collect();
    let count = foreign.len();
    foreign.into_iter().for_each(|write| cx.begin(SettleOperation::new(write)));
    count
}

/// How often members are asked on a report. Whoever reported the write may be dead, and nobody is to wait for it alone: every other
/// brick that has the write reports it each second, and is then the one to be waited for.
const REPORT_TRIES: u32 = 3;

/// How long a member is given to give up a record.
const CLEARED: Duration = Duration::from_millis(20);

/// Finds out and tells a write's fate.
pub(crate) struct SettleOperation {
    write: WriteId,
    asked: Slots,
    fates: BTreeMap<u8, Fate>,
    /// A member that told the writer that it does not take the write: newer writes there do not hide it.
    refused_by: Option<u8>,
    /// Who said that it is in doubt, without saying under which view.
    reported_by: Option<BrickId>,
    /// It is a record, asked for by those that it decides. It may have been made under an earlier view: so a member that joined since knows nothing of
    /// it, and all are heard.
    is_record: bool,
    /// Its own record is asked.
    asks_record: bool,
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
            is_record: false,
            asks_record: false,
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

    /// Of this record of others.
    pub(crate) fn record(write: WriteId) -> SettleOperation {
        SettleOperation { is_record: true, ..SettleOperation::new(write) }
    }

    /// Whether a refusal aborts the write: it is known to be of this view, or of an earlier one by which it is decided at all current members.
    fn may_abort(&self, view: &GroupView) -> bool {
        let has_answered = |slot: u8| self.fates.contains_key(&slot);
        let may_know = |slot: u8| view.current.has(slot) || view.current.iter().any(has_answered);
        let Some(brick) = self.reported_by else { return true };
        view.slot_of(brick).is_some_and(|slot| has_answered(slot) && may_know(slot))
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
        let is_refused = any(Fate::Refused);
        let commit = match () {
            () if any(Fate::Committed) => true,
            () if self.is_record && !all => return Progress::Waits,
            () if self.is_record && is_refused && any(Fate::Prepared) => return self.clear(cx),
            () if is_refused && self.may_abort(&cx.views.view(self.write.group)) => false,
            () if all && self.is_at_joining_alone(&cx.views.view(self.write.group)) => false,
            () if all && any(Fate::Prepared) => return self.on_all_prepared(cx),
            () if all => false,
            () => return Progress::Waits,
        };
        self.end(cx, commit)
    }

    /// Whether only joining members have it, and no current one can say. A joining member lacks what was written before it joined, and so takes a write
    /// that every current member refuses for being late. Such a write was acknowledged to nobody; or it was decided, newer ones went over it at the
    /// current members, and what a joining one still has of it is not needed. Of a part its record tells.
    fn is_at_joining_alone(&self, view: &GroupView) -> bool {
        let has_it = |(slot, fate): (&u8, &Fate)| view.current.has(*slot) && *fate == Fate::Prepared;
        let may_be_alone = !self.is_record && self.write.link.is_none();
        may_be_alone
            && self.fates.keys().any(|slot| view.current.has(*slot))
            && !self.fates.iter().any(has_it)
    }

    /// The record will not take effect. Others are about to rest on that, also after whoever refused it has died: so those that have it are to refuse it as
    /// well.
    fn clear(&mut self, cx: &mut Context<'_>) -> Progress<Settled> {
        let have = self.fates.iter().filter(|(_, fate)| **fate == Fate::Prepared);
        let have = have.fold(Slots::default(), |have, (slot, _)| have.with(*slot));
        let view = cx.views.view(self.write.group);
        cx.decisions.decide(cx.now, &view, have, &self.write, false);
        self.fates.retain(|_, fate| *fate != Fate::Prepared);
        Progress::WaitsFor(CLEARED)
    }

    /// All that can say have it: it takes effect, if its record does.
    fn on_all_prepared(&mut self, cx: &mut Context<'_>) -> Progress<Settled> {
        let Some(link) = self.write.link.filter(|_| cx.rules.asks_the_record()) else {
            return self.end(cx, true);
        };
        cx.counters.count(Counter::RecordAskedByASettler);
        cx.forget_calls();
        self.asks_record = true;
        let geometry = cx.views.geometry(self.write.group);
        cx.begin(SettleOperation::record(record_of(&geometry, self.write.span.volume, link)));
        Progress::Sleeps
    }

    fn end(&mut self, cx: &mut Context<'_>, commit: bool) -> Progress<Settled> {
        cx.counters.count(if commit { Counter::WriteInDoubtCommitted } else { Counter::WriteInDoubtAborted });
        if !cx.stamps.is_own_writer(self.write.stamp) {
            cx.counters.count(Counter::InDoubtWriteSettledByAnotherGateway);
        }
        let view = cx.views.view(self.write.group);
        cx.decisions.decide(cx.now, &view, self.asked, &self.write, commit);
        Progress::Ended(if commit { Settled::Committed } else { Settled::Aborted })
    }
}

/// What became of the record; `None` where nobody is known here who could say.
pub(crate) struct OfRecord(Option<Settled>);

impl Child for OfRecord {
    fn from_outcome(outcome: Outcome) -> Option<OfRecord> {
        match outcome {
            Outcome::Settled(settled) => Some(OfRecord(Some(settled))),
            Outcome::Gone(_) => Some(OfRecord(None)),
            _ => None,
        }
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
    type Child = OfRecord;
    type Outcome = Settled;

    fn start(&mut self, cx: &mut Context<'_>) -> Progress<Settled> {
        cx.stamps.begin_settling(self.write.stamp);
        let view = cx.views.view(self.write.group);
        let geometry = cx.views.geometry(self.write.group);
        self.asked = participants(&geometry, view.writers(), &self.write);
        self.fates.clear();
        self.asked_again = false;
        self.asks_record = false;
        if self.is_record && view.current.is_empty() {
            return cx.again_after(Duration::from_millis(100));
        }
        // A record is asked for by parts in other groups, whose views may be older.
        if !self.is_record && !view.lineage.is_head(self.write.span.volume) {
            return Progress::Ended(Settled::ByView);
        }
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

    fn on_child(&mut self, cx: &mut Context<'_>, child: OfRecord) -> Progress<Settled> {
        match child.0 {
            Some(Settled::Committed) => self.end(cx, true),
            Some(Settled::Aborted) => self.end(cx, false),
            // A brick knows its own groups only.
            Some(Settled::ByView) | None => Progress::Ended(Settled::ByView),
        }
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Progress<Settled> {
        if self.asks_record {
            return Progress::Sleeps;
        }
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

    /// The new view has settled it; what it did with a record its members are asked.
    fn on_view(&mut self, cx: &mut Context<'_>) -> Progress<Settled> {
        if self.is_record {
            cx.forget_calls();
            return self.start(cx);
        }
        Progress::Ended(Settled::ByView)
    }

    fn release(&self, _id: OperationId, left: &mut Leaving<'_>) {
        left.stamps.end_settling(self.write.stamp);
    }
}
