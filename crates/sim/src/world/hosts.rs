//! Processors that take time. What comes to a node waits until it is the node's turn on its machine's processors; a turn
//! takes all that has come, and what the node says goes out when the turn is over.
//!
//! Clients work in turns too, of one request or one answer each.

use super::World;
use super::event::{Event, Input, Output};
use super::physics::timed::Coded;
use super::transport::{coded_for, coded_from};
use crate::timed::Hosts as Plan;
use base::{HashMap, Payload};
use code::Computation;
use model::host::{Begin, Kind, Processors, SLICE_NS, Work};
use store::IoKind;
use wire::{IoError, IoReply};

/// What a load's clients have to do.
#[derive(Debug)]
pub(crate) enum Task {
    /// To ask a gateway.
    Ask { node: usize, life: u32, input: Input },
    /// To take an answer.
    Answer { tag: u64, result: Result<IoReply, IoError>, payload: Payload },
}

/// Who takes turns: the clients together, or a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Clients,
    Node(usize),
    /// The thread of a node that does what is large.
    Worker(usize),
}

/// What a node's worker is to compute.
struct Handed {
    life: u32,
    number: u64,
    computation: Computation,
}

/// The machines, and what waits for a turn on them.
pub(crate) struct Hosts {
    plan: Plan,
    machines: Vec<Processors>,
    clients: Desk<Task, Task>,
    nodes: Vec<Desk<Input, Output>>,
    workers: HashMap<usize, Desk<Handed, Handed>>,
    /// Whether an engine computes parity, and no processor.
    has_xor_engine: bool,
}

/// What came to somebody, what the turn under way says at its end, and what was done in all turns.
struct Desk<I, O> {
    inbox: Vec<I>,
    outbox: Vec<O>,
    /// Of a node, the run in which its turn began.
    life: u32,
    /// Since when it has had its processor, turn after turn; none when it has to be woken for the next one.
    since_ns: Option<u64>,
    work: Work,
    /// Requests to disks that are not answered.
    at_disks: u32,
}

impl<I, O> Default for Desk<I, O> {
    fn default() -> Desk<I, O> {
        Desk {
            inbox: Vec::new(),
            outbox: Vec::new(),
            life: 0,
            since_ns: None,
            work: Work::default(),
            at_disks: 0,
        }
    }
}

impl Hosts {
    fn new(plan: Plan, has_xor_engine: bool) -> Hosts {
        let (machines, nodes, workers) = (Vec::new(), Vec::new(), HashMap::default());
        Hosts { plan, machines, clients: Desk::default(), nodes, workers, has_xor_engine }
    }

    /// What was done until now by the clients, or by a node.
    pub(crate) fn work(&self, who: Who) -> Work {
        match who {
            Who::Clients => self.clients.work,
            Who::Node(node) => self.nodes.get(node).map_or_else(Work::default, |desk| desk.work),
            Who::Worker(node) => self.workers.get(&node).map_or_else(Work::default, |desk| desk.work),
        }
    }

    /// What was done by a node and its worker.
    pub(crate) fn work_of_daemon(&self, node: usize) -> Work {
        let mut work = self.work(Who::Node(node));
        work.extend(&self.work(Who::Worker(node)));
        work
    }

    fn node(&mut self, node: usize) -> &mut Desk<Input, Output> {
        if self.nodes.len() <= node {
            self.nodes.resize_with(node + 1, Desk::default);
        }
        &mut self.nodes[node]
    }

    /// The processors on which somebody works, and by which number it does so.
    fn machine(&mut self, who: Who) -> (&mut Processors, usize) {
        let (home, number) = match who {
            Who::Clients => (0, CLIENTS),
            Who::Node(node) => (node + 1, node + 1),
            Who::Worker(node) => (node + 1, WORKERS + node),
        };
        let at = if self.plan.is_shared { 0 } else { home };
        let processors = self.plan.processors;
        if self.machines.len() <= at {
            self.machines.resize_with(at + 1, || Processors::new(processors));
        }
        (&mut self.machines[at], number)
    }

