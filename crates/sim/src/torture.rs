//! One seed: a cluster is set up, hurt, healed and judged.

use crate::checkers::{Violation, live, progress};
use crate::faults::Incident;
use crate::history::History;
use crate::options::{Options, Shape, VolumePlan};
use crate::rare::{Rare, Reached};
use crate::schedule::{Course, Turns};
use crate::trace::Trace;
use crate::units::{MS, SECOND};
use crate::world::{Question, World};
use base::{BrickId, NodeId, VolumeId};
use rules::counters::Counter;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use wire::{AdminError, AdminReply, AdminRequest, Message, Packet};

/// After healing, every request is answered within this time.
const LIVE_NS: u64 = 40 * SECOND;
const CRASHES: [Incident; 6] = [
    Incident::BricksKilled,
    Incident::BricksWithoutPower,
    Incident::PowerCutsOfAll,
    Incident::GatewaysKilled,
    Incident::DirectoryKilled,
    Incident::ClientsKilled,
];
const SETUP_NS: u64 = 60 * SECOND;
/// Volumes that nobody opens are made so many at once.
const PREFILLED_AT_ONCE: usize = 50;
/// One of so many of them has many groups and many snapshots; of the others one of three has a snapshot.
const LARGE_EVERY: u32 = 200;
const GROUPS_OF_LARGE: u32 = 64;
const SNAPSHOTS_OF_LARGE: u32 = 12;
/// The family of volumes that are left out of a run: no volume has this one.
const NO_VOLUME: VolumeId = VolumeId(u64::MAX);

/// What came of a seed.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub seed: u64,
    /// The cluster that it drew, in a few words.
    pub cluster: String,
    /// How long the world ran.
    pub simulated_ns: u64,
    /// Events that reached machines.
    pub events: u64,
    /// Operations a register that clients saw answered.
    pub operations: u64,
    /// Requests by what became of them.
    pub answers: BTreeMap<String, u64>,
    pub faults: BTreeMap<String, u64>,
    /// What an operator would count: crashes, partitions, evictions, rejoins, rebuilds, rot, repairs, snapshots.
    pub summary: BTreeMap<String, u64>,
    /// How often each rare state was reached.
    pub rare: BTreeMap<String, u64>,
    /// The hash of every event: the same for the same seed, everywhere.
    pub trace_hash: u64,
    /// What was broken, if anything: the checker and what it saw.
    pub violation: Option<Violation>,
}

pub fn run_seed(seed: u64, options: &Options) -> Outcome {
    run(seed, options, None).0
}

/// Runs a seed, gives back what clients saw, and writes a line for each event if `lines` are wanted.
pub fn run(seed: u64, options: &Options, lines: Option<Box<dyn Write>>) -> (Outcome, History) {
    run_course(seed, options, &Course::Drawn, lines)
}

/// The same, by the course that is given.
pub fn run_course(
    seed: u64,
    options: &Options,
    course: &Course,
    lines: Option<Box<dyn Write>>,
) -> (Outcome, History) {
    let mut shape = Shape::draw(seed, options);
    if let Course::Scheduled(schedule) = course {
        shape.change(schedule);
    }
    in_world(seed, shape, course, lines, World::be_hurt)
}

/// A cluster of that shape is set up, lives through its `life`, is healed and judged.
pub(crate) fn in_world(
    seed: u64,
    shape: Shape,
    course: &Course,
    lines: Option<Box<dyn Write>>,
    life: impl FnOnce(&mut World) -> Result<(), Violation>,
) -> (Outcome, History) {
    let mut world = World::new(seed, shape, Trace::new(lines));
    world.turns = Turns::new(course);
    if let Course::Scheduled(schedule) = course {
        world.administrator.leave_out(&schedule.changes.without_volumes);
    }
    world.plant_all();
    world.live_through(life);
    world.finish(seed)
}

