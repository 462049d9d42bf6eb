//! `live` for attached clients: when a client's gateway is killed and nothing else is wrong, it is answered within
//! seconds by another one.
//!
//! Only calm moments count: another gateway stands connected, the network is clean, all bricks that the volume's views
//! rely on run, and no view is being made. The next fault ends the watch without a verdict.

use crate::checkers::Violation;
use crate::rare::Seen;
use crate::world::event::Event;
use crate::world::{Kind, SECOND, World};
use base::GatewayId;
use model::LinkConfig;
use std::collections::BTreeMap;

/// A request that its gateway left unanswered is answered within this time.
const WITHIN_NS: u64 = 5 * SECOND;
/// So long ago was the last outage: leases have ended, views have changed, and bricks that came back serve.
const CALM_NS: u64 = 3 * SECOND;

/// So long after the kill, what an attached client is asked for the first time is watched too.
const ASKED_NS: u64 = SECOND;

#[derive(Default)]
pub(crate) struct Watched {
    /// Clients whose gateway was killed, and until when their new requests are watched.
    clients: BTreeMap<usize, u64>,
    /// Requests by tag: until when they must be answered, and what they are.
    requests: BTreeMap<u64, (u64, String)>,
}

impl Watched {
    /// Something else goes wrong: no verdict.
    pub(crate) fn clear(&mut self) {
        self.clients.clear();
        self.requests.clear();
    }
}

impl World {
    /// The gateway at `node` is about to be killed. True when somebody's requests are watched from now on.
    pub(crate) fn watch_failover(&mut self, node: usize) -> bool {
        let Kind::Gateway(id) = *self.nodes[node].kind() else { return false };
        if !self.is_calm() {
            return false;
        }
        let mut clients = self.nodes.matching(|client| client.client_gateway() == Some(id));
        clients.retain(|&client| self.has_another_gateway(client, id));
        for client in clients {
            self.judges.failover().clients.insert(client, self.time.now_ns() + ASKED_NS);
            self.attached_requests(client).into_iter().for_each(|(tag, text)| self.watch(tag, text));
            self.hurry_actors(client);
        }
        !self.judges.failover().clients.is_empty()
    }

    /// A request is handed to the attached client at `client`.
    pub(crate) fn on_attached_request(&mut self, client: usize, tag: u64, text: &str) {
        if self.judges.failover().clients.get(&client).is_some_and(|&until_ns| self.time.now_ns() < until_ns)
        {
            self.watch(tag, text.to_owned());
        }
    }

    fn watch(&mut self, tag: u64, text: String) {
        self.judges.failover().requests.insert(tag, (self.time.now_ns() + WITHIN_NS, text));
        self.later(WITHIN_NS, Event::Failover { tag });
    }

    /// A watched request is answered.
    pub(crate) fn end_failover(&mut self, tag: u64) {
        if self.judges.failover().requests.remove(&tag).is_some() {
            self.judges.count_rare(Seen::ClientServedWithinSecondsAfterItsGatewayWasKilled);
        }
    }

    /// A watched request should have been answered by now.
    pub(crate) fn on_failover_due(&mut self, tag: u64) {
        // It may be watched anew since this was scheduled.
        let is_due = |watched: &(u64, String)| watched.0 <= self.time.now_ns();
        if self.judges.failover().requests.get(&tag).is_some_and(is_due)
            && let Some((_, text)) = self.judges.failover().requests.remove(&tag)
        {
            let seconds = WITHIN_NS / SECOND;
            let what = format!("{text} is unanswered after {seconds} s, although only a gateway was killed");
            self.judge(Err(Violation::new("live", what)));
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
            .matching(|node| node.runs() && matches!(node.kind(), Kind::Gateway(id) if *id != killed));
        others.into_iter().any(|other| self.physics.net().is_standing(client, other))
    }
}