    fn want(&mut self, who: Who) -> Begin {
        let (machine, number) = self.machine(who);
        machine.want(number)
    }

    fn done(&mut self, who: Who, now_ns: u64) -> Option<Who> {
        let (has_more, since_ns) = match who {
            Who::Clients => (!self.clients.inbox.is_empty(), &mut self.clients.since_ns),
            Who::Node(node) => {
                let desk = self.node(node);
                (!desk.inbox.is_empty(), &mut desk.since_ns)
            }
            Who::Worker(node) => {
                let desk = self.workers.entry(node).or_default();
                (!desk.inbox.is_empty(), &mut desk.since_ns)
            }
        };
        let may_stay = since_ns.is_some_and(|since| now_ns < since + SLICE_NS);
        if !has_more {
            *since_ns = None;
        } else if !may_stay {
            *since_ns = Some(now_ns);
        }
        let (machine, number) = self.machine(who);
        let next = machine.done(now_ns, number, has_more, may_stay)?;
        Some(match next {
            CLIENTS => Who::Clients,
            worker if worker >= WORKERS => Who::Worker(worker - WORKERS),
            node => Who::Node(node - 1),
        })
    }

    /// The work of beginning somebody's turn.
    fn begin(&mut self, who: Who, now_ns: u64) -> Work {
        let since_ns = match who {
            Who::Clients => &mut self.clients.since_ns,
            Who::Node(node) => &mut self.node(node).since_ns,
            Who::Worker(node) => &mut self.workers.entry(node).or_default().since_ns,
        };
        let slept = since_ns.is_none();
        since_ns.get_or_insert(now_ns);
        let mut work = Work::default();
        work.add(Kind::Turn, 1.0);
        work.add(Kind::Wake, f64::from(u8::from(slept)));
        work
    }

    /// Somebody's turn was about this: how long it takes.
    fn charge(&mut self, who: Who, work: Work) -> u64 {
        match who {
            Who::Clients => self.clients.work.extend(&work),
            Who::Node(node) => self.node(node).work.extend(&work),
            Who::Worker(node) => self.workers.entry(node).or_default().work.extend(&work),
        }
        self.plan.costs.of(&work)
    }
}

/// The clients' number among those who want turns, and from where on workers have theirs.
const CLIENTS: usize = 0;
const WORKERS: usize = 1 << 31;

impl World {
    /// From now on machines have processors.
    pub(crate) fn start_hosts(&mut self, plan: Plan) {
        let has_xor_engine =
            self.shape.hardware.as_ref().is_some_and(|hardware| hardware.buses.xor.is_some());
        self.hosts = Some(Box::new(Hosts::new(plan, has_xor_engine)));
    }

    /// Something comes to a node that works in turns.
    pub(super) fn put_at_desk(&mut self, node: usize, input: Input) {
        let Some(hosts) = &mut self.hosts else { return };
        hosts.node(node).inbox.push(input);
        self.want_turn(Who::Node(node));
    }

    /// A node is killed: what had come to it is lost.
    pub(super) fn clear_desk(&mut self, node: usize) {
        if let Some(hosts) = &mut self.hosts {
            let desk = hosts.node(node);
            desk.inbox.clear();
            desk.at_disks = 0;
            hosts.workers.entry(node).and_modify(|desk| desk.inbox.clear());
        }
    }

    /// A client has something to do: at once, where processors take no time.
    pub(crate) fn client_has(&mut self, task: Task) {
        match &mut self.hosts {
            None => self.carry_out(task),
            Some(hosts) => {
                hosts.clients.inbox.push(task);
                self.want_turn(Who::Clients);
            }
        }
    }

