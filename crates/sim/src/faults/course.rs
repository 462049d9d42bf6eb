//! The course of faults: one drawn after the other, each with its end, until all is healed.

use super::{Fault, Faults, Trouble};
use crate::checkers::live::Excuses;
use crate::schedule::{By, Whether};
use crate::world::event::Event;
use crate::world::{Kind, World};
use model::LinkConfig;

impl World {
    /// Lets faults happen for `span_ns`.
    pub(crate) fn start_faults(&mut self, span_ns: u64) {
        if self.shape.faults && !self.faults.kinds.is_empty() {
            self.faults.until_ns = self.time.now_ns() + span_ns;
            let delay_ns = self.turns.pause_ns(By::Fault, 0, self.time.now_ns(), 0);
            self.later(delay_ns, Event::Fault);
        }
    }

    pub(crate) fn on_fault(&mut self) {
        if self.time.now_ns() >= self.faults.until_ns {
            return;
        }
        if self.time.now_ns() < self.faults.quiet_until_ns {
            let delay_ns = self.faults.quiet_until_ns - self.time.now_ns();
            return self.later(delay_ns, Event::Fault);
        }
        let now_ns = self.time.now_ns();
        match self.turns.take(By::Fault, 0, now_ns, &mut self.faults.draw) {
            Whether::Now => {}
            Whether::In(delay_ns) => return self.later(delay_ns, Event::Fault),
            Whether::Never => return,
        }
        let Faults { draw, kinds, .. } = &mut self.faults;
        let trouble = *draw.pick(kinds);
        self.begin(trouble);
        let delay_ns = self.faults.draw.below(2 * self.faults.interval_ns);
        let delay_ns = self.turns.pause_ns(By::Fault, 0, now_ns, delay_ns);
        self.later(delay_ns, Event::Fault);
    }

    /// A fault is over.
    pub(crate) fn end_fault(&mut self, fault: Fault) {
        match fault {
            Fault::Cut(pairs) => {
                pairs.iter().for_each(|&(from, to)| self.physics.net_mut().unblock(from, to));
                self.note(0, "a partition is over");
            }
            Fault::SlowDisks(node) => self.set_slowness(node, 100),
            Fault::LateBrick(node) => drop(self.faults.late.remove(&node)),
            Fault::Noise => self.physics.net_mut().set_config(LinkConfig::CLEAN),
            Fault::Rot => self.ask_for_scrub(),
            Fault::StoreCopied => self.exchange_store(),
            Fault::Copied { is_stored } => self.put_back(is_stored),
            Fault::TwinIsKnown => self.introduce_twin(),
            Fault::TwinRestarts => self.restart_twin(),
            Fault::Twins => self.end_twins(),
        }
    }

    /// Ends all faults: everyone who can returns, and the network is perfect.
    pub(crate) fn heal(&mut self) {
        self.note(0, "all is healed");
        (self.faults.until_ns, self.faults.armed) = (0, None);
        self.physics.net_mut().unblock_all();
        self.physics.net_mut().set_config(LinkConfig::CLEAN);
        self.faults.late.clear();
        self.part_twins(true);
        for node in 0..self.nodes.len() {
            self.resume(node);
            self.set_slowness(node, 100);
            if *self.nodes[node].kind() != Kind::Operator {
                self.boot(node);
            }
        }
    }

    /// Which errors are true for a volume now.
    pub(crate) fn excuses(&self, volume: usize) -> Excuses {
        let family = self.workload.family(volume);
        let groups = self.judges.views().newest().values().filter(|view| Some(view.volume) == family);
        let unreadable = groups.into_iter().any(|view| self.is_beyond(view.group));
        Excuses { full: self.shape.disks.are_small, unreadable, deleted: !self.is_there(volume) }
    }

    fn begin(&mut self, kind: Trouble) {
        self.judges.failover().clear();
        match kind {
            Trouble::CrashBrick => self.crash_brick(),
            Trouble::CrashAll => self.crash_all(),
            Trouble::CrashGateway => self.crash_gateway(),
            Trouble::CrashDirectory => self.crash_directory(),
            Trouble::CrashClient => self.crash_client(),
            Trouble::LoseBrick => self.lose_brick(),
            Trouble::ExchangeDisks => self.exchange_disks(),
            Trouble::Partition => self.partition(),
            Trouble::Pause => self.pause_one(),
            Trouble::SlowDisks => self.slow_disks(),
            Trouble::Noise => self.noise(),
            Trouble::Reset => self.reset_one(),
            Trouble::Rot => self.rot(),
            Trouble::SlowBrick => self.slow_brick(),
            Trouble::OldDisks => self.copy_disks(),
            Trouble::OldStore => self.copy_store(),
            Trouble::Twins => self.begin_twins(),
        }
    }

    pub(crate) fn running_gateways(&self) -> Vec<usize> {
        self.nodes.matching(|node| node.is_alive() && matches!(node.kind(), Kind::Gateway(..)))
    }

    /// Those that run once.
    pub(super) fn running_bricks(&self) -> Vec<usize> {
        let faults = &self.faults;
        self.nodes.matching(|node| node.is_alive() && node.brick().is_some_and(|id| !faults.runs_twice(id)))
    }

    pub(super) fn draw_one(&mut self, nodes: &[usize]) -> Option<usize> {
        (!nodes.is_empty()).then(|| *self.faults.draw.pick(nodes))
    }
}
