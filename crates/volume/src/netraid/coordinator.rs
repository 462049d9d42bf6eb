//! A gateway's operations on the members of a group.
//!
//! An *operation* is a small machine of its own ([`super::write`], [`super::read`], [`super::reconstruct`],
//! [`super::settle`], [`super::repair`]). This file keeps them, hands them answers, children's ends, timers and
//! new views, and gathers what goes to each brick, so that decisions ride along with other messages.

use super::answer::{Answer, CallId};
use super::context::computations::ComputationId;
use super::context::confirmations::Confirmed;
use super::context::decisions::DECISION_DELAY;
use super::context::views::Views;
use super::operate::{Begun, Context, Mend, Operate, Operation, Own, Planned, Shared};
use super::outcome::{OperationId, Outcome, Parent, Progress};
use super::repair::RepairOperation;
use super::settle::SettleOperation;
use super::traffic::Traffic;
use base::{BrickId, ClusterTime, GroupId, HashMap, Loan, StreamId, Time, VolumeId};
use code::{Computation, Computed};
use core::time::Duration;
use reads::distribute::policy::{Moved, Part, PartId, Policy};
use rules::counters::{Counter, Counters};
use rules::fair::Cost;
use rules::layout::Geometry;
use std::collections::{BTreeSet, VecDeque};
use wire::{GroupView, IoError, Observed, Packet, ReadPolicy, Service, VolumeInfo, Wait, WriteId};

struct Task {
    operation: Operation,
    parent: Parent,
    children: Vec<OperationId>,
    own: Own,
    due: Option<Time>,
}

/// The end of an operation that another one began.
struct Ended {
    id: OperationId,
    parent: OperationId,
    outcome: Outcome,
}

/// All operations of a gateway, or of a brick that looks after its blocks.
#[derive(Default)]
pub struct Coordinator {
    shared: Shared,
    tasks: HashMap<OperationId, Task>,
    /// To which belongs what is done for no user of a volume. What is done for one belongs to the stream of the request, or of the volume.
    own_stream: StreamId,
    timers: BTreeSet<(Time, OperationId)>,
    /// For operations, in the order of their ends.
    ended: VecDeque<Ended>,
    /// For parts of requests.
    finished: VecDeque<(Parent, Outcome)>,
}

/// What the role around it sees and sets.
impl Coordinator {
    /// Whose read policies draw from `seed`; what it does for no user of a volume belongs to `own_stream`.
    pub fn new(seed: u64, own_stream: StreamId) -> Coordinator {
        let mut coordinator = Coordinator { own_stream, ..Coordinator::default() };
        coordinator.shared.choice.seed(seed);
        coordinator
    }

    /// It runs on the machine of this brick.
    pub fn stand_beside(&mut self, brick: Option<BrickId>) {
        self.shared.choice.stand_beside(brick);
    }

    /// See [`reads::distribute::Policies::set`].
    pub fn set_policy(&mut self, policy: ReadPolicy, to: Box<dyn Policy>) {
        self.shared.choice.set_policy(policy, to);
    }

    pub fn now(&self) -> Time {
        self.shared.now
    }

    pub fn set_now(&mut self, now: Time) {
        self.shared.now = now;
    }

    /// The directory lends this gateway a number for its stamps; before that nothing is written.
    pub fn lend(&mut self, time: ClusterTime, writer: u16, loan: Loan) {
        let now = self.shared.now;
        self.shared.stamps.lend(now, time, writer, loan);
    }

    /// The directory said what time of the cluster it is.
    pub fn hear_time(&mut self, time: ClusterTime) {
        let now = self.shared.now;
        self.shared.stamps.hear(now, time);
    }

    /// Whether the directory is to be asked for the time; says so once.
    pub fn takes_behind(&mut self) -> bool {
        self.shared.stamps.takes_behind()
    }

    /// What time of the cluster it is; zero before this gateway is registered.
    pub fn time(&self) -> ClusterTime {
        self.shared.stamps.time(self.shared.now).unwrap_or_default()
    }

    /// The number under which it writes; none before it is registered.
    pub fn writer(&self) -> Option<u16> {
        self.shared.stamps.writer()
    }

