//! The brick and the objects that it restores for its [`Maintenance`](super::Maintenance): it puts and reads fragments as a gateway does.

use super::{Brick, BrickEffect};
use crate::object::{ObjectEffect, ObjectNews, ObjectWish, Objects, TransferId};
use base::{BrickId, NodeId, Time};
use code::Computed;
use wire::{Message, Packet};

/// Computations of objects have this bit, those of the maintenance do not.
pub(super) const COMPUTATION: u64 = 1 << 63;

#[derive(Debug)]
pub(super) struct Restores {
    objects: Objects,
    /// Whether the maintenance wants to know which bricks are lost.
    looks_at_bricks: bool,
    fx: Vec<ObjectEffect>,
}

impl Restores {
    /// Of a run of the brick.
    pub(super) fn new(run: u64) -> Restores {
        Restores { objects: Objects::of_run(run), looks_at_bricks: false, fx: Vec::new() }
    }

    pub(super) fn deadline(&self) -> Option<(Time, &'static str)> {
        self.objects.deadline().map(|due| (due, "an object is restored"))
    }

    pub(super) fn wish(&mut self, now: Time, tag: u64, wish: ObjectWish) {
        self.objects.on_wish(now, tag, wish, &mut self.fx);
    }

    pub(super) fn look_at_bricks(&mut self) {
        self.looks_at_bricks = true;
    }

    pub(super) fn on_brick(&mut self, now: Time, from: BrickId, packet: Packet) {
        self.objects.on_brick(now, from, packet, &mut self.fx);
    }

    pub(super) fn on_directory(&mut self, now: Time, message: Message) {
        self.objects.on_directory(now, message, &mut self.fx);
    }

    /// A node can be reached again.
    pub(super) fn on_up(&mut self, now: Time, node: NodeId) {
        match node {
            NodeId::Brick(brick) => self.objects.on_up(now, brick, &mut self.fx),
            NodeId::Directory => self.objects.on_directory_up(now, &mut self.fx),
            NodeId::Gateway(_) | NodeId::Client(_) => {}
        }
    }

    pub(super) fn on_computed(&mut self, now: Time, number: u64, made: Computed) {
        self.objects.on_computed(now, TransferId(number & !COMPUTATION), made, &mut self.fx);
    }

    pub(super) fn wake(&mut self, now: Time) {
        self.objects.wake(now, &mut self.fx);
    }
}

impl Brick {
    /// Brings the maintenance what came of its wishes. Whether something did.
    pub(super) fn bring_restored(&mut self, now: Time, fx: &mut Vec<BrickEffect>) -> bool {
        let Restores { objects, looks_at_bricks, fx: told } = &mut self.restores;
        if *looks_at_bricks && let Some(fingerprint) = objects.fingerprint_of_bricks(now, told) {
            *looks_at_bricks = false;
            self.maintenance.on_bricks(now, fingerprint);
            return true;
        }
        if told.is_empty() {
            return false;
        }
        for effect in core::mem::take(told) {
            match effect {
                ObjectEffect::Send { to, packet } => fx.push(BrickEffect::Send { to, packet }),
                // Heartbeats say so.
                ObjectEffect::Address { .. } => {}
                ObjectEffect::Compute { transfer, computation } => {
                    fx.push(BrickEffect::Compute { number: COMPUTATION | transfer.0, computation });
                }
                ObjectEffect::News { tag, news: ObjectNews::WantsToRead { bytes } } => {
                    self.maintenance.on_wants_to_read(tag, bytes);
                }
                ObjectEffect::News { tag, news: ObjectNews::Restored(result) } => {
                    self.maintenance.on_restored(now, tag, result);
                }
                other => unreachable!("a brick restores only, and is told {other:?}"),
            }
        }
        true
    }
}
