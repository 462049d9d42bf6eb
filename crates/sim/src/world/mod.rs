//! The world: nodes, their clocks and disks, the network, and what happens next.
//!
//! All is drawn from one seed. Reading order: [`event`] (what can happen), `role` (the machines), this file (how an
//! event reaches a machine and its effects the world), `hosts` (processors that take time), `net`, `bay`, `power` (crash and
//! restart).

mod bay;
mod cabinet;
pub(crate) mod event;
mod heads;
pub(crate) mod hosts;
mod judges;
mod net;
mod node;
mod operator;
mod physics;
mod power;
pub(crate) mod role;
mod timeline;
mod transport;

use crate::administrator::Administrator;
use crate::checkers::Violation;
use crate::checkers::bounded::{self, DISK_REQUESTS_MAX, EFFECTS_MAX};
use crate::faults::Faults;
use crate::objects::named::Named;
use crate::objects::segments::Segments;
use crate::options::Shape;
use crate::rare::Reached;
use crate::schedule::Turns;
use crate::timed::{Load, Watch};
use crate::trace::Trace;
use crate::units::MS;
use crate::workload::Workload;
use base::{ClientId, Depth, GatewayId, NodeId, Time};
use bytes::Bytes;
use cabinet::Cabinet;
use event::{Event, Input, Moved, Output};
use hosts::{Hosts, Task};
use judges::Judges;
use model::Draw;
pub(crate) use node::{Kind, Node};
use node::{Nodes, Wake};
use objects::index::{ShardEffect, ShardEvent, StoreToken};
#[cfg(feature = "planted")]
pub(crate) use physics::Durability;
use physics::{Access, Physics};
use role::Role;
use std::collections::BTreeMap;
use store::{IoDone, IoKind, IoToken};
use timeline::Timeline;
use wire::{Message, Packet};

const BATCH_MAX: u32 = 16;
const BATCH_NS: u64 = 100_000;
/// Who may ask the directory.
const ADMINISTRATOR: NodeId = NodeId::Client(ClientId::operator(u64::MAX));
/// Who gives commands during the run.
const STEWARD: NodeId = NodeId::Client(ClientId::operator(u64::MAX - 1));
/// Who may ask bricks.
const AUDITOR: NodeId = NodeId::Gateway(GatewayId(u64::MAX));

/// Whom to ask, and what, given the question's number.
pub(crate) type Question = (NodeId, Box<dyn FnOnce(u64) -> Message>);

/// The world: machines, the physics under them, and their judges; and what drives it all: clients, faults, an administrator.
pub(crate) struct World {
    pub(crate) time: Timeline,
    pub(crate) nodes: Nodes,
    pub(crate) physics: Physics,
    pub(crate) judges: Judges,
    pub(crate) trace: Trace,
    pub(crate) shape: Shape,
    pub(crate) workload: Workload,
    pub(crate) segments: Option<Segments>,
    pub(crate) named: Option<Named>,
    pub(crate) faults: Faults,
    pub(crate) administrator: Administrator,
    /// Who of them all takes a turn.
    pub(crate) turns: Turns,
    /// What is asked of a cluster whose speed is measured.
    pub(crate) load: Option<Box<Load>>,
    /// What is seen of objects that are put and got, where that is measured.
    pub(crate) watch: Option<Box<Watch>>,
    /// The machines' processors, where work takes time.
    pub(crate) hosts: Option<Box<Hosts>>,
    /// Whether every step is judged and told.
    is_watched: bool,
    cabinet: Cabinet,
    /// The stores of the shards of the directory's index.
    shards: BTreeMap<u16, Cabinet>,
    outputs: Vec<Output>,
}

impl World {
    /// From now on nobody looks at what machines do: for runs that are measured.
    pub(crate) fn watch_no_more(&mut self) {
        self.is_watched = false;
    }

    /// What the directory's store holds.
    pub(crate) fn store_contents(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.cabinet.contents()
    }

