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

use super::coordinator::{Answer, Operate, Operation, Outcome, Shared};
use super::read::{UNKNOWN_VOLUME, is_mirrored};
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

/// What is written.
#[derive(Clone, Debug)]
pub enum Content {
    /// Zeros.
    Zero,
    /// Blocks of one unit, or of mirrors.
    Blocks(Payload),
    /// Blocks of every data unit of whole rows, by data index.
    Rows(Vec<Payload>),
}

/// The client's request that a write is part of.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The request.
    pub request: RequestId,
    /// The client never asks again below this.
    pub floor: u64,
    /// Which part of the request.
    pub part: u64,
}

struct Leg {
    change: Change,
    payload: Payload,
    base: Option<Stamp>,
    want_delta: bool,
    /// When it was sent first.
    sent: Option<Time>,
    /// How long it took until it was prepared.
    took: Option<Duration>,
    call: u64,
}

impl Leg {
    fn new(change: Change, payload: Payload) -> Leg {
        Leg { change, payload, base: None, want_delta: false, sent: None, took: None, call: 0 }
    }
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Members are putting it on stable storage.
    Preparing,
    /// The old content is being reconstructed.
    Reading,
    /// Its earlier attempt is being settled.
    Settling(After),
    /// What a member lacks is being brought to it.
    Repairing(u8),
    /// It waits to begin again.
    Waiting,
}

/// How often a write is offered to a member with full queues before it lets go of what others have prepared.
const BUSY_MAX: u32 = 3;
/// How often a write meets unreadable blocks at a current member, or blocks that no repair can make out, before it fails.
const UNREADABLE_MAX: u32 = 20;

/// Writes one span.
pub struct WriteOperation {
    group: GroupId,
    volume: VolumeId,
    /// Names the volume's branch as of the present attempt.
    span: Span,
    scope: Scope,
    content: Content,
    base: Option<Stamp>,
    origin: Origin,
    stamp: Stamp,
    legs: BTreeMap<u8, Leg>,
    parity: Option<Vec<Payload>>,
    phase: Phase,
    refusals: u32,
    unreadable: u32,
    /// Why they stay so.
    unrepaired: IoError,
    attempt: u32,
}

impl WriteOperation {
    /// Of `content` to `span` of a volume on `group`. With `base`, only if the block's stamp is that; otherwise it ends with
    /// [`Outcome::Changed`].
    ///
    /// `base` may have been read under an earlier view, and so from another branch: a block that a branch inherits has
    /// its parent's stamps, and a stamp names one content. If the branch was rolled back to another content, or anyone
    /// wrote in between, the stamps differ.
    pub fn new(
        group: GroupId,
        span: Span,
        scope: Scope,
        content: Content,
        base: Option<Stamp>,
        origin: Origin,
    ) -> WriteOperation {
        WriteOperation {
            group,
            volume: span.volume,
            span,
            scope,
            content,
            base,
            origin,
            stamp: Stamp::ZERO,
            legs: BTreeMap::new(),
            parity: None,
            phase: Phase::Waiting,
            refusals: 0,
            unreadable: 0,
            unrepaired: IoError::Unreadable,
            attempt: 0,
        }
    }

