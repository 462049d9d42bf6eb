//! Writing blocks: one round to all members that take part, each of which puts it on stable storage; then it is
//! decided and acknowledged, and the members are told at leisure.
//!
//! A write is put together from a path ([`Path`]: what goes to whom), an order ([`Writer`]: under which stamp, and how it
//! comes back when it is refused) and an atomicity ([`Round`]: whether all are prepared, and the decision).
//!
//! A joining member's failings are no reason to fail a write that the current members can take: what it lacks is repaired
//! first, and when its disk is full the write waits until the directory leaves it out.
//!
//! A write that some member refused is never simply abandoned: other members may have it, and a view change could
//! decide it. It is settled like any write in doubt, and tried again under a later stamp and the same request
//! identifier, so that it takes effect once.

use super::answer::PrepareAnswer;
use super::atomicity::two_phase::round::{Origin, Prepared, Round};
use super::context::gates::Leaving;
use super::context::stamps::LOAN_AGAIN;
use super::context::views::UNKNOWN_VOLUME;
use super::old_row::OldRowOperation;
use super::operate::{Context, Operate};
use super::order::Manner;
use super::order::writer::{Busy, Way, Writer};
use super::outcome::{
    Child, Fetched, Held, Lack, OldRow, OperationId, Outcome, Progress, Repaired, Settled, Written,
};
use super::path::gw::{Legs, Opening, Path};
use super::reconstruct::ReconstructOperation;
use super::repair::RepairOperation;
use super::settle::SettleOperation;
use base::{GroupId, Payload, Stamp, VolumeId};
use code::Computed;
use core::time::Duration;
use rules::counters::Counter;
use wire::{IoError, PrepareOutcome, Slots, WriteId};

type Writing = Progress<Result<Written, IoError>>;

/// What follows once a refused write is settled as never having taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Again,
    /// The member at the slot is repaired, then again.
    Repair(u8),
    Changed,
    Fail(IoError),
}

enum State {
    /// For the time to begin.
    Waiting,
    /// Its rows' parity is being computed.
    Computing,
    /// Members are putting it on stable storage.
    Preparing(Round),
    /// The old content is being reconstructed.
    Reading,
    /// Its earlier attempt is being settled.
    Settling(After),
    /// What the member at the slot lacks is being brought to it.
    Repairing(u8),
}

/// How often a write meets unreadable blocks at a current member, or blocks that no repair can bring there, before
/// it fails.
const UNREADABLE_MAX: u32 = 20;

/// How often a write whose coordinator computes the parity finds that this changed meanwhile, before its data brick computes the difference:
/// differences wait for each other, and do not come again.
const CHANGED_MAX: u32 = 3;

/// What the attempts of a write met of unreadable blocks.
struct Unreadable {
    times: u32,
    /// Why they stay so.
    unrepaired: IoError,
}

/// How far a write goes by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Course {
    /// It is decided, and begins anew where it is refused.
    ToItsEnd,
    /// It ends once all members have it; its record decides.
    UntilHeld { is_held: bool },
    /// It is the record of others: it has one stamp and one branch, which they name, and so one attempt.
    Once { stamp: Stamp, branch: VolumeId, has_begun: bool },
}

pub(crate) struct WriteOperation {
    path: Path,
    order: Writer,
    origin: Origin,
    manner: Manner,
    course: Course,
    state: State,
    unreadable: Unreadable,
}

impl WriteOperation {
    /// On `path`, for the request that is its origin. Where the path has a base and the block's stamp is another, it ends
    /// with [`Written::Changed`].
    pub(crate) fn new(path: Path, origin: Origin) -> WriteOperation {
        WriteOperation {
            path,
            order: Writer::default(),
            origin,
            manner: Manner::WAITS,
            course: Course::ToItsEnd,
            state: State::Waiting,
            unreadable: Unreadable { times: 0, unrepaired: IoError::Unreadable },
        }
    }

    /// The same, as its order has it go to the members.
    #[must_use]
    pub(crate) fn in_manner(self, manner: Manner) -> WriteOperation {
        WriteOperation { manner, ..self }
    }

    /// The same, until all members have it: it ends with [`Written::Held`], and its stamp stays this gateway's.
    #[must_use]
    pub(crate) fn until_held(self) -> WriteOperation {
        WriteOperation { course: Course::UntilHeld { is_held: false }, ..self }
    }

