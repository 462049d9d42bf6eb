//! What an operation is, and the [`Context`] in which it works: what it may look at, ask and begin. Knows no operation.
//!
//! An operation is a small machine. It is started, hears answers and children's ends, and is woken; each time it says
//! how it goes on by a [`Progress`]. [`super::coordinator`] keeps operations and brings them what they wait for.

use super::answer::{Answer, CallId, FromAnswer};
use super::confirm::ConfirmOperation;
use super::context::calls::{Call, Calls};
use super::context::charges::Charges;
use super::context::choice::Choice;
use super::context::computations::{ComputationId, Computations};
use super::context::confirmations::Confirmations;
use super::context::decisions::Decisions;
use super::context::gates::{Gates, Leaving};
use super::context::links::Links;
use super::context::stamps::Stamps;
use super::context::views::Views;
use super::members::width_at;
use super::order::locks::{Place, Wish};
use super::outcome::{Child, OperationId, Outcome, Parent, Progress};
use base::{BrickId, GroupId, Payload, Stamp, StreamId, Time, ViewNumber, VolumeId};
use code::{Computation, Computed};
use core::time::Duration;
use reads::distribute::pace::Kind;
use reads::distribute::policy::{Part, PartId, Plan};
use rules::counters::{Counter, Counters};
use rules::promises::{Rules, SOUND};
use std::collections::VecDeque;
use wire::{Contest, GroupView, Message, Packet, ReadPolicy, Service, Sight, Span, WriteId};

/// The first time after which an unanswered question is asked again; doubled each time.
const RETRY: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// A read of which it is not decided who is asked first.
pub struct Unplanned {
    pub(crate) policy: ReadPolicy,
    pub(crate) address: u64,
    pub(crate) kind: Kind,
    /// `(slot, brick)` of the members that could serve it.
    pub(crate) holders: Vec<(u8, BrickId)>,
}

impl Unplanned {
    /// As the read of an operation.
    pub(crate) fn part(&self, OperationId(id): OperationId) -> Part<'_> {
        Part { id: PartId(id), address: self.address, kind: self.kind, holders: &self.holders }
    }
}

/// How a read begins; none where nobody is to be asked.
pub struct Planned {
    /// Of whom was chosen.
    pub(crate) holders: Vec<(u8, BrickId)>,
    pub(crate) plan: Option<Plan>,
}

/// What each operation does.
pub trait Operate {
    /// What members answer to its questions.
    type Answer: FromAnswer;
    /// What the operations that it begins end with.
    type Child: Child;
    /// What it ends with.
    type Outcome: Into<Outcome>;

    /// What it reads, to be planned with the other parts of its request before any of them is started; `None` where nobody
    /// is to be chosen.
    fn to_plan(&mut self, _cx: &mut Context<'_>) -> Option<Unplanned> {
        None
    }

    /// How what it reads begins; it is started next.
    fn on_plan(&mut self, _planned: Planned) {}

