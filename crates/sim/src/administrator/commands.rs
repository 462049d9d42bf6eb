//! The administrator in the world: which command is drawn, given, and what its answer means.

use super::{ASK_AGAIN_NS, Administrator, BURST_NS, CUTS_MAX, Command, Cut, Duty, LATE_NS, OPEN_MAX};
use crate::checkers::Violation;
use crate::faults::Incident;
use crate::history::{Kind, Operation, Register};
use crate::options::VolumePlan;
use crate::schedule::{By, Whether};
use crate::units::SECOND;
use crate::world::event::Event;
use crate::world::{Node, World};
use base::{BrickId, GroupId, NodeId};
use model::Draw;
use std::collections::BTreeMap;
use wire::{AdminError, AdminReply, AdminRequest, GroupView, Message, Packet, VolumeInfo};

impl World {
    /// Lets the administrator work as long as there are faults.
    pub(crate) fn start_administrator(&mut self) {
        if self.shape.faults && !self.administrator.duties.is_empty() {
            let delay_ns = self.turns.pause_ns(By::Administrator, 0, self.time.now_ns(), SECOND);
            self.later(delay_ns, Event::Administer);
        }
        if self.shape.faults && self.administrator.streams.is_some() {
            let delay_ns = self.turns.pause_ns(By::Streams, 0, self.time.now_ns(), SECOND);
            self.later(delay_ns, Event::AdministerStreams);
        }
        if self.shape.faults && self.administrator.churn.is_some() {
            let delay_ns = self.turns.pause_ns(By::Churn, 0, self.time.now_ns(), SECOND);
            self.later(delay_ns, Event::Churn);
        }
    }

    /// Whether it is the administrator's turn. The next one is an event `again`, after an interval that is drawn by the pace.
    pub(super) fn is_its_turn(
        &mut self,
        by: By,
        again: Event,
        pace: impl FnOnce(&mut Administrator) -> Option<(&mut Draw, u64)>,
    ) -> bool {
        let now_ns = self.time.now_ns();
        let Some((draw, interval_ns)) = pace(&mut self.administrator).filter(|_| self.faults.are_on()) else {
            return false;
        };
        let whether = self.turns.take(by, 0, now_ns, draw);
        let delay_ns = match whether {
            Whether::Now => self.turns.pause_ns(by, 0, now_ns, draw.below(2 * interval_ns)),
            Whether::In(delay_ns) => delay_ns,
            Whether::Never => return false,
        };
        self.later(delay_ns, again);
        matches!(whether, Whether::Now)
    }

    /// The administrator has its turn.
    pub(crate) fn on_administer(&mut self) {
        let is_mine =
            self.is_its_turn(By::Administrator, Event::Administer, |of| Some((&mut of.draw, of.interval_ns)));
        if !is_mine {
            return;
        }
        if self.administrator.open.len() >= OPEN_MAX {
            return;
        }
        let Administrator { draw, duties, .. } = &mut self.administrator;
        let duty = *draw.pick(duties);
        if let Some((request, volume)) = self.draw_command(duty) {
            self.command(request, volume);
        }
    }

    /// Whether a volume exists, as far as the administrator knows.
    pub(crate) fn is_there(&self, volume: usize) -> bool {
        !self.administrator.deleted.contains(&volume)
    }

    pub(super) fn is_writable(&self, volume: usize) -> bool {
        self.is_there(volume) && self.workload.plan(volume).writable
    }

    /// An answer reached the administrator.
    pub(crate) fn on_administered(&mut self, question: u64, packet: Packet) {
        let Some(command) = self.administrator.open.remove(&question) else { return };
        let Message::AdminDone { result, .. } = packet.message else { return };
        let verdict = match result {
            Ok(reply) => self.on_done(command, reply),
            // It may have been carried out.
            Err(AdminError::Unknown(_)) => {
                self.administrator.open.insert(question, command);
                return self.later(ASK_AGAIN_NS, Event::AskAgain { question });
            }
            Err(error) => self.on_refused(&command, &error),
        };
        self.judge(verdict);
    }

