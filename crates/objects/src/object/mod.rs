//! Large objects: segments that are coded apart, and their fragments at bricks.
//!
//! [`Transfers`] puts and gets segments: it asks bricks, has symbols computed, and says what became of it. From below to above:
//! `coding` (which symbols are enough), `calls` (questions to bricks), `access` (what a reader asks for, at whom), `ready` (which brick
//! takes which of a writer's symbols), `put`, `get`, `doubt` (wrong fragments), `check`, `remake` and `carry` (a segment's way), then this file, which routes. Above it stand objects with names:
//! `manifest` (how one is cut, and where it is), `questions` (to the index), `bricks` (who takes fragments), `hold` (versions that are held), `parts` (segments until all are stored), `patch` (what a put leaves of a version that is there), `upload` and `download`
//! (an object's way), `restore` (what bricks lost is made again), `rebalance` (what is moved, or nobody looks for any more), and [`Objects`], which routes these. Why, and what is to come: `docs/decisions/2026-11-25-large-objects.md`.
//!
//! Deliberately absent: who may see which version. The index says it ([`crate::index`]).

mod access;
mod bricks;
mod calls;
mod carry;
mod charges;
mod check;
mod coding;
mod doubt;
mod download;
mod get;
mod hold;
mod manifest;
mod objects;
mod parts;
mod patch;
mod put;
mod questions;
mod ready;
mod rebalance;
mod remake;
mod restore;
mod resume;
mod succession;
#[cfg(test)]
mod tests;
mod upload;

pub use bricks::Room;
pub use carry::Carry;
pub use check::{Check, Checked};
#[cfg(feature = "planted")]
pub use coding::planted;
pub use coding::{Coding, LtDecoder, Systematic};
pub use doubt::Expected;
pub use download::WantedObject;
pub use get::{Get, GetError};
pub use manifest::{LOSSES_MAX, Manifest, REDUNDANCY_MAX, SEGMENT_BYTES, SegmentRecord};
pub use objects::{ObjectEffect, ObjectError, ObjectNews, ObjectWish, Objects};
pub use parts::Incomplete;
pub use patch::ObjectPatch;
pub use put::{Put, PutError};
pub use ready::Placing;
pub use rebalance::{Rebalance, Rebalanced};
pub use remake::Remake;
pub use restore::{Inspection, Restored};
pub use resume::{PutProgress, Resumable, StoredSegment};
pub(crate) use succession::Mover;
pub use upload::NewObject;

pub use access::{AccessStrategy, Place};
use base::{BrickId, NodeId, Payload, Time};
use calls::{Again, Calls};
use carry::Carrying;
use check::Checking;
use code::{Computation, Computed};
use core::time::Duration;
use get::Getting;
use put::Putting;
use remake::Remaking;
use rules::fair::Cost;
use rules::promises::{Rules, SOUND};
use std::collections::BTreeMap;
use wire::{FragmentOutcome, Message, Packet};

/// Names a transfer: what is done with one segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TransferId(pub u64);

/// What transfers ask for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransferEffect {
    /// Send this; it may get lost.
    Send { to: NodeId, packet: Packet },
    /// Compute this for a transfer. Answered by [`Transfers::on_computed`], always.
    Compute { transfer: TransferId, computation: Computation },
    /// A put has ended: these fragments are on stable storage.
    Put { transfer: TransferId, result: Result<Vec<Place>, PutError> },
    /// A get has ended: the blocks of the segment, in order; and what is to be replaced, where fragments were wrong.
    Got { transfer: TransferId, result: Result<Vec<Payload>, GetError>, mends: Option<Remake> },
    /// A check has ended.
    Checked { transfer: TransferId, checked: Checked },
    /// What was to be made again or copied is on stable storage, as far as it will be.
    Stored { transfer: TransferId, stored: Vec<Place> },
}

/// A transfer for which no brick has done anything for so long ends as it stands: whoever wants it asks again.
const PATIENCE: Duration = Duration::from_secs(20);

/// All transfers of a process.
#[derive(Debug)]
pub struct Transfers {
    rules: &'static dyn Rules,
    calls: Calls,
    /// With each: until when it waits for somebody to do something.
    under_way: BTreeMap<TransferId, (Transfer, Time)>,
    last: u64,
}

#[derive(Debug)]
enum Transfer {
    Put(Putting),
    Get(Getting),
    Check(Checking),
    Remake(Remaking),
    Carry(Carrying),
}

impl Transfer {
    /// When it goes on although no brick answers.
    fn deadline(&self) -> Option<Time> {
        match self {
            Transfer::Put(_) | Transfer::Check(_) | Transfer::Remake(_) | Transfer::Carry(_) => None,
            Transfer::Get(get) => get.deadline(),
        }
    }
}

