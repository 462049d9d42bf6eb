//! What happens to nodes: crashes, pauses, disks that are slow, exchanged or never come back.

use super::Fault;
use super::Incident;
use super::harm::{LEAVING_NS, SETTLE_NS};
use crate::rare::Seen;
use crate::units::{MS, SECOND};
use crate::world::event::Event;
use crate::world::{Kind, World};
use base::BrickId;
use model::PowerCut;

impl World {
    pub(super) fn crash_brick(&mut self) {
        let Some(node) = self.draw_one(&self.running_bricks()) else { return };
        if self.faults.draw.percent(30) {
            // It comes in the middle of the brick's next write to a disk.
            self.faults.armed = Some(node);
            return;
        }
        self.crash_brick_now(node);
    }

    /// A disk of a brick was given a write, which takes `delay_ns`.
    pub(crate) fn on_disk_write(&mut self, node: usize, delay_ns: u64) {
        if self.faults.armed == Some(node) {
            self.faults.armed = None;
            let (life, delay_ns) = (self.nodes[node].life(), self.faults.draw.below(delay_ns.max(1)));
            self.later(delay_ns, Event::Crash { node, life });
        }
    }

    /// The crash of a brick that was to come in the middle of a write.
    pub(crate) fn on_crash(&mut self, node: usize) {
        if self.faults.until_ns > 0 {
            self.judges.failover().clear();
            self.crash_brick_now(node);
        }
    }

    fn crash_brick_now(&mut self, node: usize) {
        let Some(id) = self.nodes[node].brick().filter(|id| self.may_disturb(&[*id])) else { return };
        let (cut, outage_ns) = (self.draw_cut(), self.draw_outage_ns());
        self.faults.count(match cut {
            PowerCut::ProcessOnly => Incident::BricksKilled,
            _ => Incident::BricksWithoutPower,
        });
        if self.judges.views().newest().values().any(|view| view.is_catching_up(id)) {
            self.judges.count_rare(Seen::JoinerCrashedWhileCatchingUp);
        }
        if self
            .judges
            .views()
            .newest()
            .values()
            .any(|view| !view.catching_up().is_empty() && view.is_current(id))
        {
            self.judges.count_rare(Seen::SourceCrashedWhileAnotherCaughtUp);
        }
        self.crash(node, cut);
        self.faults.unsettle(id, self.time.now_ns() + outage_ns + SETTLE_NS);
        self.later(outage_ns, Event::Boot { node });
    }

    /// The power of the whole room.
    pub(super) fn crash_all(&mut self) {
        let bricks: Vec<BrickId> =
            self.running_bricks().iter().filter_map(|node| self.nodes[*node].brick()).collect();
        if !self.may_disturb(&bricks) {
            return;
        }
        self.faults.count(Incident::PowerCutsOfAll);
        for node in self.nodes.matching(|node| node.is_alive() && *node.kind() != Kind::Operator) {
            let (cut, outage_ns) = (self.draw_cut(), self.draw_outage_ns().min(3 * SECOND));
            if let Some(id) = self.nodes[node].brick() {
                self.faults.unsettle(id, self.time.now_ns() + outage_ns + SETTLE_NS);
            }
            self.crash_any(node, cut, outage_ns);
        }
    }

    fn crash_any(&mut self, node: usize, cut: PowerCut, outage_ns: u64) {
        self.crash(node, cut);
        match self.nodes[node].kind().clone() {
            Kind::Gateway(_, beside) => {
                let next = self.add_gateway(beside);
                self.faults.pass_on_lies(node, next);
                self.nodes[node].set_successor(next);
                self.later(outage_ns, Event::Boot { node: next });
            }
            Kind::Client(_, volume) => {
                let next = self.add_client(volume);
                self.later(outage_ns, Event::Boot { node: next });
            }
            _ => self.later(outage_ns, Event::Boot { node }),
        }
    }

    pub(super) fn crash_gateway(&mut self) {
        let Some(node) = self.draw_one(&self.running_gateways()) else { return };
        self.faults.count(Incident::GatewaysKilled);
        // Often nothing else goes wrong until its clients must have been served by another one.
        if self.watch_failover(node) && self.faults.draw.percent(60) {
            self.faults.quiet_until_ns = self.time.now_ns() + 7 * SECOND;
        }
        let outage_ns = self.faults.draw.between(20 * MS, 4 * SECOND);
        self.crash_any(node, PowerCut::ProcessOnly, outage_ns);
    }

