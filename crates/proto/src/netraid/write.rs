//! Writing blocks: one round to all members that take part, each of which puts it on stable storage; then it is
//! decided and acknowledged, and the members are told at leisure.
//!
//! A write of some units of a row goes to the data brick first, whose answer is the delta for the parity; a write of
//! whole rows goes to all at once. When the data brick is not in the current set, the delta comes from the
//! reconstructed old content; if it joins, it gets the block whole, in the same round as the parity.
//!
//! Those that take part are the view's *writers*: members that join must have the write like current ones. A joining
//! member's failings are no reason to fail a write that the current members can take: what it lacks is repaired first,
//! and when its disk is full the write waits until the directory leaves it out.
//!
//! A write that some member refused is never simply abandoned: other members may have it, and a view change could
//! decide it. It is settled like any write in doubt, and tried again under a later stamp and the same request
//! identifier, so that it takes effect once.

use super::answer::PrepareAnswer;
use super::context::stamps::Stamps;
use super::context::views::UNKNOWN_VOLUME;
use super::members::is_mirrored;
use super::operate::{Context, Operate, retry_delay};
use super::outcome::{Child, Fetched, Outcome, Progress, Repaired, Settled, Written};
use super::reconstruct::ReconstructOperation;
use super::repair::RepairOperation;
use super::settle::SettleOperation;
use crate::counters::Counter;
use crate::layout::Geometry;
use base::{GroupId, Payload, RequestId, Stamp, Time, VolumeId};
use code::Code;
use core::time::Duration;
use std::collections::BTreeMap;
use wire::{Change, GroupView, IoError, Message, PrepareOutcome, Scope, Slots, Span, WriteId};

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Zero,
    /// Blocks of one unit, or of mirrors.
    Blocks(Payload),
    /// Blocks of every data unit of whole rows, by data index.
    Rows(Vec<Payload>),
}

/// The client's request that a write is part of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) request: RequestId,
    /// The client never asks again below this.
    pub(crate) floor: u64,
    /// Which part of the request.
    pub(crate) part: u64,
}

type Writing = Progress<Result<Written, IoError>>;

/// What goes to one member.
struct Leg {
    change: Change,
    payload: Payload,
    base: Option<Stamp>,
    want_delta: bool,
    /// When it was sent first.
    sent: Option<Time>,
    /// How long it took until it was prepared.
    took: Option<Duration>,
}

impl Leg {
    fn new(change: Change, payload: Payload) -> Leg {
        Leg { change, payload, base: None, want_delta: false, sent: None, took: None }
    }
}

/// In which order members are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// All at once. A member with full queues is asked again, and when that has not helped for a while the others are let
    /// go of: writes may hold at one member what another waits for, and wait for what that one holds.
    Together,
    /// One after the other, in the order of the bricks' numbers. Writes that all go this way never wait for each other in
    /// a circle, so that nothing is let go of: whoever is busy is asked again, alone and under the same stamp.
    InTurn,
}

/// Legs by slot, and how often they were sent.
struct Round {
    legs: BTreeMap<u8, Leg>,
    way: Way,
    attempt: u32,
}

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
    /// Members are putting it on stable storage.
    Preparing(Round),
    /// The old content is being reconstructed.
    Reading,
    /// Its earlier attempt is being settled.
    Settling(After),
    /// What the member at the slot lacks is being brought to it.
    Repairing(u8),
}

/// How often a write is offered to a member with full queues before it lets go of what others have prepared.
const BUSY_MAX: u32 = 3;
/// When a write that goes from member to member asks one with full queues again: as soon as one that asks all at once does
/// the first time.
const BUSY_AGAIN: Duration = Duration::from_millis(20);
/// How often a write meets unreadable blocks at a current member, or blocks that no repair can make out, before it fails.
const UNREADABLE_MAX: u32 = 20;

/// Where to, and what.
struct Target {
    group: GroupId,
    volume: VolumeId,
    /// Names the volume's branch as of the present attempt.
    span: Span,
    scope: Scope,
    content: Content,
    /// The stamp that the block must have.
    base: Option<Stamp>,
}