    /// The same, under this stamp, on this branch, or not at all: it ends with [`Written::Refused`] where it may be in doubt. Its stamp stays
    /// this gateway's.
    #[must_use]
    pub(crate) fn once(self, stamp: Stamp, branch: VolumeId) -> WriteOperation {
        WriteOperation { course: Course::Once { stamp, branch, has_begun: false }, ..self }
    }

    fn id(&self) -> WriteId {
        self.path.id(self.order.stamp())
    }

    fn round(&mut self) -> &mut Round {
        match &mut self.state {
            State::Preparing(round) => round,
            _ => unreachable!("a write that asks nobody is answered"),
        }
    }

    fn prepare(&mut self, cx: &mut Context<'_>, legs: Legs) -> Writing {
        let way = self.order.way(self.path.scope(), self.manner.first_alone);
        let mut round = Round::of(legs, way, self.manner.members);
        let wait = round.ask(cx, self.id(), self.origin);
        self.state = State::Preparing(round);
        Progress::WaitsFor(wait)
    }

    /// The unit's own member cannot tell what the unit holds.
    fn read_old_content(&mut self, cx: &mut Context<'_>, index: u8, is_joining: bool) -> Writing {
        cx.counters.count(match is_joining {
            true => Counter::WriteWhileItsDataBrickJoins,
            false => Counter::WriteWhileItsDataBrickIsAway,
        });
        let (group, span) = (self.path.group(), self.path.span());
        let read = ReconstructOperation::new(group, span, index, Slots::default());
        cx.begin(if self.course == Course::ToItsEnd { read } else { read.beside_undecided() });
        self.state = State::Reading;
        Progress::Waits
    }

    /// The unit and its parity were read, or some member could not tell: then its data brick finds out what is wrong.
    fn on_old_row(&mut self, cx: &mut Context<'_>, old: Result<OldRow, IoError>) -> Writing {
        let Ok(old) = old else {
            cx.counters.count(Counter::ParityLeftToTheDataBrick);
            self.path.falls_back();
            return self.start(cx);
        };
        // The parity would be made of what is there now, and so would be taken by its bricks whatever the data brick says of the base.
        if let Some((index, base)) = self.path.unit_and_base()
            && old.vectors.get(usize::from(index)) != Some(&base)
        {
            cx.counters.count(Counter::BaseOfAPatchHadChanged);
            return Progress::Ended(Ok(Written::Changed));
        }
        // A stamp of now: others may have written while it read.
        if !self.order.begin(cx.stamps, cx.now) {
            return self.wait_for_a_stamp(cx);
        }
        let legs = self.path.after_old_row(cx.views, &old);
        self.prepare(cx, legs)
    }

    fn on_prepared(
        &mut self,
        cx: &mut Context<'_>,
        slot: u8,
        previous: &[Stamp],
        delta: &Payload,
    ) -> Writing {
        let (id, origin) = (self.id(), self.origin);
        let State::Preparing(round) = &mut self.state else { unreachable!("{slot} prepared what is not") };
        let mut progress = Progress::Waits;
        match round.on_prepared(cx.now, slot, cx.excused()) {
            Prepared::WithDelta => {
                let Some(legs) = self.path.after_delta(cx.views, delta, previous) else {
                    return Progress::Ended(Err(IoError::Failed));
                };
                round.add(legs);
                progress = Progress::WaitsFor(round.ask(cx, id, origin));
            }
            Prepared::First if round.goes_on() => {
                round.restart_attempts();
                progress = Progress::WaitsFor(round.ask(cx, id, origin));
            }
            Prepared::First | Prepared::Known => {}
        }
        let need_not = match cx.rules.waits_for_stand_ins() {
            true => Slots::default(),
            false => cx.views.view(id.group).stand_ins(),
        };
        if !round.is_prepared_but(need_not) {
            return progress;
        }
        if let Course::UntilHeld { is_held } = &mut self.course {
            *is_held = true;
            let slots = round.end(cx, &id);
            return Progress::Ended(Ok(Written::Held(Held { write: id, slots })));
        }
        round.commit(cx, &id);
        Progress::Ended(Ok(Written::Done))
    }