    /// The directory's store is another one, while the directory does not run.
    pub(crate) fn set_store_contents(&mut self, contents: Vec<(Vec<u8>, Vec<u8>)>) {
        self.cabinet = Cabinet::holding(contents);
    }

    /// A world of that shape in which nobody runs yet.
    pub(crate) fn new(seed: u64, shape: Shape, trace: Trace) -> World {
        let mut draw = Draw::new(seed ^ 0x5eed_b41c);
        let faults = Faults::new(draw.fork(), &shape);
        let workload = Workload::new(draw.fork(), &shape);
        let administrator = Administrator::new(draw.fork(), shape.intrigues.commands, shape.intrigues.churn);
        let cabinet = Cabinet::holding(shape.bounds.past.contents());
        World {
            time: Timeline::new(),
            nodes: Nodes::new(),
            physics: Physics::new(draw, shape.hardware.as_deref()),
            judges: Judges::within(&shape.bounds),
            trace,
            // What does not fit on small disks is no question of objects.
            segments: (shape.objects && !shape.disks.are_small).then(|| Segments::new(seed)),
            named: shape.objects.then(|| Named::new(seed)),
            shape,
            workload,
            faults,
            administrator,
            turns: Turns::default(),
            load: None,
            watch: None,
            hosts: None,
            is_watched: true,
            cabinet,
            shards: BTreeMap::new(),
            outputs: Vec::new(),
        }
    }

    /// Runs until `until_ns`, or until a violation.
    pub(crate) fn run_until(&mut self, until_ns: u64) {
        while self.judges.are_content() {
            let Some(event) = self.time.next(until_ns) else { return };
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
        let end_ns = self.time.now_ns() + within_ns;
        while self.judges.are_content() && self.time.now_ns() < end_ns && answers.iter().any(Option::is_none)
        {
            self.run_until((self.time.now_ns() + MS).min(end_ns));
            let operator = self.nodes[node].operator();
            let open = answers.iter_mut().zip(&numbers).filter(|(answer, _)| answer.is_none());
            open.for_each(|(answer, number)| *answer = operator.answer(*number));
        }
        self.nodes[node].operator().give_up();
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
        self.time.later(delay_ns, event);
    }

    /// Takes note of a violation, if there is one and it is the first.
    pub(crate) fn judge(&mut self, verdict: Result<(), Violation>) {
        self.judges.judge(verdict);
    }

    /// What the machines that run now have counted, with all that was counted before.
    pub(crate) fn reached(&self) -> Reached {
        let mut all = self.judges.reached().clone();
        self.nodes.iter().filter_map(Node::counters).for_each(|counters| all.add(counters));
        all
    }

    /// Lets an input happen to a node: now, or when it is its turn on its machine's processors. One that does not run takes
    /// nothing; a paused one takes it later.
    pub(crate) fn deliver(&mut self, node: usize, input: Input) {
        if self.hosts.is_some() && *self.nodes[node].kind() != Kind::Operator {
            return self.put_at_desk(node, input);
        }
        let Some((is_wake, batch)) = self.take(node, input) else { return };
        if !self.is_watched {
            return self.settle(node);
        }
        self.end_step(node, is_wake, batch);
        if self.nodes[node].id() == STEWARD {
            let answers = self.nodes[node].operator().take_answers();
            answers.into_iter().for_each(|(number, packet)| self.on_administered(number, packet));
        }
    }

    /// A node takes an input: whether it was a wake, and how many it took since its effects last went out.
    fn take(&mut self, node: usize, input: Input) -> Option<(bool, u32)> {
        let input = self.nodes[node].accept(input)?;
        let is_wake = matches!(input, Input::Wake);
        if is_wake && !self.take_wake(node) {
            return None;
        }
        let (now_ns, this) = (self.time.now_ns(), &mut self.nodes[node]);
        if !self.is_watched {
            return Some((is_wake, this.step(now_ns, input, None)));
        }
        self.trace.step(now_ns, this.id(), &input, this.reason());
        let depth = if self.physics.draw().chance(2_000) { Depth::Deep } else { Depth::Cheap };
        Some((is_wake, this.step(now_ns, input, Some(depth))))
    }

    /// Ends the batch of inputs of a node: its effects go out.
    pub(crate) fn settle(&mut self, node: usize) {
        let mut outputs = core::mem::take(&mut self.outputs);
        self.nodes[node].settle(self.time.now_ns(), &mut outputs);
        if self.is_watched {
            self.judge(bounded::check("effects of one batch", outputs.len(), EFFECTS_MAX));
        }
        for output in outputs.drain(..) {
            self.on_output(node, output);
        }
        self.outputs = outputs;
        self.arm(node);
    }

    fn operator(&mut self, id: NodeId) -> usize {
        self.nodes.slot(id).unwrap_or_else(|| {
            let node = self.nodes.add(id, Kind::Operator);
            self.nodes[node].start(Role::Operator(Box::default()));
            node
        })
    }

    fn put_question(&mut self, node: usize, to: NodeId, make: Box<dyn FnOnce(u64) -> Message>) -> u64 {
        let now = self.nodes[node].local(self.time.now_ns());
        self.nodes[node].operator().ask(now, to, make)
    }

    /// Goes on to what happens next.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.time.next(u64::MAX)
    }

