//! The coordinating side of `gw,ts,2pcw+read`: a gateway's operations on the members of a group.
//!
//! An *operation* is a small machine of its own ([`super::write`], [`super::read`], [`super::reconstruct`],
//! [`super::settle`], [`super::repair`]). This file keeps them, hands them answers, children's outcomes, timers and
//! new views, and gathers what goes to each brick, so that decisions ride along with other messages.

use super::expected::ExpectedOperation;
use super::lateness::Lateness;
use super::list::ListOperation;
use super::pace::{Kind, Pace};
use super::read::ReadOperation;
use super::reconstruct::ReconstructOperation;
use super::repair::RepairOperation;
use super::settle::SettleOperation;
use super::traffic::Traffic;
use super::write::WriteOperation;
use crate::counters::{Counter, Counters};
use crate::distribute::Policies;
use crate::layout::extent::Geometry;
use crate::rules::{Rules, SOUND};
use base::{BrickId, GroupId, HashMap, HashSet, Payload, Stamp, StampClock, Time, ViewNumber, VolumeId};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use wire::{
    Completion, Decision, Fate, GroupView, Inventory, IoError, Message, Packet, PrepareOutcome, ReadOutcome,
    ReadPolicy, RepairOutcome, Slots, WriteId,
};

/// How long decisions wait for a message that they can ride along with.
const DECISION_DELAY: Duration = Duration::from_millis(1);
/// The first time after which an unanswered question is asked again; doubled each time.
const RETRY: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// Questions whose late answers are still of interest for the pace: so many, and for so long.
const ORPHANS_MAX: usize = 4096;
const ORPHAN_AGE: Duration = Duration::from_secs(2);
/// A slow brick is asked beside those that stand in for it so often, and no more than a part of its time.
const LOOK_MIN: Duration = Duration::from_millis(50);
const LOOK_SHARE: u64 = 4;
/// The most volumes, snapshots and parents that a view may speak of: what is shown beyond is no view of ours.
const LINEAGE_MAX: usize = 1 << 14;

/// Names an operation.
pub type OperationId = u64;

/// Who waits for an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parent {
    /// A part of a client's request: `(request, volume block)`.
    Part(u64, u64),
    /// Another operation.
    Operation(OperationId),
    /// Nobody.
    Nobody,
}

/// What an operation ends with.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Blocks and, if wanted, their stamps (one a block; for parity, `width` a block).
    Read {
        /// The content.
        content: Payload,
        /// The stamps.
        stamps: Vec<Stamp>,
    },
    /// The write took effect.
    Written,
    /// What the write was computed from is not there any more.
    Changed,
    /// `Some(true)`: it took effect; `Some(false)`: it never will; `None`: a new view began first.
    Settled(Option<bool>),
    /// `(blocks, holds data)`.
    Allocation(Vec<(u32, bool)>),
    /// The stamps that a member's blocks should have, and the blocks, from 0, of which nobody can say.
    Expected {
        /// As many a block as the member keeps.
        stamps: Vec<Stamp>,
        /// Their stamps are zero here.
        unknown: Vec<u32>,
    },
    /// A page of the stretches that hold stamps at a member.
    Stretches(Inventory),
    /// A page of the requests that took effect at a member.
    Completions(Vec<Completion>),
    /// It failed.
    Failed(IoError),
}

/// A member's answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// To a prepare.
    Prepared(PrepareOutcome, Payload),
    /// To a read.
    Read(ReadOutcome, Payload),
    /// To a query.
    Fate(Result<Fate, Option<GroupView>>),
    /// To a repair.
    Repaired(RepairOutcome),
    /// To a question about allocation.
    Allocation(Result<Vec<(u32, bool)>, Option<GroupView>>),
    /// To a question about stretches.
    Stretches(Result<Inventory, Option<GroupView>>),
    /// To a question about completions.
    Completions(Result<Vec<Completion>, Option<GroupView>>),
}

