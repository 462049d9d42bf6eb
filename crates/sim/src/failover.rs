//! `live` for attached clients: when a client's gateway is killed and nothing else is wrong, it is answered within
//! seconds by another one.
//!
//! Only calm moments count: another gateway stands connected, the network is clean, all bricks that the volume's views
//! rely on run, and no view is being made. The next fault ends the watch without a verdict.

use crate::checkers::Violation;
use crate::rare::Seen;
use crate::units::SECOND;
use crate::world::event::Event;
use crate::world::{Kind, World};
use base::GatewayId;
use model::LinkConfig;

/// A request that its gateway left unanswered is answered within this time.
const WITHIN_NS: u64 = 5 * SECOND;
/// So long ago was the last outage: leases have ended, views have changed, and bricks that came back serve.
const CALM_NS: u64 = 3 * SECOND;

/// So long after the kill, what an attached client is asked for the first time is watched too.
const ASKED_NS: u64 = SECOND;

impl World {
    /// The gateway at `node` is about to be killed. True when somebody's requests are watched from now on.
    pub(crate) fn watch_failover(&mut self, node: usize) -> bool {
        let Kind::Gateway(id, _) = *self.nodes[node].kind() else { return false };
        if !self.is_calm() {
            return false;
        }
        let mut clients = self.nodes.matching(|client| client.client_gateway() == Some(id));
        clients.retain(|&client| self.has_another_gateway(client, id));
        for client in clients {
            self.judges.failover().watch_client(client, self.time.now_ns() + ASKED_NS);
            self.attached_requests(client).into_iter().for_each(|(tag, text)| self.watch(tag, text));
            self.hurry_actors(client);
        }
        self.judges.failover().has_clients()
    }

    /// A request is handed to the attached client at `client`.
    pub(crate) fn on_attached_request(&mut self, client: usize, tag: u64, text: &str) {
        if self.judges.failover().watches(client, self.time.now_ns()) {
            self.watch(tag, text.to_owned());
        }
    }

    fn watch(&mut self, tag: u64, text: String) {
        self.judges.failover().watch(tag, self.time.now_ns() + WITHIN_NS, text);
        self.later(WITHIN_NS, Event::Failover { tag });
    }

    /// A watched request is answered.
    pub(crate) fn end_failover(&mut self, tag: u64) {
        if self.judges.failover().end(tag) {
            self.judges.count_rare(Seen::ClientServedWithinSecondsAfterItsGatewayWasKilled);
        }
    }

    /// A watched request should have been answered by now.
    pub(crate) fn on_failover_due(&mut self, tag: u64) {
        if let Some(text) = self.judges.failover().take_due(tag, self.time.now_ns()) {
            let seconds = WITHIN_NS / SECOND;
            let what = format!("{text} is unanswered after {seconds} s, although only a gateway was killed");
            let violation = Violation::new("live", what).with(&self.why_waits(tag));
            self.judge(Err(violation));
        }
    }

    fn is_calm(&self) -> bool {
        let runs = |node: usize| self.nodes[node].runs();
        let brick = |id| self.nodes.slot(base::NodeId::Brick(id)).is_some_and(runs);
        let views = || self.judges.views().newest().values();
        !self.shape.disks.are_small
            && self.time.now_ns() > self.faults.disturbed_ns() + CALM_NS
            && *self.physics.net().config() == LinkConfig::CLEAN
            && runs(0)
            && views().all(|view| {
                view.current_bricks().all(|(_, id)| brick(id)) && self.judges.views().is_in_force(view)
            })
    }

    fn has_another_gateway(&self, client: usize, killed: GatewayId) -> bool {
        let others = self
            .nodes
            .matching(|node| node.runs() && matches!(node.kind(), Kind::Gateway(id, _) if *id != killed));
        others.into_iter().any(|other| self.physics.net().is_standing(client, other))
    }
}
