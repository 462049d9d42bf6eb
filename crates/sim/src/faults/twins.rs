//! Two processes with one brick's id, each with a copy of its disks: as after a virtual machine was cloned, or started anew elsewhere
//! while the first one was only out of reach. After a while an operator stops one of them for good, as `status` asks for.
//!
//! Both are connected with everybody, and what somebody says to the brick reaches one of them; which one changes at any time. So each of
//! them hears a part of what is said to both.

use super::harm::{LEAVING_NS, SETTLE_NS};
use super::{Fault, Incident};
use crate::units::{MS, SECOND};
use crate::world::World;
use crate::world::event::Event;
use base::{BrickId, NodeId};
use model::{Draw, PowerCut};
use std::collections::BTreeMap;

/// Of a thousand packets so many reach the other one from now on.
const CHANGES_PER_MILLE: u64 = 20;
/// Between two tries to stop one of them.
const AGAIN_NS: u64 = 500 * MS;

/// A brick that runs twice.
pub(super) struct Twins {
    brick: BrickId,
    nodes: [usize; 2],
    /// How often the brick had come with an old disk before.
    found_old: u64,
    /// Whom the others meet, each one of both.
    meets: BTreeMap<usize, usize>,
    draw: Draw,
}

impl Twins {
    pub(super) fn brick(&self) -> BrickId {
        self.brick
    }

    /// Which of both gets what `from` says.
    fn meet(&mut self, from: usize, is_connected: impl Fn(usize) -> bool) -> usize {
        let change = self.draw.below(1000) < CHANGES_PER_MILLE;
        let [first, second] = self.nodes;
        let drawn = if self.draw.percent(50) { first } else { second };
        let met = self.meets.entry(from).or_insert(drawn);
        if change || !is_connected(*met) {
            *met = if *met == first { second } else { first };
        }
        *met
    }
}

impl World {
    /// Which node gets what `from` says to `to`.
    pub(crate) fn meet(&mut self, from: usize, to: NodeId) -> Option<usize> {
        let slot = self.nodes.slot(to)?;
        let twins = self.faults.twins.as_mut().filter(|twins| twins.nodes.contains(&slot));
        let net = self.physics.net();
        Some(twins.map_or(slot, |twins| twins.meet(from, |node| net.is_standing(from, node))))
    }

    /// All nodes that have this id now.
    pub(crate) fn all_of(&self, id: NodeId) -> Vec<usize> {
        let slot = self.nodes.slot(id);
        match &self.faults.twins {
            Some(twins) if slot.is_some_and(|slot| twins.nodes.contains(&slot)) => twins.nodes.to_vec(),
            _ => slot.into_iter().collect(),
        }
    }

    /// A brick's disks are copied, and a second process runs with the copy.
    pub(super) fn begin_twins(&mut self) {
        if self.faults.twins.is_some() || self.faults.copy.is_some() || self.shape.disks.are_small {
            return;
        }
        let Some(first) = self.draw_one(&self.running_bricks()) else { return };
        let Some(brick) = self.nodes[first].brick().filter(|id| !self.faults.may_be_rotten(*id)) else {
            return;
        };
        if !self.may_lose(brick) || self.faults.harm.has_lost(brick) {
            return;
        }
        self.faults.count(Incident::BricksRunTwice);
        self.note_wiped(brick);
        let second = self.add_copy(first, brick);
        self.note(second, "is to run with a copy of the disks");
        let found_old = self.nodes[0].directory().map_or(0, |directory| directory.found_old(brick));
        let draw = &mut self.faults.draw;
        let (delay_ns, span_ns) = (draw.below(2 * SECOND), draw.between(3 * SECOND, 15 * SECOND));
        let twins_draw = draw.fork();
        let trouble = draw.below(100);
        let harm_ns = draw.between(500 * MS, 4 * SECOND);
        let restart_ns = draw.percent(40).then(|| draw.below(delay_ns + span_ns));
        self.faults.twins = Some(Twins {
            brick,
            nodes: [first, second],
            found_old,
            meets: BTreeMap::new(),
            draw: twins_draw,
        });
        match trouble {
            // Others still reach the first one, while the directory takes it for dead.
            0..50 => self.cut(vec![(first, 0), (0, first)], harm_ns),
            50..75 => {
                self.pause(first);
                self.later(harm_ns, Event::Resume { node: first });
            }
            _ => {}
        }
        self.faults.disturb(self.time.now_ns() + delay_ns + span_ns);
        self.faults.unsettle(brick, self.time.now_ns() + delay_ns + span_ns + LEAVING_NS);
        self.later(delay_ns, Event::Boot { node: second });
        self.later(delay_ns + MS, Event::FaultEnd(Fault::TwinIsKnown));
        if let Some(after_ns) = restart_ns {
            self.later(after_ns, Event::FaultEnd(Fault::TwinRestarts));
        }
        self.later(delay_ns + span_ns, Event::FaultEnd(Fault::Twins));
    }

