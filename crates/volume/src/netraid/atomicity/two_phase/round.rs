//! Phase one at the coordinator: members are asked to put a write on stable storage, each its leg. When all have, the write
//! is decided; the members are told at leisure.

use crate::netraid::operate::{Context, retry_delay};
use crate::netraid::order::writer::Way;
use crate::netraid::path::gw::{Leg, Legs};
use base::{GroupId, RequestId, Time};
use core::ops::Range;
use core::time::Duration;
use reads::distribute::rescue;
use rules::median::{lower_median, upper_median};
use std::collections::BTreeMap;
use wire::{GroupView, Message, Order, Slots, WriteId};

/// The client's request that a write is part of.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    pub request: RequestId,
    /// The client never asks again below this.
    pub floor: u64,
    /// Which part of the request.
    pub part: u64,
}

/// What one member was asked, and whether it is prepared.
struct Vote {
    leg: Leg,
    /// When it was asked first.
    sent: Option<Time>,
    /// How long questions that were answered or given up since had waited for their turn.
    excused: Duration,
    /// How long it took until it was prepared.
    took: Option<Duration>,
}

/// What a member's word that it is prepared means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Prepared {
    /// It said so before.
    Known,
    First,
    /// It tells what the others are to be sent.
    WithDelta,
}

/// The members that take part, and how often they were asked again.
pub(crate) struct Round {
    votes: BTreeMap<u8, Vote>,
    way: Way,
    /// What members do with the write where it meets another one.
    order: Order,
    attempt: u32,
}

impl Vote {
    fn of(leg: Leg) -> Vote {
        Vote { leg, sent: None, excused: Duration::ZERO, took: None }
    }

    /// How long the questions to the member at `slot`, whose vote this is, have waited for their turn.
    fn waited(&self, cx: &Context<'_>, slot: u8) -> Duration {
        self.excused + cx.excused_at(slot)
    }

    /// For how much of the time they waited for it; they wait before they are answered.
    fn waited_within(&self, cx: &Context<'_>, slot: u8, time: Range<Time>) -> Duration {
        let Some(sent) = self.sent else { return Duration::ZERO };
        (sent + self.waited(cx, slot)).min(time.end).since(sent.max(time.start))
    }
}

impl Round {
    /// Of these legs, asked in this way.
    pub(crate) fn of(legs: Legs, way: Way, order: Order) -> Round {
        let mut round = Round { votes: BTreeMap::new(), way, order, attempt: 0 };
        round.add(legs);
        round
    }

    /// Asks those that are not prepared yet and whose turn it is; those asked before once more. How long to wait for them.
    pub(crate) fn ask(&mut self, cx: &mut Context<'_>, write: WriteId, origin: Origin) -> Duration {
        let view = cx.views.view(write.group);
        let left = self.votes.iter().filter(|(_, vote)| vote.took.is_none()).map(|(slot, _)| *slot);
        let turn = left.min_by_key(|slot| view.members[usize::from(*slot)]);
        let has_begun = self.votes.values().any(|vote| vote.took.is_some());
        let is_asked = |slot: u8| match self.way {
            Way::Together => true,
            Way::FirstAlone if has_begun => true,
            Way::FirstAlone | Way::InTurn => Some(slot) == turn,
        };
        let unprepared = self.votes.iter_mut().filter(|(_, vote)| vote.took.is_none());
        for (slot, vote) in unprepared.filter(|(slot, _)| is_asked(**slot)) {
            vote.sent.get_or_insert(cx.now);
            let Leg { change, payload, base, want_delta } = vote.leg.clone();
            let service = cx.service();
            let order = self.order;
            cx.call(&view, *slot, payload, |operation| Message::Prepare {
                operation,
                view: view.number,
                write,
                change,
                base,
                want_delta,
                request: origin.request,
                floor: origin.floor,
                part: origin.part,
                service,
                order,
            });
        }
        self.patience(cx, &view)
    }

    /// After how long members that are not prepared are asked once more.
    fn patience(&self, cx: &Context<'_>, view: &GroupView) -> Duration {
        let bricks = self.votes.keys().map(|slot| view.members[usize::from(*slot)]);
        rescue::prepare_patience(bricks, cx.choice.load(), retry_delay(self.attempt))
    }