/// What the attempts of a write met so far.
struct Met {
    /// Whether it let go of what members had prepared, for others that were busy.
    has_given_way: bool,
    refusals: u32,
    unreadable: u32,
    /// Why unreadable blocks stay so.
    unrepaired: IoError,
}

pub(crate) struct WriteOperation {
    target: Target,
    origin: Origin,
    /// Of the present attempt.
    stamp: Stamp,
    state: State,
    /// The parity of whole rows, which is the same in each attempt.
    parity: Option<Vec<Payload>>,
    met: Met,
}

impl Target {
    /// What one member's blocks become.
    fn data_leg(&self, payload: Option<Payload>, want_delta: bool) -> Leg {
        let change = if payload.is_some() { Change::Data } else { Change::Zero };
        let base = self.base;
        Leg { base, want_delta, ..Leg::new(change, payload.unwrap_or_default()) }
    }

    fn blocks(&self) -> Option<Payload> {
        match &self.content {
            Content::Blocks(payload) => Some(payload.clone()),
            _ => None,
        }
    }

    /// A data member that only joins cannot tell what was there, and need not: it takes the block whole. The base is
    /// compared at the current members, without which the write is not decided.
    fn joining_leg(&self) -> Leg {
        Leg { base: None, ..self.data_leg(self.blocks(), false) }
    }

    fn mirror_legs(&self, view: &GroupView) -> BTreeMap<u8, Leg> {
        let leg = |slot| match view.joining.has(slot) {
            true => self.joining_leg(),
            false => self.data_leg(self.blocks(), false),
        };
        view.writers().iter().map(|slot| (slot, leg(slot))).collect()
    }

    fn parity(&self, geometry: &Geometry) -> Vec<Payload> {
        let layout = geometry.layout();
        match &self.content {
            Content::Rows(rows) => Code::new(layout.data(), layout.parity()).encode(rows),
            _ => vec![Payload::zeros(self.span.bytes()); usize::from(layout.parity())],
        }
    }

    fn row_legs(&self, view: &GroupView, geometry: &Geometry, parity: &[Payload]) -> BTreeMap<u8, Leg> {
        let (layout, lba) = (geometry.layout(), self.span.lba);
        let leg = |slot: u8| match (geometry.data_index_at(lba, slot), &self.content) {
            (Some(index), Content::Rows(rows)) => self.data_leg(rows.get(usize::from(index)).cloned(), false),
            (Some(_), _) => self.data_leg(None, false),
            (None, _) => {
                let index = geometry.shard_at(lba, slot) - layout.data();
                let change = Change::Parity { width: layout.data() };
                Leg::new(change, parity[usize::from(index)].clone())
            }
        };
        view.writers().iter().map(|slot| (slot, leg(slot))).collect()
    }

    fn parity_slots<'a>(
        &self,
        view: &'a GroupView,
        geometry: &Geometry,
    ) -> impl Iterator<Item = (u8, u8)> + use<'a> {
        geometry.parity_slots(self.span.lba).filter(|(_, slot)| view.writers().has(*slot))
    }

    /// The old content of data unit `index` is known: each parity member gets its multiple of the difference.
    fn parity_legs(
        &self,
        cx: &Context<'_>,
        index: u8,
        delta: &Payload,
        previous: &[Stamp],
    ) -> Vec<(u8, Leg)> {
        let (view, geometry) = (cx.views.view(self.group), cx.views.geometry(self.group));
        let layout = geometry.layout();
        let code = Code::new(layout.data(), layout.parity());
        let leg = |parity: u8| {
            let factor = code.coefficient(parity, index);
            let payload = if factor == 1 { delta.clone() } else { code::multiply(delta, factor) };
            let change = Change::Xor { index, width: layout.data(), previous: previous.to_vec() };
            Leg::new(change, payload)
        };
        self.parity_slots(&view, &geometry).map(|(parity, slot)| (slot, leg(parity))).collect()
    }
}

