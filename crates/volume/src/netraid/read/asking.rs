//! Asks for a read whom the volume's policy names, and who else when that takes long.
//!
//! Whatever was asked, the first answer with content counts, and the gateway alone sees to it that there is one: a member
//! that left a read to another may forget it. So each wait ends, the last one with all asked anew ([`retry_delay`]).

use super::target::{Met, Target};
use crate::netraid::operate::{Context, retry_delay};
use crate::netraid::reconstruct::ReconstructOperation;
use base::{BrickId, Time};
use core::time::Duration;
use reads::distribute::policy::{Course, First, Members, Next, Part, Plan};
use reads::distribute::rescue;
use reads::distribute::row::Row;
use rules::counters::Counter;
use wire::{Contest, GroupView, Slots};

/// Who was asked for the content, and who may be asked yet.
pub(super) struct Asked {
    course: Course,
    /// What the second of two tied holders is asked.
    tie: Option<Contest>,
    /// When all is asked anew.
    retry_at: Time,
    /// Who is to withdraw the read, and who is asked when it has.
    moving: Option<(u8, u8)>,
}

impl Asked {
    /// Whether the member at `slot` was asked for the content.
    pub(super) fn has(&self, slot: u8) -> bool {
        self.course.asked.has(slot)
    }

    /// Whether somebody may still answer with the content.
    pub(super) fn is_empty(&self) -> bool {
        self.course.asked.is_empty()
    }

    /// The member at `slot` will not answer; whether another one may.
    pub(super) fn gives_up(&mut self, slot: u8) -> bool {
        let left = self.course.asked.without(slot);
        let may = self.has(slot) && !left.is_empty();
        if may {
            self.course.asked = left;
        }
        may
    }

    /// Asks whom the policy names, or has named where it is planned already, or the row, and says who was asked and how long
    /// to wait before somebody else is.
    pub(super) fn first(
        cx: &mut Context<'_>,
        target: &Target,
        met: &mut Met,
        view: &GroupView,
        (holders, planned): (&[(u8, BrickId)], Option<Plan>),
    ) -> (Asked, Duration) {
        let part = Part { id: cx.part_id(), address: target.address(), kind: target.kind(), holders };
        let usual = rescue::patience(cx.now, &part, cx.choice.load(), retry_delay(met.attempt));
        let policy = target.policy(cx);
        let patience = cx.choice.patience(policy, usual);
        let retry_at = cx.now + patience;
        let mut asked = Asked { course: Course::default(), tie: None, retry_at, moving: None };
        let row = row_of(cx, target, view);
        if !met.confirm && goes_around(cx, target, met, row.as_ref(), &part) {
            return (asked, patience);
        }
        let plan = asked.plan(cx, target, met, (&part, planned));
        let Some(Plan { first, wait }) = plan else { return (asked, patience) };
        let is_first = met.attempt == 0 && !met.confirm;
        let row_wait = row.filter(|_| is_first).map(|row| row.delay(cx.now, part.kind, cx.choice.load()));
        Question { cx, target, met, view }.put(&mut asked, &part, first);
        // What is slow now and then is expected to take long; an answer that was lost is noticed all the same.
        (asked, wait.or(row_wait).map_or(patience, |wait| wait.min(patience)))
    }