    /// What its operations go by.
    #[cfg(feature = "planted")]
    pub fn set_rules(&mut self, rules: &'static dyn rules::promises::Rules) {
        self.shared.rules = rules;
    }

    pub fn rules(&self) -> &'static dyn rules::promises::Rules {
        self.shared.rules
    }

    /// What requests cost.
    pub fn set_cost(&mut self, cost: Cost) {
        self.shared.charges.set_cost(cost);
    }

    /// A volume is open: how it is to be served from now on.
    pub fn serve(&mut self, volume: &VolumeInfo) {
        self.shared.choice.serve(volume);
        self.shared.charges.open(volume.family, volume.stream);
    }

    /// Requests of this stream come for volumes of a family, whichever stream these belong to: the family's bricks hear of it.
    pub fn serve_stream(&mut self, family: VolumeId, stream: StreamId) {
        self.shared.charges.open(family, stream);
    }

    /// The bricks on which volumes of a stream lie, wherever they are open: they hear of what it is served here.
    pub fn stream_lies_on(&mut self, stream: StreamId, bricks: Vec<BrickId>) {
        self.shared.charges.lies_on(stream, bricks);
    }

    /// A volume of `family` is open. Views of its groups are taken from now on.
    pub fn open_family(&mut self, family: VolumeId, geometry: Geometry) {
        self.shared.views.open_family(family, geometry);
    }

    pub fn views(&self) -> &Views {
        &self.shared.views
    }

    /// Groups for whose view the directory is to be asked; once.
    pub fn take_stale(&mut self) -> BTreeSet<GroupId> {
        self.shared.views.take_stale()
    }

    /// What operations share, for tests that play the members.
    #[cfg(test)]
    pub(super) fn shared(&mut self) -> &mut Shared {
        &mut self.shared
    }

    /// What there is to tell the directory of members' lateness.
    pub fn take_report(&mut self) -> Option<Vec<Observed>> {
        self.shared.choice.lateness_mut().take_report(self.shared.now)
    }

    pub fn traffic(&self) -> &Traffic {
        self.shared.choice.traffic()
    }

    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.shared.counters
    }

    pub fn count(&mut self, what: Counter) {
        self.shared.counters.count(what);
    }
}

impl Coordinator {
    /// What the parts of a request wait for, a line for each operation. For people.
    pub fn describe_parts(&self, request: u64) -> Vec<String> {
        let mut lines = Vec::new();
        let is_part = |task: &Task| matches!(task.parent, Parent::Part(of, _) if of == request);
        self.where_(is_part).into_iter().for_each(|id| self.describe(id, 1, &mut lines));
        lines
    }

    /// An operation, and those that it has begun.
    fn describe(&self, id: OperationId, depth: usize, lines: &mut Vec<String>) {
        let Some(task) = self.tasks.get(&id) else { return };
        let (now, group) = (self.shared.now, task.operation.group());
        let mut parts: Vec<String> = Vec::new();
        let calls = task.own.calls().iter().filter_map(|id| Some((*id, self.shared.calls.get(*id)?)));
        parts.extend(calls.map(|(id, call)| call.describe(id, now)));
        parts.extend(task.own.describe_refusals(now));
        if !task.children.is_empty() {
            parts.push("waits for what it has begun".to_owned());
        }
        if self.shared.confirmations.has(group, id) {
            parts.push("waits until other members confirm the view".to_owned());
        }
        parts.extend(task.due.map(|due| format!("asks again in {:.1?}", due.since(now))));
        if parts.is_empty() {
            parts.push("waits for its turn behind other operations, or for a computation".to_owned());
        }
        let view =
            self.shared.views.known(group).map_or("no view".to_owned(), |view| view.number.to_string());
        let (indent, name) = ("  ".repeat(depth), task.operation.name());
        lines.push(format!("{indent}{name} on {group} under {view}: {}", parts.join("; ")));
        task.children.iter().for_each(|child| self.describe(*child, depth + 1, lines));
    }