    /// Begins, or begins again.
    fn start(&mut self, cx: &mut Context<'_>) -> Progress<Self::Outcome>;
    /// The member at `slot` answered.
    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: Self::Answer) -> Progress<Self::Outcome>;
    /// An operation that this one began ended.
    fn on_child(&mut self, cx: &mut Context<'_>, child: Self::Child) -> Progress<Self::Outcome>;
    /// What it had computed last.
    fn on_computed(&mut self, _cx: &mut Context<'_>, _made: Computed) -> Progress<Self::Outcome> {
        unreachable!("it has nothing computed")
    }
    /// The time it asked for has come.
    fn on_timer(&mut self, cx: &mut Context<'_>) -> Progress<Self::Outcome>;
    /// The group it works on.
    fn group(&self) -> GroupId;
    /// The volume for whose user it works; none where it works on a branch.
    fn volume(&self) -> Option<VolumeId> {
        None
    }
    /// What it asked of the member at one slot is to be asked of another.
    fn on_moved(&mut self, _cx: &mut Context<'_>, _from: u8, _to: u8) -> Progress<Self::Outcome> {
        Progress::Waits
    }
    /// The member at `slot` has withdrawn what was asked back of it: no answer comes.
    fn on_withdrawn(&mut self, _cx: &mut Context<'_>, _slot: u8) -> Progress<Self::Outcome> {
        unreachable!("it asks nothing back")
    }
    /// A new view of its group began; what it had begun is ended. By beginning again an operation finds its branch anew,
    /// so none goes to the branch of an old view under a new one.
    fn on_view(&mut self, cx: &mut Context<'_>) -> Progress<Self::Outcome> {
        cx.forget_calls();
        self.start(cx)
    }
    /// Its turn in the coordinator's line has come.
    fn on_turn(&mut self, _cx: &mut Context<'_>) -> Progress<Self::Outcome> {
        unreachable!("it is in no line")
    }
    /// It is over, whoever ended it.
    fn release(&self, _id: OperationId, _left: &mut Leaving<'_>) {}
}

/// Good content for blocks that a member lacks or cannot read, found on the way: somebody should bring it there, and
/// nobody waits for it.
#[derive(Clone, Debug)]
pub(crate) struct Mend {
    pub(crate) group: GroupId,
    pub(crate) slot: u8,
    pub(crate) span: Span,
    /// The stamps and the content; the rest of the rows says where none.
    pub(crate) good: Option<(Vec<Stamp>, Payload)>,
}

/// What a member is asked of blocks; with neither stamps nor content, whether the view is in force there.
#[derive(Clone, Copy)]
pub(crate) struct BlocksWanted {
    pub(crate) span: Span,
    pub(crate) stamps: bool,
    pub(crate) content: bool,
    pub(crate) contest: Option<Contest>,
    /// What is seen of writes that are not decided.
    pub(crate) sight: Sight,
}

impl BlocksWanted {
    /// Of nobody else, and as they are decided.
    pub(crate) fn decided(span: Span, stamps: bool, content: bool) -> BlocksWanted {
        BlocksWanted { span, stamps, content, contest: None, sight: Sight::Decided }
    }
}

/// What operations left to be begun.
pub(crate) enum Begun {
    Operation(OperationId, Parent, Operation),
    Mend(OperationId, Mend),
    /// An operation lets go of all that it has begun.
    Nothing(OperationId),
}

pub(crate) struct Shared {
    pub(crate) now: Time,
    pub(crate) views: Views,
    pub(crate) calls: Calls,
    pub(crate) computations: Computations,
    pub(crate) charges: Charges,
    pub(crate) confirmations: Confirmations,
    pub(crate) decisions: Decisions,
    pub(crate) stamps: Stamps,
    pub(crate) choice: Choice,
    pub(crate) gates: Gates,
    pub(crate) links: Links,
    pub(crate) counters: Counters,
    pub(crate) rules: &'static dyn Rules,
    begun: VecDeque<Begun>,
}

/// What is known of an operation besides itself.
#[derive(Debug)]
pub(crate) struct Own {
    id: OperationId,
    /// For whom it works.
    service: Service,
    calls: Vec<CallId>,
    /// What it waits for to be computed.
    computation: Option<ComputationId>,
    /// For how long it has been patient since those who were asked wait for their turn.
    patience: Duration,
    /// What the member that answered last has said of its wait.
    excused: Duration,
    /// Those it gave up in the present step. Until the step is over they count as outstanding, so that what it asks anew
    /// does not take the member that did not answer for the one with the shortest queue.
    forgotten: Vec<CallId>,
    /// Why members refused what it asked of them last.
    refusals: Vec<Refusal>,
}

/// A member did not do what was asked.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    brick: BrickId,
    at: Time,
    why: &'static str,
}

/// What an operation may look at and do.
pub struct Context<'a> {
    pub(crate) now: Time,
    pub(crate) views: &'a mut Views,
    pub(crate) decisions: &'a mut Decisions,
    pub(crate) stamps: &'a mut Stamps,
    pub(crate) choice: &'a mut Choice,
    pub(crate) links: &'a mut Links,
    pub(crate) counters: &'a mut Counters,
    pub(crate) rules: &'static dyn Rules,
    calls: &'a mut Calls,
    computations: &'a mut Computations,
    charges: &'a mut Charges,
    confirmations: &'a mut Confirmations,
    gates: &'a mut Gates,
    begun: &'a mut VecDeque<Begun>,
    own: &'a mut Own,
}

impl Context<'_> {
    /// The branch to which `volume` writes and from which it reads under `view`. `None` where the view does not know
    /// the volume: it is newer than the view, or deleted; the directory is asked for a newer view.
    pub(crate) fn branch_of(&mut self, view: &GroupView, volume: VolumeId) -> Option<VolumeId> {
        let branch = view.lineage.branch_of(volume);
        let is_known = view.lineage.heads.is_empty() || view.lineage.knows(branch);
        if !is_known {
            self.counters.count(Counter::VolumeUnknownToAView);
            self.views.is_stale(view.group);
        }
        is_known.then_some(branch)
    }