    /// The policy's plan for the first question; later one holder after the other, and one where others are to confirm.
    fn plan(
        &self,
        cx: &mut Context<'_>,
        target: &Target,
        met: &Met,
        (part, planned): (&Part<'_>, Option<Plan>),
    ) -> Option<Plan> {
        let policy = target.policy(cx);
        let slot = match met.attempt {
            0 if !met.confirm => return planned.or_else(|| cx.choice.first(policy, cx.now, part)),
            0 => cx.choice.one(policy, cx.now, part)?,
            // Who was asked before did not answer in time, whatever is known of it.
            again => {
                let ranked = rescue::ranked(cx.now, part, &self.course, cx.choice.load());
                ranked.get(again as usize % part.holders.len())?.0
            }
        };
        Some(Plan { first: First::One(slot), wait: None })
    }

    /// It takes long: someone else is asked as well, if there is anyone, or those that were asked may still answer; then
    /// for so long. `None` when all is to be asked anew.
    pub(super) fn further(
        &mut self,
        cx: &mut Context<'_>,
        target: &Target,
        met: &mut Met,
    ) -> Option<Duration> {
        let retry_at = self.retry_at + cx.patience();
        if cx.now >= retry_at {
            return None;
        }
        let left = retry_at.since(cx.now);
        let view = cx.views.view(target.group);
        if met.confirm || self.is_empty() {
            return self.waits_on(cx, &view).then_some(left);
        }
        if !met.has_stand_in && row_of(cx, target, &view).is_some() {
            cx.choice.traffic_mut().on_reconstruction();
            stand_in(cx, target, met);
            return Some(left);
        }
        let holders = target.holders(cx, &view, met.bad);
        let part =
            Part { id: cx.part_id(), address: target.address(), kind: target.kind(), holders: &holders };
        let policy = target.policy(cx);
        match cx.choice.next(policy, cx.now, &part, &self.course) {
            Next::Ask { slot, wait } => {
                cx.counters.count(Counter::ReadRescued);
                cx.choice.traffic_mut().on_rescue();
                Question { cx, target, met, view: &view }.directly(self, slot);
                Some(wait.min(left))
            }
            Next::Second(slot) => {
                self.course.second = None;
                let contest = self.tie.take();
                Question { cx, target, met, view: &view }.to(self, slot, contest);
                Some(left)
            }
            Next::Nothing => self.waits_on(cx, &view).then_some(left),
        }
    }

    /// The policy wants the read moved: the one that was asked is to withdraw it, if it alone was asked. Whether it is asked to.
    pub(super) fn moves(&mut self, cx: &mut Context<'_>, from: u8, to: u8) -> bool {
        let is_alone = self.moving.is_none() && self.course.asked == Members::one(from);
        let asks = is_alone && self.course.direct.has(from) && cx.call_back(from);
        if asks {
            self.moving = Some((from, to));
        }
        asks
    }

    /// The member at `slot` has withdrawn the read: the one that it was to be moved to is asked. Whether anybody may answer.
    pub(super) fn withdrawn(
        &mut self,
        cx: &mut Context<'_>,
        target: &Target,
        met: &Met,
        view: &GroupView,
        slot: u8,
    ) -> bool {
        self.course.asked = self.course.asked.without(slot);
        self.course.direct = self.course.direct.without(slot);
        if let Some((_, to)) = self.moving.take_if(|(from, _)| *from == slot) {
            cx.counters.count(Counter::ReadMovedToAnotherHolder);
            Question { cx, target, met, view }.directly(self, to);
        }
        !self.is_empty()
    }

    /// Whether those that were asked can still answer, and nobody else is left to ask.
    fn waits_on(&self, cx: &Context<'_>, view: &GroupView) -> bool {
        let is_up =
            |slot: u8| view.members.get(usize::from(slot)).is_some_and(|brick| cx.views.is_up(*brick));
        !self.is_empty() && self.course.asked.iter().all(is_up)
    }
}

/// For whom is asked, and of whom.
struct Question<'a, 'c> {
    cx: &'a mut Context<'c>,
    target: &'a Target,
    met: &'a Met,
    view: &'a GroupView,
}

impl Question<'_, '_> {
    fn put(&mut self, asked: &mut Asked, part: &Part<'_>, first: First) {
        match first {
            First::One(slot) => {
                self.directly(asked, slot);
                self.ask_witnesses(slot);
            }
            First::Contest { left_out, beside } => self.contend(asked, part, left_out, beside),
            First::Tied { first, second } => {
                let contest = self.contest(Slots::one(first).with(second), true);
                (asked.tie, asked.course.second) = (Some(contest), Some(second));
                self.to(asked, first, Some(contest));
            }
        }
    }

