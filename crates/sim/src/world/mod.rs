//! The world: nodes, their clocks and disks, the network, and what happens next.
//!
//! All is drawn from one seed. Reading order: [`event`] (what can happen), `role` (the machines), this file (how an
//! event reaches a machine and its effects the world), `net`, `bay`, `power` (crash and restart).

mod bay;
pub(crate) mod event;
mod net;
mod operator;
mod power;
mod role;
mod transport;

use crate::administrator::Administrator;
use crate::checkers::Violation;
use crate::checkers::bounded::{self, DISK_REQUESTS_MAX, EFFECTS_MAX, WAKES_MAX};
use crate::checkers::evicted::Evicted;
use crate::checkers::once::Once;
use crate::failover::Watched;
use crate::faults::Faults;
use crate::options::Shape;
use crate::queue::EventQueue;
use crate::trace::Trace;
use crate::workload::Workload;
use base::{BrickId, ClientId, Depth, GatewayId, HashMap, NodeId, Time, VolumeId};
use bay::Bay;
use event::{Event, Input};
use model::{Clock, Draw};
use net::Net;
use proto::distribute::claim::Attempt;
use role::{Output, Role};
use std::collections::{BTreeMap, VecDeque};
use store::{IoDone, IoFault, IoKind};
use wire::{Message, Packet};

/// Milliseconds in the world's unit.
pub(crate) const MS: u64 = 1_000_000;
/// Seconds in the world's unit.
pub(crate) const SECOND: u64 = 1_000_000_000;

const BATCH_MAX: u32 = 16;
const BATCH_NS: u64 = 100_000;
/// Who may ask the directory.
const ADMINISTRATOR: NodeId = NodeId::Client(ClientId(u64::MAX));
/// Who gives commands during the run.
const STEWARD: NodeId = NodeId::Client(ClientId(u64::MAX - 1));
/// Who may ask bricks.
const AUDITOR: NodeId = NodeId::Gateway(GatewayId(u64::MAX));

/// Whom to ask, and what, given the question's number.
pub(crate) type Question = (NodeId, Box<dyn FnOnce(u64) -> Message>);

/// What a node is, over all its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    Brick(BrickId),
    Gateway(GatewayId),
    Client(ClientId, String),
    Operator,
}

/// A node.
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) kind: Kind,
    /// Counts its runs.
    pub(crate) life: u32,
    pub(crate) alive: bool,
    /// It will never run again.
    pub(crate) gone: bool,
    pub(crate) paused: bool,
    /// Its disks, if it is a brick.
    pub(crate) bay: Option<Bay>,
    role: Role,
    clock: Clock,
    backlog: Vec<Input>,
    batch: u32,
    wake_at_ns: u64,
    wakes: (u64, u32),
}

/// The directory's store: what is on stable storage, and the puts under way.
#[derive(Default)]
struct Cabinet {
    contents: BTreeMap<Vec<u8>, Vec<u8>>,
    puts: VecDeque<(u64, Vec<proto::directory::Put>)>,
    done_ns: u64,
}

/// The world.
pub(crate) struct World {
    pub(crate) now_ns: u64,
    pub(crate) draw: Draw,
    pub(crate) shape: Shape,
    pub(crate) nodes: Vec<Node>,
    pub(crate) net: Net,
    pub(crate) workload: Workload,
    pub(crate) faults: Faults,
    pub(crate) evicted: Evicted,
    pub(crate) administrator: Administrator,
    /// The family of each of the workload's volumes.
    pub(crate) families: Vec<VolumeId>,
    pub(crate) violation: Option<Violation>,
    /// Rare states that machines of past runs, and the world itself, have reached.
    pub(crate) rare: BTreeMap<&'static str, u64>,
    pub(crate) trace: Trace,
    queue: EventQueue<Event>,
    by_id: HashMap<NodeId, usize>,
    cabinet: Cabinet,
    once: Once,
    /// Requests whose gateway was killed at a calm moment.
    pub(crate) failover: Watched,
    outputs: Vec<Output>,
}

impl Node {
    /// The gateway that serves it, if it is an attached client.
    pub(crate) fn client_gateway(&self) -> Option<GatewayId> {
        match &self.role {
            Role::Client(client, _) => client.gateway(),
            _ => None,
        }
    }

    /// Whether a view is being made, if it is the directory.
    pub(crate) fn is_changing(&self) -> bool {
        matches!(&self.role, Role::Directory(directory, _) if directory.is_changing())
    }
}