impl Answer {
    /// Whether the member did what was asked, so that the time it took says something of its speed.
    fn is_work(&self) -> bool {
        matches!(
            self,
            Answer::Prepared(PrepareOutcome::Prepared { .. }, _) | Answer::Read(ReadOutcome::Done { .. }, _)
        )
    }

    /// The number of the question that a message answers, if it answers one, and the answer.
    pub fn from_packet(packet: Packet) -> Option<(u64, Answer)> {
        let Packet { message, payload } = packet;
        Some(match message {
            Message::Prepared { operation, outcome } => (operation, Answer::Prepared(outcome, payload)),
            Message::ReadDone { operation, outcome } => (operation, Answer::Read(outcome, payload)),
            Message::QueryDone { operation, fate } => (operation, Answer::Fate(fate)),
            Message::Repaired { operation, outcome } => (operation, Answer::Repaired(outcome)),
            Message::AllocationDone { operation, runs } => (operation, Answer::Allocation(runs)),
            Message::InventoryDone { operation, stretches } => (operation, Answer::Stretches(stretches)),
            Message::CompletionsDone { operation, completions } => {
                (operation, Answer::Completions(completions))
            }
            _ => return None,
        })
    }
}

/// The machines that operations are.
pub enum Operation {
    /// A write.
    Write(Box<WriteOperation>),
    /// A read.
    Read(ReadOperation),
    /// A read by way of the code.
    Reconstruct(Box<ReconstructOperation>),
    /// A write in doubt.
    Settle(SettleOperation),
    /// Good content for unreadable blocks.
    Repair(Box<RepairOperation>),
    /// Which blocks hold data.
    Allocation(super::allocation::AllocationOperation),
    /// The stamps that a member's blocks should have.
    Expected(ExpectedOperation),
    /// What a member has.
    List(ListOperation),
}

/// What each operation does. `Some` ends it.
pub trait Operate {
    /// Begins, or begins again.
    fn start(&mut self, shared: &mut Shared) -> Option<Outcome>;
    /// The member at `slot` answered.
    fn on_answer(&mut self, shared: &mut Shared, slot: u8, answer: Answer) -> Option<Outcome>;
    /// An operation that this one began ended.
    fn on_child(&mut self, shared: &mut Shared, outcome: Outcome) -> Option<Outcome> {
        let _ = (shared, outcome);
        None
    }
    /// The time it asked for has come.
    fn on_timer(&mut self, shared: &mut Shared) -> Option<Outcome>;
    /// The group it works on.
    fn group(&self) -> GroupId;
    /// The volume for whose user it works; none where it works on a branch.
    fn volume(&self) -> Option<VolumeId> {
        None
    }
    /// A new view of its group began. By beginning again an operation finds its branch anew, so none goes to the
    /// branch of an old view under a new one.
    fn on_view(&mut self, shared: &mut Shared) -> Option<Outcome> {
        shared.forget_calls();
        self.start(shared)
    }
}

impl Operation {
    fn as_operate(&mut self) -> &mut dyn Operate {
        match self {
            Operation::Write(operation) => &mut **operation,
            Operation::Read(operation) => operation,
            Operation::Reconstruct(operation) => &mut **operation,
            Operation::Settle(operation) => operation,
            Operation::Repair(operation) => &mut **operation,
            Operation::Allocation(operation) => operation,
            Operation::Expected(operation) => operation,
            Operation::List(operation) => operation,
        }
    }
}

struct Task {
    operation: Operation,
    parent: Parent,
    children: Vec<OperationId>,
    calls: Vec<u64>,
    due: Option<Time>,
}