impl Round {
    fn of(legs: BTreeMap<u8, Leg>, way: Way) -> Round {
        Round { legs, way, attempt: 0 }
    }

    /// Sends what is not prepared yet and whose turn it is; to those asked before, once more.
    fn send(&mut self, cx: &mut Context<'_>, write: WriteId, origin: Origin) -> Writing {
        let view = cx.views.view(write.group);
        let left = self.legs.iter().filter(|(_, leg)| leg.took.is_none()).map(|(slot, _)| *slot);
        let turn = left.min_by_key(|slot| view.members[usize::from(*slot)]);
        let is_asked = |slot: u8| self.way == Way::Together || Some(slot) == turn;
        let unprepared = self.legs.iter_mut().filter(|(_, leg)| leg.took.is_none());
        for (slot, leg) in unprepared.filter(|(slot, _)| is_asked(**slot)) {
            leg.sent.get_or_insert(cx.now);
            let (change, base, want_delta) = (leg.change.clone(), leg.base, leg.want_delta);
            cx.call(&view, *slot, leg.payload.clone(), |operation| Message::Prepare {
                operation,
                view: view.number,
                write,
                change,
                base,
                want_delta,
                request: origin.request,
                floor: origin.floor,
                part: origin.part,
            });
        }
        Progress::WaitsFor(retry_delay(self.attempt))
    }

    fn slots(&self) -> Slots {
        self.legs.keys().fold(Slots::default(), |slots, slot| slots.with(*slot))
    }

    /// How long members took, or have taken so far, each beside the others.
    fn compare(&self, cx: &mut Context<'_>, group: GroupId, is_meant: impl Fn(&Leg) -> bool) {
        let (view, now) = (cx.views.view(group), cx.now);
        for (slot, leg) in self.legs.iter().filter(|(_, leg)| is_meant(leg)) {
            let brick = view.members[usize::from(*slot)];
            let others = self.legs.iter().filter(|(other, _)| *other != slot);
            let mut others: Vec<Duration> = others.filter_map(|(_, leg)| leg.took).collect();
            // A connection that is down says nothing of how fast the brick behind it is.
            let (Some(sent), false) = (leg.sent.filter(|_| cx.views.is_up(brick)), others.is_empty()) else {
                continue;
            };
            let middle = others.len() / 2;
            let (_, median, _) = others.select_nth_unstable(middle);
            let took = leg.took.unwrap_or(now.since(sent));
            cx.choice.lateness_mut().note(now, brick, sent, took, *median);
        }
    }
}

impl WriteOperation {
    /// Of `content` to `span` of a volume on `group`. With `base`, only if the block's stamp is that; otherwise it ends with
    /// [`Written::Changed`].
    ///
    /// `base` may have been read under an earlier view, and so from another branch: a block that a branch inherits has
    /// its parent's stamps, and a stamp names one content. If the branch was rolled back to another content, or anyone
    /// wrote in between, the stamps differ.
    pub(crate) fn new(
        group: GroupId,
        span: Span,
        scope: Scope,
        content: Content,
        base: Option<Stamp>,
        origin: Origin,
    ) -> WriteOperation {
        WriteOperation {
            target: Target { group, volume: span.volume, span, scope, content, base },
            origin,
            stamp: Stamp::ZERO,
            state: State::Waiting,
            parity: None,
            met: Met { has_given_way: false, refusals: 0, unreadable: 0, unrepaired: IoError::Unreadable },
        }
    }

    fn id(&self) -> WriteId {
        let Target { group, span, scope, .. } = self.target;
        WriteId { group, span, stamp: self.stamp, scope }
    }

    fn round(&mut self) -> &mut Round {
        match &mut self.state {
            State::Preparing(round) => round,
            _ => unreachable!("a write that asks nobody is answered"),
        }
    }