    /// Without a lease the others bear witness.
    fn ask_witnesses(&mut self, slot: u8) {
        if self.met.confirm {
            let others = self.target.witnesses(self.cx, self.view).without(slot);
            for other in others.iter() {
                self.target.ask(self.cx, self.view, self.met, (other, false), None);
            }
        }
    }

    fn contend(&mut self, asked: &mut Asked, part: &Part<'_>, left_out: Members, beside: Members) {
        let quick = part.holders.iter().map(|(slot, _)| *slot).filter(|slot| !left_out.has(*slot));
        let quick = quick.fold(Slots::default(), Slots::with);
        match quick.len() {
            1 => quick.iter().for_each(|slot| self.directly(asked, slot)),
            _ => {
                let contest = self.contest(quick, false);
                quick.iter().for_each(|slot| self.to(asked, slot, Some(contest)));
            }
        }
        if !left_out.is_empty() {
            self.cx.counters.count(Counter::ReadWentAroundASlowBrick);
        }
        beside.iter().for_each(|slot| self.to(asked, slot, None));
    }

    fn contest(&mut self, holders: Slots, tied: bool) -> Contest {
        Contest { number: self.cx.draw_number(), holders, tied }
    }

    /// Asks the member at `slot` to answer by itself.
    fn directly(&mut self, asked: &mut Asked, slot: u8) {
        asked.course.direct = asked.course.direct.with(slot);
        self.to(asked, slot, None);
    }

    fn to(&mut self, asked: &mut Asked, slot: u8, contest: Option<Contest>) {
        asked.course.asked = asked.course.asked.with(slot);
        self.target.ask(self.cx, self.view, self.met, (slot, true), contest);
    }
}

// ---- rows of parity layouts ----

/// The row whose other members can stand in for the one that has the content.
fn row_of(cx: &Context<'_>, target: &Target, view: &GroupView) -> Option<Row> {
    let layout = target.geometry(cx).layout();
    let can = layout.parity() > 0 && view.current.len() > layout.data();
    can.then(|| Row { members: members(view), needed: usize::from(layout.data()) })
}

/// Whether the others stand in for the one brick that has the content: it does not answer, or is expected to take so
/// much longer than they. It is asked as well, now and then where it is slow. Whichever answers first is taken.
fn goes_around(
    cx: &mut Context<'_>,
    target: &Target,
    met: &mut Met,
    row: Option<&Row>,
    part: &Part<'_>,
) -> bool {
    let Some(row) = row else { return false };
    let is_lost = met.attempt > 0 || part.holders.iter().all(|(_, brick)| !cx.views.is_up(*brick));
    let is_slow = !is_lost && row.is_faster(cx.now, part, cx.choice.load());
    if (is_lost || is_slow) && !met.has_stand_in {
        cx.counters.count(match is_lost {
            true => Counter::ReadWentAroundABrickThatDidNotAnswer,
            false => Counter::ReadWentAroundASlowBrick,
        });
        if is_slow {
            cx.choice.traffic_mut().on_reconstruction();
        }
        stand_in(cx, target, met);
    }
    let (now, load) = (cx.now, cx.choice.load_mut());
    is_slow && !part.holders.iter().any(|(_, brick)| load.is_look_due(now, *brick, part.kind))
}

fn stand_in(cx: &mut Context<'_>, target: &Target, met: &mut Met) {
    met.has_stand_in = true;
    let (group, span, wanted) = (target.group, target.span, target.data_index);
    let row = ReconstructOperation::new(group, span, wanted, Slots::default());
    cx.begin(row.seeing(target.sight(cx)));
}

fn members(view: &GroupView) -> Vec<(u8, BrickId)> {
    view.current.iter().filter_map(|slot| Some((slot, *view.members.get(usize::from(slot))?))).collect()
}