impl World {
    /// A world of that shape in which nobody runs yet.
    pub(crate) fn new(seed: u64, shape: Shape, trace: Trace) -> World {
        let mut draw = Draw::new(seed ^ 0x5eed_b41c);
        let faults = Faults::new(draw.fork(), &shape);
        let workload = Workload::new(draw.fork(), &shape);
        let administrator = Administrator::new(draw.fork());
        World {
            now_ns: 0,
            draw,
            shape,
            nodes: Vec::new(),
            net: Net::new(),
            workload,
            faults,
            evicted: Evicted::default(),
            administrator,
            families: Vec::new(),
            violation: None,
            rare: BTreeMap::new(),
            trace,
            queue: EventQueue::new(),
            by_id: HashMap::default(),
            cabinet: Cabinet::default(),
            once: Once::default(),
            failover: Watched::default(),
            outputs: Vec::new(),
        }
    }

    /// Runs until `until_ns`, or until a violation.
    pub(crate) fn run_until(&mut self, until_ns: u64) {
        while self.violation.is_none() {
            let Some((at, event)) = self.queue.pop_due(Time(until_ns)) else {
                self.now_ns = self.now_ns.max(until_ns);
                return;
            };
            self.now_ns = at.0;
            self.on_event(event);
        }
    }

    /// Asks all these questions and runs until they are answered, or for `within_ns`.
    pub(crate) fn ask(&mut self, questions: Vec<Question>, within_ns: u64) -> Vec<Option<Packet>> {
        let is_directory = questions.iter().any(|(to, _)| *to == NodeId::Directory);
        let node = self.operator(if is_directory { ADMINISTRATOR } else { AUDITOR });
        let numbers: Vec<u64> =
            questions.into_iter().map(|(to, make)| self.put_question(node, to, make)).collect();
        self.settle(node);
        let mut answers: Vec<Option<Packet>> = vec![None; numbers.len()];
        let end_ns = self.now_ns + within_ns;
        while self.violation.is_none() && self.now_ns < end_ns && answers.iter().any(Option::is_none) {
            self.run_until((self.now_ns + MS).min(end_ns));
            if let Role::Operator(operator) = &mut self.nodes[node].role {
                let open = answers.iter_mut().zip(&numbers).filter(|(answer, _)| answer.is_none());
                open.for_each(|(answer, number)| *answer = operator.answer(*number));
            }
        }
        if let Role::Operator(operator) = &mut self.nodes[node].role {
            operator.give_up();
        }
        answers
    }

    /// Asks in the name of the administrator: the number under which [`World::on_administered`] gets the answer.
    pub(crate) fn administrate(&mut self, to: NodeId, make: Box<dyn FnOnce(u64) -> Message>) -> u64 {
        let node = self.operator(STEWARD);
        let number = self.put_question(node, to, make);
        self.settle(node);
        number
    }

    /// Schedules an event after `delay_ns`.
    pub(crate) fn later(&mut self, delay_ns: u64, event: Event) {
        self.queue.push(Time(self.now_ns + delay_ns), event);
    }

    /// Which node has this id now.
    pub(crate) fn slot(&self, id: NodeId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Takes note of a violation, if there is one and it is the first.
    pub(crate) fn judge(&mut self, verdict: Result<(), Violation>) {
        if let Err(violation) = verdict {
            self.violation.get_or_insert(violation);
        }
    }

    /// One more of a rare state.
    pub(crate) fn count_rare(&mut self, name: &'static str) {
        *self.rare.entry(name).or_default() += 1;
    }

    /// What the machines that run now have counted, with all that was counted before.
    pub(crate) fn all_counters(&self) -> BTreeMap<&'static str, u64> {
        let mut all = self.rare.clone();
        let running = self.nodes.iter().flat_map(|node| node.role.counters());
        running.flatten().for_each(|(name, count)| *all.entry(name).or_default() += count);
        all
    }

    /// Lets an input happen to a node now. One that does not run takes nothing; a paused one takes it later.
    pub(crate) fn deliver(&mut self, node: usize, input: Input) {
        if !self.nodes[node].alive {
            return;
        }
        if self.nodes[node].paused {
            match input {
                Input::Wake => self.nodes[node].wake_at_ns = u64::MAX,
                input => self.nodes[node].backlog.push(input),
            }
            return;
        }
        let is_wake = matches!(input, Input::Wake);
        if is_wake && !self.take_wake(node) {
            return;
        }
        let Node { id, role, clock, .. } = &mut self.nodes[node];
        self.trace.step(self.now_ns, *id, &input, role.reason());
        let now = clock.local(self.now_ns);
        if is_wake {
            role.wake(now)
        } else {
            role.step(now, input)
        }
        self.end_step(node, is_wake);
        if self.nodes[node].id == STEWARD {
            self.hand_to_administrator(node);
        }
    }