    fn send(&mut self, cx: &mut Context<'_>, mut round: Round) -> Writing {
        let progress = round.send(cx, self.id(), self.origin);
        self.state = State::Preparing(round);
        progress
    }

    /// Writes data unit `index` of rows: its member tells the delta for the parity, if it is current.
    fn start_unit(
        &mut self,
        cx: &mut Context<'_>,
        view: &GroupView,
        geometry: &Geometry,
        index: u8,
    ) -> Writing {
        let target = &self.target;
        let slot = geometry.slot_of(target.span.lba, index);
        if view.current.has(slot) {
            let has_parity = target.parity_slots(view, geometry).next().is_some();
            let leg = target.data_leg(target.blocks(), has_parity);
            return self.send(cx, Round::of(BTreeMap::from([(slot, leg)]), Way::Together));
        }
        cx.counters.count(match view.joining.has(slot) {
            true => Counter::WriteWhileItsDataBrickJoins,
            false => Counter::WriteWhileItsDataBrickIsAway,
        });
        cx.begin(ReconstructOperation::new(target.group, target.span, index, Slots::default()));
        self.state = State::Reading;
        Progress::Waits
    }

    fn on_prepared(
        &mut self,
        cx: &mut Context<'_>,
        slot: u8,
        previous: &[Stamp],
        delta: &Payload,
    ) -> Writing {
        let (id, origin, now) = (self.id(), self.origin, cx.now);
        let State::Preparing(round) = &mut self.state else { unreachable!("{slot} prepared what is not") };
        let leg = round.legs.get_mut(&slot).expect("only legs are asked");
        let is_first = leg.took.is_none();
        leg.took.get_or_insert(now.since(leg.sent.unwrap_or(now)));
        let mut progress = Progress::Waits;
        if leg.want_delta && is_first {
            let span = self.target.span;
            if delta.len() != span.bytes() || previous.len() != span.count as usize {
                return Progress::Ended(Err(IoError::Failed));
            }
            let Scope::Unit { index } = self.target.scope else { unreachable!("whole rows have no delta") };
            round.legs.extend(self.target.parity_legs(cx, index, delta, previous));
            progress = round.send(cx, id, origin);
        } else if round.way == Way::InTurn && is_first {
            round.attempt = 0;
            progress = round.send(cx, id, origin);
        }
        if !round.legs.values().all(|leg| leg.took.is_some()) {
            return progress;
        }
        round.compare(cx, id.group, |_| true);
        let view = cx.views.view(id.group);
        cx.decisions.decide(now, &view, round.slots(), &id, true);
        Progress::Ended(Ok(Written::Done))
    }

    /// The request took effect by an earlier attempt; this one must not.
    fn on_duplicate(&mut self, cx: &mut Context<'_>) -> Writing {
        cx.counters.count(Counter::RequestHadTakenEffectBefore);
        if self.round().legs.len() > 1 {
            cx.begin_alone(SettleOperation::new(self.id()));
        }
        Progress::Ended(Ok(Written::Done))
    }

    /// The member at `slot` refused. Other members may have the write, so that it is settled before `after`.
    fn settle(&mut self, cx: &mut Context<'_>, slot: u8, after: After) -> Writing {
        cx.forget_calls();
        if self.round().legs.len() == 1 && matches!(after, After::Changed | After::Fail(_)) {
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
            After::Repair(slot) => {
                self.state = State::Repairing(slot);
                cx.begin(RepairOperation::from_row(self.target.group, slot, self.target.span).patient());
                Progress::Waits
            }
        }
    }

    fn back_off(&mut self, cx: &mut Context<'_>) -> Writing {
        self.met.refusals += 1;
        // Writers that refuse each other come back at different times: the stamp's low bits tell them apart.
        let spread = self.stamp.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        self.wait(cx, Duration::from_micros((1000 + 100 * spread) << self.met.refusals.min(7)))
    }

    fn wait(&mut self, cx: &mut Context<'_>, delay: Duration) -> Writing {
        self.state = State::Waiting;
        cx.again_after(delay)
    }

