//! Segments of objects that a gateway puts and gets, for whoever drives it.

use super::GatewayEffect;
use crate::object::{Get, GetError, Place, Put, PutError, TransferEffect, TransferId, Transfers};
use base::{BrickId, Payload, Time};
use code::Computed;
use std::collections::BTreeMap;
use wire::Packet;

/// What became of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Segment {
    /// Who has which of its fragments.
    Put(Result<Vec<Place>, PutError>),
    /// Its blocks.
    Got(Result<Vec<Payload>, GetError>),
}

/// Transfers, and who asked for them.
#[derive(Debug, Default)]
pub(super) struct Objects {
    transfers: Transfers,
    tags: BTreeMap<TransferId, u64>,
    /// What is computed, for whom.
    computations: BTreeMap<u64, TransferId>,
    last: u64,
    fx: Vec<TransferEffect>,
}

/// Numbers of computations for transfers: no operation of the coordinator has one of these.
const COMPUTATIONS: u64 = 1 << 63;

impl Objects {
    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub(super) fn set_rules(&mut self, rules: &'static dyn crate::rules::Rules) {
        self.transfers.set_rules(rules);
    }

    pub(super) fn put(&mut self, now: Time, tag: u64, put: Put, out: &mut Vec<GatewayEffect>) {
        let transfer = self.transfers.put(now, put, &mut self.fx);
        self.tags.insert(transfer, tag);
        self.hand_over(out);
    }

    pub(super) fn get(&mut self, now: Time, tag: u64, get: Get, out: &mut Vec<GatewayEffect>) {
        let transfer = self.transfers.get(now, get, &mut self.fx);
        self.tags.insert(transfer, tag);
        self.hand_over(out);
    }

    pub(super) fn on_packet(
        &mut self,
        now: Time,
        from: BrickId,
        packet: Packet,
        out: &mut Vec<GatewayEffect>,
    ) {
        self.transfers.on_packet(now, from, packet, &mut self.fx);
        self.hand_over(out);
    }

    pub(super) fn on_up(&mut self, now: Time, brick: BrickId, out: &mut Vec<GatewayEffect>) {
        self.transfers.on_up(now, brick, &mut self.fx);
        self.hand_over(out);
    }

    /// Whether what was computed was for a transfer.
    pub(super) fn on_computed(
        &mut self,
        now: Time,
        number: u64,
        made: Computed,
        out: &mut Vec<GatewayEffect>,
    ) -> Result<(), Computed> {
        if number & COMPUTATIONS == 0 {
            return Err(made);
        }
        if let Some(transfer) = self.computations.remove(&number) {
            self.transfers.on_computed(now, transfer, made, &mut self.fx);
            self.hand_over(out);
        }
        Ok(())
    }

    pub(super) fn deadline(&self) -> Option<(Time, &'static str)> {
        self.transfers.deadline().map(|at| (at, "a fragment is asked for again, or given up"))
    }

    pub(super) fn wake(&mut self, now: Time, out: &mut Vec<GatewayEffect>) {
        self.transfers.wake(now, &mut self.fx);
        self.hand_over(out);
    }

    fn hand_over(&mut self, out: &mut Vec<GatewayEffect>) {
        for effect in self.fx.drain(..) {
            out.push(match effect {
                TransferEffect::Send { to, packet } => GatewayEffect::Send { to, packet },
                TransferEffect::Compute { transfer, computation } => {
                    self.last += 1;
                    let number = COMPUTATIONS | self.last;
                    self.computations.insert(number, transfer);
                    GatewayEffect::Compute { number, computation }
                }
                TransferEffect::Put { transfer, result } => {
                    let tag = self.tags.remove(&transfer).expect("a transfer ends once");
                    GatewayEffect::Segment { tag, segment: Segment::Put(result) }
                }
                TransferEffect::Got { transfer, result } => {
                    let tag = self.tags.remove(&transfer).expect("a transfer ends once");
                    GatewayEffect::Segment { tag, segment: Segment::Got(result) }
                }
            });
        }
    }
}