    pub(super) fn crash_directory(&mut self) {
        self.faults.count(Incident::DirectoryKilled);
        let outage_ns = self.draw_outage_ns().min(6 * SECOND);
        self.crash(0, PowerCut::ProcessOnly);
        self.later(outage_ns, Event::Boot { node: 0 });
    }

    pub(super) fn crash_client(&mut self) {
        let clients = self.nodes.matching(|node| node.is_alive() && matches!(node.kind(), Kind::Client(..)));
        let Some(node) = self.draw_one(&clients) else { return };
        self.faults.count(Incident::ClientsKilled);
        let outage_ns = self.faults.draw.between(20 * MS, 2 * SECOND);
        self.crash_any(node, PowerCut::ProcessOnly, outage_ns);
    }

    /// A brick never returns, if its groups survive that and there are bricks enough without it.
    pub(super) fn lose_brick(&mut self) {
        let Some(node) = self.draw_one(&self.running_bricks()) else { return };
        let Some(id) = self.nodes[node].brick() else { return };
        let has_spare = (self.faults.harm.lost() as u32) < self.shape.spares();
        if !has_spare || self.shape.disks.are_small || !self.may_lose(id) {
            return;
        }
        self.faults.count(Incident::BricksLostForGood);
        self.note_loss_in_rebuild(id);
        self.note_wiped(id);
        self.faults.harm.lose(id);
        let cut = self.draw_cut();
        self.crash(node, cut);
        self.nodes[node].set_gone();
    }

    /// A brick's disks are exchanged for new ones: it comes back with nothing.
    pub(crate) fn exchange_disks(&mut self) {
        let Some(node) = self.draw_one(&self.running_bricks()) else { return };
        let Some(id) = self.nodes[node].brick() else { return };
        if self.shape.disks.are_small || !self.may_lose(id) {
            return;
        }
        self.faults.count(Incident::DisksExchanged);
        self.note_loss_in_rebuild(id);
        self.note_wiped(id);
        let outage_ns = self.draw_outage_ns();
        self.crash(node, PowerCut::ProcessOnly);
        self.exchange(node, id);
        self.faults.rot.clear(id);
        self.faults.unsettle(id, self.time.now_ns() + outage_ns + SETTLE_NS);
        self.later(outage_ns, Event::Boot { node });
    }

    fn note_loss_in_rebuild(&mut self, id: BrickId) {
        let views = self.judges.views().newest().values();
        if views.into_iter().any(|view| view.is_writer(id) && !view.catching_up().is_empty()) {
            self.judges.count_rare(Seen::DisksLostInTheMiddleOfARebuild);
        }
    }

    pub(super) fn pause_one(&mut self) {
        if self.shape.clocks.stand {
            return self.pause_pair();
        }
        let nodes = self.nodes.matching(|node| node.runs() && *node.kind() != Kind::Operator);
        let Some(node) = self.draw_one(&nodes) else { return };
        let long_ns = self.shape.upkeep.rebuild_after_s * SECOND;
        let draw = &mut self.faults.draw;
        let span_ns = match draw.below(100) {
            0..60 => draw.between(10 * MS, 2 * SECOND),
            60..92 => draw.between(SECOND, 20 * SECOND),
            _ => long_ns + draw.between(2 * SECOND, 8 * SECOND),
        };
        if let Some(id) = self.nodes[node].brick() {
            if !self.may_disturb(&[id]) {
                return;
            }
            self.faults.unsettle(id, self.time.now_ns() + span_ns + LEAVING_NS);
        }
        self.faults.count(Incident::Pauses);
        self.faults.disturb(self.time.now_ns() + span_ns);
        self.pause(node);
        self.later(span_ns, Event::Resume { node });
    }