    pub(crate) fn on_event(&mut self, event: Event) {
        match event {
            Event::Node { node, life, input } if self.nodes[node].life() == life => {
                if let Input::Packet { packet, .. } = &input
                    && self.is_watched
                {
                    self.judges.hear(self.nodes[node].id(), &packet.message);
                }
                self.deliver(node, input);
            }
            Event::Settle { node, life } if self.nodes[node].life() == life => {
                if self.nodes[node].is_in_batch() && !self.nodes[node].is_paused() {
                    self.settle(node);
                }
            }
            Event::Disk { node, life, disk, ticket, token } if self.nodes[node].life() == life => {
                let done = self.nodes[node].disks_mut().complete(disk, ticket, token);
                self.deliver(node, Input::Disk { disk, done });
            }
            Event::Shelf { node, life, disk, token, moved } if self.nodes[node].life() == life => {
                self.on_shelf_done(node, disk, token, moved);
            }
            Event::Port { node, life, from, packet } if self.nodes[node].life() == life => {
                self.on_port(node, from, packet);
            }
            Event::Load(what) => self.on_load(what),
            Event::Turn(who) => self.on_turn_begins(who),
            Event::TurnOver(who) => self.on_turn_over(who),
            Event::Put { node, life, token } if self.nodes[node].life() == life => self.on_put(node, token),
            Event::ShardPut { node, life, shard, token, result } if self.nodes[node].life() == life => {
                self.on_shard_put(node, shard, token, result);
            }
            Event::Node { .. } | Event::Settle { .. } | Event::Put { .. } | Event::ShardPut { .. } => {}
            Event::Disk { .. } | Event::Shelf { .. } | Event::Port { .. } => {}
            Event::Crash { node, life } if self.nodes[node].life() == life => self.on_crash(node),
            Event::Crash { .. } => {}
            Event::Boot { node } => self.boot(node),
            Event::Resume { node } => self.resume(node),
            Event::Connect { pair, epoch } => self.on_connect(pair, epoch),
            Event::Break { pair, epoch } => self.on_break(pair, epoch),
            Event::Actor { actor, turn } => self.on_turn(actor, turn),
            Event::Object { actor, turn } => self.on_object_turn(actor, turn),
            Event::Segment { actor, turn } => self.on_segment_turn(actor, turn),
            Event::Failover { tag } => self.on_failover_due(tag),
            Event::Administer => self.on_administer(),
            Event::AskAgain { question } => self.ask_again(question),
            Event::AdministerStreams => self.on_administer_streams(),
            Event::Churn => self.on_churn(),
            Event::Fault => self.on_fault(),
            Event::FaultEnd(fault) => self.end_fault(fault),
        }
    }