    /// A member is about to be fenced. With the first fence of a cut of several groups requests come as fast as they can,
    /// and one of the groups hears of it later than the others: if they did not wait for it, what happens after a write
    /// to a new head could still go to an old one.
    pub(crate) fn watch_cut(&mut self, view: &GroupView) {
        let (family, number) = (view.volume, view.lineage.number);
        let is_news = |known: &GroupView| known.lineage.number < number;
        let Administrator { coming, .. } = &mut self.administrator;
        if !self.shape.faults
            || coming.get(&family).is_some_and(|known| *known >= number)
            || !self.judges.views().in_force(view.group).is_some_and(is_news)
        {
            return;
        }
        coming.insert(family, number);
        let views = self.judges.views().newest().values();
        let groups: Vec<GroupId> = views.filter(|of| of.volume == family).map(|of| of.group).collect();
        if groups.len() > 1 {
            self.administrator.late =
                self.administrator.pick(&groups).map(|group| (group, self.time.now_ns() + BURST_NS));
            self.burst(BURST_NS);
        }
    }

    /// By how much later than usual a message arrives.
    pub(crate) fn lateness_ns(&mut self, message: &Message) -> u64 {
        let (Message::Fence { view, .. }, Some((group, until_ns))) = (message, self.administrator.late)
        else {
            return 0;
        };
        let is_late = view.group == group && self.time.now_ns() < until_ns;
        if is_late { self.administrator.draw.between(LATE_NS / 2, LATE_NS) } else { 0 }
    }

    /// All blocks are to be checked, as soon as the administrator has a hand free.
    pub(crate) fn ask_for_scrub(&mut self) {
        if self.administrator.open.len() < OPEN_MAX {
            self.command(AdminRequest::Scrub, 0);
        }
    }

    fn draw_command(&mut self, duty: Duty) -> Option<(AdminRequest, usize)> {
        match duty {
            Duty::Evict => self.draw_brick().map(|brick| (AdminRequest::EvictBrick { brick }, 0)),
            Duty::Replace => {
                let by = if self.administrator.draw.percent(50) { self.draw_spare() } else { None };
                self.draw_brick().map(|brick| (AdminRequest::ReplaceBrick { brick, by }, 0))
            }
            Duty::Readmit => {
                let evicted = self.administrator.evicted();
                let brick = self.administrator.pick(&evicted)?;
                Some((AdminRequest::ReadmitBrick { brick }, 0))
            }
            Duty::Care => Some((self.draw_care(), 0)),
            Duty::Scrub => Some((AdminRequest::Scrub, 0)),
            Duty::Snapshot | Duty::Clone | Duty::Rollback if self.administrator.cuts >= CUTS_MAX => None,
            Duty::Snapshot => self.draw_snapshot(),
            Duty::Clone | Duty::Rollback | Duty::Delete => self.draw_use(duty),
        }
    }

    /// A brick whose groups can do without it now.
    fn draw_brick(&mut self) -> Option<BrickId> {
        let bricks: Vec<BrickId> = self.nodes.iter().filter_map(Node::brick).collect();
        let brick = self.administrator.pick(&bricks)?;
        let is_near = self.judges.views().newest().values().any(|view| view.has_part(brick));
        // What is evicted is as good as lost for its groups: as rare, and only where they survive that.
        (is_near && !self.shape.disks.are_small && self.may_lose(brick)).then_some(brick)
    }

    fn draw_spare(&mut self) -> Option<BrickId> {
        let is_spare =
            |brick: &BrickId| self.judges.views().newest().values().all(|view| !view.has_part(*brick));
        let bricks: Vec<BrickId> = self.nodes.iter().filter_map(Node::brick).filter(is_spare).collect();
        self.administrator.pick(&bricks)
    }