    /// A member has seen a write with this stamp: the next one that is drawn here is later.
    pub(crate) fn see(&mut self, stamp: Stamp) {
        self.stamps.see(self.now, self.rules.seen(stamp));
    }

    /// A member showed its view: takes it if it is newer, and asks the directory if it shows none.
    pub(crate) fn on_stale(&mut self, group: GroupId, view: Option<GroupView>) {
        self.counters.count(Counter::RequestUnderAnOldView);
        match view {
            Some(view) if view.group == group => drop(self.views.adopt(view)),
            _ => self.views.is_stale(group),
        }
    }

    /// The operation as a read that a policy plans.
    pub(crate) fn part_id(&self) -> PartId {
        PartId(self.own.id.0)
    }

    /// The member at `slot` is asked to withdraw what this operation asked of it, if it has not begun. Whether anything was asked.
    pub(crate) fn call_back(&mut self, slot: u8) -> bool {
        let calls = self
            .own
            .calls
            .iter()
            .copied()
            .filter(|id| self.calls.get(*id).is_some_and(|call| call.slot == slot));
        let calls: Vec<CallId> = calls.collect();
        calls.iter().for_each(|id| self.calls.call_back(*id));
        !calls.is_empty()
    }

    /// For whom the operation works: what its questions to disks tell.
    pub(crate) fn service(&self) -> Service {
        self.own.service
    }

    /// Sends a question to the member at `slot`; `make` gets the number that names the answer.
    pub(crate) fn call(
        &mut self,
        view: &GroupView,
        slot: u8,
        payload: Payload,
        make: impl FnOnce(u64) -> Message,
    ) {
        let (id, brick) = (CallId(self.calls.draw_number()), view.members[usize::from(slot)]);
        let mut message = make(id.0);
        let charge = self.charges.ask(self.now, brick, &mut message);
        let call = Call::new(self.now, self.own.id, (slot, brick), (&message, charge));
        self.choice.asked(self.now, id, &call, &message);
        self.calls.begin(id, call, Packet { message, payload });
        self.own.calls.push(id);
    }

    /// Asks the member at `slot` for blocks.
    pub(crate) fn read(&mut self, view: &GroupView, slot: u8, wanted: BlocksWanted) {
        let BlocksWanted { span, stamps, content, contest, sight } = wanted;
        let (group, service) = (view.group, self.service());
        let width = width_at(&self.views.geometry(group), span.lba, slot);
        self.call(view, slot, Payload::new(), |operation| Message::Read {
            operation,
            group,
            view: view.number,
            span,
            width,
            stamps,
            content,
            contest,
            service,
            sight,
        });
    }

    /// Asks the member at `slot` for the fate of a write. If it `only_looks`, the member refuses nothing for being asked.
    pub(crate) fn query(&mut self, view: &GroupView, slot: u8, write: WriteId, only_looks: bool) {
        let width = width_at(&self.views.geometry(write.group), write.span.lba, slot);
        self.call(view, slot, Payload::new(), |operation| Message::Query {
            operation,
            view: view.number,
            write,
            width,
            only_looks,
        });
    }

    /// How long the operation has been kept from waking, since those who were asked wait for their turn: as much later ends its own
    /// patience.
    pub(crate) fn patience(&self) -> Duration {
        self.own.patience
    }

    /// For how long the question that was answered just now waited for its turn.
    pub(crate) fn excused(&self) -> Duration {
        self.own.excused
    }

    /// For how long the questions to the member at `slot` that are outstanding have waited for their turn.
    pub(crate) fn excused_at(&self, slot: u8) -> Duration {
        let calls = self.own.calls.iter().filter_map(|id| self.calls.get(*id));
        calls.filter(|call| call.slot == slot).map(|call| call.excused_by(self.now)).max().unwrap_or_default()
    }

