//! How fast bricks are lately, and by which policy reads are served.

use super::calls::Call;
use super::charges::Charge;
use crate::netraid::answer::{Answer, CallId};
use crate::netraid::lateness::Lateness;
use crate::netraid::traffic::Traffic;
use base::{BrickId, StreamId, Time, VolumeId};
use core::time::Duration;
use reads::distribute::Policies;
use reads::distribute::load::Load;
use reads::distribute::pace::{Kind, QuestionId};
use reads::distribute::policy::{Course, Moved, Next, Part, PartId, Plan, Policy, Told};
use std::collections::BTreeMap;
use wire::{DataPath, Message, Protocol, ReadOutcome, ReadPolicy, VolumeInfo, Wait};

/// Questions whose late answers are still of interest for the pace: so many, and for so long.
const ORPHANS_MAX: usize = 4096;
const ORPHAN_AGE: Duration = Duration::from_secs(2);

/// A read whose answer nobody waits for any more.
#[derive(Clone, Copy, Debug)]
struct Orphan {
    brick: BrickId,
    kind: Kind,
    since: Time,
    charge: Option<Charge>,
}

/// How a volume is to be served.
#[derive(Clone, Copy, Debug)]
struct Served {
    policy: ReadPolicy,
    stream: StreamId,
    protocol: Protocol,
}

/// Policies, the pace of bricks, and what reads cost.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    policies: Policies,
    /// The brick on whose machine this coordinator runs.
    beside: Option<BrickId>,
    /// How volumes that are open are to be served.
    volumes: BTreeMap<VolumeId, Served>,
    load: Load,
    /// Who holds up writes.
    lateness: Lateness,
    traffic: Traffic,
    /// By the number of the question, which is their order in time.
    orphans: BTreeMap<CallId, Orphan>,
}

impl Choice {
    /// What policies draw follows from `seed`.
    pub(crate) fn seed(&mut self, seed: u64) {
        self.policies = Policies::new(seed);
    }

    /// See [`Policies::set`].
    pub(crate) fn set_policy(&mut self, policy: ReadPolicy, to: Box<dyn Policy>) {
        self.policies.set(policy, to);
    }

    /// It runs on the machine of this brick.
    pub(crate) fn stand_beside(&mut self, brick: Option<BrickId>) {
        self.beside = brick;
    }

    /// The brick of which reads are asked first that `hash` would name a brick for: under `amongst` the one beside, since all requests for
    /// a block come to the same coordinator, so that it stays the same brick that has it cached.
    pub(crate) fn nearest(&self, volume: Option<VolumeId>) -> Option<BrickId> {
        let beside = self.beside?;
        let is_amongst = self.protocol(volume).path == DataPath::Amongst;
        (is_amongst && self.policy(volume) == ReadPolicy::Hash).then_some(beside)
    }

    // ---- what is known ----

    /// What is known of bricks.
    pub(crate) fn load(&self) -> &Load {
        &self.load
    }

    /// The same, for what is learned otherwise than by calls.
    pub(crate) fn load_mut(&mut self) -> &mut Load {
        &mut self.load
    }

    /// Who holds up writes.
    pub(crate) fn lateness_mut(&mut self) -> &mut Lateness {
        &mut self.lateness
    }

    /// What reads cost so far.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The same, for what is counted where it is decided.
    pub(crate) fn traffic_mut(&mut self) -> &mut Traffic {
        &mut self.traffic
    }

    /// A volume is open: how it is to be served from now on.
    pub(crate) fn serve(&mut self, volume: &VolumeInfo) {
        let served = Served { policy: volume.read_policy, stream: volume.stream, protocol: volume.protocol };
        self.volumes.insert(volume.id, served);
    }