    fn take_wake(&mut self, node: usize) -> bool {
        match self.nodes[node].begin_wake(self.time.now_ns()) {
            Wake::Due => return true,
            Wake::Early => self.arm(node),
            Wake::ForEver(reason) => {
                let id = self.nodes[node].id();
                let what = format!("{id} is woken for ever at one moment for '{reason}'");
                self.judge(Err(Violation::new("bounded queues", what)));
            }
        }
        false
    }

    fn end_step(&mut self, node: usize, at_once: bool, batch: u32) {
        if at_once || batch >= BATCH_MAX || self.physics.draw().percent(75) {
            self.settle(node);
        } else if batch == 1 {
            let (life, delay_ns) = (self.nodes[node].life(), self.physics.draw().below(BATCH_NS));
            self.later(delay_ns, Event::Settle { node, life });
        }
    }

    fn on_output(&mut self, node: usize, output: Output) {
        match output {
            Output::Send { to, packet } => self.send(node, to, packet),
            Output::Address(peer) => self.want(node, peer),
            Output::Forget(peer) => self.forget(node, peer),
            Output::Compute { number, computation } => self.compute(node, number, computation),
            Output::Store { token, puts } => self.store(node, token, puts),
            Output::Disk { disk, io, due } => self.submit(node, disk, io, due),
            Output::Ready => {}
            Output::Failed(why) => self.on_brick_failed(node, why),
            Output::Opened { session, volume } if self.load.is_some() => self.on_load_opened(session, volume),
            Output::Opened { session, volume } => self.on_opened(session, volume),
            Output::Reply { tag, result, payload } if self.load.is_some() => {
                self.client_has(Task::Answer { tag, result, payload });
            }
            Output::Reply { tag, result, payload } => self.on_reply(tag, result, &payload),
            Output::Segment { tag, segment } => match &mut self.watch {
                Some(watch) => watch.on_segment(tag, segment),
                None => self.on_segment(tag, segment),
            },
            Output::Object { tag, news } => self.on_object(tag, news),
            Output::Shard { shard, effect } => self.shard(node, shard, effect),
            Output::Attached(found) if self.load.is_some() => self.on_load_attached(node, found),
            Output::Attached(found) => self.on_attached(node, found),
        }
    }

    /// A request goes to a disk. Where the disk's heads are seen it is done at `due` by the node's clock at the earliest.
    fn submit(&mut self, node: usize, disk: usize, io: store::Io, due: Option<base::Time>) {
        if self.nodes[node].has_shelves() {
            return self.submit_to_shelf(node, disk, io, due);
        }
        let store::Io { token, kind } = io;
        let is_write = matches!(kind, IoKind::Write { .. });
        let (life, now_ns) = (self.nodes[node].life(), self.time.now_ns());
        let due_ns = due.map_or(now_ns, |due| self.nodes[node].world(due));
        let bay = self.nodes[node].disks_mut();
        let Access { ticket, delay_ns } = self.physics.access(bay, disk, kind);
        let outstanding = bay.disks()[disk].under_way();
        self.judge(bounded::check("requests of one disk", outstanding, DISK_REQUESTS_MAX));
        let delay_ns = delay_ns.max(due_ns.saturating_sub(now_ns));
        self.later(delay_ns, Event::Disk { node, life, disk, ticket, token });
        if is_write {
            self.on_disk_write(node, delay_ns);
        }
    }