    /// Begins the parts of a request. What they read is planned together, before anybody is asked.
    pub fn begin_parts(&mut self, mut parts: Vec<(Parent, Operation)>) {
        if parts.len() == 1 {
            return parts.drain(..).for_each(|(parent, operation)| self.begin(parent, operation));
        }
        self.run();
        let mut begun = Vec::with_capacity(parts.len());
        for (parent, operation) in parts {
            let id = self.shared.next_operation();
            begun.extend(self.admit(id, parent, operation));
        }
        self.plan(&begun);
        begun.into_iter().for_each(|id| self.drive(id, |operation, cx| operation.start(cx)));
        self.run();
    }

    /// Lets the policy choose for all reads among operations that are about to start.
    fn plan(&mut self, begun: &[OperationId]) {
        let mut reads = Vec::with_capacity(begun.len());
        for id in begun {
            let task = self.tasks.get_mut(id).expect("it was admitted");
            let unplanned = task.operation.to_plan(&mut self.shared.context(&mut task.own));
            reads.extend(unplanned.map(|unplanned| (*id, unplanned)));
        }
        let Some(policy) = reads.first().map(|(_, read)| read.policy) else { return };
        let parts: Vec<Part<'_>> = reads.iter().map(|(id, read)| read.part(*id)).collect();
        if parts.len() > 1 {
            self.shared.counters.count(Counter::ReadsPlannedTogether);
        }
        let plans = self.shared.choice.plan(policy, self.shared.now, &parts);
        for ((id, read), plan) in reads.into_iter().zip(plans) {
            assert_eq!(read.policy, policy, "the parts of a request are of one volume");
            let task = self.tasks.get_mut(&id).expect("it was admitted");
            task.operation.on_plan(Planned { holders: read.holders, plan });
        }
    }

    /// Begins an operation for a part of a request.
    pub fn begin(&mut self, parent: Parent, operation: Operation) {
        self.shared.begin(parent, operation);
        self.run();
    }

    /// Leaves an operation that nobody waits for to be begun with whatever happens next.
    pub fn begin_alone(&mut self, operation: impl Operate + 'static) {
        self.shared.begin(Parent::Nobody, Operation::new(operation));
    }

    /// A brick answers. What answers another question than was asked under its number is ignored, and the question stays.
    pub fn on_answer(&mut self, id: CallId, answer: Answer, wait: Wait) {
        let shared = &mut self.shared;
        if shared.calls.is_crossed(id, &answer) {
            return shared.counters.count(Counter::AnswerToAnotherQuestionThanWasAsked);
        }
        let Some(mut call) = shared.calls.end(id) else {
            if let Some((brick, charge)) = shared.choice.charge_of_late(id)
                && answer.is_work()
            {
                shared.charges.served_late(brick, charge);
            }
            if shared.choice.on_late(shared.now, id, &answer) {
                shared.counters.count(Counter::DuplicateAnswersToARead);
            }
            return;
        };
        let before = call;
        call.excuse(shared.now, Duration::from_micros(wait.turn_us.into()));
        shared.choice.excused(id, &before, &call);
        shared.charges.answered(&call, answer.is_work());
        shared.choice.answered(shared.now, (id, &call), &answer, wait);
        if let Some(task) = self.tasks.get_mut(&call.operation) {
            task.own.on_answered(shared.now, (id, &call), &answer);
        }
        self.drive(call.operation, |operation, cx| operation.on_answer(cx, call.slot, answer));
        self.run();
    }

    /// Something is computed. Who wanted it may have ended meanwhile, or begun again.
    pub fn on_computed(&mut self, id: ComputationId, made: Computed) {
        let Some(wanted_by) = self.shared.computations.end(id) else { return };
        if self.tasks.get_mut(&wanted_by).is_some_and(|task| task.own.on_computed(id)) {
            self.drive(wanted_by, |operation, cx| operation.on_computed(cx, made));
            self.run();
        } else {
            self.shared.counters.count(Counter::ComputedForNobody);
        }
    }

    /// A brick says that questions wait for their turn at its disk. Whoever asked is patient with it.
    pub fn on_waiting(&mut self, brick: BrickId, calls: &[CallId]) {
        let shared = &mut self.shared;
        for id in calls {
            if let Some((before, call)) = shared.calls.on_waiting(shared.now, brick, *id) {
                shared.counters.count(Counter::AskedForPatienceByABrick);
                shared.choice.excused(*id, &before, &call);
            }
        }
    }