    /// Has something computed, by whom and when the driver says. What the operation had wanted before is of no interest.
    pub(crate) fn compute<T>(&mut self, computation: Computation) -> Progress<T> {
        let id = ComputationId(self.calls.draw_number());
        self.computations.begin(id, self.own.id, computation);
        self.own.computation = Some(id);
        Progress::Sleeps
    }

    /// Answers to what the operation asked so far are of no interest any more, nor is what it had computed.
    pub(crate) fn forget_calls(&mut self) {
        self.own.forgotten.append(&mut self.own.calls);
        self.own.computation = None;
    }

    /// Answers so far are of no interest; the operation is woken after `delay`.
    pub(crate) fn again_after<T>(&mut self, delay: Duration) -> Progress<T> {
        self.forget_calls();
        Progress::WaitsFor(delay)
    }

    /// Begins an operation, of whose end this one hears.
    pub(crate) fn begin(&mut self, operation: impl Operate + 'static) {
        self.begin_operation(Operation::new(operation));
    }

    /// The same, of any kind.
    pub(crate) fn begin_operation(&mut self, operation: Operation) {
        let id = OperationId(self.calls.draw_number());
        self.begun.push_back(Begun::Operation(id, Parent::Operation(self.own.id), operation));
    }

    /// Ends all that this operation has begun, which it will not hear of any more.
    pub(crate) fn let_go(&mut self) {
        self.begun.push_back(Begun::Nothing(self.own.id));
    }

    /// Writes of these rows met others.
    pub(crate) fn note_contention(&mut self, place: &Place) {
        self.gates.note_contention(self.now, place);
    }

    /// Whether some did lately.
    pub(crate) fn is_contended(&self, place: &Place) -> bool {
        self.gates.is_contended(self.now, place)
    }

    /// Gets in the coordinator's line for `place`, until it is over.
    pub(crate) fn get_in_line(&mut self, place: Place) -> Wish {
        self.gates.get_in_line(self.now, self.own.id, place)
    }

    /// The operation has its turn once it is confirmed that the view of its group is in force, from now on.
    pub(crate) fn want_confirmed(&mut self, group: GroupId) {
        if self.confirmations.wants(group, self.own.id) {
            self.begin_alone(ConfirmOperation::new(group));
        }
    }

    /// This view of the group is in force. Whether others wait for the same.
    pub(crate) fn confirmed(&mut self, group: GroupId, view: ViewNumber) -> bool {
        self.confirmations.on_confirmed(group, view)
    }

    /// Members are asked anew for all that wait for their word. Whether anybody does.
    pub(crate) fn confirms_anew(&mut self, group: GroupId) -> bool {
        self.confirmations.begin_anew(group);
        self.confirmations.goes_on(group)
    }

    /// Begins an operation that nobody waits for.
    pub(crate) fn begin_alone(&mut self, operation: impl Operate + 'static) {
        let id = OperationId(self.calls.draw_number());
        self.begun.push_back(Begun::Operation(id, Parent::Nobody, Operation::new(operation)));
    }

    /// Has a member mended.
    pub(crate) fn mend(&mut self, mend: Mend) {
        let id = OperationId(self.calls.draw_number());
        self.begun.push_back(Begun::Mend(id, mend));
    }

    /// A number that names nothing else.
    pub(crate) fn draw_number(&mut self) -> u64 {
        self.calls.draw_number()
    }
}

/// After how long what is unanswered is asked anew: later each time.
pub(crate) fn retry_delay(attempt: u32) -> Duration {
    (RETRY * 2u32.pow(attempt.min(4))).min(RETRY_MAX)
}

