//! Reads that count on no clock: what was read counts once other members have said, after it was asked for, that the view is still in force.
//!
//! A brick answers reads under a lease, which ends by its own clock. If that clock stands while the machine is paused, and so does the clock of
//! whoever asked, neither notices that the lease has ended, and that others were written to without them. So such a read is answered only when
//! [`enough`] writers of the view have said, after the read was asked, that they have promised no later one.
//!
//! *Why that is enough.* Let the group have `n` members, of which its layout can lack `t`, and the view `w` writers: current members, and those
//! that join. A later view has at least `n - t` current members. Each of them is a writer of this view and has promised the later one before that is in force, except
//! for those that have lost their disks, which know no view and confirm none. So of any `w - (n - t) + 1` writers that confirm, one would have
//! promised. As none has, no later view was in force when the read was asked: the member that answered was current then, and a current member has all that was
//! acknowledged.
//!
//! *What it costs.* One round of questions serves all reads of the group that were asked before it began: as many small questions and answers as
//! are enough, beside the reads. Of mirrors all writers are enough, since any one of them could be the only member of a later view; of `rs-4+2`
//! with six members three are.

use super::answer::ReadAnswer;
use super::context::gates::Leaving;
use super::operate::{BlocksWanted, Context, Operate, Planned, Unplanned, retry_delay};
use super::outcome::{NoChild, OperationId, Progress, Released};
use base::{GroupId, VolumeId};
use code::Computed;
use core::time::Duration;
use rules::counters::Counter;
use wire::{GroupView, ReadOutcome, Slots, Span};

/// How many writers of a view are to confirm it.
fn enough(cx: &Context<'_>, view: &GroupView) -> u8 {
    let tolerates = cx.views.geometry(view.group).layout().tolerates();
    let least = (view.members.len() as u8).saturating_sub(tolerates);
    cx.rules.confirmations((view.writers().len() + 1).saturating_sub(least).max(1))
}

/// An operation whose end counts only once the view is confirmed.
pub struct Confirmed<T: Operate> {
    inner: T,
    is_confirmed: bool,
    /// What it came to, while that is not confirmed.
    held: Option<T::Outcome>,
}

impl<T: Operate> Confirmed<T> {
    pub fn new(inner: T) -> Confirmed<T> {
        Confirmed { inner, is_confirmed: false, held: None }
    }

    /// What the operation does, unless it has ended.
    fn step(
        &mut self,
        cx: &mut Context<'_>,
        step: impl FnOnce(&mut T, &mut Context<'_>) -> Progress<T::Outcome>,
    ) -> Progress<T::Outcome> {
        if self.held.is_some() {
            return Progress::Waits;
        }
        match step(&mut self.inner, cx) {
            Progress::Ended(outcome) if !self.is_confirmed => {
                cx.forget_calls();
                cx.let_go();
                self.held = Some(outcome);
                Progress::Sleeps
            }
            progress => progress,
        }
    }
}

impl<T: Operate> Operate for Confirmed<T> {
    type Answer = T::Answer;
    type Child = T::Child;
    type Outcome = T::Outcome;

    fn to_plan(&mut self, cx: &mut Context<'_>) -> Option<Unplanned> {
        self.inner.to_plan(cx)
    }

    fn on_plan(&mut self, planned: Planned) {
        self.inner.on_plan(planned);
    }

    fn start(&mut self, cx: &mut Context<'_>) -> Progress<T::Outcome> {
        cx.want_confirmed(self.inner.group());
        self.step(cx, T::start)
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: T::Answer) -> Progress<T::Outcome> {
        self.step(cx, |inner, cx| inner.on_answer(cx, slot, answer))
    }

    fn on_child(&mut self, cx: &mut Context<'_>, child: T::Child) -> Progress<T::Outcome> {
        self.step(cx, |inner, cx| inner.on_child(cx, child))
    }

    fn on_computed(&mut self, cx: &mut Context<'_>, made: Computed) -> Progress<T::Outcome> {
        self.step(cx, |inner, cx| inner.on_computed(cx, made))
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Progress<T::Outcome> {
        self.step(cx, T::on_timer)
    }

    fn on_moved(&mut self, cx: &mut Context<'_>, from: u8, to: u8) -> Progress<T::Outcome> {
        self.step(cx, |inner, cx| inner.on_moved(cx, from, to))
    }

    fn on_withdrawn(&mut self, cx: &mut Context<'_>, slot: u8) -> Progress<T::Outcome> {
        self.step(cx, |inner, cx| inner.on_withdrawn(cx, slot))
    }

    /// What was read under the view before may be old.
    fn on_view(&mut self, cx: &mut Context<'_>) -> Progress<T::Outcome> {
        (self.is_confirmed, self.held) = (false, None);
        cx.want_confirmed(self.inner.group());
        self.step(cx, T::on_view)
    }

    fn on_turn(&mut self, _: &mut Context<'_>) -> Progress<T::Outcome> {
        self.is_confirmed = true;
        self.held.take().map_or(Progress::Waits, Progress::Ended)
    }

    fn group(&self) -> GroupId {
        self.inner.group()
    }

    fn volume(&self) -> Option<VolumeId> {
        self.inner.volume()
    }

    fn release(&self, id: OperationId, left: &mut Leaving<'_>) {
        left.confirmations.leave(self.inner.group(), id);
        self.inner.release(id, left);
    }
}

/// When the other writers are asked as well, where not all had to be.
const OTHERS_AFTER: Duration = Duration::from_millis(20);
const SOON: Duration = Duration::from_millis(10);

/// A round of questions whether a group's view is in force, and the next ones, for as long as reads wait for one.
pub(crate) struct ConfirmOperation {
    group: GroupId,
    confirmed: Slots,
    /// Who is not asked yet.
    others: Slots,
    /// Who knows no such view: a brick that lags, or does not stand.
    refused: Slots,
    /// Who had not confirmed when it was enough: they are asked last.
    late: Slots,
    attempt: u32,
}

impl ConfirmOperation {
    pub(crate) fn new(group: GroupId) -> ConfirmOperation {
        let none = Slots::default();
        ConfirmOperation { group, confirmed: none, others: none, refused: none, late: none, attempt: 0 }
    }

