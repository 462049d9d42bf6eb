//! What the network does: partitions, noise, connections that break.

use super::Fault;
use super::Incident;
use super::harm::LEAVING_NS;
use crate::units::{MS, SECOND};
use crate::world::event::Event;
use crate::world::{Kind, World};
use base::BrickId;
use model::LinkConfig;

impl World {
    pub(super) fn partition(&mut self) {
        let nodes = self.nodes.matching(|node| node.is_alive() && *node.kind() != Kind::Operator);
        let draw = &mut self.faults.draw;
        if nodes.is_empty() {
            return;
        }
        let (alone, both_ways) = (draw.percent(60), draw.percent(70));
        let island: Vec<usize> = if alone {
            vec![*draw.pick(&nodes)]
        } else {
            nodes.iter().copied().filter(|_| draw.percent(35)).collect()
        };
        let span_ns = self.draw_partition_ns();
        let rest: Vec<usize> = nodes.into_iter().filter(|node| !island.contains(node)).collect();
        let far_from_directory = if island.contains(&0) { &rest } else { &island };
        let bricks: Vec<BrickId> =
            far_from_directory.iter().filter_map(|node| self.nodes[*node].brick()).collect();
        if !self.may_disturb(&bricks) {
            return;
        }
        bricks
            .into_iter()
            .for_each(|brick| self.faults.unsettle(brick, self.time.now_ns() + span_ns + LEAVING_NS));
        self.faults.disturb(self.time.now_ns() + span_ns);
        let mut pairs: Vec<(usize, usize)> =
            island.iter().flat_map(|&a| rest.iter().map(move |&b| (a, b))).collect();
        if both_ways {
            pairs.extend(pairs.clone().into_iter().map(|(a, b)| (b, a)));
        }
        self.faults.count(if both_ways { Incident::Partitions } else { Incident::OneWayPartitions });
        self.cut(pairs, span_ns);
    }

    fn draw_partition_ns(&mut self) -> u64 {
        let long_ns = self.shape.upkeep.rebuild_after_s * SECOND;
        let draw = &mut self.faults.draw;
        match draw.below(100) {
            0..50 => draw.between(100 * MS, 2 * SECOND),
            50..92 => draw.between(SECOND, 10 * SECOND),
            _ => long_ns + draw.between(2 * SECOND, 8 * SECOND),
        }
    }

    pub(super) fn cut(&mut self, pairs: Vec<(usize, usize)>, span_ns: u64) {
        for &(from, to) in &pairs {
            self.physics.net_mut().block(from, to);
            let what = format!("reaches {} no more", self.nodes[to].id());
            self.note(from, &what);
            let delay_ns = self.faults.draw.between(500 * MS, 5 * SECOND);
            self.reset_if_cut((from.min(to), from.max(to)), delay_ns.max(span_ns / 2));
        }
        self.later(span_ns, Event::FaultEnd(Fault::Cut(pairs)));
    }

    /// A connection across a partition breaks when its sides find out; some survive a short one.
    fn reset_if_cut(&mut self, pair: (usize, usize), delay_ns: u64) {
        if self.faults.draw.percent(70) {
            self.reset(pair, delay_ns);
        }
    }

    pub(super) fn noise(&mut self) {
        let bricks: Vec<BrickId> =
            self.running_bricks().iter().filter_map(|node| self.nodes[*node].brick()).collect();
        if !self.may_disturb(&bricks) {
            return;
        }
        self.faults.count(Incident::NoisyNetworks);
        let draw = &mut self.faults.draw;
        let config = LinkConfig {
            latency_ns: draw.between(50_000, 5 * MS),
            spread_ns: draw.between(50_000, 20 * MS),
            loss_ppm: draw.below(100_000) as u32,
            duplicate_ppm: draw.below(100_000) as u32,
            reorder_ppm: draw.below(200_000) as u32,
            reorder_ns: draw.between(MS, 500 * MS),
        };
        let span_ns = draw.between(500 * MS, 10 * SECOND);
        self.physics.net_mut().set_config(config);
        self.faults.hinder(self.time.now_ns() + span_ns);
        self.later(span_ns, Event::FaultEnd(Fault::Noise));
    }

    pub(super) fn reset_one(&mut self) {
        let standing = self.physics.net().standing();
        if !standing.is_empty() {
            self.faults.count(Incident::ConnectionsReset);
            let pair = *self.faults.draw.pick(&standing);
            self.reset(pair, 0);
        }
    }
}