    /// What became of questions that were called off.
    pub fn on_cancelled(&mut self, brick: BrickId, withdrawn: &[CallId], late: &[CallId]) {
        for id in withdrawn {
            self.shared.choice.on_withdrawn(*id);
            if let Some((operation, slot)) = self.shared.withdrawn(brick, *id) {
                if let Some(task) = self.tasks.get_mut(&operation) {
                    task.own.on_withdrawn(*id);
                }
                self.drive(operation, |operation, cx| operation.on_withdrawn(cx, slot));
            }
        }
        self.run();
        let shared = &mut self.shared;
        let crossed = late.iter().filter(|id| shared.choice.is_over(**id)).count();
        (0..crossed).for_each(|_| shared.counters.count(Counter::CancelCrossedItsAnswer));
    }

    /// Something came from a brick, whatever it says.
    pub fn on_heard(&mut self, brick: BrickId) {
        self.shared.choice.load_mut().pace_mut().heard(brick);
    }

    /// A brick can be reached.
    pub fn on_brick_up(&mut self, brick: BrickId) {
        self.shared.views.on_up(brick);
    }

    /// A brick cannot be reached: what waits for its answer asks again soon, elsewhere where it may.
    pub fn on_brick_down(&mut self, brick: BrickId) {
        self.shared.views.on_down(brick);
        for id in self.shared.calls.waiting_for(brick) {
            self.drive(id, |_, _| Progress::WaitsFor(DECISION_DELAY));
        }
        self.run();
    }

    /// A brick asks to settle writes. One that takes no writes in the view has no say and no use of an answer: the view
    /// settled them without it. One that joins takes writes like the others.
    pub fn on_doubtful(&mut self, from: BrickId, writes: Vec<WriteId>) {
        for write in writes {
            let shared = &mut self.shared;
            let is_known = shared.views.known(write.group).is_some_and(|view| view.is_writer(from));
            if is_known && write.span.is_valid() && shared.stamps.is_left(write.stamp) {
                self.begin_alone(SettleOperation::reported(write, from));
            }
        }
        self.run();
    }

    /// Views that the directory or a brick showed.
    pub fn on_views(&mut self, views: Vec<GroupView>) {
        for view in views {
            self.shared.views.adopt(view);
        }
        self.run();
    }

    /// Forgets a volume that is deleted: its operations end with an error. Others of its family go on.
    pub fn forget(&mut self, volume: VolumeId) {
        self.shared.choice.forget(volume);
        self.end_where(|task| task.operation.volume() == Some(volume));
        self.shared.links.forget(volume);
        self.run();
    }

    /// Forgets a family of which no volume is open any more, its views and its geometry.
    pub fn forget_family(&mut self, family: VolumeId) {
        let groups = self.shared.views.groups_of(family);
        self.end_where(|task| groups.contains(&task.operation.group()));
        self.shared.views.close_family(family);
        self.shared.charges.close(family);
        self.run();
    }

    /// Ends the parts of the requests that are meant, with an error; what their writes left in doubt is settled by whoever
    /// meets it. Says whether there were any.
    pub fn abandon_parts(&mut self, is_meant: impl Fn(u64) -> bool) -> bool {
        let any = self.end_where(|task| matches!(task.parent, Parent::Part(request, _) if is_meant(request)));
        // Those behind them in the line have their turn.
        self.run();
        any
    }

    /// Ends all operations on a group, without a word to those that wait for them.
    pub fn abandon(&mut self, group: GroupId) {
        for id in self.where_(|task| task.operation.group() == group) {
            self.cancel(id);
        }
    }

    /// Runs what has become due.
    pub fn wake(&mut self) {
        while let Some(&(due, id)) = self.timers.first()
            && due <= self.shared.now
        {
            self.timers.pop_first();
            let (now, task) =
                (self.shared.now, self.tasks.get_mut(&id).expect("who is to be woken is under way"));
            // Nothing can be known before those have their turn who are asked.
            let patient = self.shared.calls.wait_until(now, task.own.calls());
            task.due = patient;
            match patient {
                Some(until) => {
                    task.own.on_patience(until.since(now));
                    self.timers.insert((until, id));
                }
                None => self.drive(id, |operation, cx| operation.on_timer(cx)),
            }
        }
        self.run();
    }

