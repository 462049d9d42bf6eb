//! Objects that a gateway puts and reads, for whoever drives it.

use super::GatewayEffect;
use base::{BrickId, Payload, Time};
use code::Computed;
use objects::object::{Get, GetError, ObjectEffect, ObjectWish, Objects, Place, Put, PutError, TransferId};
use rules::fair::Cost;
use std::collections::BTreeMap;
use wire::{Message, Packet};

/// What became of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Segment {
    /// Who has which of its fragments.
    Put(Result<Vec<Place>, PutError>),
    /// Its blocks.
    Got(Result<Vec<Payload>, GetError>),
}

/// Objects, and what is computed for them.
#[derive(Debug, Default)]
pub(super) struct OfObjects {
    objects: Objects,
    computations: BTreeMap<u64, TransferId>,
    last: u64,
    fx: Vec<ObjectEffect>,
}

/// Numbers of computations for transfers: no operation of the coordinator has one of these.
const COMPUTATIONS: u64 = 1 << 63;

impl OfObjects {
    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub(super) fn set_rules(&mut self, rules: &'static dyn rules::promises::Rules) {
        self.objects.set_rules(rules);
    }

    pub(super) fn set_cost(&mut self, cost: Cost) {
        self.objects.set_cost(cost);
    }

    pub(super) fn put(&mut self, now: Time, tag: u64, put: Put, out: &mut Vec<GatewayEffect>) {
        self.objects.put_segment(now, tag, put, &mut self.fx);
        self.hand_over(out);
    }

    pub(super) fn get(&mut self, now: Time, tag: u64, get: Get, out: &mut Vec<GatewayEffect>) {
        self.objects.get_segment(now, tag, get, &mut self.fx);
        self.hand_over(out);
    }

    pub(super) fn on_wish(&mut self, now: Time, tag: u64, wish: ObjectWish, out: &mut Vec<GatewayEffect>) {
        self.objects.on_wish(now, tag, wish, &mut self.fx);
        self.hand_over(out);
    }

    pub(super) fn on_packet(
        &mut self,
        now: Time,
        from: BrickId,
        packet: Packet,
        out: &mut Vec<GatewayEffect>,
    ) {
        self.objects.on_brick(now, from, packet, &mut self.fx);
        self.hand_over(out);
    }

    pub(super) fn on_directory(&mut self, now: Time, message: Message, out: &mut Vec<GatewayEffect>) {
        self.objects.on_directory(now, message, &mut self.fx);
        self.hand_over(out);
    }

    pub(super) fn on_directory_up(&mut self, now: Time, out: &mut Vec<GatewayEffect>) {
        self.objects.on_directory_up(now, &mut self.fx);
        self.hand_over(out);
    }

    pub(super) fn on_up(&mut self, now: Time, brick: BrickId, out: &mut Vec<GatewayEffect>) {
        self.objects.on_up(now, brick, &mut self.fx);
        self.hand_over(out);
    }

    /// Whether what was computed was for an object.
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
            self.objects.on_computed(now, transfer, made, &mut self.fx);
            self.hand_over(out);
        }
        Ok(())
    }

    /// What it asks for objects and has no answer to, a line for each question. For people.
    pub(super) fn describe(&self, now: Time) -> Vec<String> {
        self.objects.describe(now)
    }

    pub(super) fn deadline(&self) -> Option<(Time, &'static str)> {
        self.objects.deadline().map(|at| (at, "something is asked for again for an object, or given up"))
    }

    pub(super) fn wake(&mut self, now: Time, out: &mut Vec<GatewayEffect>) {
        if self.objects.deadline().is_some_and(|due| due <= now) {
            self.objects.wake(now, &mut self.fx);
            self.hand_over(out);
        }
    }

    fn hand_over(&mut self, out: &mut Vec<GatewayEffect>) {
        for effect in self.fx.drain(..) {
            out.push(match effect {
                ObjectEffect::Send { to, packet } => GatewayEffect::Send { to, packet },
                ObjectEffect::Address { node, address } => GatewayEffect::Address { node, address },
                ObjectEffect::Compute { transfer, computation } => {
                    self.last += 1;
                    let number = COMPUTATIONS | self.last;
                    self.computations.insert(number, transfer);
                    GatewayEffect::Compute { number, computation }
                }
                ObjectEffect::News { tag, news } => GatewayEffect::Object { tag, news },
                ObjectEffect::Put { tag, result } => {
                    GatewayEffect::Segment { tag, segment: Segment::Put(result) }
                }
                ObjectEffect::Got { tag, result } => {
                    GatewayEffect::Segment { tag, segment: Segment::Got(result) }
                }
            });
        }
    }
}