    /// A member cannot read what the change builds on, or only joins and lacks it: it is repaired first.
    fn on_unreadable(&mut self, cx: &mut Context<'_>, slot: u8) -> Writing {
        cx.counters.count(Counter::WriteMetUnreadableBlocks);
        let group = self.target.group;
        let is_current = cx.views.view(group).current.has(slot);
        self.met.unreadable += u32::from(is_current);
        if cx.views.geometry(group).layout().tolerates() == 0 || self.met.unreadable > UNREADABLE_MAX {
            return self.settle(cx, slot, After::Fail(self.met.unrepaired));
        }
        self.settle(cx, slot, After::Repair(slot))
    }

    fn on_repaired(
        &mut self,
        cx: &mut Context<'_>,
        slot: u8,
        repaired: Result<Repaired, IoError>,
    ) -> Writing {
        if cx.views.view(self.target.group).current.has(slot) {
            // A full disk has no room for what it cannot read: whoever deletes something helps.
            self.met.unrepaired = match repaired {
                Err(IoError::NoSpace) => IoError::NoSpace,
                _ => IoError::Unreadable,
            };
        }
        match repaired {
            Ok(_) | Err(IoError::NoSpace) => {}
            // The other members cannot make out the blocks either: nobody may ever.
            Err(error) => {
                self.met.unreadable += 1;
                if self.met.unreadable > UNREADABLE_MAX {
                    return Progress::Ended(Err(error));
                }
            }
        }
        self.back_off(cx)
    }

    /// A current member without room fails the write; one that joins has it wait until the directory leaves that one out.
    fn on_no_space(&mut self, cx: &mut Context<'_>, slot: u8) -> Writing {
        if cx.views.view(self.target.group).joining.has(slot) {
            cx.counters.count(Counter::NoSpaceAtAJoiningMember);
            return self.settle(cx, slot, After::Again);
        }
        cx.counters.count(Counter::NoSpace);
        self.settle(cx, slot, After::Fail(IoError::NoSpace))
    }

    fn on_settled(&mut self, cx: &mut Context<'_>, after: After, settled: Settled) -> Writing {
        match settled {
            Settled::Committed => Progress::Ended(Ok(Written::Done)),
            Settled::Aborted => self.after(cx, after),
            Settled::ByView => self.wait(cx, Duration::from_millis(20)),
        }
    }

    /// What the data unit held was reconstructed, since its member cannot tell.
    fn on_old_content(
        &mut self,
        cx: &mut Context<'_>,
        Fetched { content: old, stamps }: &Fetched,
    ) -> Writing {
        let target = &self.target;
        if target.base.is_some_and(|base| stamps.first() != Some(&base)) {
            cx.counters.count(Counter::BaseOfAPatchHadChanged);
            return Progress::Ended(Ok(Written::Changed));
        }
        if let Some(newest) = stamps.iter().copied().max().filter(|newest| *newest >= self.stamp) {
            cx.stamps.see(newest);
            return self.wait(cx, Duration::ZERO);
        }
        let delta = match &target.content {
            Content::Blocks(new) => new.xor(old),
            _ => old.clone(),
        };
        let Scope::Unit { index } = target.scope else { unreachable!("whole rows need no old content") };
        let mut legs: BTreeMap<u8, Leg> = target.parity_legs(cx, index, &delta, stamps).into_iter().collect();
        let slot = cx.views.geometry(target.group).slot_of(target.span.lba, index);
        if cx.views.view(target.group).joining.has(slot) {
            legs.insert(slot, target.joining_leg());
        }
        if legs.is_empty() {
            return self.wait(cx, Duration::from_millis(100));
        }
        self.send(cx, Round::of(legs, Way::Together))
    }
}

/// What the operations that a write begins end with.
pub(crate) enum WriteChild {
    OldContent(Result<Fetched, IoError>),
    Settled(Settled),
    Repaired(Result<Repaired, IoError>),
}