    /// When something becomes due, and what.
    pub fn deadline(&self) -> Option<(Time, &'static str)> {
        let timer = self.timers.first().map(|(due, _)| (*due, "an operation asks again"));
        let decisions = self.shared.decisions.due().map(|due| (due, "decisions are told"));
        let charges = self.shared.charges.due().map(|due| (due, "bricks are told of service elsewhere"));
        [timer, decisions, charges].into_iter().flatten().min()
    }

    /// What ended, for requests.
    pub fn take_finished(&mut self) -> VecDeque<(Parent, Outcome)> {
        core::mem::take(&mut self.finished)
    }

    /// What is to be computed by others.
    pub fn take_computations(&mut self) -> Vec<(ComputationId, Computation)> {
        self.shared.computations.take_begun()
    }

    /// Messages for bricks; decisions go first, with others or when they have waited long enough.
    pub fn take_messages(&mut self) -> Vec<(BrickId, Packet)> {
        let mut out = self.shared.calls.take_out();
        self.shared.confirmations.on_sent();
        out.extend(self.shared.gates.take_unlocks().map(|(brick, message)| (brick, message.into())));
        out.extend(self.shared.charges.take_told(self.shared.now, &self.shared.views));
        self.shared.decisions.ride(self.shared.now, out)
    }
}

/// How operations are kept.
impl Coordinator {
    /// Takes in what operations left: new ones, new views, the ends of those that others wait for.
    fn run(&mut self) {
        loop {
            if let Some(begun) = self.shared.take_begun() {
                self.start(begun);
            } else if let Some(group) = self.shared.views.take_adopted() {
                self.on_view(group);
            } else if let Some(ended) = self.ended.pop_front() {
                self.on_child(ended);
            } else if !(self.pass_gates() || self.pass_confirmed() || self.move_reads()) {
                return;
            }
        }
    }

    /// Lets those go on whose turn in the line has come; whether there were any.
    fn pass_gates(&mut self) -> bool {
        let turns = self.shared.gates.take_granted();
        for id in &turns {
            self.drive(*id, |operation, cx| operation.on_turn(cx));
        }
        !turns.is_empty()
    }

    /// Lets those go on whose view is confirmed; whether there were any. Under another one that was taken since they ask anew.
    fn pass_confirmed(&mut self) -> bool {
        let confirmed = self.shared.confirmations.take_confirmed();
        for Confirmed { id, group, view } in &confirmed {
            if self.shared.views.known(*group).is_some_and(|known| known.number == *view) {
                self.drive(*id, |operation, cx| operation.on_turn(cx));
            }
        }
        !confirmed.is_empty()
    }

    /// Has reads moved that policies want moved; whether there were any.
    fn move_reads(&mut self) -> bool {
        let moved = self.shared.choice.take_moved();
        for Moved { part: PartId(id), from, to } in &moved {
            self.drive(OperationId(*id), |operation, cx| operation.on_moved(cx, *from, *to));
        }
        !moved.is_empty()
    }

    fn start(&mut self, begun: Begun) {
        let (id, parent, operation) = match begun {
            Begun::Operation(id, parent, operation) => (id, parent, operation),
            Begun::Mend(id, mend) => (id, Parent::Nobody, mending(mend)),
            Begun::Nothing(parent) => return self.cancel_children(parent),
        };
        if let Some(id) = self.admit(id, parent, operation) {
            self.drive(id, |operation, cx| operation.start(cx));
        }
    }

    /// Takes an operation up, which is to be started; `None` where there is nothing to be done for it.
    fn admit(&mut self, id: OperationId, parent: Parent, operation: Operation) -> Option<OperationId> {
        let stream = match parent {
            Parent::Operation(parent) => {
                // A parent that ended meanwhile needs no child.
                let parent = self.tasks.get_mut(&parent)?;
                parent.children.push(id);
                parent.own.service().stream
            }
            _ => {
                let of_volume = || self.shared.choice.stream(operation.volume());
                operation.stream().or_else(of_volume).unwrap_or(self.own_stream)
            }
        };
        if self.shared.views.known(operation.group()).is_none() {
            self.tell(id, parent, Outcome::Gone(IoError::NoVolume));
            return None;
        }
        let own = Own::new(id, Service { stream, delay: 0 });
        let task = Task { operation, parent, children: Vec::new(), own, due: None };
        self.tasks.insert(id, task);
        Some(id)
    }