    fn want_turn(&mut self, who: Who) {
        let Some(hosts) = &mut self.hosts else { return };
        if hosts.want(who) == Begin::Wakes {
            let sleep_ns = hosts.plan.costs.sleep_ns as u64;
            self.later(sleep_ns, Event::Turn(who));
        }
    }

    /// Somebody's turn begins.
    pub(super) fn on_turn_begins(&mut self, who: Who) {
        let cost_ns = match who {
            Who::Clients => self.clients_turn(),
            Who::Node(node) => self.node_turn(node),
            Who::Worker(node) => self.worker_turn(node),
        };
        self.later(cost_ns, Event::TurnOver(who));
    }

    /// Somebody's turn is over: what it says goes out, and its processor goes on with the next one.
    pub(super) fn on_turn_over(&mut self, who: Who) {
        match who {
            Who::Clients => {
                let mut tasks = self
                    .hosts
                    .as_mut()
                    .map_or_else(Vec::new, |hosts| core::mem::take(&mut hosts.clients.outbox));
                tasks.drain(..).for_each(|task| self.carry_out(task));
            }
            Who::Node(node) => self.node_turn_over(node),
            Who::Worker(node) => self.worker_turn_over(node),
        }
        let now_ns = self.time.now_ns();
        if let Some(next) = self.hosts.as_mut().and_then(|hosts| hosts.done(who, now_ns)) {
            self.on_turn_begins(next);
        }
    }

    fn clients_turn(&mut self) -> u64 {
        let Some(hosts) = &mut self.hosts else { return 0 };
        // What a client's turns cost is in the cost of its requests: it wakes for each of them.
        let mut work = Work::default();
        hosts.begin(Who::Clients, self.time.now_ns());
        // One after another: what a client asks is on its way before it takes the next answer.
        let task = hosts.clients.inbox.remove(0);
        let bytes = match &task {
            Task::Ask { input: Input::SessionIo { payload, .. }, .. } => {
                work.add(Kind::Client, 1.0);
                payload.len()
            }
            Task::Ask { .. } => 0,
            Task::Answer { payload, .. } => payload.len(),
        };
        work.add(Kind::Kibibyte, bytes as f64 / 1024.0);
        hosts.clients.outbox.push(task);
        hosts.charge(Who::Clients, work)
    }

    fn node_turn(&mut self, node: usize) -> u64 {
        let life = self.nodes[node].life();
        let Some(hosts) = &mut self.hosts else { return 0 };
        let mut inbox = core::mem::take(&mut hosts.node(node).inbox);
        let mut outbox = core::mem::take(&mut hosts.node(node).outbox);
        let mut work = hosts.begin(Who::Node(node), self.time.now_ns());
        let mut has_stepped = false;
        let answered = inbox.iter().filter(|input| matches!(input, Input::Disk { .. })).count() as u32;
        let codes = !hosts.has_xor_engine;
        for input in inbox.drain(..) {
            note_input(&mut work, &input, codes);
            has_stepped |= self.take(node, input).is_some();
        }
        if has_stepped {
            self.nodes[node].settle(self.time.now_ns(), &mut outbox);
        }
        outbox.iter().for_each(|output| note_output(&mut work, output, codes));
        let Some(hosts) = &mut self.hosts else { return 0 };
        let desk = hosts.node(node);
        desk.at_disks = desk.at_disks.saturating_sub(answered);
        let has_written = work.count(Kind::Write) > 0.0;
        work.add(Kind::Batch, f64::from(u8::from(has_written)));
        work.add(Kind::Rouse, f64::from(u8::from(has_written && desk.at_disks == 0)));
        desk.at_disks += outbox.iter().filter(|output| matches!(output, Output::Disk { .. })).count() as u32;
        // The room that both took is used again, and what came meanwhile stands behind.
        inbox.append(&mut desk.inbox);
        (desk.inbox, desk.outbox, desk.life) = (inbox, outbox, life);
        hosts.charge(Who::Node(node), work)
    }