    fn hand_to_administrator(&mut self, node: usize) {
        let Role::Operator(operator) = &mut self.nodes[node].role else { return };
        let answers = operator.take_answers();
        answers.into_iter().for_each(|(number, packet)| self.on_administered(number, packet));
    }

    /// Ends the batch of inputs of a node: its effects go out.
    pub(crate) fn settle(&mut self, node: usize) {
        let Node { role, clock, batch, .. } = &mut self.nodes[node];
        *batch = 0;
        role.settle(clock.local(self.now_ns));
        let mut outputs = core::mem::take(&mut self.outputs);
        role.drain(&mut outputs);
        self.judge(bounded::check("effects of one batch", outputs.len(), EFFECTS_MAX));
        for output in outputs.drain(..) {
            self.on_output(node, output);
        }
        self.outputs = outputs;
        self.arm(node);
    }

    fn operator(&mut self, id: NodeId) -> usize {
        self.slot(id).unwrap_or_else(|| {
            let node = self.add_node(id, Kind::Operator);
            self.nodes[node].role = Role::Operator(Box::default());
            self.nodes[node].alive = true;
            node
        })
    }

    fn put_question(&mut self, node: usize, to: NodeId, make: Box<dyn FnOnce(u64) -> Message>) -> u64 {
        let now = self.nodes[node].clock.local(self.now_ns);
        match &mut self.nodes[node].role {
            Role::Operator(operator) => operator.ask(now, to, make),
            _ => unreachable!("only the operator asks"),
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Node { node, life, input } if self.nodes[node].life == life => self.deliver(node, input),
            Event::Settle { node, life } if self.nodes[node].life == life => {
                if self.nodes[node].batch > 0 && !self.nodes[node].paused {
                    self.settle(node);
                }
            }
            Event::Disk { node, life, disk, ticket, token } if self.nodes[node].life == life => {
                let bay = self.nodes[node].bay.as_mut().expect("a brick has disks");
                if let Some(done) = bay.complete(disk, ticket, token) {
                    self.deliver(node, Input::Disk { disk, done });
                }
            }
            Event::Choose { node, life, disk, token } if self.nodes[node].life == life => {
                self.choose(node, disk, token);
            }
            Event::Put { node, life, token } if self.nodes[node].life == life => self.on_put(node, token),
            Event::Node { .. } | Event::Settle { .. } | Event::Put { .. } => {}
            Event::Disk { .. } | Event::Choose { .. } => {}
            Event::Crash { node, life } if self.nodes[node].life == life => self.on_crash(node),
            Event::Crash { .. } => {}
            Event::Boot { node } => self.boot(node),
            Event::Resume { node } => self.resume(node),
            Event::Connect { pair, epoch } => self.on_connect(pair, epoch),
            Event::Break { pair, epoch } => self.on_break(pair, epoch),
            Event::Actor { actor, turn } => self.on_turn(actor, turn),
            Event::Failover { tag } => self.on_failover_due(tag),
            Event::Administer => self.on_administer(),
            Event::Fault => self.on_fault(),
            Event::FaultEnd(fault) => self.end_fault(fault),
        }
    }

    fn take_wake(&mut self, node: usize) -> bool {
        let Node { role, clock, wake_at_ns, wakes, .. } = &mut self.nodes[node];
        if *wake_at_ns <= self.now_ns {
            *wake_at_ns = u64::MAX;
        }
        if role.deadline().is_none_or(|at| at > clock.local(self.now_ns)) {
            self.arm(node);
            return false;
        }
        *wakes = if wakes.0 == self.now_ns { (wakes.0, wakes.1 + 1) } else { (self.now_ns, 1) };
        let count = wakes.1;
        let reason = role.reason();
        if count > WAKES_MAX {
            let what = format!("{} is woken for ever at one moment for '{reason}'", self.nodes[node].id);
            self.judge(Err(Violation::new("bounded queues", what)));
            return false;
        }
        true
    }

    fn end_step(&mut self, node: usize, at_once: bool) {
        let depth = if self.draw.chance(2_000) { Depth::Deep } else { Depth::Cheap };
        self.nodes[node].role.check(depth);
        self.nodes[node].batch += 1;
        let batch = self.nodes[node].batch;
        if at_once || batch >= BATCH_MAX || self.draw.percent(75) {
            self.settle(node);
        } else if batch == 1 {
            let life = self.nodes[node].life;
            let delay_ns = self.draw.below(BATCH_NS);
            self.later(delay_ns, Event::Settle { node, life });
        }
    }