impl Child for WriteChild {
    fn from_outcome(outcome: Outcome) -> Option<WriteChild> {
        match outcome {
            Outcome::Read(fetched) => Some(WriteChild::OldContent(fetched)),
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
        let group = self.target.group;
        let (view, geometry) = (cx.views.view(group), cx.views.geometry(group));
        if view.current.is_empty() {
            return self.wait(cx, Duration::from_millis(100));
        }
        // A branch that is no head takes no writes: the view is older than the volume, or the volume is gone.
        let branch = cx.branch_of(&view, self.target.volume).filter(|branch| view.lineage.is_head(*branch));
        let Some(branch) = branch else {
            cx.views.is_stale(group);
            return self.wait(cx, UNKNOWN_VOLUME);
        };
        self.target.span.volume = branch;
        self.stamp = cx.stamps.begin_write(cx.now, self.stamp);
        let target = &self.target;
        let legs = match target.scope {
            Scope::Row if is_mirrored(&geometry) => target.mirror_legs(&view),
            Scope::Row => {
                let parity = self.parity.get_or_insert_with(|| target.parity(&geometry));
                target.row_legs(&view, &geometry, parity)
            }
            Scope::Unit { index } => return self.start_unit(cx, &view, &geometry, index),
        };
        let way = if self.met.has_given_way { Way::InTurn } else { Way::Together };
        self.send(cx, Round::of(legs, way))
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: PrepareAnswer) -> Writing {
        let Round { attempt, way, .. } = *self.round();
        match answer.outcome {
            PrepareOutcome::Prepared { previous } => self.on_prepared(cx, slot, &previous, &answer.delta),
            PrepareOutcome::Duplicate => self.on_duplicate(cx),
            PrepareOutcome::Late { newest } => {
                cx.counters.count(Counter::WriteCameTooLateAndWasTriedAgain);
                cx.stamps.see(newest);
                self.settle(cx, slot, After::Again)
            }
            PrepareOutcome::Changed if self.target.base.is_some() => {
                cx.counters.count(Counter::BaseOfAPatchHadChanged);
                self.settle(cx, slot, After::Changed)
            }
            PrepareOutcome::Changed => {
                cx.counters.count(Counter::ParityHadChanged);
                self.settle(cx, slot, After::Again)
            }
            PrepareOutcome::Stale { view } => {
                cx.on_stale(self.target.group, view);
                Progress::WaitsFor(Duration::from_millis(20 << attempt.min(5)))
            }
            PrepareOutcome::Busy if way == Way::InTurn => {
                self.round().attempt = 0;
                Progress::WaitsFor(BUSY_AGAIN)
            }
            PrepareOutcome::Busy if attempt > BUSY_MAX => {
                cx.counters.count(Counter::WriteGaveWayToOthers);
                self.met.has_given_way = true;
                self.settle(cx, slot, After::Again)
            }
            PrepareOutcome::Busy => Progress::WaitsFor(Duration::from_millis(20 << attempt.min(5))),
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
            (State::Repairing(slot), WriteChild::Repaired(repaired)) => self.on_repaired(cx, *slot, repaired),
            (State::Waiting | State::Preparing(_), _) => unreachable!("it began nothing that could end"),
            (State::Settling(_) | State::Reading | State::Repairing(_), _) => {
                unreachable!("what ended is not what it began last")
            }
        }
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Writing {
        let (id, origin) = (self.id(), self.origin);
        match &mut self.state {
            State::Waiting => self.start(cx),
            State::Preparing(round) => {
                round.attempt += 1;
                round.compare(cx, id.group, |leg| leg.took.is_none());
                cx.forget_calls();
                round.send(cx, id, origin)
            }
            State::Reading | State::Settling(_) | State::Repairing(_) => Progress::Waits,
        }
    }

    fn group(&self) -> GroupId {
        self.target.group
    }

    fn volume(&self) -> Option<VolumeId> {
        Some(self.target.volume)
    }

    fn release(&self, stamps: &mut Stamps) {
        stamps.end_write(self.stamp);
    }
}