    /// A node wants something to be computed. What is small its own turn has paid for.
    pub(super) fn compute(&mut self, node: usize, number: u64, computation: Computation) {
        let (life, now_ns) = (self.nodes[node].life(), self.time.now_ns());
        match &mut self.hosts {
            Some(hosts) if computation.is_large() && !hosts.has_xor_engine => {
                hosts.workers.entry(node).or_default().inbox.push(Handed { life, number, computation });
                self.want_turn(Who::Worker(node));
            }
            _ => {
                let done_ns = self.physics.compute(now_ns, node, Coded::from(&computation));
                let input = Input::Computed { number, made: computation.run() };
                self.time.at(done_ns, Event::Node { node, life, input });
            }
        }
    }

    /// A worker takes one computation at a time.
    fn worker_turn(&mut self, node: usize) -> u64 {
        let now_ns = self.time.now_ns();
        let Some(hosts) = &mut self.hosts else { return 0 };
        let mut work = hosts.begin(Who::Worker(node), now_ns);
        let desk = hosts.workers.entry(node).or_default();
        if !desk.inbox.is_empty() {
            let handed = desk.inbox.remove(0);
            add_coded(&mut work, handed.computation.bytes(), true);
            desk.outbox.push(handed);
        }
        hosts.charge(Who::Worker(node), work)
    }

    fn worker_turn_over(&mut self, node: usize) {
        let Some(desk) = self.hosts.as_mut().and_then(|hosts| hosts.workers.get_mut(&node)) else { return };
        for Handed { life, number, computation } in core::mem::take(&mut desk.outbox) {
            if self.nodes[node].life() == life {
                self.put_at_desk(node, Input::Computed { number, made: computation.run() });
            }
        }
    }

    fn node_turn_over(&mut self, node: usize) {
        let Some(hosts) = &mut self.hosts else { return };
        let desk = hosts.node(node);
        let (life, mut outbox) = (desk.life, core::mem::take(&mut desk.outbox));
        if self.nodes[node].life() != life {
            // It was killed in the middle of its turn.
            return;
        }
        outbox.drain(..).for_each(|output| self.on_output(node, output));
        self.arm(node);
        if let Some(hosts) = &mut self.hosts {
            hosts.node(node).outbox = outbox;
        }
    }
}

/// What it costs to take that, and to compute with it where the processor does.
fn note_input(work: &mut Work, input: &Input, codes: bool) {
    let (kind, payload) = match input {
        Input::Packet { packet, .. } => {
            add_coded(work, coded_from(packet).added_bytes, codes);
            (Kind::Packet, &packet.payload)
        }
        Input::SessionIo { payload, .. } => (Kind::Request, payload),
        _ => return,
    };
    work.add(kind, 1.0);
    work.add(Kind::Kibibyte, payload.len() as f64 / 1024.0);
}

fn note_output(work: &mut Work, output: &Output, codes: bool) {
    let bytes = match output {
        Output::Compute { computation, .. } if !computation.is_large() => {
            return add_coded(work, computation.bytes(), codes);
        }
        Output::Send { packet, .. } => {
            add_coded(work, coded_for(packet).added_bytes, codes);
            work.add(Kind::Packet, 1.0);
            packet.payload.len()
        }
        Output::Reply { payload, .. } => payload.len(),
        Output::Disk { io, .. } => match &io.kind {
            IoKind::Read { length, .. } => {
                work.add(Kind::Read, 1.0);
                *length
            }
            IoKind::Write { payload, .. } => {
                work.add(Kind::Write, 1.0);
                return work.add(Kind::Written, payload.len() as f64 / 1024.0);
            }
            IoKind::Flush => 0,
        },
        _ => return,
    };
    work.add(Kind::Kibibyte, bytes as f64 / 1024.0);
}

fn add_coded(work: &mut Work, bytes: u64, codes: bool) {
    if codes && bytes > 0 {
        work.add(Kind::Coded, bytes as f64 / 1024.0);
    }
}