    /// The request took effect by an earlier attempt; this one must not.
    fn on_duplicate(&mut self, cx: &mut Context<'_>) -> Writing {
        cx.counters.count(Counter::RequestHadTakenEffectBefore);
        if !self.round().asks_one() {
            cx.begin_alone(SettleOperation::new(self.id()));
        }
        Progress::Ended(Ok(match self.course {
            Course::ToItsEnd | Course::Once { .. } => Written::Done,
            Course::UntilHeld { .. } => Written::HadTakenEffect { part: self.origin.part },
        }))
    }

    /// The member at `slot` refused. Other members may have the write, so that it is settled before `after`.
    fn settle(&mut self, cx: &mut Context<'_>, slot: u8, after: After) -> Writing {
        cx.forget_calls();
        if self.round().asks_one() && matches!(after, After::Changed | After::Fail(_)) {
            // Only this member was asked, and it refused.
            return self.after(cx, after);
        }
        self.state = State::Settling(after);
        cx.begin(SettleOperation::refused(self.id(), slot));
        Progress::Waits
    }

    fn after(&mut self, cx: &mut Context<'_>, after: After) -> Writing {
        match after {
            After::Changed => Progress::Ended(Ok(Written::Changed)),
            After::Fail(error) => Progress::Ended(Err(error)),
            After::Again => self.back_off(cx),
            // Those that are decided with it are in the repair's way.
            After::Repair(slot) if self.course != Course::ToItsEnd => {
                let (group, span) = (self.path.group(), self.path.span());
                Progress::Ended(Ok(Written::Lacks(Lack { group, slot, span })))
            }
            After::Repair(slot) => {
                self.state = State::Repairing(slot);
                cx.begin(RepairOperation::from_row(self.path.group(), slot, self.path.span()).patient());
                Progress::Waits
            }
        }
    }

    fn back_off(&mut self, cx: &mut Context<'_>) -> Writing {
        let delay = self.order.back_off();
        match self.manner.refusals_max {
            Some(max) if self.order.refusals() >= max => Progress::Ended(Ok(Written::Refused)),
            _ => self.wait(cx, delay),
        }
    }

    fn wait(&mut self, cx: &mut Context<'_>, delay: Duration) -> Writing {
        self.state = State::Waiting;
        cx.again_after(delay)
    }

    /// This gateway's number is lent for no longer.
    fn wait_for_a_stamp(&mut self, cx: &mut Context<'_>) -> Writing {
        cx.counters.count(Counter::WriteWaitedForALoan);
        self.wait(cx, LOAN_AGAIN)
    }

    /// A member cannot read what the change builds on, or only joins and lacks it: it is repaired first.
    fn on_unreadable(&mut self, cx: &mut Context<'_>, slot: u8) -> Writing {
        cx.counters.count(Counter::WriteMetUnreadableBlocks);
        let group = self.path.group();
        let is_current = cx.views.view(group).current.has(slot);
        self.unreadable.times += u32::from(is_current);
        if cx.views.geometry(group).layout().tolerates() == 0 || self.unreadable.times > UNREADABLE_MAX {
            return self.settle(cx, slot, After::Fail(self.unreadable.unrepaired));
        }
        self.settle(cx, slot, After::Repair(slot))
    }

    fn on_repaired(
        &mut self,
        cx: &mut Context<'_>,
        slot: u8,
        repaired: Result<Repaired, IoError>,
    ) -> Writing {
        if cx.views.view(self.path.group()).current.has(slot) {
            // A full disk has no room for what it cannot read: whoever deletes something helps.
            self.unreadable.unrepaired = match repaired {
                Err(IoError::NoSpace) => IoError::NoSpace,
                _ => IoError::Unreadable,
            };
        }
        match repaired {
            Ok(_) | Err(IoError::NoSpace) => {}
            // The other members cannot make out the blocks either: nobody may ever.
            Err(error) => {
                self.unreadable.times += 1;
                if self.unreadable.times > UNREADABLE_MAX {
                    return Progress::Ended(Err(error));
                }
            }
        }
        self.back_off(cx)
    }

    /// A current member without room fails the write; one that joins has it wait until the directory leaves that one out.
    fn on_no_space(&mut self, cx: &mut Context<'_>, slot: u8) -> Writing {
        if cx.views.view(self.path.group()).joining.has(slot) {
            cx.counters.count(Counter::NoSpaceAtAJoiningMember);
            return self.settle(cx, slot, After::Again);
        }
        cx.counters.count(Counter::NoSpace);
        self.settle(cx, slot, After::Fail(IoError::NoSpace))
    }