    /// Those who call the brick call its twin, too: the directory tells them its address.
    pub(super) fn introduce_twin(&mut self) {
        let Some(Twins { nodes: [first, second], .. }) = &self.faults.twins else { return };
        let (first, second) = (*first, *second);
        for peer in self.physics.net().callers(first) {
            let id = self.nodes[second].id();
            if peer != second {
                self.want(peer, id);
            }
        }
    }

    /// One of the two is started anew.
    pub(super) fn restart_twin(&mut self) {
        let Some(twins) = &self.faults.twins else { return };
        let node = *self.faults.draw.pick(&twins.nodes);
        let outage_ns = self.faults.draw.between(20 * MS, 2 * SECOND);
        self.crash(node, PowerCut::ProcessOnly);
        self.later(outage_ns, Event::Boot { node });
    }

    /// One of the two is stopped for good, once it is known which one counts.
    pub(super) fn end_twins(&mut self) {
        if self.faults.twins.is_some() && !self.nodes[0].runs() {
            return self.later(AGAIN_NS, Event::FaultEnd(Fault::Twins));
        }
        let is_choosy = !self.faults.draw.percent(25);
        self.part_twins(is_choosy);
    }

    /// Stops one of the two for good: the one that does not count, or, where that may be, the other one.
    pub(super) fn part_twins(&mut self, is_choosy: bool) {
        let Some(Twins { brick, nodes: [first, second], found_old, .. }) = self.faults.twins.take() else {
            return;
        };
        let directory = self.nodes[0].directory();
        let counting = directory.and_then(|directory| directory.run_that_counts(brick));
        let (has_lost, is_behind) =
            directory.map_or((true, true), |of| (of.found_old(brick) != found_old, of.lags(brick)));
        let counts = |node: &usize| counting.is_some() && self.nodes[*node].run_number() == counting;
        let counted = [first, second].into_iter().find(counts);
        let other = |node| if node == first { second } else { first };
        let stays = match counted {
            Some(node) if !is_choosy && self.may_lose(brick) => other(node),
            Some(node) => node,
            None => first,
        };
        match (Some(stays) == counted, has_lost) {
            // No run of it was taken for an old one: whichever counts has all, or was left out and has been compared.
            (true, false) => self.faults.harm.restore(brick),
            (true, true) if !is_behind => {}
            _ => self.note_wiped(brick),
        }
        let goes = other(stays);
        self.note(goes, "is stopped for good");
        self.crash(goes, PowerCut::ProcessOnly);
        self.nodes[goes].set_gone();
        self.nodes.give_id(stays);
        self.faults.unsettle(brick, self.time.now_ns() + SETTLE_NS + LEAVING_NS);
        if Some(stays) != counted || self.faults.draw.percent(30) {
            self.crash(stays, PowerCut::ProcessOnly);
            self.later(100 * MS, Event::Boot { node: stays });
        }
    }
}