    fn on_output(&mut self, node: usize, output: Output) {
        match output {
            Output::Send { to, packet } => self.send(node, to, packet),
            Output::Address(peer) => self.want(node, peer),
            Output::Store { token, puts } => self.store(node, token, puts),
            Output::Disk { disk, io } => self.submit(node, disk, io),
            Output::Contest { disk, token, attempt, holders } => {
                self.bay(node).contest(disk, token, attempt, holders);
            }
            Output::Claimed { disk, attempt } => self.leave(node, disk, attempt),
            Output::Ready => {}
            Output::Failed(why) => self.on_brick_failed(node, why),
            Output::Opened { session, volume } => self.on_opened(session, volume),
            Output::Reply { tag, result, payload } => self.on_reply(tag, result, &payload),
            Output::Attached(found) => self.on_attached(node, found),
        }
    }

    fn bay(&mut self, node: usize) -> &mut Bay {
        self.nodes[node].bay.as_mut().expect("a brick has disks")
    }

    /// A disk that shows its head is about to serve a contested read.
    fn choose(&mut self, node: usize, disk: usize, token: u64) {
        if let Some((attempt, holders)) = self.bay(node).choose(disk, token) {
            let bid_ns = self.draw.below(MS);
            self.deliver(node, Input::Claims { disk, attempt, bid_ns, holders });
        }
    }

    /// Another brick serves a read that waits at a disk that shows its head.
    fn leave(&mut self, node: usize, disk: usize, attempt: Attempt) {
        if let Some(token) = self.bay(node).leave(disk, attempt) {
            self.count_rare("disk left a read to another brick");
            let (life, delay_ns) = (self.nodes[node].life, self.draw.below(BATCH_NS));
            let done = IoDone { token, result: Err(IoFault::Left) };
            self.later(delay_ns, Event::Node { node, life, input: Input::Disk { disk, done } });
        }
    }

    fn submit(&mut self, node: usize, disk: usize, io: store::Io) {
        let kind = match io.kind {
            // Journal writes are the durable ones.
            IoKind::Write { offset, payload, durable: true } if self.forgets_to_sync() => {
                IoKind::Write { offset, payload, durable: false }
            }
            kind => kind,
        };
        let Node { bay, life, .. } = &mut self.nodes[node];
        let (bay, life) = (bay.as_mut().expect("a brick has disks"), *life);
        let is_write = matches!(kind, IoKind::Write { .. });
        let (ticket, delay_ns) = bay.submit(disk, kind, &mut self.draw);
        let under_way = bay.disks()[disk].under_way();
        let is_contested = bay.is_contested(disk, io.token);
        self.judge(bounded::check("requests of one disk", under_way, DISK_REQUESTS_MAX));
        self.later(delay_ns, Event::Disk { node, life, disk, ticket, token: io.token });
        if is_contested {
            let chosen_ns = self.draw.below(delay_ns.max(1));
            self.later(chosen_ns, Event::Choose { node, life, disk, token: io.token });
        }
        if is_write {
            self.on_disk_write(node, delay_ns);
        }
    }

    fn store(&mut self, node: usize, token: u64, puts: Vec<proto::directory::Put>) {
        self.cabinet.puts.push_back((token, puts));
        let delay_ns = self.draw.between(MS / 2, 3 * MS);
        self.cabinet.done_ns = self.cabinet.done_ns.max(self.now_ns + delay_ns);
        let life = self.nodes[node].life;
        self.queue.push(Time(self.cabinet.done_ns), Event::Put { node, life, token });
    }

    fn on_put(&mut self, node: usize, token: u64) {
        let (first, puts) = self.cabinet.puts.pop_front().expect("a put under way");
        assert_eq!(first, token, "puts are done in order");
        self.cabinet.apply(puts);
        self.deliver(node, Input::Stored { token });
    }

    /// Schedules the node's next wake, unless an earlier one is scheduled.
    fn arm(&mut self, node: usize) {
        let Node { role, clock, wake_at_ns, life, alive, .. } = &mut self.nodes[node];
        let Some(deadline) = role.deadline().filter(|_| *alive) else { return };
        let at_ns = clock.world(deadline).max(self.now_ns);
        if at_ns < *wake_at_ns {
            *wake_at_ns = at_ns;
            self.queue.push(Time(at_ns), Event::Node { node, life: *life, input: Input::Wake });
        }
    }
}

impl Cabinet {
    fn apply(&mut self, puts: Vec<proto::directory::Put>) {
        for (key, value) in puts {
            match value {
                Some(value) => drop(self.contents.insert(key, value)),
                None => drop(self.contents.remove(&key)),
            }
        }
    }
}