    fn on_settled(&mut self, cx: &mut Context<'_>, after: After, settled: Settled) -> Writing {
        match settled {
            Settled::Committed => Progress::Ended(Ok(Written::Done)),
            Settled::Aborted => {
                // A member may not hear of it. Whoever meets this attempt there settles it, the next attempt of this write as well.
                if !matches!(self.course, Course::Once { .. }) {
                    cx.stamps.end_write(self.order.stamp());
                }
                self.after(cx, after)
            }
            Settled::ByView => self.wait(cx, Duration::from_millis(20)),
        }
    }

    /// A member has full queues.
    fn on_busy(&mut self, cx: &mut Context<'_>, slot: u8) -> Writing {
        let (way, attempt) = (self.round().way(), self.round().attempt());
        match self.order.on_busy(cx.now, way, slot, attempt) {
            Busy::Again(delay) => {
                if way == Way::InTurn {
                    self.round().restart_attempts();
                }
                Progress::WaitsFor(delay)
            }
            Busy::GivesWay => {
                cx.counters.count(Counter::WriteGaveWayToOthers);
                self.settle(cx, slot, After::Again)
            }
        }
    }

    /// What the data unit held was reconstructed, since its member cannot tell.
    fn on_old_content(&mut self, cx: &mut Context<'_>, old: &Fetched) -> Writing {
        if self.path.base().is_some_and(|base| old.stamps.first() != Some(&base)) {
            cx.counters.count(Counter::BaseOfAPatchHadChanged);
            return Progress::Ended(Ok(Written::Changed));
        }
        if let Some(newest) = old.stamps.iter().copied().max().filter(|newest| *newest >= self.order.stamp())
        {
            cx.see(newest);
            return self.wait(cx, Duration::ZERO);
        }
        let legs = self.path.after_old_content(cx.views, old);
        if legs.is_empty() {
            return self.wait(cx, Duration::from_millis(100));
        }
        self.prepare(cx, legs)
    }
}

/// What the operations that a write begins end with.
pub(crate) enum WriteChild {
    OldContent(Result<Fetched, IoError>),
    OldRow(Result<OldRow, IoError>),
    Settled(Settled),
    Repaired(Result<Repaired, IoError>),
}

impl Child for WriteChild {
    fn from_outcome(outcome: Outcome) -> Option<WriteChild> {
        match outcome {
            Outcome::Read(fetched) => Some(WriteChild::OldContent(fetched)),
            Outcome::OldRow(old) => Some(WriteChild::OldRow(old)),
            Outcome::Settled(settled) => Some(WriteChild::Settled(settled)),
            other => <Result<Repaired, IoError>>::from_outcome(other).map(WriteChild::Repaired),
        }
    }
}

impl Operate for WriteOperation {
    type Answer = PrepareAnswer;
    type Child = WriteChild;
    type Outcome = Result<Written, IoError>;