impl Own {
    pub(crate) fn new(id: OperationId, service: Service) -> Own {
        Own {
            id,
            service,
            calls: Vec::new(),
            computation: None,
            patience: Duration::ZERO,
            excused: Duration::ZERO,
            forgotten: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// For whom it works.
    pub(crate) fn service(&self) -> Service {
        self.service
    }

    /// Its questions that are outstanding.
    pub(crate) fn calls(&self) -> &[CallId] {
        &self.calls
    }

    /// One of its questions is answered.
    pub(crate) fn on_answered(&mut self, now: Time, (id, call): (CallId, &Call), answer: &Answer) {
        self.calls.retain(|begun| *begun != id);
        self.excused = call.excused();
        self.refusals.retain(|refusal| refusal.brick != call.brick);
        let refusal = answer.refusal().map(|why| Refusal { brick: call.brick, at: now, why });
        self.refusals.extend(refusal);
    }

    /// Who refused what, for people.
    pub(crate) fn describe_refusals(&self, now: Time) -> impl Iterator<Item = String> {
        self.refusals.iter().map(move |Refusal { brick, at, why }| {
            format!("{brick} refused {:.1?} ago: {why}", now.since(*at))
        })
    }

    /// One of its questions is withdrawn.
    pub(crate) fn on_withdrawn(&mut self, id: CallId) {
        self.calls.retain(|begun| *begun != id);
    }

    /// Something is computed: whether it waits for that.
    pub(crate) fn on_computed(&mut self, id: ComputationId) -> bool {
        self.computation.take_if(|wanted| *wanted == id).is_some()
    }

    /// It is not woken for so long, since those who were asked wait for their turn.
    pub(crate) fn on_patience(&mut self, time: Duration) {
        self.patience += time;
    }
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            now: Time::ZERO,
            views: Views::default(),
            calls: Calls::default(),
            computations: Computations::default(),
            charges: Charges::default(),
            confirmations: Confirmations::default(),
            decisions: Decisions::default(),
            stamps: Stamps::default(),
            choice: Choice::default(),
            gates: Gates::default(),
            links: Links::default(),
            counters: Counters::default(),
            rules: SOUND,
            begun: VecDeque::new(),
        }
    }
}

impl Shared {
    /// What `own`'s operation works in.
    pub(crate) fn context<'a>(&'a mut self, own: &'a mut Own) -> Context<'a> {
        Context {
            now: self.now,
            views: &mut self.views,
            decisions: &mut self.decisions,
            stamps: &mut self.stamps,
            choice: &mut self.choice,
            links: &mut self.links,
            counters: &mut self.counters,
            rules: self.rules,
            calls: &mut self.calls,
            computations: &mut self.computations,
            charges: &mut self.charges,
            confirmations: &mut self.confirmations,
            gates: &mut self.gates,
            begun: &mut self.begun,
            own,
        }
    }

    pub(crate) fn next_operation(&mut self) -> OperationId {
        OperationId(self.calls.draw_number())
    }

    /// Begins an operation from outside.
    pub(crate) fn begin(&mut self, parent: Parent, operation: Operation) {
        let id = self.next_operation();
        self.begun.push_back(Begun::Operation(id, parent, operation));
    }

    /// The next operation that was left to be begun.
    pub(crate) fn take_begun(&mut self) -> Option<Begun> {
        self.begun.pop_front()
    }

    /// The step of an operation is over: questions that it gave up are no longer outstanding.
    pub(crate) fn end_step(&mut self, own: &mut Own) {
        for id in own.forgotten.drain(..) {
            if let Some(call) = self.calls.end(id) {
                self.calls.call_off(id, &call);
                self.charges.given_up(&call);
                self.choice.given_up(self.now, id, &call);
            }
        }
    }

    /// A brick has withdrawn a question that it was asked back: whose it was, and which member's. `None` for any other.
    pub(crate) fn withdrawn(&mut self, brick: BrickId, id: CallId) -> Option<(OperationId, u8)> {
        let call = self.calls.withdrawn(brick, id)?;
        self.charges.given_up(&call);
        self.choice.withdrawn(id, &call);
        Some((call.operation, call.slot))
    }

    /// What an operation gives back that is over.
    pub(crate) fn leaving(&mut self) -> Leaving<'_> {
        let Shared { now, stamps, gates, links, confirmations, .. } = self;
        Leaving { now: *now, stamps, gates, links, confirmations }
    }

    /// An operation is over, and nobody waits for the answers to its questions.
    pub(crate) fn end_all(&mut self, mut own: Own) {
        own.forgotten.append(&mut own.calls);
        self.end_step(&mut own);
    }
}

/// An operation of any kind.
pub struct Operation {
    steps: Box<dyn Steps>,
    stream: Option<StreamId>,
}

impl Operation {
    pub fn new(operation: impl Operate + 'static) -> Operation {
        Operation { steps: Box::new(Typed(operation)), stream: None }
    }

    /// For a request of this stream; `None` leaves it to the stream of its volume.
    #[must_use]
    pub fn for_stream(self, stream: Option<StreamId>) -> Operation {
        Operation { stream, ..self }
    }