    /// The stamp of its present attempt.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn id(&self) -> WriteId {
        WriteId { group: self.group, span: self.span, stamp: self.stamp, scope: self.scope }
    }

    fn geometry(&self, shared: &Shared) -> Geometry {
        shared.geometry(self.group)
    }

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

    fn mirror_legs(&mut self, view: &GroupView) {
        let leg = |slot| match view.joining.has(slot) {
            true => self.joining_leg(),
            false => self.data_leg(self.blocks(), false),
        };
        self.legs = view.writers().iter().map(|slot| (slot, leg(slot))).collect();
    }

    fn row_legs(&mut self, view: &GroupView, geometry: &Geometry) {
        let (layout, lba) = (geometry.layout(), self.span.lba);
        let zeros = || vec![Payload::zeros(self.span.bytes()); usize::from(layout.parity())];
        let parity = match (&self.parity, &self.content) {
            (Some(parity), _) => parity.clone(),
            (None, Content::Rows(rows)) => Code::new(layout.data(), layout.parity()).encode(rows),
            (None, _) => zeros(),
        };
        for slot in view.writers().iter() {
            let leg = match (geometry.data_index_at(lba, slot), &self.content) {
                (Some(index), Content::Rows(rows)) => {
                    self.data_leg(rows.get(usize::from(index)).cloned(), false)
                }
                (Some(_), _) => self.data_leg(None, false),
                (None, _) => {
                    let index = geometry.shard_at(lba, slot) - layout.data();
                    let payload = parity[usize::from(index)].clone();
                    let change = Change::Parity { width: layout.data() };
                    Leg::new(change, payload)
                }
            };
            self.legs.insert(slot, leg);
        }
        self.parity = Some(parity);
    }

    fn unit_legs(&mut self, shared: &mut Shared, view: &GroupView, geometry: &Geometry, index: u8) {
        let slot = geometry.slot_of(self.span.lba, index);
        if view.current.has(slot) {
            let has_parity = self.parity_slots(view, geometry).next().is_some();
            self.legs.insert(slot, self.data_leg(self.blocks(), has_parity));
            return;
        }
        shared.counters.count(match view.joining.has(slot) {
            true => Counter::WriteWhileItsDataBrickJoins,
            false => Counter::WriteWhileItsDataBrickIsAway,
        });
        self.phase = Phase::Reading;
        let reconstruct = ReconstructOperation::new(self.group, self.span, index, Slots::default());
        shared.begin(Operation::Reconstruct(Box::new(reconstruct)));
    }

    fn parity_slots<'a>(
        &self,
        view: &'a GroupView,
        geometry: &Geometry,
    ) -> impl Iterator<Item = (u8, u8)> + use<'a> {
        geometry.parity_slots(self.span.lba).filter(|(_, slot)| view.writers().has(*slot))
    }

    /// The old content is known: each parity member gets its multiple of the difference.
    fn parity_legs(&mut self, shared: &Shared, delta: &Payload, previous: &[Stamp]) {
        let Scope::Unit { index } = self.scope else { return };
        let (view, geometry) = (shared.view(self.group), self.geometry(shared));
        let code = Code::new(geometry.layout().data(), geometry.layout().parity());
        for (parity, slot) in self.parity_slots(&view, &geometry) {
            let factor = code.coefficient(parity, index);
            let payload = if factor == 1 { delta.clone() } else { code::multiply(delta, factor) };
            let change = Change::Xor { index, width: geometry.layout().data(), previous: previous.to_vec() };
            self.legs.insert(slot, Leg::new(change, payload));
        }
    }

    /// A data member that only joins cannot tell what was there, and need not: it takes the block whole. The base is
    /// compared at the current members, without which the write is not decided.
    fn joining_leg(&self) -> Leg {
        Leg { base: None, ..self.data_leg(self.blocks(), false) }
    }

    /// Sends what is not prepared yet; to those asked before, once more.
    fn send(&mut self, shared: &mut Shared) {
        let (view, write, origin) = (shared.view(self.group), self.id(), self.origin);
        for (slot, leg) in self.legs.iter_mut().filter(|(_, leg)| leg.took.is_none()) {
            leg.sent.get_or_insert(shared.now);
            let (change, base, want_delta) = (leg.change.clone(), leg.base, leg.want_delta);
            leg.call = shared.call(&view, *slot, leg.payload.clone(), |operation| Message::Prepare {
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
        shared.wake_to_retry(self.attempt);
    }

    fn on_prepared(
        &mut self,
        shared: &mut Shared,
        slot: u8,
        previous: &[Stamp],
        delta: &Payload,
    ) -> Option<Outcome> {
        let leg = self.legs.get_mut(&slot)?;
        let first = leg.took.is_none();
        leg.took.get_or_insert(shared.now.since(leg.sent.unwrap_or(shared.now)));
        if leg.want_delta && first {
            if delta.len() != self.span.bytes() || previous.len() != self.span.count as usize {
                return Some(Outcome::Failed(IoError::Failed));
            }
            self.parity_legs(shared, delta, previous);
            self.send(shared);
        }
        if !self.legs.values().all(|leg| leg.took.is_some()) {
            return None;
        }
        self.compare(shared, |_| true);
        let (view, write) = (shared.view(self.group), self.id());
        let slots = self.legs.keys().fold(Slots::default(), |slots, slot| slots.with(*slot));
        shared.decide(&view, slots, &write, true);
        Some(Outcome::Written)
    }

    /// How long members took, or have taken so far, each beside the others.
    fn compare(&self, shared: &mut Shared, is_meant: impl Fn(&Leg) -> bool) {
        let (view, now) = (shared.view(self.group), shared.now);
        for (slot, leg) in self.legs.iter().filter(|(_, leg)| is_meant(leg)) {
            let brick = view.members[usize::from(*slot)];
            let others = self.legs.iter().filter(|(other, _)| *other != slot);
            let mut others: Vec<Duration> = others.filter_map(|(_, leg)| leg.took).collect();
            // A connection that is down says nothing of how fast the brick behind it is.
            let (Some(sent), false) = (leg.sent.filter(|_| shared.up.contains(&brick)), others.is_empty())
            else {
                continue;
            };
            let middle = others.len() / 2;
            let (_, median, _) = others.select_nth_unstable(middle);
            shared.lateness.note(now, brick, sent, leg.took.unwrap_or(now.since(sent)), *median);
        }
    }

    /// The request took effect by an earlier attempt; this one must not.
    fn on_duplicate(&mut self, shared: &mut Shared) -> Option<Outcome> {
        shared.counters.count(Counter::RequestHadTakenEffectBefore);
        if self.legs.len() > 1 {
            shared.begin_alone(Operation::Settle(SettleOperation::new(self.id())));
        }
        Some(Outcome::Written)
    }

    fn settle(&mut self, shared: &mut Shared, slot: u8, after: After) -> Option<Outcome> {
        shared.forget_calls();
        if self.legs.len() == 1 && matches!(after, After::Changed | After::Fail(_)) {
            // Only this member was asked, and it refused.
            return self.after(shared, after);
        }
        self.phase = Phase::Settling(after);
        shared.begin(Operation::Settle(SettleOperation::refused(self.id(), slot)));
        None
    }

    fn after(&mut self, shared: &mut Shared, after: After) -> Option<Outcome> {
        match after {
            After::Changed => Some(Outcome::Changed),
            After::Fail(error) => Some(Outcome::Failed(error)),
            After::Again => self.back_off(shared),
            After::Repair(slot) => {
                self.phase = Phase::Repairing(slot);
                let repair = RepairOperation::from_row(self.group, slot, self.span).patient();
                shared.begin(Operation::Repair(Box::new(repair)));
                None
            }
        }
    }

    fn back_off(&mut self, shared: &mut Shared) -> Option<Outcome> {
        self.refusals += 1;
        // Writers that refuse each other come back at different times: the stamp's low bits tell them apart.
        let spread = self.stamp.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        self.wait(shared, Duration::from_micros((1000 + 100 * spread) << self.refusals.min(7)))
    }

    fn wait(&mut self, shared: &mut Shared, delay: Duration) -> Option<Outcome> {
        shared.forget_calls();
        self.phase = Phase::Waiting;
        shared.wake_after(delay);
        None
    }

    /// A member cannot read what the change builds on, or only joins and lacks it: it is repaired first.
    fn on_unreadable(&mut self, shared: &mut Shared, slot: u8) -> Option<Outcome> {
        shared.counters.count(Counter::WriteMetUnreadableBlocks);
        let is_current = shared.view(self.group).current.has(slot);
        self.unreadable += u32::from(is_current);
        if self.geometry(shared).layout().tolerates() == 0 || self.unreadable > UNREADABLE_MAX {
            return self.settle(shared, slot, After::Fail(self.unrepaired));
        }
        self.settle(shared, slot, After::Repair(slot))
    }

    fn on_repaired(&mut self, shared: &mut Shared, slot: u8, outcome: &Outcome) -> Option<Outcome> {
        if shared.view(self.group).current.has(slot) {
            // A full disk has no room for what it cannot read: whoever deletes something helps.
            self.unrepaired = match outcome {
                Outcome::Failed(IoError::NoSpace) => IoError::NoSpace,
                _ => IoError::Unreadable,
            };
        }
        match outcome {
            Outcome::Failed(IoError::NoSpace) => {}
            // The other members cannot make out the blocks either: nobody may ever.
            Outcome::Failed(error) => {
                self.unreadable += 1;
                if self.unreadable > UNREADABLE_MAX {
                    return Some(Outcome::Failed(*error));
                }
            }
            _ => {}
        }
        self.back_off(shared)
    }

    /// A current member without room fails the write; one that joins has it wait until the directory leaves that one out.
    fn on_no_space(&mut self, shared: &mut Shared, slot: u8) -> Option<Outcome> {
        if shared.view(self.group).joining.has(slot) {
            shared.counters.count(Counter::NoSpaceAtAJoiningMember);
            return self.settle(shared, slot, After::Again);
        }
        shared.counters.count(Counter::NoSpace);
        self.settle(shared, slot, After::Fail(IoError::NoSpace))
    }
}

impl Operate for WriteOperation {
    fn start(&mut self, shared: &mut Shared) -> Option<Outcome> {
        let (view, geometry) = (shared.view(self.group), self.geometry(shared));
        if view.current.is_empty() {
            return self.wait(shared, Duration::from_millis(100));
        }
        // A branch that is no head takes no writes: the view is older than the volume, or the volume is gone.
        let branch = shared.branch_of(&view, self.volume).filter(|branch| view.lineage.is_head(*branch));
        let Some(branch) = branch else {
            shared.stale.insert(self.group);
            return self.wait(shared, UNKNOWN_VOLUME);
        };
        self.span.volume = branch;
        shared.own.remove(&self.stamp);
        self.stamp = shared.draw();
        shared.own.insert(self.stamp);
        self.legs.clear();
        self.phase = Phase::Preparing;
        self.attempt = 0;
        match self.scope {
            Scope::Row if is_mirrored(&geometry) => self.mirror_legs(&view),
            Scope::Row => self.row_legs(&view, &geometry),
            Scope::Unit { index } => self.unit_legs(shared, &view, &geometry, index),
        }
        if self.phase == Phase::Preparing {
            self.send(shared);
        }
        None
    }

    fn on_answer(&mut self, shared: &mut Shared, slot: u8, answer: Answer) -> Option<Outcome> {
        let Answer::Prepared(outcome, delta) = answer else { return None };
        if self.phase != Phase::Preparing {
            return None;
        }
        match outcome {
            PrepareOutcome::Prepared { previous } => self.on_prepared(shared, slot, &previous, &delta),
            PrepareOutcome::Duplicate => self.on_duplicate(shared),
            PrepareOutcome::Late { newest } => {
                shared.counters.count(Counter::WriteCameTooLateAndWasTriedAgain);
                shared.see(newest);
                self.settle(shared, slot, After::Again)
            }
            PrepareOutcome::Changed if self.base.is_some() => {
                shared.counters.count(Counter::BaseOfAPatchHadChanged);
                self.settle(shared, slot, After::Changed)
            }
            PrepareOutcome::Changed => {
                shared.counters.count(Counter::ParityHadChanged);
                self.settle(shared, slot, After::Again)
            }
            PrepareOutcome::Stale { view } => {
                shared.on_stale(self.group, view);
                shared.wake_after(Duration::from_millis(20 << self.attempt.min(5)));
                None
            }
            // Members with full queues may hold what each other waits for: give way after a while.
            PrepareOutcome::Busy if self.attempt > BUSY_MAX => {
                shared.counters.count(Counter::WriteGaveWayToOthers);
                self.settle(shared, slot, After::Again)
            }
            PrepareOutcome::Busy => {
                shared.wake_after(Duration::from_millis(20 << self.attempt.min(5)));
                None
            }
            PrepareOutcome::NoSpace => self.on_no_space(shared, slot),
            PrepareOutcome::Unreadable => self.on_unreadable(shared, slot),
            PrepareOutcome::Failed => {
                shared.wake_after(Duration::from_millis(200));
                None
            }
        }
    }

    fn on_child(&mut self, shared: &mut Shared, outcome: Outcome) -> Option<Outcome> {
        match (self.phase, outcome) {
            (Phase::Settling(_), Outcome::Settled(Some(true))) => Some(Outcome::Written),
            (Phase::Settling(after), Outcome::Settled(Some(false))) => self.after(shared, after),
            (Phase::Settling(_), _) => self.wait(shared, Duration::from_millis(20)),
            (Phase::Reading, Outcome::Read { content, stamps }) => {
                self.on_old_content(shared, &content, &stamps)
            }
            (Phase::Reading, Outcome::Failed(error)) => Some(Outcome::Failed(error)),
            (Phase::Repairing(slot), outcome) => self.on_repaired(shared, slot, &outcome),
            _ => None,
        }
    }

    fn on_timer(&mut self, shared: &mut Shared) -> Option<Outcome> {
        match self.phase {
            Phase::Waiting => self.start(shared),
            Phase::Preparing => {
                self.attempt += 1;
                self.compare(shared, |leg| leg.took.is_none());
                shared.forget_calls();
                self.send(shared);
                None
            }
            Phase::Reading | Phase::Settling(_) | Phase::Repairing(_) => None,
        }
    }

    fn group(&self) -> GroupId {
        self.group
    }

    fn volume(&self) -> Option<VolumeId> {
        Some(self.volume)
    }
}

impl WriteOperation {
    fn on_old_content(&mut self, shared: &mut Shared, old: &Payload, stamps: &[Stamp]) -> Option<Outcome> {
        if self.base.is_some_and(|base| stamps.first() != Some(&base)) {
            shared.counters.count(Counter::BaseOfAPatchHadChanged);
            return Some(Outcome::Changed);
        }
        if let Some(newest) = stamps.iter().copied().max().filter(|newest| *newest >= self.stamp) {
            shared.see(newest);
            return self.wait(shared, Duration::ZERO);
        }
        let delta = match &self.content {
            Content::Blocks(new) => new.xor(old),
            _ => old.clone(),
        };
        self.phase = Phase::Preparing;
        self.parity_legs(shared, &delta, stamps);
        let Scope::Unit { index } = self.scope else { return None };
        let slot = self.geometry(shared).slot_of(self.span.lba, index);
        if shared.view(self.group).joining.has(slot) {
            self.legs.insert(slot, self.joining_leg());
        }
        if self.legs.is_empty() {
            return self.wait(shared, Duration::from_millis(100));
        }
        self.send(shared);
        None
    }
}