    fn start(&mut self, cx: &mut Context<'_>) -> Writing {
        if let Some(computation) = self.path.to_compute(cx.views) {
            // Before it has a stamp: a later write must not find it late.
            self.state = State::Computing;
            return cx.compute(computation);
        }
        let group = self.path.group();
        let view = cx.views.view(group);
        if view.current.is_empty() {
            return self.wait(cx, Duration::from_millis(100));
        }
        // A branch that is no head takes no writes: the view is older than the volume, or the volume is gone.
        let branch = cx.branch_of(&view, self.path.volume()).filter(|branch| view.lineage.is_head(*branch));
        let Some(branch) = branch else {
            cx.views.is_stale(group);
            return self.wait(cx, UNKNOWN_VOLUME);
        };
        self.path.turn_to(branch);
        match &mut self.course {
            Course::Once { branch: wanted, has_begun, .. } if *has_begun || branch != *wanted => {
                return Progress::Ended(Ok(Written::Refused));
            }
            Course::Once { stamp, has_begun, .. } => {
                *has_begun = true;
                self.order = Writer::under(*stamp);
            }
            Course::ToItsEnd | Course::UntilHeld { .. } => {
                if !self.order.begin(cx.stamps, cx.now) {
                    return self.wait_for_a_stamp(cx);
                }
            }
        }
        match self.path.opening(cx.views) {
            Opening::Legs(legs) => self.prepare(cx, legs),
            Opening::OldContent { index, is_joining } => self.read_old_content(cx, index, is_joining),
            Opening::OldRow { index } => {
                self.state = State::Reading;
                cx.begin(OldRowOperation::new(self.path.group(), self.path.span(), index));
                Progress::Waits
            }
        }
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: PrepareAnswer) -> Writing {
        let attempt = self.round().attempt();
        match answer.outcome {
            PrepareOutcome::Prepared { previous } => self.on_prepared(cx, slot, &previous, &answer.delta),
            PrepareOutcome::Duplicate => self.on_duplicate(cx),
            PrepareOutcome::Late { newest } => {
                cx.counters.count(Counter::WriteCameTooLateAndWasTriedAgain);
                cx.see(newest);
                self.settle(cx, slot, After::Again)
            }
            PrepareOutcome::Changed if self.path.base().is_some() => {
                cx.counters.count(Counter::BaseOfAPatchHadChanged);
                self.settle(cx, slot, After::Changed)
            }
            PrepareOutcome::Changed => {
                cx.counters.count(Counter::ParityHadChanged);
                if self.order.refusals() >= CHANGED_MAX {
                    cx.counters.count(Counter::ParityLeftToTheDataBrick);
                    self.path.falls_back();
                }
                self.settle(cx, slot, After::Again)
            }
            PrepareOutcome::Stale { view } => {
                cx.on_stale(self.path.group(), view);
                Progress::WaitsFor(Duration::from_millis(20 << attempt.min(5)))
            }
            PrepareOutcome::Busy => self.on_busy(cx, slot),
            PrepareOutcome::NoSpace => self.on_no_space(cx, slot),
            PrepareOutcome::Unreadable => self.on_unreadable(cx, slot),
            PrepareOutcome::Failed => Progress::WaitsFor(Duration::from_millis(200)),
        }
    }

    fn on_child(&mut self, cx: &mut Context<'_>, child: WriteChild) -> Writing {
        match (&self.state, child) {
            (State::Settling(after), WriteChild::Settled(settled)) => self.on_settled(cx, *after, settled),
            (State::Reading, WriteChild::OldContent(Ok(fetched))) => self.on_old_content(cx, &fetched),
            (State::Reading, WriteChild::OldContent(Err(error))) => Progress::Ended(Err(error)),
            (State::Reading, WriteChild::OldRow(old)) => self.on_old_row(cx, old),
            (State::Repairing(slot), WriteChild::Repaired(repaired)) => self.on_repaired(cx, *slot, repaired),
            (State::Waiting | State::Computing | State::Preparing(_), _) => {
                unreachable!("it began nothing that could end")
            }
            (State::Settling(_) | State::Reading | State::Repairing(_), _) => {
                unreachable!("what ended is not what it began last")
            }
        }
    }

    /// Parity is of the content alone: one that is being computed is as good under the next view.
    fn on_view(&mut self, cx: &mut Context<'_>) -> Writing {
        if matches!(self.state, State::Computing) {
            return Progress::Waits;
        }
        cx.forget_calls();
        self.start(cx)
    }

    fn on_computed(&mut self, cx: &mut Context<'_>, made: Computed) -> Writing {
        let Ok(parity) = made else { return Progress::Ended(Err(IoError::Failed)) };
        self.path.keep_parity(parity);
        self.start(cx)
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Writing {
        let (id, origin) = (self.id(), self.origin);
        match &mut self.state {
            State::Waiting => self.start(cx),
            State::Preparing(round) => Progress::WaitsFor(round.ask_again(cx, id, origin)),
            State::Computing | State::Reading | State::Settling(_) | State::Repairing(_) => Progress::Waits,
        }
    }

    fn group(&self) -> GroupId {
        self.path.group()
    }

    fn volume(&self) -> Option<VolumeId> {
        Some(self.path.volume())
    }

    fn release(&self, _id: OperationId, left: &mut Leaving<'_>) {
        match self.course {
            Course::UntilHeld { is_held: true } | Course::Once { .. } => {}
            Course::ToItsEnd | Course::UntilHeld { is_held: false } => {
                left.stamps.end_write(self.order.stamp());
            }
        }
    }
}
