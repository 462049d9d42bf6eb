//! Reading blocks of one data unit, or of mirrors.
//!
//! One member's answer is enough while it holds a lease of its view: a write is acknowledged only when all current
//! members have it, so a current member has every acknowledged write, and it answers only from blocks without a write
//! in doubt. Without a lease all writers that take part bear witness that no later view had begun: one of them is current
//! in any later view, and must have been fenced before. The current ones confirm the stamps as well, from memory.
//!
//! A member that only joins serves nothing and has no say about stamps: it may lack what was acknowledged before. But its
//! witness is needed: it may have become current, and the one that answers been left out, in changes of which the latter
//! heard nothing. Who is asked for neither content nor stamps says just whether the view is in force with it.
//!
//! Who is asked, and who else when that takes long, is in [`asking`].
//!
//! Blocks that do not match their checksum are read elsewhere or reconstructed, and repaired behind the reader's back.

mod asking;
mod target;

use super::answer::ReadAnswer;
use super::atomicity::log::{GoesBack, Looks, ROUNDS_MAX};
use super::atomicity::read::{Check, Confirmed, UnitAt};
use super::operate::{Context, Mend, Operate, Planned, Unplanned};
use super::outcome::{Child, Fetched, Looked, Outcome, Progress, Settled};
use super::reconstruct::ReconstructOperation;
use super::settle::settle_foreign;
use crate::netraid::context::views::UNKNOWN_VOLUME;
use asking::Asked;
use base::{GroupId, Payload, Stamp, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use target::{Met, Target};
use wire::{GroupView, IoError, ReadOutcome, Sight, Slots, Span, WriteId};

const SOON: Duration = Duration::from_millis(10);
/// When a member without a lease is asked again, where others are not to confirm what it says.
const LEASE_AGAIN: Duration = Duration::from_millis(100);
/// How often a read that is in doubt asks again before it settles the writes that hold it up: each time the member
/// has waited for the decision in vain.
const DOUBTS_BEFORE_SETTLING: u32 = 2;

type Reading = Progress<Result<Fetched, IoError>>;

enum State {
    /// For the time to ask.
    Waiting,
    /// To be started, as was decided when the parts of its request were seen together.
    Planned(Planned),
    /// The first answer with content is enough, if it comes with a lease.
    Asking(Asked),
    /// One member is asked for the content, and the others to confirm it.
    Confirming(Asked, Confirmed),
    /// What was there before newer writes, which are being looked at.
    GoingBack { older: Payload, looks: Looks },
    /// No member can give the content itself: for the row, which asks anew by itself for as long as it takes.
    Elsewhere,
}

/// Reads one span of one unit.
pub struct ReadOperation {
    target: Target,
    state: State,
    met: Met,
    /// Writes in doubt that are being settled; when all are, it asks anew.
    settling: usize,
    doubts: u32,
}

impl ReadOperation {
    /// Of `span` of a volume, which is data unit `data_index` of its rows on `group`.
    pub fn new(group: GroupId, span: Span, data_index: u8, want_stamps: bool) -> ReadOperation {
        let volume = Some(span.volume);
        let excluded = Slots::default();
        ReadOperation::of(Target { group, volume, span, data_index, want_stamps, excluded })
    }

    /// Of `span` of a branch of mirrors, with its stamps, from other members than those at `excluded`.
    pub(crate) fn of_branch(group: GroupId, span: Span, excluded: Slots) -> ReadOperation {
        let target = Target { group, volume: None, span, data_index: 0, want_stamps: true, excluded };
        ReadOperation::of(target)
    }

    fn of(target: Target) -> ReadOperation {
        ReadOperation { target, state: State::Waiting, met: Met::default(), settling: 0, doubts: 0 }
    }

    /// Answers so far are of no interest; begins again after `delay`, and asks nobody else before that.
    fn again(&mut self, cx: &mut Context<'_>, delay: Duration) -> Reading {
        self.state = State::Waiting;
        cx.again_after(delay)
    }

    fn restart(&mut self, cx: &mut Context<'_>) -> Reading {
        cx.forget_calls();
        self.start(cx)
    }

    /// No member can give the content itself.
    fn start_elsewhere(&mut self, cx: &mut Context<'_>, view: &GroupView) -> Reading {
        let bad = self.target.excluded.iter().fold(self.met.bad, Slots::with);
        let excluded = bad.and(view.current);
        if self.target.geometry(cx).layout().parity() == 0 {
            // Copies that are all bad stay so; a member that is merely away comes back.
            return match excluded.is_empty() {
                false => Progress::Ended(Err(IoError::Unreadable)),
                true => self.again(cx, Duration::from_millis(100)),
            };
        }
        let Target { group, span, data_index, .. } = self.target;
        let row = ReconstructOperation::new(group, span, data_index, excluded);
        cx.begin(row.seeing(self.target.sight(cx)));
        self.state = State::Elsewhere;
        Progress::Sleeps
    }

    fn on_done(&mut self, cx: &mut Context<'_>, slot: u8, done: Done) -> Reading {
        let is_asked = self.is_asked_for_content(slot);
        if done.is_unreadable {
            // A witness has no say about the stamps, and its answer still shows that no later view had begun.
            self.met.bad = self.met.bad.with(slot);
            if is_asked {
                cx.counters.count(Counter::UnreadableBlocksMetByARead);
                return self.restart(cx);
            }
        }
        let view = cx.views.view(self.target.group);
        if is_asked && done.content.len() != self.target.span.bytes() {
            return self.again(cx, SOON);
        }
        let others = self.target.witnesses(cx, &view).without(slot);
        if is_asked && (done.leased && !self.met.confirm || others.is_empty()) {
            return self.finish(cx, &view, Fetched { content: done.content, stamps: done.stamps });
        }
        if is_asked && !cx.choice.protocol(self.target.volume).atomicity.checks_reads() {
            // It waits for the lease: the volume's protocol has others say nothing.
            cx.counters.count(Counter::ReadWaitedForALease);
            return self.again(cx, LEASE_AGAIN);
        }
        let State::Confirming(_, confirmed) = &mut self.state else {
            // Without a lease it takes the others' word; begin again and ask them all.
            cx.counters.count(Counter::ReadConfirmedWithoutALease);
            self.met.confirm = true;
            return self.restart(cx);
        };
        confirmed.add(slot, done.stamps);
        if is_asked {
            confirmed.add_content(slot, done.content);
        }
        self.check(cx, &view)
    }

    /// What is decided stands beside newer writes. Where none of them is complete, it is what the read takes.
    fn on_older(&mut self, cx: &mut Context<'_>, slot: u8, done: Done, newer: Vec<WriteId>) -> Reading {
        let was_asked_for = matches!(self.state, State::Asking(_))
            && self.target.sight_of(cx, &self.met, true) == Sight::Committed;
        if !was_asked_for || !Looks::are_of(&newer, self.target.group, self.target.span) {
            self.met.bad = self.met.bad.with(slot);
            return self.again(cx, SOON);
        }
        if !done.leased || done.is_unreadable || done.content.len() != self.target.span.bytes() {
            // Without a lease others confirm what is decided, and what cannot be read is read elsewhere.
            self.met.rounds = ROUNDS_MAX;
            return self.restart(cx);
        }
        cx.forget_calls();
        self.state = State::GoingBack { older: done.content, looks: Looks::begin(cx, newer) };
        self.go_back(cx, None)
    }

    /// Newer writes were looked at, or one more.
    fn go_back(&mut self, cx: &mut Context<'_>, looked: Option<Looked>) -> Reading {
        let State::GoingBack { older, looks } = &mut self.state else { return Progress::Waits };
        looked.into_iter().for_each(|looked| looks.on_looked(looked));
        match looks.goes_back() {
            GoesBack::Waits => Progress::Sleeps,
            GoesBack::Yes => {
                let content = core::mem::take(older);
                cx.counters.count(Counter::ReadWentBackToAnOlderVersion);
                let view = cx.views.view(self.target.group);
                self.finish(cx, &view, Fetched { content, stamps: Vec::new() })
            }
            GoesBack::No => {
                self.met.rounds += 1;
                self.again(cx, Duration::ZERO)
            }
        }
    }

    /// All witnesses must have answered, and the current ones that could read it have the same stamps.
    fn check(&mut self, cx: &mut Context<'_>, view: &GroupView) -> Reading {
        let (witnesses, geometry) = (self.target.witnesses(cx, view), self.target.geometry(cx));
        let Target { span, data_index: index, .. } = self.target;
        let State::Confirming(_, confirmed) = &mut self.state else { unreachable!("it compares answers") };
        let with_a_say = Slots(witnesses.and(view.current).0 & !self.met.bad.0);
        match confirmed.check(UnitAt { geometry: &geometry, span, index }, witnesses, with_a_say) {
            Check::Waits => Progress::Waits,
            Check::Differs => self.again(cx, SOON),
            Check::Whole(fetched) => self.finish(cx, view, fetched),
        }
    }

    /// What the members lack that could not read it is brought to them.
    fn finish(&mut self, cx: &mut Context<'_>, view: &GroupView, fetched: Fetched) -> Reading {
        cx.choice.traffic_mut().on_read();
        let (geometry, &Target { group, span, .. }) = (self.target.geometry(cx), &self.target);
        for slot in self.met.bad.and(view.current).iter() {
            let is_data = geometry.data_index_at(span.lba, slot).is_some();
            let good = is_data.then(|| (fetched.stamps.clone(), fetched.content.clone()));
            cx.mend(Mend { group, slot, span, good });
        }
        Progress::Ended(Ok(fetched))
    }

    fn on_doubt(&mut self, cx: &mut Context<'_>, writes: Vec<WriteId>) -> Reading {
        self.doubts += 1;
        cx.counters.count(Counter::ReadMetWritesInDoubt);
        cx.forget_calls();
        if self.doubts >= DOUBTS_BEFORE_SETTLING {
            self.settling = settle_foreign(cx, self.target.group, self.target.span, writes);
        }
        if self.settling == 0 { self.again(cx, SOON) } else { Progress::Waits }
    }

    fn on_row(&mut self, cx: &mut Context<'_>, row: Result<Fetched, IoError>) -> Reading {
        match row {
            Ok(fetched) => {
                let view = cx.views.view(self.target.group);
                self.finish(cx, &view, fetched)
            }
            Err(error) if !self.met.has_stand_in => Progress::Ended(Err(error)),
            Err(_) => {
                self.met.has_stand_in = false;
                // The brick itself may still answer.
                let is_left = match &self.state {
                    State::Asking(asked) | State::Confirming(asked, _) => !asked.is_empty(),
                    State::Waiting | State::Planned(_) => true,
                    // What it goes back to is at hand.
                    State::GoingBack { .. } => true,
                    State::Elsewhere => false,
                };
                if is_left { Progress::Waits } else { self.again(cx, SOON) }
            }
        }
    }

    fn on_settled(&mut self, cx: &mut Context<'_>) -> Reading {
        self.settling = self.settling.saturating_sub(1);
        match self.state {
            State::GoingBack { .. } => Progress::Waits,
            _ if self.settling == 0 => self.again(cx, Duration::ZERO),
            _ => Progress::Waits,
        }
    }

    fn on_busy(&mut self, cx: &mut Context<'_>, slot: u8) -> Reading {
        if let State::Asking(asked) | State::Confirming(asked, _) = &mut self.state
            && asked.gives_up(slot)
        {
            // Of several that were asked for the content another one may give it.
            return Progress::Waits;
        }
        self.again(cx, SOON)
    }

    /// Whether an answer of the member at `slot` is one to the question for the content. A member may have been asked
    /// twice, alone and with others: that it was too busy for the one says nothing of its answer to the other.
    fn is_asked_for_content(&self, slot: u8) -> bool {
        match &self.state {
            State::Asking(_) => true,
            State::Confirming(asked, _) => asked.has(slot),
            State::Waiting | State::Planned(_) | State::GoingBack { .. } | State::Elsewhere => false,
        }
    }
}

/// A member's answer that it has read, or tried to.
struct Done {
    leased: bool,
    stamps: Vec<Stamp>,
    is_unreadable: bool,
    content: Payload,
}

/// What the operations that a read begins end with.
pub enum ReadChild {
    Row(Result<Fetched, IoError>),
    /// Whatever became of the write: it is not in doubt any more.
    Settled,
    /// Of a write that a member has and that is not decided there.
    Looked(Looked),
}

impl Child for ReadChild {
    fn from_outcome(outcome: Outcome) -> Option<ReadChild> {
        match outcome {
            Outcome::Read(row) => Some(ReadChild::Row(row)),
            Outcome::Looked(looked) => Some(ReadChild::Looked(looked)),
            other => Settled::from_outcome(other).map(|_| ReadChild::Settled),
        }
    }
}

impl Operate for ReadOperation {
    type Answer = ReadAnswer;
    type Child = ReadChild;
    type Outcome = Result<Fetched, IoError>;

    fn to_plan(&mut self, cx: &mut Context<'_>) -> Option<Unplanned> {
        let view = cx.views.view(self.target.group);
        self.target.find_branch(cx, &view).then(|| Unplanned {
            policy: self.target.policy(cx),
            address: self.target.address(),
            kind: self.target.kind(),
            holders: self.target.first_holders(cx, &view, &self.met),
        })
    }

    fn on_plan(&mut self, planned: Planned) {
        self.state = State::Planned(planned);
    }

    fn start(&mut self, cx: &mut Context<'_>) -> Reading {
        let before = core::mem::replace(&mut self.state, State::Waiting);
        let view = cx.views.view(self.target.group);
        let (holders, plan) = match before {
            State::Planned(Planned { holders, plan }) => (holders, plan),
            _ if !self.target.find_branch(cx, &view) => return self.again(cx, UNKNOWN_VOLUME),
            _ => (self.target.first_holders(cx, &view, &self.met), None),
        };
        if holders.is_empty() {
            return self.start_elsewhere(cx, &view);
        }
        let (asked, wait) = Asked::first(cx, &self.target, &mut self.met, &view, (&holders, plan));
        self.state = match self.met.confirm {
            true => State::Confirming(asked, Confirmed::default()),
            false => State::Asking(asked),
        };
        Progress::WaitsFor(wait)
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: ReadAnswer) -> Reading {
        assert!(
            matches!(self.state, State::Asking(_) | State::Confirming(..)),
            "the read asked nobody, and the member at {slot} answered"
        );
        match answer.outcome {
            ReadOutcome::Done { leased, stamps, unreadable } => {
                let is_unreadable = !unreadable.is_empty();
                self.on_done(cx, slot, Done { leased, stamps, is_unreadable, content: answer.content })
            }
            ReadOutcome::Older { leased, stamps, unreadable, newer } => {
                let is_unreadable = !unreadable.is_empty();
                let done = Done { leased, stamps, is_unreadable, content: answer.content };
                self.on_older(cx, slot, done, newer)
            }
            ReadOutcome::InDoubt { writes } => self.on_doubt(cx, writes),
            ReadOutcome::Stale { view } => {
                cx.on_stale(self.target.group, view);
                self.again(cx, SOON)
            }
            ReadOutcome::Busy => self.on_busy(cx, slot),
            ReadOutcome::Failed => {
                self.met.bad = self.met.bad.with(slot);
                self.again(cx, SOON)
            }
        }
    }

    fn on_child(&mut self, cx: &mut Context<'_>, child: ReadChild) -> Reading {
        match child {
            ReadChild::Row(row) => self.on_row(cx, row),
            ReadChild::Settled => self.on_settled(cx),
            ReadChild::Looked(looked) => self.go_back(cx, Some(looked)),
        }
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Reading {
        if let State::Asking(asked) | State::Confirming(asked, _) = &mut self.state
            && let Some(wait) = asked.further(cx, &self.target, &mut self.met)
        {
            return Progress::WaitsFor(wait);
        }
        self.met.attempt += 1;
        self.restart(cx)
    }

    fn on_moved(&mut self, cx: &mut Context<'_>, from: u8, to: u8) -> Reading {
        if let State::Asking(asked) = &mut self.state
            && asked.moves(cx, from, to)
        {
            cx.counters.count(Counter::ReadAskedBackFromAHolder);
        }
        Progress::Waits
    }

    fn on_withdrawn(&mut self, cx: &mut Context<'_>, slot: u8) -> Reading {
        let view = cx.views.view(self.target.group);
        let (State::Asking(asked) | State::Confirming(asked, _)) = &mut self.state else {
            return Progress::Waits;
        };
        match asked.withdrawn(cx, &self.target, &self.met, &view, slot) {
            true => Progress::Waits,
            false => self.again(cx, SOON),
        }
    }

    fn group(&self) -> GroupId {
        self.target.group
    }

    fn volume(&self) -> Option<VolumeId> {
        self.target.volume
    }

    fn on_view(&mut self, cx: &mut Context<'_>) -> Reading {
        self.settling = 0;
        self.met = Met { attempt: self.met.attempt, ..Met::default() };
        self.restart(cx)
    }
}