    /// The stream of the request for which it works, where that is another one than its volume's.
    pub(crate) fn stream(&self) -> Option<StreamId> {
        self.stream
    }
}

impl core::ops::Deref for Operation {
    type Target = dyn Steps;
    fn deref(&self) -> &(dyn Steps + 'static) {
        &*self.steps
    }
}

impl core::ops::DerefMut for Operation {
    fn deref_mut(&mut self) -> &mut (dyn Steps + 'static) {
        &mut *self.steps
    }
}

/// [`Operate`] with the types of answers and ends hidden: what the coordinator drives.
pub trait Steps {
    fn to_plan(&mut self, cx: &mut Context<'_>) -> Option<Unplanned>;
    fn on_plan(&mut self, planned: Planned);
    fn start(&mut self, cx: &mut Context<'_>) -> Progress<Outcome>;
    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: Answer) -> Progress<Outcome>;
    fn on_child(&mut self, cx: &mut Context<'_>, outcome: Outcome) -> Progress<Outcome>;
    fn on_computed(&mut self, cx: &mut Context<'_>, made: Computed) -> Progress<Outcome>;
    fn on_moved(&mut self, cx: &mut Context<'_>, from: u8, to: u8) -> Progress<Outcome>;
    fn on_withdrawn(&mut self, cx: &mut Context<'_>, slot: u8) -> Progress<Outcome>;
    fn on_timer(&mut self, cx: &mut Context<'_>) -> Progress<Outcome>;
    fn on_view(&mut self, cx: &mut Context<'_>) -> Progress<Outcome>;
    fn group(&self) -> GroupId;
    fn on_turn(&mut self, cx: &mut Context<'_>) -> Progress<Outcome>;
    fn volume(&self) -> Option<VolumeId>;
    fn release(&self, id: OperationId, left: &mut Leaving<'_>);
    fn name(&self) -> &'static str;
}

struct Typed<T>(T);

impl<T: Operate> Steps for Typed<T> {
    fn to_plan(&mut self, cx: &mut Context<'_>) -> Option<Unplanned> {
        self.0.to_plan(cx)
    }

    fn on_plan(&mut self, planned: Planned) {
        self.0.on_plan(planned);
    }

    fn start(&mut self, cx: &mut Context<'_>) -> Progress<Outcome> {
        self.0.start(cx).map(Into::into)
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: Answer) -> Progress<Outcome> {
        let answer = T::Answer::from_answer(answer).expect("only what answers its question is let through");
        self.0.on_answer(cx, slot, answer).map(Into::into)
    }

    fn on_child(&mut self, cx: &mut Context<'_>, outcome: Outcome) -> Progress<Outcome> {
        let child = T::Child::from_outcome(outcome).expect("it began no operation that ends so");
        self.0.on_child(cx, child).map(Into::into)
    }

    fn on_computed(&mut self, cx: &mut Context<'_>, made: Computed) -> Progress<Outcome> {
        self.0.on_computed(cx, made).map(Into::into)
    }

    fn on_moved(&mut self, cx: &mut Context<'_>, from: u8, to: u8) -> Progress<Outcome> {
        self.0.on_moved(cx, from, to).map(Into::into)
    }

    fn on_withdrawn(&mut self, cx: &mut Context<'_>, slot: u8) -> Progress<Outcome> {
        self.0.on_withdrawn(cx, slot).map(Into::into)
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Progress<Outcome> {
        self.0.on_timer(cx).map(Into::into)
    }

    fn on_view(&mut self, cx: &mut Context<'_>) -> Progress<Outcome> {
        self.0.on_view(cx).map(Into::into)
    }

    fn group(&self) -> GroupId {
        self.0.group()
    }

    fn volume(&self) -> Option<VolumeId> {
        self.0.volume()
    }

    fn on_turn(&mut self, cx: &mut Context<'_>) -> Progress<Outcome> {
        self.0.on_turn(cx).map(Into::into)
    }

    fn release(&self, id: OperationId, left: &mut Leaving<'_>) {
        self.0.release(id, left);
    }

    fn name(&self) -> &'static str {
        let path = core::any::type_name::<T>();
        let name = path.split('<').next().unwrap_or(path);
        name.rsplit("::").next().unwrap_or(name)
    }
}