/// What operations share: the views, the clock of stamps, and the ways out.
pub struct Shared {
    /// Now.
    pub now: Time,
    /// The views as far as they are known here.
    pub views: BTreeMap<GroupId, Arc<GroupView>>,
    /// Geometries of the families of which a volume is open: a volume's snapshots and clones share its groups, and so
    /// its geometry.
    pub geometries: BTreeMap<VolumeId, Geometry>,
    /// Bricks that can be reached.
    pub up: BTreeSet<BrickId>,
    /// Draws the stamps of this gateway's writes; `None` until the directory gave it a number.
    pub clock: Option<StampClock>,
    /// Stamps of this gateway's writes under way: they are not to be settled by its own readers.
    pub own: HashSet<Stamp>,
    /// Stamps of writes being settled on the bricks' request: each once at a time.
    pub settling: HashSet<Stamp>,
    /// Who serves a read, by any policy.
    pub policies: Policies,
    /// The policies of volumes that are open; of others it is the default.
    pub policy_of: BTreeMap<VolumeId, ReadPolicy>,
    /// Who holds up writes.
    pub lateness: Lateness,
    /// How long bricks take to answer.
    pub pace: Pace,
    /// What reads cost.
    pub traffic: Traffic,
    /// Counts.
    pub counters: Counters,
    /// What repairs go by.
    pub rules: &'static dyn Rules,
    /// Groups whose view is out of date: the directory is to be asked.
    pub stale: BTreeSet<GroupId>,
    current: OperationId,
    serial: u64,
    calls: HashMap<u64, Call>,
    /// Reads whose answers nobody waits for any more, by the number of the question, which is their order in time.
    orphans: BTreeMap<u64, (BrickId, Kind, Time)>,
    /// When a slow brick that others stand in for is asked again, to see whether it still is.
    looked: BTreeMap<BrickId, Time>,
    begun_calls: Vec<u64>,
    forget: bool,
    due: Option<Option<Time>>,
    begun: Vec<(OperationId, Parent, Operation)>,
    out: Vec<(BrickId, Packet)>,
    decisions: BTreeMap<BrickId, (Vec<Decision>, Vec<Decision>)>,
    decisions_due: Option<Time>,
    adopted: Vec<GroupId>,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    operation: OperationId,
    brick: BrickId,
    slot: u8,
    since: Time,
    kind: Option<Kind>,
    /// Of several that were asked the same only one answers: silence says nothing.
    is_contested: bool,
}

impl Shared {
    /// The view of a group; operations are begun only for groups that are known.
    pub fn view(&self, group: GroupId) -> Arc<GroupView> {
        self.views.get(&group).cloned().expect("an operation is on a known group")
    }

    /// The geometry of a group: of all branches in it. A view is taken only where its family's geometry is known.
    pub fn geometry(&self, group: GroupId) -> Geometry {
        self.geometries[&self.views[&group].volume]
    }

    /// The branch to which `volume` writes and from which it reads under `view`. `None` where the view does not know
    /// the volume: it is newer than the view, or deleted; the directory is asked for a newer view.
    pub fn branch_of(&mut self, view: &GroupView, volume: VolumeId) -> Option<VolumeId> {
        let branch = view.lineage.branch_of(volume);
        let is_known = view.lineage.heads.is_empty() || view.lineage.knows(branch);
        if !is_known {
            self.counters.count(Counter::VolumeUnknownToAView);
            self.stale.insert(view.group);
        }
        is_known.then_some(branch)
    }

    /// Answers so far are of no interest; the current operation begins again after `delay`.
    pub fn again_after(&mut self, delay: Duration) -> Option<Outcome> {
        self.forget_calls();
        self.wake_after(delay);
        None
    }

    /// Sends a question to the brick at `slot`; `make` gets the number that names the answer.
    pub fn call(
        &mut self,
        view: &GroupView,
        slot: u8,
        payload: Payload,
        make: impl FnOnce(u64) -> Message,
    ) -> u64 {
        self.serial += 1;
        let brick = view.members[usize::from(slot)];
        let message = make(self.serial);
        let kind = Kind::of(&message);
        let is_contested = matches!(message, Message::Read { contest: Some(_), .. });
        let (operation, since) = (self.current, self.now);
        self.calls.insert(self.serial, Call { operation, brick, slot, since, kind, is_contested });
        self.begun_calls.push(self.serial);
        if !is_contested {
            self.policies.begin(brick);
        }
        match kind {
            Some(_) if is_contested => self.pace.asked(self.now, brick),
            Some(kind) => self.pace.begin(self.now, brick, kind, self.serial),
            None => {}
        }
        self.traffic.on_question(&message);
        self.out.push((brick, Packet { message, payload }));
        self.serial
    }