    fn draw_care(&mut self) -> AdminRequest {
        let draw = &mut self.administrator.draw;
        let mut maybe = |low, high| draw.percent(50).then(|| draw.between(low, high));
        AdminRequest::SetCare {
            rebuild_bytes_per_second: maybe(128 << 10, 4 << 20),
            scrub_bytes_per_second: maybe(128 << 10, 32 << 20),
            scrub_interval_s: maybe(10, 60),
            rebuild_after_s: maybe(3, 12),
        }
    }

    fn draw_snapshot(&mut self) -> Option<(AdminRequest, usize)> {
        let writable: Vec<usize> =
            (0..self.workload.volumes()).filter(|volume| self.is_writable(*volume)).collect();
        let of = self.administrator.pick(&writable)?;
        self.administrator.cuts += 1;
        let volume = self.workload.plan(of).name.clone();
        let snapshot = format!("s{}", self.administrator.cuts);
        self.burst(BURST_NS);
        Some((AdminRequest::Snapshot { volume, snapshot, nonce: self.administrator.draw.bits() }, of))
    }

    fn draw_use(&mut self, duty: Duty) -> Option<(AdminRequest, usize)> {
        let may_go = |snapshot: &usize| duty != Duty::Delete || !self.administrator.used.contains(snapshot);
        let taken = self.administrator.snapshots.iter().map(|cut| cut.snapshot);
        let snapshots: Vec<usize> =
            taken.filter(|snapshot| self.is_there(*snapshot)).filter(may_go).collect();
        let of = self.administrator.pick(&snapshots)?;
        let snapshot = self.workload.plan(of).name.clone();
        let nonce = self.administrator.draw.bits();
        if duty == Duty::Delete {
            self.administrator.deleted.insert(of);
            self.workload.cancel_readers(of);
            return Some((AdminRequest::DeleteVolume { name: snapshot, nonce }, of));
        }
        self.administrator.used.insert(of);
        self.administrator.cuts += 1;
        self.burst(BURST_NS);
        let name = format!("clone{}", self.administrator.cuts);
        Some(match duty {
            Duty::Clone => (AdminRequest::Clone { snapshot, name, nonce }, of),
            _ => (AdminRequest::Rollback { snapshot, nonce }, of),
        })
    }

    pub(super) fn command(&mut self, request: AdminRequest, volume: usize) {
        self.note(0, &format!("is told by the administrator: {request:?}"));
        if let AdminRequest::EvictBrick { brick } | AdminRequest::ReplaceBrick { brick, .. } = &request {
            self.administrator.evicted.insert(*brick);
            self.faults.unsettle(*brick, self.time.now_ns() + 5 * SECOND);
        }
        self.give(Command { request, asked_ns: self.time.now_ns(), volume, idle: None });
    }

    /// What was not answered clearly is asked again, as the same command.
    pub(crate) fn ask_again(&mut self, question: u64) {
        if let Some(command) = self.administrator.open.remove(&question) {
            self.give(command);
        }
    }

    pub(super) fn give(&mut self, command: Command) {
        let request = command.request.clone();
        let question =
            self.administrate(NodeId::Directory, Box::new(|operation| Message::Admin { operation, request }));
        self.administrator.open.insert(question, command);
    }