    fn on_view(&mut self, group: GroupId) {
        for id in self.where_(|task| task.operation.group() == group) {
            // Children of an operation that begins again are of no use to it.
            self.cancel_children(id);
            self.drive(id, |operation, cx| operation.on_view(cx));
        }
    }

    /// The end of a child that its parent let go of meanwhile is of no interest to it.
    fn on_child(&mut self, Ended { id, parent, outcome }: Ended) {
        let Some(task) = self.tasks.get_mut(&parent) else { return };
        let Some(at) = task.children.iter().position(|child| *child == id) else { return };
        task.children.remove(at);
        self.drive(parent, |operation, cx| operation.on_child(cx, outcome));
    }

    /// Lets an operation take a step, and goes on as it says.
    fn drive(
        &mut self,
        id: OperationId,
        step: impl FnOnce(&mut Operation, &mut Context<'_>) -> Progress<Outcome>,
    ) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let progress = step(&mut task.operation, &mut self.shared.context(&mut task.own));
        self.shared.end_step(&mut task.own);
        let due = match progress {
            Progress::Waits => return,
            Progress::WaitsFor(delay) => Some(self.shared.now + delay),
            Progress::Sleeps => None,
            Progress::Ended(outcome) => return self.end(id, outcome),
        };
        if let Some(before) = core::mem::replace(&mut task.due, due) {
            self.timers.remove(&(before, id));
        }
        self.timers.extend(due.map(|due| (due, id)));
    }

    /// The operations that are meant, in the order in which they began.
    fn where_(&self, is_meant: impl Fn(&Task) -> bool) -> Vec<OperationId> {
        let meant = self.tasks.iter().filter(|(_, task)| is_meant(task)).map(|(id, _)| *id);
        let mut meant: Vec<OperationId> = meant.collect();
        meant.sort_unstable();
        meant
    }

    /// Ends the operations that are meant: what they work on is gone. Whether there were any.
    fn end_where(&mut self, is_meant: impl Fn(&Task) -> bool) -> bool {
        let meant = self.where_(is_meant);
        meant.iter().for_each(|id| self.end(*id, Outcome::Gone(IoError::NoVolume)));
        !meant.is_empty()
    }

    fn end(&mut self, id: OperationId, outcome: Outcome) {
        if let Some(parent) = self.cancel(id) {
            self.tell(id, parent, outcome);
        }
    }

    fn tell(&mut self, id: OperationId, parent: Parent, outcome: Outcome) {
        match parent {
            Parent::Operation(parent) => self.ended.push_back(Ended { id, parent, outcome }),
            Parent::Part(..) => self.finished.push_back((parent, outcome)),
            Parent::Nobody => {}
        }
    }

    fn cancel_children(&mut self, id: OperationId) {
        let children = self.tasks.get_mut(&id).map(|task| core::mem::take(&mut task.children));
        for child in children.into_iter().flatten() {
            self.cancel(child);
        }
    }

    fn cancel(&mut self, id: OperationId) -> Option<Parent> {
        let Task { operation, parent, children, own, due } = self.tasks.remove(&id)?;
        operation.release(id, &mut self.shared.leaving());
        if let Some(volume) = operation.volume() {
            self.shared.choice.ended(volume, PartId(id.0));
        }
        self.shared.end_all(own);
        for child in children {
            self.cancel(child);
        }
        if let Some(due) = due {
            self.timers.remove(&(due, id));
        }
        Some(parent)
    }
}

fn mending(Mend { group, slot, span, good }: Mend) -> Operation {
    Operation::new(match good {
        Some((stamps, content)) => RepairOperation::new(group, slot, span, stamps, content),
        None => RepairOperation::from_row(group, slot, span),
    })
}