    /// Answers to what the current operation asked so far are of no interest any more.
    pub fn forget_calls(&mut self) {
        self.forget = true;
        for call in core::mem::take(&mut self.begun_calls) {
            self.end_call(call, None);
        }
    }

    /// A question is answered, or of no interest any more.
    fn end_call(&mut self, number: u64, answer: Option<&Answer>) -> Option<Call> {
        let call = self.calls.remove(&number)?;
        let (now, Call { brick, since, is_contested, .. }) = (self.now, call);
        if !is_contested {
            self.policies.end(brick);
        }
        if let Some(answer) = answer {
            self.traffic.on_answer(answer);
        }
        let Some(kind) = call.kind else { return Some(call) };
        let worked = answer.is_some_and(Answer::is_work);
        if worked && kind != Kind::Prepare {
            self.policies.answered(brick, u64::try_from(now.since(since).as_nanos()).unwrap_or(u64::MAX));
        }
        match answer {
            Some(_) if worked && is_contested => self.pace.answered_by_one(now, brick, kind, since),
            Some(_) if worked => self.pace.answered(now, brick, kind, number, since),
            _ if is_contested => {}
            Some(_) => self.pace.left_out(brick, kind, number, since),
            None if kind == Kind::Prepare => self.pace.given_up(now, brick, kind, number, since),
            None => self.orphan(number, (brick, kind, since)),
        }
        Some(call)
    }

    /// A read was answered by another member, or is asked again: it stays unanswered for a while, so that the brick's pace
    /// is not that of its quick answers alone.
    fn orphan(&mut self, number: u64, orphan: (BrickId, Kind, Time)) {
        self.orphans.insert(number, orphan);
        while let Some((&number, &(brick, kind, since))) = self.orphans.first_key_value()
            && (self.orphans.len() > ORPHANS_MAX || since + ORPHAN_AGE < self.now)
        {
            self.orphans.pop_first();
            self.pace.given_up(self.now, brick, kind, number, since);
        }
    }

    /// An answer came to what nobody asks any more: of a read, what another member answered as well. It still tells how
    /// long the brick took.
    fn on_late(&mut self, number: u64, answer: &Answer) {
        if let Some((brick, kind, since)) = self.orphans.remove(&number) {
            match answer.is_work() {
                true => self.pace.answered(self.now, brick, kind, number, since),
                false => self.pace.left_out(brick, kind, number, since),
            }
        }
        if let Answer::Read(ReadOutcome::Done { .. }, content) = answer
            && !content.is_empty()
        {
            self.counters.count(Counter::DuplicateAnswersToARead);
            self.traffic.duplicate_answers += 1;
            self.traffic.bytes_received += content.len() as u64;
        }
    }

    /// Begins an operation on behalf of the current one.
    pub fn begin(&mut self, operation: Operation) {
        let parent = Parent::Operation(self.current);
        self.begin_for(parent, operation);
    }

    /// Begins an operation that nobody waits for.
    pub fn begin_alone(&mut self, operation: Operation) {
        self.begin_for(Parent::Nobody, operation);
    }

    fn begin_for(&mut self, parent: Parent, operation: Operation) -> OperationId {
        self.serial += 1;
        self.begun.push((self.serial, parent, operation));
        self.serial
    }

    /// Wakes the current operation after `delay`, and not at the time it asked for before.
    pub fn wake_after(&mut self, delay: Duration) {
        self.due = Some(Some(self.now + delay));
    }

    /// Only answers and children wake the current operation.
    pub fn sleep(&mut self) {
        self.due = Some(None);
    }

    /// Wakes the current operation to repeat what is unanswered: later each time.
    pub fn wake_to_retry(&mut self, attempt: u32) {
        self.wake_after(Shared::retry_delay(attempt));
    }