/// What a step of a transfer may do beside its own fields.
pub(crate) struct Context<'a> {
    now: Time,
    transfer: TransferId,
    rules: &'static dyn Rules,
    calls: &'a mut Calls,
    fx: &'a mut Vec<TransferEffect>,
}

impl Context<'_> {
    fn compute(&mut self, computation: Computation) {
        self.fx.push(TransferEffect::Compute { transfer: self.transfer, computation });
    }
}

impl Default for Transfers {
    fn default() -> Transfers {
        Transfers::of_run(0)
    }
}

/// The number before those of a run's questions: none of another part of the same process has one of these.
fn first_of_run(run: u64) -> u64 {
    const RUN_BITS: u32 = 31;
    const NUMBER_BITS: u32 = 32;
    1 << (RUN_BITS + NUMBER_BITS) | (run & ((1 << RUN_BITS) - 1)) << NUMBER_BITS
}

impl Transfers {
    /// See [`Objects::of_run`].
    fn of_run(run: u64) -> Transfers {
        let calls = Calls::from(first_of_run(run));
        Transfers { rules: SOUND, calls, under_way: BTreeMap::new(), last: 0 }
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub fn set_rules(&mut self, rules: &'static dyn Rules) {
        self.rules = rules;
    }

    /// What requests cost in this cluster.
    fn set_cost(&mut self, cost: Cost) {
        self.calls.set_cost(cost);
    }

    /// Which questions are not answered.
    fn describe(&self, now: Time) -> impl Iterator<Item = String> {
        self.calls.describe(now)
    }

    /// Puts a segment.
    pub fn put(&mut self, now: Time, put: Put, fx: &mut Vec<TransferEffect>) -> TransferId {
        self.begin(now, fx, |cx| Putting::begin(cx, put).map(Transfer::Put))
    }

    /// Gets a segment.
    pub fn get(&mut self, now: Time, get: Get, fx: &mut Vec<TransferEffect>) -> TransferId {
        self.begin(now, fx, |cx| Getting::begin(cx, get).map(Transfer::Get))
    }

    /// Looks whether fragments of a segment are where they should be.
    pub fn check(&mut self, now: Time, check: Check, fx: &mut Vec<TransferEffect>) -> TransferId {
        self.begin(now, fx, |cx| Checking::begin(cx, check).map(Transfer::Check))
    }

    /// Makes fragments of a segment again.
    pub fn remake(&mut self, now: Time, remake: Remake, fx: &mut Vec<TransferEffect>) -> TransferId {
        self.begin(now, fx, |cx| Remaking::begin(cx, remake).map(Transfer::Remake))
    }

    /// Copies fragments of a segment from one brick to another.
    pub fn carry(&mut self, now: Time, carry: Carry, fx: &mut Vec<TransferEffect>) -> TransferId {
        self.begin(now, fx, |cx| Carrying::begin(cx, carry).map(Transfer::Carry))
    }

    /// Nobody wants a transfer any more. What a put has brought to bricks stays there.
    pub fn call_off(&mut self, now: Time, transfer: TransferId, fx: &mut Vec<TransferEffect>) {
        self.under_way.remove(&transfer);
        self.calls.call_off(now, transfer);
        self.send(fx);
    }

    fn begin(
        &mut self,
        now: Time,
        fx: &mut Vec<TransferEffect>,
        begin: impl FnOnce(&mut Context<'_>) -> Option<Transfer>,
    ) -> TransferId {
        self.last += 1;
        let transfer = TransferId(self.last);
        let begun = begin(&mut Context { now, transfer, rules: self.rules, calls: &mut self.calls, fx });
        self.keep(now, transfer, begun);
        self.send(fx);
        transfer
    }

    /// A brick says something; what is not about fragments is not for here.
    pub fn on_packet(&mut self, now: Time, from: BrickId, packet: Packet, fx: &mut Vec<TransferEffect>) {
        match packet.message {
            Message::FragmentPut { operation, outcome, .. }
            | Message::Fragment { operation, outcome, .. } => {
                if outcome == FragmentOutcome::Busy {
                    self.calls.busy(now, from, operation);
                } else if let Some((transfer, call)) = self.calls.answered(now, from, operation) {
                    let place = (call.fragment.index, from);
                    self.with(now, transfer, fx, |transfer, cx| match transfer {
                        Transfer::Put(put) => put.on_put(cx, place, outcome),
                        Transfer::Get(get) => get.on_fragment(cx, place, outcome, packet.payload),
                        Transfer::Check(check) => check.on_fragment(cx, place, outcome),
                        Transfer::Remake(remake) => remake.on_put(cx, place, outcome),
                        Transfer::Carry(carry) => carry.on_fragment(cx, place, outcome, packet.payload),
                    });
                }
            }
            Message::Cancelled { withdrawn, late } => self.calls.cancelled(now, from, &withdrawn, &late),
            Message::Waiting { operations } => {
                for transfer in self.calls.wait(now, from, &operations) {
                    self.under_way.entry(transfer).and_modify(|(_, patient)| *patient = now + PATIENCE);
                }
            }
            _ => {}
        }
        self.send(fx);
    }

    /// What a transfer had computed.
    pub fn on_computed(
        &mut self,
        now: Time,
        transfer: TransferId,
        made: Computed,
        fx: &mut Vec<TransferEffect>,
    ) {
        let Ok(made) = made else { unreachable!("sums of blocks of one length can be made") };
        self.with(now, transfer, fx, |transfer, cx| match transfer {
            Transfer::Put(put) => put.on_computed(cx, made),
            Transfer::Get(get) => get.on_computed(cx, made),
            Transfer::Remake(remake) => remake.on_computed(cx, made),
            Transfer::Check(_) | Transfer::Carry(_) => unreachable!("nothing is computed for these"),
        });
        self.send(fx);
    }

    /// A brick can be reached again.
    pub fn on_up(&mut self, now: Time, brick: BrickId, fx: &mut Vec<TransferEffect>) {
        self.calls.on_up(now, brick);
        self.wake(now, fx);
    }

    pub fn deadline(&self) -> Option<Time> {
        let of_gets = self.under_way.values().filter_map(|(transfer, _)| transfer.deadline());
        let patience = self.under_way.values().map(|(_, patient)| *patient);
        patience.chain(of_gets).chain(self.calls.deadline()).min()
    }

    /// Asks again what was lost, and ends what nobody does anything for.
    pub fn wake(&mut self, now: Time, fx: &mut Vec<TransferEffect>) {
        let over: Vec<_> = self.under_way.extract_if(.., |_, (_, patient)| *patient <= now).collect();
        for (transfer, (state, _)) in over {
            let cx = &mut Context { now, transfer, rules: self.rules, calls: &mut self.calls, fx };
            match state {
                Transfer::Put(put) => put.give_up(cx),
                Transfer::Get(get) => get.give_up(cx),
                Transfer::Check(check) => check.give_up(cx),
                Transfer::Remake(remake) => remake.give_up(cx),
                Transfer::Carry(carry) => carry.give_up(cx),
            }
            self.calls.call_off(now, transfer);
        }
        for Again { transfer, place, was_busy } in self.calls.wake(now) {
            let cx = &mut Context { now, transfer, rules: self.rules, calls: &mut self.calls, fx };
            match self.under_way.get_mut(&transfer) {
                Some((Transfer::Get(get), _)) => get.on_late(cx, place),
                Some((Transfer::Put(put), _)) if was_busy => put.on_busy(cx, place.1),
                Some((Transfer::Put(put), _)) => put.on_late(cx, place.1),
                _ => {}
            }
        }
        let has_gathered = |(_, (state, _)): &(&TransferId, &(Transfer, Time))| matches!(state, Transfer::Get(get) if get.has_gathered(now));
        for transfer in self.under_way.iter().filter(has_gathered).map(|(id, _)| *id).collect::<Vec<_>>() {
            self.with(now, transfer, fx, |transfer, cx| match transfer {
                Transfer::Get(get) => get.on_gathered(cx),
                other => Some(other),
            });
        }
        for (transfer, (state, _)) in &mut self.under_way {
            if state.deadline().is_some_and(|deadline| deadline <= now)
                && let Transfer::Get(get) = state
            {
                let transfer = *transfer;
                get.wake(&mut Context { now, transfer, rules: self.rules, calls: &mut self.calls, fx });
            }
        }
        self.send(fx);
    }

    fn with(
        &mut self,
        now: Time,
        transfer: TransferId,
        fx: &mut Vec<TransferEffect>,
        step: impl FnOnce(Transfer, &mut Context<'_>) -> Option<Transfer>,
    ) {
        let Some((state, _)) = self.under_way.remove(&transfer) else { return };
        let state =
            step(state, &mut Context { now, transfer, rules: self.rules, calls: &mut self.calls, fx });
        self.keep(now, transfer, state);
    }

    /// A transfer goes on, or has ended: then nobody wants its answers.
    fn keep(&mut self, now: Time, transfer: TransferId, state: Option<Transfer>) {
        match state {
            Some(state) => drop(self.under_way.insert(transfer, (state, now + PATIENCE))),
            None => self.calls.call_off(now, transfer),
        }
    }

    fn send(&mut self, fx: &mut Vec<TransferEffect>) {
        let outbox = self.calls.take_outbox().into_iter();
        fx.extend(outbox.map(|(brick, packet)| TransferEffect::Send { to: NodeId::Brick(brick), packet }));
    }
}