    /// A machine with a brick and a gateway is paused, and its clock stands: neither notices that the brick's lease ends.
    fn pause_pair(&mut self) {
        let Some(brick) = self.draw_one(&self.running_bricks()) else { return };
        let coordinators =
            self.nodes.matching(|node| node.runs() && matches!(node.kind(), Kind::Gateway(..)));
        let (Some(gateway), Some(id)) = (self.draw_one(&coordinators), self.nodes[brick].brick()) else {
            return;
        };
        if !self.may_disturb(&[id]) {
            return;
        }
        let span_ns = self.faults.draw.between(2 * SECOND, 12 * SECOND);
        // What others have sent meanwhile may come late, or never: then nobody tells the pair either.
        let cut_ns = span_ns + self.faults.draw.below(2 * SECOND);
        let is_cut = self.faults.draw.percent(70);
        self.faults.unsettle(id, self.time.now_ns() + cut_ns + LEAVING_NS);
        self.faults.count(Incident::PairsPaused);
        self.faults.disturb(self.time.now_ns() + cut_ns);
        let pair = [brick, gateway];
        let delay_ns = span_ns + self.faults.draw.below(100 * MS);
        self.add_readers_at(gateway, delay_ns);
        for node in pair {
            self.pause_with_its_clock(node);
            self.later(span_ns, Event::Resume { node });
        }
        if is_cut {
            let others = self.nodes.matching(|node| node.is_alive() && *node.kind() != Kind::Operator);
            let others = others.into_iter().filter(|node| !pair.contains(node));
            let cut =
                others.flat_map(|far| pair.into_iter().flat_map(move |near| [(near, far), (far, near)]));
            self.cut(cut.collect(), cut_ns);
        }
    }

    pub(super) fn slow_disks(&mut self) {
        let Some(node) = self.draw_one(&self.running_bricks()) else { return };
        let draw = &mut self.faults.draw;
        let (percent, span_ns) = (draw.between(1_000, 50_000), draw.between(500 * MS, 8 * SECOND));
        if !self.may_hinder(node, span_ns) {
            return;
        }
        self.faults.count(Incident::SlowDisks);
        self.faults.hinder(self.time.now_ns() + span_ns);
        self.set_slowness(node, percent);
        self.note(node, &format!("has disks of {percent} percent latency"));
        self.later(span_ns, Event::FaultEnd(Fault::SlowDisks(node)));
    }

    /// One brick holds up the others, for long enough to be left out for it: each access to its disks, or each of its
    /// messages, takes so much longer.
    pub(super) fn slow_brick(&mut self) {
        let Some(node) = self.draw_one(&self.running_bricks()) else { return };
        let draw = &mut self.faults.draw;
        let (late_ns, by_disk) = (draw.between(20 * MS, 200 * MS), draw.percent(50));
        let span_ns = draw.between(2 * SECOND, 15 * SECOND);
        if !self.may_hinder(node, span_ns) {
            return;
        }
        self.faults.count(Incident::SlowBricks);
        self.faults.hinder(self.time.now_ns() + span_ns);
        let what = if by_disk { "disks" } else { "messages" };
        self.note(node, &format!("has {what} that are {} ms late", late_ns / MS));
        let fault = if by_disk {
            self.set_slowness(node, 100 * late_ns / self.shape.disks.model.read_ns.max(1));
            Fault::SlowDisks(node)
        } else {
            self.faults.late.insert(node, late_ns);
            Fault::LateBrick(node)
        };
        self.later(span_ns, Event::FaultEnd(fault));
    }

    /// Whether a brick may be slow for a while. It may be left out for that, as one that is out of reach: the directory sees
    /// to it that its groups bear that, but it cannot know of blocks that are rotten elsewhere.
    fn may_hinder(&mut self, node: usize, span_ns: u64) -> bool {
        let Some(id) = self.nodes[node].brick().filter(|id| self.may_disturb(&[*id])) else { return false };
        self.faults.unsettle(id, self.time.now_ns() + span_ns + LEAVING_NS);
        true
    }

    pub(super) fn set_slowness(&mut self, node: usize, percent: u64) {
        if let Some(bay) = self.nodes[node].bay_mut() {
            bay.disks_mut().iter_mut().for_each(|disk| disk.set_slowness(percent));
        }
    }

    fn draw_cut(&mut self) -> PowerCut {
        *self.faults.draw.pick(&[
            PowerCut::ProcessOnly,
            PowerCut::ProcessOnly,
            PowerCut::LoseAll,
            PowerCut::LoseWrites,
            PowerCut::TearSectors,
        ])
    }

    /// Short outages, which a lease outlasts; longer ones, after which a member is left out; and long ones, after which
    /// its blocks are rebuilt onto another brick.
    pub(super) fn draw_outage_ns(&mut self) -> u64 {
        let long_ns = self.shape.upkeep.rebuild_after_s * SECOND;
        let draw = &mut self.faults.draw;
        let outage_ns = match draw.below(100) {
            0..50 => draw.between(50 * MS, 1500 * MS),
            50..85 => draw.between(SECOND, 15 * SECOND),
            _ => long_ns + draw.between(2 * SECOND, 10 * SECOND),
        };
        self.faults.disturb(self.time.now_ns() + outage_ns);
        outage_ns
    }
}
