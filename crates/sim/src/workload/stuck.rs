//! Why a request is not answered: what its client and its gateway tell of it, under the names that the trace has for nodes.

use super::{Actor, Port};
use crate::units::SECOND;
use crate::world::{Kind, Node, World};
use base::{GatewayId, NodeId, Time};
use roles::gateway::{Awaited, Gateway};

impl World {
    /// What the request waits for that was asked first of all that are not answered.
    pub(crate) fn why_oldest_waits(&self) -> Vec<String> {
        let asked_ns = |actor: &&Actor| actor.pending.as_ref().map_or(u64::MAX, |pending| pending.asked_ns);
        let oldest = self.workload.actors.iter().min_by_key(asked_ns);
        oldest.map_or_else(Vec::new, |actor| self.why_actor_waits(actor))
    }

    /// What the request with this tag waits for.
    pub(crate) fn why_waits(&self, tag: u64) -> Vec<String> {
        let is_its = |actor: &&Actor| actor.pending.as_ref().is_some_and(|pending| pending.tag == tag);
        let actor = self.workload.actors.iter().find(is_its);
        actor.map_or_else(Vec::new, |actor| self.why_actor_waits(actor))
    }

    fn why_actor_waits(&self, actor: &Actor) -> Vec<String> {
        let Some(pending) = &actor.pending else { return Vec::new() };
        let asked = pending.asked_ns as f64 / SECOND as f64;
        let mut lines = vec![format!("#{} was asked at {asked:.6}", pending.tag)];
        match actor.port {
            Port::None => lines.push("no gateway or client has it".to_owned()),
            Port::Session { node, session, .. } => {
                self.tell_gateway(node, Awaited::Session { session, tag: pending.tag }, &mut lines);
            }
            Port::Attached { node } => self.tell_client(node, pending.tag, &mut lines),
        }
        self.tell_stopped_bricks(&mut lines);
        lines
    }

    /// What is put or read of objects under this tag, through this gateway, waits for.
    pub(crate) fn why_object_waits(&self, tag: u64, node: usize) -> Vec<String> {
        let this = &self.nodes[node];
        let mut lines = vec![format!("#{tag} was asked of {}", this.id())];
        if !this.runs() {
            lines.push(format!("{} {}", this.id(), state(this)));
        }
        let told = this.gateway().map_or_else(Vec::new, Gateway::describe_objects);
        lines.extend(told.into_iter().map(|line| format!("{} {line}", this.id())));
        self.tell_stopped_bricks(&mut lines);
        lines
    }

    fn tell_stopped_bricks(&self, lines: &mut Vec<String>) {
        let stopped = self.nodes.iter().filter(|node| !node.runs() && matches!(node.kind(), Kind::Brick(_)));
        lines.extend(stopped.map(|node| format!("{} {}", node.id(), state(node))));
    }

    fn tell_client(&self, node: usize, tag: u64, lines: &mut Vec<String>) {
        let this = &self.nodes[node];
        let id = this.id();
        let Some(client) = this.client() else { return lines.push(format!("{id} {}", state(this))) };
        let Some((request, asked, sent)) = client.outstanding(tag) else {
            return lines.push(format!("{id} has no such request, or has answered it"));
        };
        let now: Time = this.local(self.time.now_ns());
        let sequence = request.sequence;
        let Some(gateway) = asked else {
            return lines.push(format!("{id} has asked no gateway for it (sequence {sequence})"));
        };
        let since = now.since(sent);
        lines.push(format!("{id} asked {gateway} for it {since:.1?} ago (sequence {sequence})"));
        match self.gateway_slot(gateway) {
            Some(at) => self.tell_gateway(at, Awaited::Client(request), lines),
            None => lines.push(format!("{gateway} does not run any more")),
        }
    }

    fn gateway_slot(&self, gateway: GatewayId) -> Option<usize> {
        self.nodes.slot(NodeId::Gateway(gateway))
    }

    fn tell_gateway(&self, node: usize, awaited: Awaited, lines: &mut Vec<String>) {
        let this = &self.nodes[node];
        let id = this.id();
        if !this.runs() {
            lines.push(format!("{id} {}", state(this)));
        }
        let told = this.gateway().map_or_else(Vec::new, |gateway| gateway.describe(awaited));
        let mut told = told.into_iter();
        lines.extend(told.next().map(|first| format!("{id} {first}")));
        lines.extend(told);
    }
}

fn state(node: &Node) -> &'static str {
    match (node.is_gone(), node.is_paused()) {
        (true, _) => "is lost for good",
        (_, true) => "is paused",
        _ => "does not run",
    }
}

#[cfg(test)]
mod tests {
    use crate::options::{Options, Shape};
    use crate::trace::Trace;
    use crate::units::SECOND;
    use crate::world::{Kind, World};
    use model::PowerCut;

    #[test]
    fn a_stuck_request_names_its_gateway_the_bricks_it_asked_and_those_that_do_not_run() {
        let options = Options {
            faults: false,
            bricks: Some(4),
            layouts: vec!["raid1x3".to_owned()],
            operations: Some(4000),
            ..Options::default()
        };
        let mut world = World::new(1, Shape::draw(1, &options), Trace::new(None));
        world.set_up().expect("a cluster without faults is set up");
        world.start_workload();
        world.run_until(world.time.now_ns() + SECOND);
        let bricks = world.nodes.matching(|node| matches!(node.kind(), Kind::Brick(_)));
        bricks.into_iter().for_each(|brick| world.crash(brick, PowerCut::ProcessOnly));
        world.run_until(world.time.now_ns() + 3 * SECOND);

        let told = world.why_oldest_waits().join("\n");
        let has = |line: &str| told.lines().any(|told| told.starts_with(line));
        assert!(has("#") && has("gateway-") && has("brick-1 does not run"), "{told}");
        assert!(told.contains(": asked brick-") && told.contains(" on group-"), "{told}");
    }
}