    /// After how long what is unanswered is asked anew.
    pub fn retry_delay(attempt: u32) -> Duration {
        (RETRY * 2u32.pow(attempt.min(4))).min(RETRY_MAX)
    }

    /// A number that names nothing else.
    pub fn draw_number(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Whether `brick`, for which others stand in, is due to be asked as well, to see whether it is still slow.
    pub fn is_look_due(&mut self, brick: BrickId, kind: Kind) -> bool {
        let expected = Duration::from_nanos(self.pace.expected_ns(self.now, brick, kind));
        let next = self.now + LOOK_MIN.max(expected * LOOK_SHARE as u32).min(RETRY_MAX);
        let due = self.looked.get(&brick).is_none_or(|due| *due <= self.now);
        if due {
            self.looked.insert(brick, next);
        }
        due
    }

    /// Tells the members at `slots` what became of a write; it rides along with the next message to them.
    pub fn decide(&mut self, view: &GroupView, slots: Slots, write: &WriteId, commit: bool) {
        for slot in slots.iter() {
            let Some(&brick) = view.members.get(usize::from(slot)) else { continue };
            let (commits, aborts) = self.decisions.entry(brick).or_default();
            if commit { commits } else { aborts }.push(Decision::from(write));
        }
        self.decisions_due.get_or_insert(self.now + DECISION_DELAY);
    }

    /// A member showed its view: takes it if it is newer, and asks the directory if it is not.
    pub fn on_stale(&mut self, group: GroupId, view: Option<GroupView>) {
        self.counters.count(Counter::RequestUnderAnOldView);
        match view {
            Some(view) if view.group == group => self.adopt(view),
            _ => self.stale.insert(group),
        };
    }

    /// Takes a view if it is newer than the one known, and one that can be.
    pub fn adopt(&mut self, view: GroupView) -> bool {
        let known = self.views.get(&view.group);
        let follows = known.is_none_or(|known| known.number < view.number && known.volume == view.volume);
        if !follows || !self.is_sound(&view) {
            return false;
        }
        if known.is_some() {
            self.adopted.push(view.group);
        }
        self.views.insert(view.group, Arc::new(view));
        true
    }

    /// Whether a stranger's view makes sense in itself, and is of a family that is open here.
    fn is_sound(&self, view: &GroupView) -> bool {
        let slots = Slots::all(view.members.len() as u8);
        let lineage = &view.lineage;
        self.geometries.get(&view.volume).is_some_and(|geometry| {
            view.members.len() == usize::from(geometry.layout().width())
                && view.members.len() <= Slots::MAX
                && view.writers().and(slots) == view.writers()
                && view.joining.and(view.current).is_empty()
                && lineage.heads.len() + lineage.parents.len() + lineage.merging.len() <= LINEAGE_MAX
        })
    }

    /// A new stamp. Operations that write begin only once there is a clock.
    pub fn draw(&mut self) -> Stamp {
        let now = self.now;
        self.clock.as_mut().expect("registered before volumes are opened").draw(now)
    }

    /// Whether this gateway's clock drew `stamp`.
    pub fn is_own_writer(&self, stamp: Stamp) -> bool {
        self.clock.as_ref().is_some_and(|clock| clock.writer() == stamp.writer())
    }

    /// The next stamp is later than `stamp`.
    pub fn see(&mut self, stamp: Stamp) {
        if let Some(clock) = &mut self.clock {
            clock.see(stamp);
        }
    }
}

/// All operations of a gateway.
pub struct Coordinator {
    /// What they share.
    pub shared: Shared,
    tasks: HashMap<OperationId, Task>,
    timers: BTreeSet<(Time, OperationId)>,
    finished: VecDeque<(Parent, Outcome)>,
}

impl Default for Coordinator {
    fn default() -> Coordinator {
        let shared = Shared {
            now: Time::ZERO,
            views: BTreeMap::new(),
            geometries: BTreeMap::new(),
            up: BTreeSet::new(),
            clock: None,
            own: HashSet::default(),
            settling: HashSet::default(),
            policies: Policies::default(),
            policy_of: BTreeMap::new(),
            lateness: Lateness::default(),
            pace: Pace::default(),
            traffic: Traffic::default(),
            counters: Counters::default(),
            rules: SOUND,
            stale: BTreeSet::new(),
            current: 0,
            serial: 0,
            calls: HashMap::default(),
            orphans: BTreeMap::new(),
            looked: BTreeMap::new(),
            begun_calls: Vec::new(),
            forget: false,
            due: None,
            begun: Vec::new(),
            out: Vec::new(),
            decisions: BTreeMap::new(),
            decisions_due: None,
            adopted: Vec::new(),
        };
        Coordinator { shared, tasks: HashMap::default(), timers: BTreeSet::new(), finished: VecDeque::new() }
    }
}

impl Coordinator {
    /// Begins an operation for a part of a request.
    pub fn begin(&mut self, parent: Parent, operation: Operation) {
        self.shared.begin_for(parent, operation);
        self.run();
    }