    /// The same, of a disk whose contents are kept elsewhere: what is asked is when it is done.
    fn submit_to_shelf(&mut self, node: usize, disk: usize, io: store::Io, due: Option<base::Time>) {
        let (life, now_ns) = (self.nodes[node].life(), self.time.now_ns());
        let (begins_ns, moved) = match &io.kind {
            IoKind::Write { offset, payload, .. } => {
                let there_ns = self.physics.cross_for_disk(now_ns, node, payload.len() as u64);
                (there_ns, Moved::Written { offset: *offset })
            }
            IoKind::Read { length, .. } => (now_ns, Moved::Read(*length as u64)),
            IoKind::Flush => (now_ns, Moved::Nothing),
        };
        let [begun_ns, done_ns] = match due {
            Some(due) => [now_ns, self.nodes[node].world(due).max(begins_ns)],
            None => self.nodes[node].shelf_serves_ns(disk, begins_ns, &io.kind),
        };
        if let IoKind::Read { offset, .. } | IoKind::Write { offset, .. } = &io.kind {
            let times = [begun_ns, done_ns].map(Time);
            self.on_shelf_access(node, *offset, matches!(moved, Moved::Written { .. }), times);
        }
        self.time.at(done_ns, Event::Shelf { node, life, disk, token: io.token, moved });
    }

    /// Such an access is done: what was read goes to memory.
    fn on_shelf_done(&mut self, node: usize, disk: usize, token: IoToken, moved: Moved) {
        let done = IoDone { token, result: Ok(Bytes::new()) };
        let input = Input::Disk { disk, done };
        let now_ns = self.time.now_ns();
        match moved {
            Moved::Read(bytes) => {
                let there_ns = self.physics.cross_for_disk(now_ns, node, bytes);
                if there_ns > now_ns {
                    let life = self.nodes[node].life();
                    return self.time.at(there_ns, Event::Node { node, life, input });
                }
            }
            Moved::Written { offset } => self.on_shelf_written(node, offset),
            Moved::Nothing => {}
        }
        self.deliver(node, input);
    }

    fn store(&mut self, node: usize, token: u64, puts: Vec<roles::directory::Put>) {
        let delay_ns = self.physics.draw().between(MS / 2, 3 * MS);
        let done_ns = self.cabinet.begin(token, puts, self.time.now_ns() + delay_ns);
        let life = self.nodes[node].life();
        self.time.at(done_ns, Event::Put { node, life, token });
    }

    fn on_put(&mut self, node: usize, token: u64) {
        self.cabinet.end(token);
        self.deliver(node, Input::Stored { token });
    }

    /// A shard of the directory's index asks its store.
    fn shard(&mut self, node: usize, shard: u16, effect: ShardEffect) {
        let life = self.nodes[node].life();
        let delay_ns = self.physics.draw().between(MS / 10, 3 * MS);
        let fails = self.named.as_mut().is_some_and(Named::store_fails);
        let why = || "the simulated store fails".to_owned();
        let store = self.shards.entry(shard).or_default();
        match effect {
            ShardEffect::Read { token, pages } => {
                let result =
                    if fails { Err(why()) } else { Ok(pages.iter().map(|page| store.page(page)).collect()) };
                let input = Input::Shard { shard, event: ShardEvent::Read { token, result } };
                self.later(delay_ns, Event::Node { node, life, input });
            }
            // Nothing is stored, or it is and nobody hears of it.
            ShardEffect::Store { token, .. } if fails && delay_ns.is_multiple_of(2) => {
                let event = ShardEvent::Stored { token, result: Err(why()) };
                self.later(delay_ns, Event::Node { node, life, input: Input::Shard { shard, event } });
            }
            ShardEffect::Store { token, puts } => {
                let done_ns = store.begin(token.0, puts, self.time.now_ns() + delay_ns);
                let result = if fails { Err(why()) } else { Ok(()) };
                self.time.at(done_ns, Event::ShardPut { node, life, shard, token: token.0, result });
            }
        }
    }

    fn on_shard_put(&mut self, node: usize, shard: u16, token: u64, result: Result<(), String>) {
        self.shards.entry(shard).or_default().end(token);
        let event = ShardEvent::Stored { token: StoreToken(token), result };
        self.deliver(node, Input::Shard { shard, event });
    }

    /// Schedules the node's next wake, unless an earlier one is scheduled.
    fn arm(&mut self, node: usize) {
        if let Some(at_ns) = self.nodes[node].arm(self.time.now_ns()) {
            let life = self.nodes[node].life();
            self.time.at(at_ns, Event::Node { node, life, input: Input::Wake });
        }
    }
}