    /// Time is up for those that are not prepared: asks them once more.
    pub(crate) fn ask_again(&mut self, cx: &mut Context<'_>, write: WriteId, origin: Origin) -> Duration {
        self.attempt += 1;
        self.compare(cx, write.group, |vote| vote.took.is_none());
        for (slot, vote) in self.votes.iter_mut().filter(|(_, vote)| vote.took.is_none()) {
            vote.excused += cx.excused_at(*slot);
        }
        cx.forget_calls();
        self.ask(cx, write, origin)
    }

    /// The member at `slot` is prepared. Its answer had waited for its turn for `turn`.
    pub(crate) fn on_prepared(&mut self, now: Time, slot: u8, turn: Duration) -> Prepared {
        let vote = self.votes.get_mut(&slot).expect("only members that take part are asked");
        let is_first = vote.took.is_none();
        let lasted = now.since(vote.sent.unwrap_or(now));
        if is_first {
            vote.excused += turn;
            vote.took = Some(lasted.saturating_sub(vote.excused));
        }
        match (is_first, vote.leg.want_delta) {
            (false, _) => Prepared::Known,
            (true, false) => Prepared::First,
            (true, true) => Prepared::WithDelta,
        }
    }

    /// These are to be prepared as well.
    pub(crate) fn add(&mut self, legs: Legs) {
        self.votes.extend(legs.into_iter().map(|(slot, leg)| (slot, Vote::of(leg))));
    }

    /// A member is prepared now: whether others are asked only then.
    pub(crate) fn goes_on(&self) -> bool {
        match self.way {
            Way::Together => false,
            Way::InTurn => true,
            Way::FirstAlone => self.votes.values().filter(|vote| vote.took.is_some()).count() == 1,
        }
    }

    /// In which order members are asked.
    pub(crate) fn way(&self) -> Way {
        self.way
    }

    /// How often members were asked again since the round began or the turn passed on.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The next repeat comes after the shortest delay again.
    pub(crate) fn restart_attempts(&mut self) {
        self.attempt = 0;
    }

    /// Whether all that take part are prepared, but these slots.
    pub(crate) fn is_prepared_but(&self, need_not: Slots) -> bool {
        self.votes.iter().all(|(slot, vote)| vote.took.is_some() || need_not.has(*slot))
    }

    /// Whether a single member was asked so far.
    pub(crate) fn asks_one(&self) -> bool {
        self.votes.len() == 1
    }

    /// Phase two: the write takes effect.
    pub(crate) fn commit(&self, cx: &mut Context<'_>, write: &WriteId) {
        let view = cx.views.view(write.group);
        let slots = self.end(cx, write);
        cx.decisions.decide(cx.now, &view, slots, write, true);
    }

    /// All are prepared, and phase two is another's. Who they are.
    pub(crate) fn end(&self, cx: &mut Context<'_>, write: &WriteId) -> Slots {
        self.compare(cx, write.group, |_| true);
        self.votes.keys().fold(Slots::default(), |slots, slot| slots.with(*slot))
    }

    /// How long members took, or have taken so far, each beside the others; what they waited for their turn is no part of it, and neither is
    /// what more than half of the others waited for theirs meanwhile: it may be late because its memory is full of writes that wait for them.
    fn compare(&self, cx: &mut Context<'_>, group: GroupId, is_meant: impl Fn(&Vote) -> bool) {
        let (view, now) = (cx.views.view(group), cx.now);
        for (slot, vote) in self.votes.iter().filter(|(_, vote)| is_meant(vote)) {
            let brick = view.members[usize::from(*slot)];
            let others = self.votes.iter().filter(|(other, _)| *other != slot);
            let median = upper_median(others.clone().filter_map(|(_, vote)| vote.took));
            // A connection that is down says nothing of how fast the brick behind it is.
            let (Some(sent), Some(median)) = (vote.sent.filter(|_| cx.views.is_up(brick)), median) else {
                continue;
            };
            let begun = now.min(sent + vote.waited(cx, *slot));
            let took = vote.took.unwrap_or(now.since(begun));
            let shared = |(other, vote): (&u8, &Vote)| vote.waited_within(cx, *other, begun..begun + took);
            let shared = lower_median(others.map(shared)).unwrap_or_default();
            cx.choice.lateness_mut().note(now, brick, begun + shared, took - shared, median);
        }
    }
}