    /// A brick answers.
    pub fn on_answer(&mut self, call: u64, answer: Answer) {
        let Some(Call { operation, slot, .. }) = self.shared.end_call(call, Some(&answer)) else {
            return self.shared.on_late(call, &answer);
        };
        if let Some(task) = self.tasks.get_mut(&operation) {
            task.calls.retain(|begun| *begun != call);
        }
        self.drive(operation, |task, shared| task.as_operate().on_answer(shared, slot, answer));
        self.run();
    }

    /// A brick cannot be reached: what waits for its answer asks again soon, elsewhere where it may.
    pub fn on_brick_down(&mut self, brick: BrickId) {
        let mut waiting: Vec<OperationId> = self
            .shared
            .calls
            .values()
            .filter(|call| call.brick == brick)
            .map(|call| call.operation)
            .collect();
        waiting.sort_unstable();
        waiting.dedup();
        for id in waiting {
            self.drive(id, |_, shared| {
                shared.wake_after(DECISION_DELAY);
                None
            });
        }
        self.run();
    }

    /// A brick asks to settle writes. One that takes no writes in the view has no say and no use of an answer: the view
    /// settled them without it. One that joins takes writes like the others.
    pub fn on_doubtful(&mut self, from: BrickId, writes: Vec<WriteId>) {
        for write in writes {
            let known = self.shared.views.get(&write.group).is_some_and(|view| view.is_writer(from))
                && write.span.is_valid();
            if known
                && !self.shared.own.contains(&write.stamp)
                && !self.shared.settling.contains(&write.stamp)
            {
                self.shared.begin_alone(Operation::Settle(SettleOperation::new(write)));
            }
        }
        self.run();
    }

    /// Views that the directory or a brick showed.
    pub fn on_views(&mut self, views: Vec<GroupView>) {
        for view in views {
            self.shared.adopt(view);
        }
        self.run();
    }

    /// Forgets a volume that is deleted: its operations end with an error. Others of its family go on.
    pub fn forget(&mut self, volume: VolumeId) {
        self.fail(|operation| operation.volume() == Some(volume));
        self.run();
    }

    /// Forgets a family of which no volume is open any more, its views and its geometry.
    pub fn forget_family(&mut self, family: VolumeId) {
        let groups: BTreeSet<GroupId> =
            self.shared.views.values().filter(|view| view.volume == family).map(|view| view.group).collect();
        self.fail(|operation| groups.contains(&operation.group()));
        self.shared.geometries.remove(&family);
        self.shared.views.retain(|group, _| !groups.contains(group));
        self.run();
    }