    /// A volume is open no more.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.volumes.remove(&volume);
    }

    /// The stream of what is done for a user of a volume.
    pub(crate) fn stream(&self, volume: Option<VolumeId>) -> Option<StreamId> {
        volume.map(|volume| self.volumes.get(&volume).map(|served| served.stream).unwrap_or_default())
    }

    /// By which policy a read is served. What reads no volume works on branches: a brick that catches up, which has no hurry.
    pub(crate) fn policy(&self, volume: Option<VolumeId>) -> ReadPolicy {
        let of = volume.and_then(|volume| self.volumes.get(&volume));
        of.map_or(ReadPolicy::ShortestQueue, |served| served.policy)
    }

    /// By what its writes and reads go. What is done for no volume goes by the default protocol.
    pub(crate) fn protocol(&self, volume: Option<VolumeId>) -> Protocol {
        let of = volume.and_then(|volume| self.volumes.get(&volume));
        of.map(|served| served.protocol).unwrap_or_default()
    }

    /// The one holder to ask for a read under `policy`.
    pub(crate) fn one(&mut self, policy: ReadPolicy, now: Time, part: &Part<'_>) -> Option<u8> {
        self.policies.one(policy, now, part, &self.load)
    }

    /// How a read under `policy` begins that is planned by itself.
    pub(crate) fn first(&mut self, policy: ReadPolicy, now: Time, part: &Part<'_>) -> Option<Plan> {
        self.policies.first(policy, now, part, &mut self.load)
    }

    /// How the reads of one request begin.
    pub(crate) fn plan(&mut self, policy: ReadPolicy, now: Time, parts: &[Part<'_>]) -> Vec<Option<Plan>> {
        self.policies.plan(policy, now, parts, &mut self.load)
    }

    /// How long all that were asked under `policy` may stay silent, where that would be `usual`.
    pub(crate) fn patience(&mut self, policy: ReadPolicy, usual: Duration) -> Duration {
        self.policies.patience(policy, usual)
    }

    /// What follows when it takes long.
    pub(crate) fn next(&mut self, policy: ReadPolicy, now: Time, part: &Part<'_>, course: &Course) -> Next {
        self.policies.next(policy, now, part, (course, &self.load))
    }

    // ---- what happens ----

    /// A question goes out.
    pub(crate) fn asked(&mut self, now: Time, id: CallId, call: &Call, message: &Message) {
        if !call.is_contested {
            self.load.begin(call.brick);
        }
        if call.charge.is_some() {
            self.load.disks_mut().asked(call.brick);
        }
        let pace = self.load.pace_mut();
        match (call.kind, message) {
            (Some(_), Message::Read { contest: Some(contest), .. }) => {
                pace.asked(now, call.brick, contest.holders.len());
            }
            (Some(kind), _) => pace.begin(now, call.brick, kind, QuestionId(id.0)),
            (None, _) => {}
        }
        self.traffic.on_question(message);
    }

    /// A question is answered; `wait` is what it met at the disk, and counted for nothing already where it waited for its turn.
    pub(crate) fn answered(&mut self, now: Time, (id, call): (CallId, &Call), answer: &Answer, wait: Wait) {
        let (Call { brick, is_contested, .. }, since) = (*call, call.counts_from());
        if !is_contested {
            self.load.end(brick);
        }
        self.traffic.on_answer(answer);
        let Some(kind) = call.kind else { return };
        if !answer.is_work() {
            if !is_contested {
                self.load.pace_mut().left_out(brick, kind, QuestionId(id.0), since);
            }
            return;
        }
        if kind == Kind::Prepare {
            self.load.disks_mut().heard(now, brick, wait);
        } else {
            self.load.disks_mut().answered(now, brick, kind, now.since(since), wait);
            if let Some(address) = call.address {
                self.load.cached_mut().answered(brick, address, wait.disk_us == 0);
            }
            let response_ns = u64::try_from(now.since(since).as_nanos()).unwrap_or(u64::MAX);
            let disk_ns = u64::from(wait.disk_us) * 1000;
            // A brick of the release before does not tell how much of that was the disk.
            let service_ns = if disk_ns > 0 { disk_ns.min(response_ns) } else { response_ns };
            let device_ns = Some(disk_ns).filter(|disk_ns| *disk_ns > 0 && kind == Kind::Read);
            self.policies.answered(&Told { brick, response_ns, service_ns, queue: wait.queued, device_ns });
        }
        match is_contested {
            // Its memory is no measure of its disk, which is what the others' are compared with.
            true if wait.disk_us == 0 => {}
            true => self.load.pace_mut().answered_by_one(now, brick, kind, since),
            false => self.load.pace_mut().answered(now, brick, kind, QuestionId(id.0), since),
        }
    }

    /// A question was withdrawn by its brick, for another one to be asked.
    pub(crate) fn withdrawn(&mut self, id: CallId, call: &Call) {
        if call.is_contested {
            return;
        }
        self.load.end(call.brick);
        if let Some(kind) = call.kind {
            self.load.pace_mut().left_out(call.brick, kind, QuestionId(id.0), call.counts_from());
        }
    }

    /// See [`Policies::take_moved`].
    pub(crate) fn take_moved(&mut self) -> Vec<Moved> {
        self.policies.take_moved()
    }

    /// A read for a volume's user is over.
    pub(crate) fn ended(&mut self, volume: VolumeId, part: PartId) {
        let policy = self.policy(Some(volume));
        self.policies.ended(policy, part);
    }

    /// A brick says that a question waits for its turn, or has waited: its time counts from later on.
    pub(crate) fn excused(&mut self, id: CallId, before: &Call, call: &Call) {
        let (from, to) = (before.counts_from(), call.counts_from());
        if from == to {
            return;
        }
        if let (Some(kind), false) = (call.kind, call.is_contested) {
            self.load.pace_mut().excused(call.brick, kind, QuestionId(id.0), (from, to));
        }
    }

    /// A read that was called off was withdrawn in time: it says nothing of the brick's speed.
    pub(crate) fn on_withdrawn(&mut self, id: CallId) {
        if let Some(Orphan { brick, kind, since, .. }) = self.orphans.remove(&id) {
            self.load.pace_mut().left_out(brick, kind, QuestionId(id.0), since);
        }
    }

    /// Whether a read that was called off was answered, or is long gone.
    pub(crate) fn is_over(&self, id: CallId) -> bool {
        !self.orphans.contains_key(&id)
    }

    /// It is of no interest any more, and not answered.
    pub(crate) fn given_up(&mut self, now: Time, id: CallId, call: &Call) {
        let (Call { brick, is_contested, .. }, since) = (*call, call.counts_from());
        if is_contested {
            return;
        }
        self.load.end(brick);
        match call.kind {
            Some(Kind::Prepare) => {
                self.load.pace_mut().given_up(now, brick, Kind::Prepare, QuestionId(id.0), since)
            }
            Some(kind) => self.orphan(now, id, Orphan { brick, kind, since, charge: call.charge }),
            None => {}
        }
    }

    /// A read was answered by another member, or is asked again: it stays unanswered for a while, so that the brick's pace
    /// is not that of its quick answers alone.
    fn orphan(&mut self, now: Time, id: CallId, orphan: Orphan) {
        self.orphans.insert(id, orphan);
        while let Some((&id, &Orphan { brick, kind, since, .. })) = self.orphans.first_key_value()
            && (self.orphans.len() > ORPHANS_MAX || since + ORPHAN_AGE < now)
        {
            self.orphans.pop_first();
            self.load.pace_mut().given_up(now, brick, kind, QuestionId(id.0), since);
        }
    }

    /// Of a read that nobody asks any more: who was asked, and what it costs if it was served all the same.
    pub(crate) fn charge_of_late(&self, id: CallId) -> Option<(BrickId, Charge)> {
        let orphan = self.orphans.get(&id)?;
        Some((orphan.brick, orphan.charge?))
    }

    /// An answer came to what nobody asks any more: of a read, what another member answered as well. It still tells how
    /// long the brick took. Whether it brought content, in vain.
    pub(crate) fn on_late(&mut self, now: Time, id: CallId, answer: &Answer) -> bool {
        if let Some(Orphan { brick, kind, since, .. }) = self.orphans.remove(&id) {
            match answer.is_work() {
                true => self.load.pace_mut().answered(now, brick, kind, QuestionId(id.0), since),
                false => self.load.pace_mut().left_out(brick, kind, QuestionId(id.0), since),
            }
        }
        let Answer::Read(ReadOutcome::Done { .. } | ReadOutcome::Older { .. }, content) = answer else {
            return false;
        };
        if content.is_empty() {
            return false;
        }
        self.traffic.on_duplicate(content.len() as u64);
        true
    }
}
