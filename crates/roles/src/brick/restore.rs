//! The brick and the objects that it restores and moves for its [`Maintenance`](super::Maintenance): it puts and reads fragments as a gateway does.

use super::{Brick, BrickEffect};
use base::{BrickId, NodeId, ObjectVersion, Time};
use code::Computed;
use objects::object::{ObjectEffect, ObjectNews, ObjectWish, Objects, TransferId};
use std::collections::BTreeSet;
use wire::{FragmentId, Message, Packet};

/// Computations of objects have this bit, those of the maintenance do not.
pub(super) const COMPUTATION: u64 = 1 << 63;

#[derive(Debug)]
pub(super) struct Restores {
    objects: Objects,
    /// Whether the maintenance wants to know which bricks are lost.
    looks_at_bricks: bool,
    /// What may be given back in a moment: the brick takes no fragments of these segments.
    leaving: BTreeSet<(ObjectVersion, u32)>,
    fx: Vec<ObjectEffect>,
}

impl Restores {
    /// Of a run of the brick.
    pub(super) fn new(run: u64) -> Restores {
        Restores {
            objects: Objects::of_run(run),
            looks_at_bricks: false,
            leaving: BTreeSet::new(),
            fx: Vec::new(),
        }
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

    /// Whether the brick takes this fragment: it does not while it may give all of its segment back.
    pub(super) fn takes(&self, fragment: FragmentId) -> bool {
        !self.leaving.contains(&(fragment.version, fragment.segment))
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub(super) fn set_rules(&mut self, rules: &'static dyn rules::promises::Rules) {
        self.objects.set_rules(rules);
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
        let me = self.groups.me();
        let Restores { objects, looks_at_bricks, fx: told, .. } = &mut self.restores;
        if *looks_at_bricks && let Some(room) = objects.room_of_bricks(now, me, told) {
            *looks_at_bricks = false;
            self.maintenance.on_bricks(now, room);
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
                ObjectEffect::News { news: ObjectNews::Leaving { version, segment }, .. } => {
                    self.restores.leaving.insert((version, segment));
                }
                ObjectEffect::News { tag, news: ObjectNews::Left { version, segment, is_elsewhere } } => {
                    if is_elsewhere {
                        self.maintenance.on_left_segment(now, tag, segment);
                        for effect in self.maintenance.take_effects() {
                            self.carry_out(now, effect, fx);
                        }
                    }
                    self.restores.leaving.remove(&(version, segment));
                }
                ObjectEffect::News { tag, news: ObjectNews::Rebalanced(result) } => {
                    self.maintenance.on_rebalanced(now, tag, result);
                }
                other => unreachable!("a brick restores and moves only, and is told {other:?}"),
            }
        }
        true
    }
}