    /// Ends the parts of the requests that are meant, with an error; what their writes left in doubt is settled by whoever
    /// meets it. Says whether there were any.
    pub fn abandon_parts(&mut self, is_meant: impl Fn(u64) -> bool) -> bool {
        let parts: Vec<OperationId> = self
            .tasks
            .iter()
            .filter(|(_, task)| matches!(task.parent, Parent::Part(request, _) if is_meant(request)))
            .map(|(id, _)| *id)
            .collect();
        let any = !parts.is_empty();
        self.fail_all(parts);
        any
    }

    fn fail(&mut self, is_concerned: impl Fn(&dyn Operate) -> bool) {
        let gone = self.tasks.iter_mut();
        let gone = gone.filter_map(|(id, task)| is_concerned(task.operation.as_operate()).then_some(*id));
        let gone = gone.collect();
        self.fail_all(gone);
    }

    fn fail_all(&mut self, mut gone: Vec<OperationId>) {
        gone.sort_unstable();
        gone.into_iter().for_each(|id| self.end(id, Outcome::Failed(IoError::NoVolume)));
    }

    /// Ends all operations on a group, without a word to those that wait for them.
    pub fn abandon(&mut self, group: GroupId) {
        let mut gone: Vec<OperationId> = self
            .tasks
            .iter_mut()
            .filter_map(|(id, task)| (task.operation.as_operate().group() == group).then_some(*id))
            .collect();
        gone.sort_unstable();
        for id in gone {
            self.cancel(id);
        }
    }

    /// Runs what has become due.
    pub fn wake(&mut self) {
        while let Some(&(due, id)) = self.timers.first()
            && due <= self.shared.now
        {
            self.timers.pop_first();
            if let Some(task) = self.tasks.get_mut(&id) {
                task.due = None;
            }
            self.drive(id, |task, shared| task.as_operate().on_timer(shared));
        }
        self.run();
    }

    /// When something becomes due, and what.
    pub fn deadline(&self) -> Option<(Time, &'static str)> {
        let timer = self.timers.first().map(|(due, _)| (*due, "an operation asks again"));
        let decisions = self.shared.decisions_due.map(|due| (due, "decisions are told"));
        [timer, decisions].into_iter().flatten().min()
    }

    /// What ended, for requests.
    pub fn take_finished(&mut self) -> VecDeque<(Parent, Outcome)> {
        core::mem::take(&mut self.finished)
    }

    /// Messages for bricks; decisions go first, with others or when they have waited long enough.
    pub fn take_messages(&mut self) -> Vec<(BrickId, Packet)> {
        let out = core::mem::take(&mut self.shared.out);
        let late = self.shared.decisions_due.is_some_and(|due| due <= self.shared.now);
        let mut with_decisions = Vec::with_capacity(out.len() + 4);
        if late {
            for (brick, decisions) in core::mem::take(&mut self.shared.decisions) {
                with_decisions.push((brick, decide(decisions)));
            }
        }
        for (brick, packet) in out {
            if let Some(decisions) = self.shared.decisions.remove(&brick) {
                with_decisions.push((brick, decide(decisions)));
            }
            with_decisions.push((brick, packet));
        }
        if self.shared.decisions.is_empty() {
            self.shared.decisions_due = None;
        }
        with_decisions
    }

    /// How many operations are under way.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    // ---- inside ----

    /// Takes in what operations left: new ones, ended ones' parents, new views.
    fn run(&mut self) {
        loop {
            if let Some(begun) = (!self.shared.begun.is_empty()).then(|| self.shared.begun.remove(0)) {
                self.start(begun);
            } else if let Some(group) = self.shared.adopted.pop() {
                self.on_view(group);
            } else if let Some(index) =
                self.finished.iter().position(|(p, _)| matches!(p, Parent::Operation(_)))
            {
                let Some((Parent::Operation(parent), outcome)) = self.finished.remove(index) else {
                    continue;
                };
                self.drive(parent, |task, shared| task.as_operate().on_child(shared, outcome));
            } else {
                return;
            }
        }
    }