    fn on_done(&mut self, command: Command, reply: AdminReply) -> Result<(), Violation> {
        let Command { request, asked_ns, volume, idle } = command;
        if let Some(idle) = idle {
            self.on_churned(&request, &reply, idle);
            return Ok(());
        }
        let answered_ns = self.time.now_ns();
        match (request, reply) {
            (AdminRequest::EvictBrick { .. }, _) => self.faults.count(Incident::BricksEvicted),
            (AdminRequest::ReplaceBrick { .. }, _) => self.faults.count(Incident::BricksReplaced),
            (AdminRequest::ReadmitBrick { brick }, _) => {
                self.administrator.evicted.remove(&brick);
                self.faults.count(Incident::BricksReadmitted);
            }
            (AdminRequest::Scrub, _) => self.faults.count(Incident::ScrubsAskedFor),
            (AdminRequest::Snapshot { .. }, AdminReply::Volume(info)) => {
                self.faults.count(Incident::Snapshots);
                let snapshot = self.add_branch(volume, &info, false);
                self.administrator.snapshots.push(Cut { snapshot, volume, asked_ns, answered_ns });
                if self.administrator.draw.percent(30) {
                    self.add_reader(snapshot);
                }
            }
            (AdminRequest::Clone { .. }, AdminReply::Volume(info)) => {
                self.faults.count(Incident::Clones);
                let clone = self.add_branch(volume, &info, true);
                let cut = Cut { snapshot: volume, volume: clone, asked_ns, answered_ns };
                self.administrator.restored.push(cut);
                (0..2).for_each(|_| self.add_writer(clone));
            }
            (AdminRequest::Rollback { .. }, AdminReply::Volume(_)) => {
                self.faults.count(Incident::Rollbacks);
                let source = self.administrator.snapshots.iter().find(|cut| cut.snapshot == volume);
                let of = source.expect("a snapshot that was taken").volume;
                let cut = Cut { snapshot: volume, volume: of, asked_ns, answered_ns };
                self.administrator.restored.push(cut);
            }
            (AdminRequest::DeleteVolume { .. }, _) => self.faults.count(Incident::SnapshotsDeleted),
            (request, _) => self.on_streams_done(request),
        }
        Ok(())
    }

    fn on_refused(&mut self, command: &Command, error: &AdminError) -> Result<(), Violation> {
        self.note(0, &format!("refuses {:?}: {error}", command.request));
        match (&command.request, error) {
            (_, AdminError::NotNow(_) | AdminError::Busy | AdminError::TooFewBricks { .. }) => {}
            (
                AdminRequest::ReadmitBrick { .. } | AdminRequest::ReplaceBrick { .. },
                AdminError::Invalid(_),
            ) => {}
            (request, error) if self.may_refuse(request, error, command.volume) => {}
            _ => {
                let what = format!("{:?} was answered with '{error}'", command.request);
                return Err(Violation::new("live", what));
            }
        }
        self.faults.count(Incident::CommandsRefused);
        if let Some(idle) = command.idle.clone() {
            self.on_churn_refused(&command.request, idle);
            return Ok(());
        }
        match &command.request {
            AdminRequest::DeleteVolume { .. } => drop(self.administrator.deleted.remove(&command.volume)),
            AdminRequest::EvictBrick { brick } | AdminRequest::ReplaceBrick { brick, .. } => {
                self.administrator.evicted.remove(brick);
            }
            request => self.on_streams_refused(request, error),
        }
        Ok(())
    }

    fn add_branch(&mut self, origin: usize, info: &VolumeInfo, writable: bool) -> usize {
        let plan = VolumePlan { name: info.name.clone(), writable, ..self.workload.plan(origin).clone() };
        self.workload.add_volume(plan, origin, info.family)
    }

    /// What clones and rollbacks wrote: to every block what it was in the snapshot. A snapshot is not written, but
    /// begins with what it holds.
    pub(crate) fn record_restored(&mut self, values: &BTreeMap<Register, u64>) {
        let Administrator { snapshots, restored, .. } = &self.administrator;
        let taken = snapshots.iter().map(|cut| Cut { volume: cut.snapshot, ..cut.clone() });
        let cuts: Vec<Cut> = taken.chain(restored.iter().cloned()).collect();
        for cut in cuts {
            let of_snapshot = values.iter().filter(|(register, _)| register.volume() == cut.snapshot);
            for (register, value) in of_snapshot {
                self.workload.add_operation(Operation {
                    client: u64::MAX - cut.asked_ns,
                    register: register.of(cut.volume),
                    kind: Kind::Write,
                    value: *value,
                    asked_ns: cut.asked_ns,
                    answered_ns: Some(cut.answered_ns),
                });
            }
        }
    }
}