    /// Asks as many writers as are enough.
    fn ask(&mut self, cx: &mut Context<'_>) -> Progress<Released> {
        cx.counters.count(Counter::ViewAskedToBeConfirmedForReads);
        let view = cx.views.view(self.group);
        let is_up =
            |slot: u8| view.members.get(usize::from(slot)).is_some_and(|brick| cx.views.is_up(*brick));
        let mut slots: Vec<u8> = view.writers().iter().collect();
        slots.sort_by_key(|slot| (!is_up(*slot), self.late.has(*slot)));
        let count = usize::from(enough(cx, &view)).min(slots.len());
        self.others = slots.split_off(count).into_iter().fold(Slots::default(), Slots::with);
        (self.confirmed, self.refused) = (Slots::default(), Slots::default());
        slots.into_iter().for_each(|slot| self.ask_one(cx, &view, slot));
        Progress::WaitsFor(if self.others.is_empty() { retry_delay(self.attempt) } else { OTHERS_AFTER })
    }

    fn ask_one(&self, cx: &mut Context<'_>, view: &GroupView, slot: u8) {
        let span = Span { volume: view.volume, lba: 0, count: 1 };
        cx.read(view, slot, BlocksWanted::decided(span, false, false));
    }

    fn ask_others(&mut self, cx: &mut Context<'_>, view: &GroupView) -> Progress<Released> {
        core::mem::take(&mut self.others).iter().for_each(|slot| self.ask_one(cx, view, slot));
        Progress::WaitsFor(retry_delay(self.attempt))
    }

    /// A member knows no such view, and none that is later: others may be enough.
    fn on_refused(&mut self, cx: &mut Context<'_>, slot: u8) -> Progress<Released> {
        self.refused = self.refused.with(slot);
        self.late = self.late.with(slot);
        let view = cx.views.view(self.group);
        let may_confirm = Slots(view.writers().0 & !self.refused.0).len();
        if may_confirm < enough(cx, &view) {
            return cx.again_after(SOON);
        }
        if self.others.is_empty() { Progress::Waits } else { self.ask_others(cx, &view) }
    }

    /// Asks for all who wait by now.
    fn ask_anew(&mut self, cx: &mut Context<'_>) -> Progress<Released> {
        cx.forget_calls();
        match cx.confirms_anew(self.group) {
            true => self.ask(cx),
            false => Progress::Ended(Released),
        }
    }
}

impl Operate for ConfirmOperation {
    type Answer = ReadAnswer;
    type Child = NoChild;
    type Outcome = Released;

    fn start(&mut self, cx: &mut Context<'_>) -> Progress<Released> {
        self.ask(cx)
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: ReadAnswer) -> Progress<Released> {
        match answer.outcome {
            ReadOutcome::Done { .. } => {
                self.confirmed = self.confirmed.with(slot);
                let view = cx.views.view(self.group);
                if self.confirmed.len() < enough(cx, &view) {
                    return Progress::Waits;
                }
                self.late = Slots(view.writers().0 & !self.confirmed.0 & !self.others.0);
                self.attempt = 0;
                cx.forget_calls();
                match cx.confirmed(self.group, view.number) {
                    true => self.ask(cx),
                    false => Progress::Ended(Released),
                }
            }
            ReadOutcome::Stale { view } => {
                let before = cx.views.view(self.group).number;
                cx.on_stale(self.group, view);
                match cx.views.view(self.group).number == before {
                    true => self.on_refused(cx, slot),
                    // It begins anew with that one.
                    false => Progress::Waits,
                }
            }
            _ => Progress::Waits,
        }
    }

    fn on_child(&mut self, _: &mut Context<'_>, child: NoChild) -> Progress<Released> {
        match child {}
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Progress<Released> {
        if !self.others.is_empty() {
            let view = cx.views.view(self.group);
            return self.ask_others(cx, &view);
        }
        self.attempt += 1;
        self.ask_anew(cx)
    }

    fn on_view(&mut self, cx: &mut Context<'_>) -> Progress<Released> {
        (self.attempt, self.others, self.late) = (0, Slots::default(), Slots::default());
        self.ask_anew(cx)
    }

    fn group(&self) -> GroupId {
        self.group
    }

    fn release(&self, _: OperationId, left: &mut Leaving<'_>) {
        left.confirmations.end(self.group);
    }
}