    fn start(&mut self, (id, parent, operation): (OperationId, Parent, Operation)) {
        if let Parent::Operation(parent) = parent {
            // A parent that ended meanwhile needs no child.
            let Some(parent) = self.tasks.get_mut(&parent) else { return };
            parent.children.push(id);
        }
        let mut operation = operation;
        if !self.shared.views.contains_key(&operation.as_operate().group()) {
            return self.finished.push_back((parent, Outcome::Failed(IoError::NoVolume)));
        }
        if let Operation::Settle(settle) = &operation {
            self.shared.settling.insert(settle.stamp());
        }
        let task = Task { operation, parent, children: Vec::new(), calls: Vec::new(), due: None };
        self.tasks.insert(id, task);
        self.drive(id, |task, shared| task.as_operate().start(shared));
    }

    fn on_view(&mut self, group: GroupId) {
        let mut concerned: Vec<OperationId> = self
            .tasks
            .iter_mut()
            .filter_map(|(id, task)| (task.operation.as_operate().group() == group).then_some(*id))
            .collect();
        concerned.sort_unstable();
        for id in concerned {
            // Children of an operation that begins again are of no use to it.
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            for child in core::mem::take(&mut task.children) {
                self.cancel(child);
            }
            self.drive(id, |task, shared| task.as_operate().on_view(shared));
        }
    }

    /// Lets an operation do `work`, and takes in what it left.
    fn drive(&mut self, id: OperationId, work: impl FnOnce(&mut Operation, &mut Shared) -> Option<Outcome>) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let shared = &mut self.shared;
        shared.current = id;
        (shared.due, shared.forget) = (None, false);
        let outcome = work(&mut task.operation, shared);
        if shared.forget {
            for call in core::mem::take(&mut task.calls) {
                shared.end_call(call, None);
            }
        }
        task.calls.append(&mut shared.begun_calls);
        if let Some(due) = shared.due.take() {
            if let Some(before) = core::mem::replace(&mut task.due, due) {
                self.timers.remove(&(before, id));
            }
            self.timers.extend(due.map(|due| (due, id)));
        }
        if let Some(outcome) = outcome {
            self.end(id, outcome);
        }
    }

    fn end(&mut self, id: OperationId, outcome: Outcome) {
        if let Some(parent) = self.cancel(id) {
            self.finished.push_back((parent, outcome));
        }
    }

    fn cancel(&mut self, id: OperationId) -> Option<Parent> {
        let task = self.tasks.remove(&id)?;
        match &task.operation {
            Operation::Write(write) => drop(self.shared.own.remove(&write.stamp())),
            Operation::Settle(settle) => drop(self.shared.settling.remove(&settle.stamp())),
            _ => {}
        }
        for call in task.calls {
            self.shared.end_call(call, None);
        }
        for child in task.children {
            self.cancel(child);
        }
        if let Some(due) = task.due {
            self.timers.remove(&(due, id));
        }
        Some(task.parent)
    }
}

fn decide((commits, aborts): (Vec<Decision>, Vec<Decision>)) -> Packet {
    Message::Decide { commits, aborts }.into()
}

/// Those `among` a group's members that take part in a write: of the writers of a view those that must have it, of the
/// current ones those that serve what it wrote. A write that a stranger made up has none.
pub fn participants(geometry: &Geometry, among: Slots, write: &WriteId) -> Slots {
    let slots = match write.scope {
        wire::Scope::Row => among,
        wire::Scope::Unit { index } if index >= geometry.layout().data() => Slots::default(),
        wire::Scope::Unit { index } => geometry
            .parity_slots(write.span.lba)
            .fold(Slots::one(geometry.slot_of(write.span.lba, index)), |slots, (_, slot)| slots.with(slot)),
    };
    slots.and(among)
}

/// Stamps a block that the member at `slot` keeps for the row at `lba`.
pub fn width_at(geometry: &Geometry, lba: u64, slot: u8) -> u8 {
    match geometry.data_index_at(lba, slot) {
        Some(_) => 1,
        None => geometry.layout().data(),
    }
}

/// A number for messages that name no view yet.
pub const NO_VIEW: ViewNumber = ViewNumber(0);