/// The figures of a run by which it is judged how much was asked of the cluster.
fn summary(faults: &BTreeMap<Incident, u64>, reached: &Reached) -> BTreeMap<String, u64> {
    let faults = |incidents: &[Incident]| incidents.iter().filter_map(|of| faults.get(of)).sum::<u64>();
    let counted = |counter| reached.get(Rare::Machine(counter));
    let figures = [
        ("crashes", faults(&CRASHES)),
        ("partitions", faults(&[Incident::Partitions, Incident::OneWayPartitions])),
        ("evictions", faults(&[Incident::BricksEvicted, Incident::BricksReplaced])),
        ("disks lost", faults(&[Incident::BricksLostForGood, Incident::DisksExchanged])),
        ("rejoins", counted(Counter::BrickLetsItselfBeCaughtUp)),
        ("slots given to another brick", counted(Counter::SlotGivenToAnotherBrick)),
        ("rebuilds completed", counted(Counter::BrickCaughtUpAndBecameCurrent)),
        ("blocks rotted", faults(&[Incident::RottenSectors, Incident::UnreadableSectors])),
        ("blocks repaired", counted(Counter::RepairTakenByAMember)),
        ("snapshots", faults(&[Incident::Snapshots])),
        ("clones and rollbacks", faults(&[Incident::Clones, Incident::Rollbacks])),
    ];
    figures.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

/// No disk of the torture lies about its syncs: where none was put back from an older copy, and no brick ran twice, none may be taken for an old one.
fn check_old_disks(taken_for_old: u64, put_back: u64) -> Result<(), Violation> {
    if taken_for_old == 0 || put_back > 0 {
        return Ok(());
    }
    Err(Violation::new(
        "old disk",
        format!(
            "{taken_for_old} bricks were taken for ones with an older copy of a disk, none was put back, and none ran twice"
        ),
    ))
}

/// The name of a volume that is there before all others.
fn prefilled(number: u32) -> String {
    format!("before{number}")
}

impl World {
    /// Clients, faults and an administrator have their time.
    fn be_hurt(&mut self) -> Result<(), Violation> {
        self.start_faults(self.shape.phases.safety_ns);
        self.start_administrator();
        self.run_until(self.time.now_ns() + self.shape.phases.safety_ns);
        Ok(())
    }

    fn live_through(&mut self, life: impl FnOnce(&mut World) -> Result<(), Violation>) {
        let verdict = self.set_up();
        self.judge(verdict);
        self.turns.begin(self.time.now_ns());
        self.start_workload();
        self.start_objects();
        let verdict = life(self);
        self.judge(verdict);
        self.heal();
        let healed_ns = self.time.now_ns();
        self.run_until(self.time.now_ns() + self.shape.phases.liveness_ns);
        self.workload.stop();
        self.await_answers(healed_ns);
        if self.judges.are_content() {
            let verdict = self.converge().and_then(|()| self.scrub_clean()).and_then(|()| self.destage_all());
            let verdict = verdict.and_then(|()| self.calls_are_bounded());
            let verdict = verdict.and_then(|()| self.deletions_are_known());
            self.judge(verdict);
        }
        let healed_ns = self.time.now_ns();
        self.start_final_reads();
        self.await_answers(healed_ns);
        if self.judges.are_content() {
            self.read_all_segments();
        }
        if self.judges.are_content() {
            self.read_all_objects();
            // It may have left a brick evicted.
            let verdict = self.converge();
            self.judge(verdict);
        }
        if self.judges.are_content() {
            self.audit_redundancy();
        }
        if self.judges.are_content() {
            self.audit_history();
        }
    }

    pub(crate) fn set_up(&mut self) -> Result<(), Violation> {
        self.add_directory();
        self.add_bricks(1..=u64::from(self.shape.bricks))?;
        for _ in 0..self.shape.gateways {
            let node = self.add_gateway(None);
            self.boot(node);
        }
        let volumes: Vec<usize> = (0..self.shape.volumes.len()).filter(|at| self.is_there(*at)).collect();
        if volumes.iter().any(|at| self.shape.volumes[*at].has_gateways_beside_bricks()) {
            for brick in 1..=self.shape.bricks {
                let node = self.add_gateway(Some(BrickId(brick)));
                self.boot(node);
            }
        }
        self.await_bricks()?;
        self.set_care()?;
        self.prefill()?;
        self.create_volumes()?;
        for client in 0..self.shape.load.clients as usize {
            let volume = client % self.shape.volumes.len();
            let plan = &self.shape.volumes[volume];
            if plan.is_direct() || !volumes.contains(&volume) {
                continue;
            }
            let node = self.add_client(plan.name.clone());
            self.boot(node);
        }
        Ok(())
    }

    /// Admits bricks under these nonces, and starts them.
    pub(crate) fn add_bricks(&mut self, nonces: impl Iterator<Item = u64>) -> Result<(), Violation> {
        let admit = |nonce| AdminRequest::AdmitBrick { nonce };
        for reply in self.administer(nonces.map(admit).collect())? {
            match reply {
                AdminReply::Brick(id) => self.add_brick(id),
                other => return Err(Violation::new("live", format!("admitting a brick gave {other:?}"))),
            }
        }
        Ok(())
    }

    pub(crate) fn await_bricks(&mut self) -> Result<(), Violation> {
        let end_ns = self.time.now_ns() + SETUP_NS;
        while self.time.now_ns() < end_ns && self.judges.are_content() {
            let reply = self.administer(vec![AdminRequest::STATUS])?.remove(0);
            if let AdminReply::Status(status) = reply
                && status.bricks.iter().filter(|brick| brick.alive).count() == self.shape.bricks as usize
            {
                return Ok(());
            }
            self.run_until(self.time.now_ns() + 50 * MS);
        }
        Err(Violation::new("live", "the bricks did not all report to the directory"))
    }

    pub(crate) fn set_care(&mut self) -> Result<(), Violation> {
        let shape = &self.shape;
        let care = AdminRequest::SetCare {
            rebuild_bytes_per_second: Some(shape.upkeep.rebuild_bytes_per_second),
            scrub_bytes_per_second: None,
            scrub_interval_s: Some(shape.upkeep.scrub_interval_s),
            rebuild_after_s: Some(shape.upkeep.rebuild_after_s),
        };
        self.administer(vec![care]).map(drop)
    }

    /// Makes the volumes that are there before all others: most of one group, some of many, and snapshots of some.
    fn prefill(&mut self) -> Result<(), Violation> {
        let model = self.workload.plan(0).clone();
        for first in (0..self.shape.intrigues.prefilled).step_by(PREFILLED_AT_ONCE) {
            let numbers = first..self.shape.intrigues.prefilled.min(first + PREFILLED_AT_ONCE as u32);
            let creations: Vec<AdminRequest> = numbers
                .clone()
                .map(|number| {
                    let spread = if number.is_multiple_of(LARGE_EVERY) { GROUPS_OF_LARGE } else { 1 };
                    let plan =
                        VolumePlan { name: prefilled(number), spread, far_stripes: 0, ..model.clone() };
                    plan.creation(self.physics.draw().bits())
                })
                .collect();
            self.administer(creations)?;
            for number in numbers {
                let is_large = number.is_multiple_of(LARGE_EVERY);
                let count = if is_large { SNAPSHOTS_OF_LARGE } else { u32::from(number.is_multiple_of(3)) };
                for snapshot in 0..count {
                    let (volume, nonce) = (prefilled(number), self.physics.draw().bits());
                    let snapshot = format!("{volume}-{snapshot}");
                    self.until_done(AdminRequest::Snapshot { volume, snapshot, nonce })?;
                }
            }
        }
        Ok(())
    }

    fn create_volumes(&mut self) -> Result<(), Violation> {
        for volume in 0..self.workload.volumes() {
            let plan = self.workload.plan(volume).clone();
            let family = if self.is_there(volume) { self.create_volume(&plan)? } else { NO_VOLUME };
            self.workload.on_made(volume, family);
        }
        Ok(())
    }

    /// Creates a volume: its family.
    pub(crate) fn create_volume(&mut self, plan: &VolumePlan) -> Result<VolumeId, Violation> {
        let request = plan.creation(self.physics.draw().bits());
        match self.administer(vec![request])?.remove(0) {
            AdminReply::Volume(info) => Ok(info.family),
            other => Err(Violation::new("live", format!("creating {} gave {other:?}", plan.name))),
        }
    }

    /// Gives commands and waits for them to be done.
    pub(crate) fn administer(&mut self, requests: Vec<AdminRequest>) -> Result<Vec<AdminReply>, Violation> {
        let asked = format!("{requests:?}");
        let wrong = |error| Violation::new("live", format!("{asked} was answered with '{error}'"));
        let results = self.ask_directory(requests)?;
        results.into_iter().map(|result| result.map_err(wrong)).collect()
    }

    /// Gives one command, which may be refused.
    pub(crate) fn try_administer(
        &mut self,
        request: AdminRequest,
    ) -> Result<Result<AdminReply, AdminError>, Violation> {
        Ok(self.ask_directory(vec![request])?.remove(0))
    }

    fn ask_directory(
        &mut self,
        requests: Vec<AdminRequest>,
    ) -> Result<Vec<Result<AdminReply, AdminError>>, Violation> {
        let question = |request: AdminRequest| -> Question {
            (NodeId::Directory, Box::new(move |operation| Message::Admin { operation, request }))
        };
        let asked = format!("{requests:?}");
        let answers = self.ask(requests.into_iter().map(question).collect(), SETUP_NS);
        let result = |answer: Option<Packet>| match answer.map(|packet| packet.message) {
            Some(Message::AdminDone { result, .. }) => Ok(result),
            other => Err(Violation::new("live", format!("{asked} was answered with {other:?}"))),
        };
        answers.into_iter().map(result).collect()
    }

    /// Runs until every request is answered, for as long as that may take.
    fn await_answers(&mut self, healed_ns: u64) {
        let (mut left, mut since_ns) = (usize::MAX, self.time.now_ns());
        while self.judges.are_content() {
            let unanswered = self.workload.unanswered();
            let left_now = self.final_reads_left();
            if unanswered.is_empty() && left_now == 0 {
                return;
            }
            if left_now < left {
                (left, since_ns) = (left_now, self.time.now_ns());
            }
            let verdict = live::check_answered(&unanswered, self.time.now_ns(), healed_ns, LIVE_NS);
            self.judge(verdict.map_err(|violation| violation.with(&self.why_oldest_waits())));
            if self.time.now_ns() > since_ns + 10 * LIVE_NS {
                self.judge(Err(Violation::new(
                    "live",
                    "the last reads find no gateway that opens their volume",
                )));
            }
            self.run_until(self.time.now_ns() + 20 * MS);
        }
    }

    fn finish(mut self, seed: u64) -> (Outcome, History) {
        if let Some(error) = self.trace.take_error() {
            self.judge(Err(Violation::new("trace", format!("the trace could not be written: {error}"))));
        }
        let owned = |counts: &BTreeMap<&'static str, u64>| {
            counts.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect()
        };
        let answered = |op: &&crate::history::Operation| op.answered_ns.is_some();
        let reached = self.reached();
        let far_ahead = reached.get(Rare::Machine(Counter::StampFarAheadOfTheClusterRefused));
        self.judge(progress::check_far_ahead(far_ahead));
        let old = [Incident::OldDisksPutBack, Incident::BricksRunTwice];
        let put_back = old.iter().filter_map(|of| self.faults.counts().get(of)).sum();
        let taken_for_old = reached.get(Rare::Machine(Counter::BrickCameWithAnOldDisk));
        self.judge(check_old_disks(taken_for_old, put_back));
        let mut answers: BTreeMap<String, u64> = owned(self.workload.answers());
        answers.extend(self.segments.iter().flat_map(|segments| owned(segments.counts())));
        answers.extend(self.named.iter().flat_map(|named| owned(named.counts())));
        let outcome = Outcome {
            seed,
            cluster: self.shape.describe(),
            simulated_ns: self.time.now_ns(),
            events: self.trace.count(),
            operations: self.workload.history().operations().iter().filter(answered).count() as u64,
            answers,
            faults: self.faults.counts().iter().map(|(of, count)| (of.text().to_owned(), *count)).collect(),
            summary: summary(self.faults.counts(), &reached),
            rare: reached.by_text(),
            trace_hash: self.trace.hash(),
            violation: self.judges.take_violation(),
        };
        (outcome, self.workload.into_history())
    }
}
