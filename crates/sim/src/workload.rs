//! The workload: actors that read and write a few hot blocks, so that they meet.
//!
//! An actor is one client of the history: it has one request at a time. It speaks through a plain session of a gateway
//! or through an attached client. When its request is answered with an error, or its gateway or client dies, its write
//! may take effect any time or never, and the actor goes on under a fresh name.

use crate::checkers::Violation;
use crate::checkers::bytes;
use crate::checkers::live;
use crate::history::{History, Kind, Operation, Register};
use crate::options::{Shape, VolumePlan};
use crate::rare::Seen;
use crate::world::event::{Event, Input};
use crate::world::{Kind as NodeKind, MS, SECOND, World};
use ::bytes::BytesMut;
use base::{BLOCK, BLOCK_U64, HashMap, Payload, VolumeId};
use model::Draw;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use wire::{Io, IoError, IoReply};

const SECTOR: usize = 512;

/// How an actor reaches its volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Port {
    None,
    Session { node: usize, session: u64, opened: Option<VolumeId>, since_ns: u64 },
    Attached { node: usize },
}

/// A request under way.
struct Pending {
    tag: u64,
    kind: Kind,
    /// The registers, and for writes the values that they take.
    parts: Vec<(Register, u64)>,
    /// Bytes a register.
    grain: usize,
    asked_ns: u64,
    text: String,
}

struct Actor {
    client: u64,
    volume: usize,
    attached: bool,
    port: Port,
    turn: u64,
    pending: Option<Pending>,
    /// The blocks that are left to be read, if it only reads; then it goes on when the others have stopped.
    script: Option<VecDeque<u64>>,
}

/// What one of the last readers saw of a register.
pub(crate) struct Final {
    pub(crate) register: Register,
    pub(crate) value: u64,
    pub(crate) asked_ns: u64,
}

/// What actors do, and what they saw.
pub(crate) struct Workload {
    history: History,
    /// Requests answered, by kind and result.
    answers: BTreeMap<&'static str, u64>,
    finals: Vec<Final>,
    actors: Vec<Actor>,
    volumes: Vec<Rc<VolumePlan>>,
    /// The family of each volume that was made.
    families: Vec<VolumeId>,
    tags: HashMap<u64, usize>,
    sessions: HashMap<u64, usize>,
    draw: Draw,
    next: u64,
    pause_ns: u64,
    /// Until then actors do not pause.
    burst_until_ns: u64,
    issuing: bool,
}

impl Workload {
    pub(crate) fn new(mut draw: Draw, shape: &Shape) -> Workload {
        let actors = (0..shape.load.actors).map(|_| Actor {
            client: 0,
            volume: draw.index(shape.volumes.len()),
            attached: draw.percent(40),
            port: Port::None,
            turn: 0,
            pending: None,
            script: None,
        });
        let span_ns = shape.phases.safety_ns + shape.phases.liveness_ns;
        Workload {
            history: History::default(),
            answers: BTreeMap::new(),
            finals: Vec::new(),
            actors: actors.collect(),
            volumes: shape.volumes.iter().cloned().map(Rc::new).collect(),
            families: Vec::new(),
            tags: HashMap::default(),
            sessions: HashMap::default(),
            pause_ns: 2 * span_ns * u64::from(shape.load.actors) / shape.load.operations,
            draw,
            next: 0,
            burst_until_ns: 0,
            issuing: true,
        }
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn into_history(self) -> History {
        self.history
    }

    /// An operation that no actor asked for took effect.
    pub(crate) fn add_operation(&mut self, operation: Operation) {
        self.history.push(operation);
    }

    /// How many requests were answered, by kind and result.
    pub(crate) fn answers(&self) -> &BTreeMap<&'static str, u64> {
        &self.answers
    }

    pub(crate) fn finals(&self) -> &[Final] {
        &self.finals
    }

    /// No new requests from now on.
    pub(crate) fn stop(&mut self) {
        self.issuing = false;
    }

    /// A volume: one of the shape's, or a snapshot or clone made since.
    pub(crate) fn plan(&self, volume: usize) -> &VolumePlan {
        &self.volumes[volume]
    }

    /// How many there are.
    pub(crate) fn volumes(&self) -> usize {
        self.volumes.len()
    }

    /// A volume of the shape was made: what is known of it only now.
    pub(crate) fn on_made(&mut self, volume: usize, family: VolumeId) {
        assert_eq!(volume, self.families.len(), "volumes are made in order");
        self.families.push(family);
        Rc::make_mut(&mut self.volumes[volume]).find_far_block(family);
    }

    /// The family of a volume that was made.
    pub(crate) fn family(&self, volume: usize) -> Option<VolumeId> {
        self.families.get(volume).copied()
    }

    /// The plan of the first volume of a family.
    pub(crate) fn plan_of(&self, family: VolumeId) -> Option<&VolumePlan> {
        self.families.iter().position(|of| *of == family).map(|volume| self.plan(volume))
    }

    /// A snapshot or clone appeared: its number.
    pub(crate) fn add_volume(&mut self, plan: VolumePlan, origin: usize, family: VolumeId) -> usize {
        self.families.push(family);
        self.volumes.push(Rc::new(plan));
        self.history.note_origin(self.volumes.len() - 1, origin);
        self.volumes.len() - 1
    }

    /// Whoever reads that volume block by block need not go on: it is deleted.
    pub(crate) fn cancel_readers(&mut self, volume: usize) {
        let readers = self.actors.iter_mut().filter(|actor| actor.volume == volume);
        readers.filter_map(|actor| actor.script.as_mut()).for_each(VecDeque::clear);
    }

    /// All requests under way: when they were asked, and what.
    pub(crate) fn unanswered(&self) -> Vec<(u64, String)> {
        let pending = |actor: &Actor| actor.pending.as_ref().map(|p| (p.asked_ns, p.text.clone()));
        let mut unanswered: Vec<(u64, String)> = self.actors.iter().filter_map(pending).collect();
        unanswered.sort();
        unanswered
    }

    fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn count(&mut self, what: &'static str) {
        *self.answers.entry(what).or_default() += 1;
    }
}

impl World {
    /// Gives every actor its first turn.
    pub(crate) fn start_workload(&mut self) {
        for actor in 0..self.workload.actors.len() {
            self.workload.actors[actor].client = self.workload.fresh();
            self.next_turn(actor, 0);
        }
    }

    /// Adds two actors a volume that read all there is, block by block.
    pub(crate) fn start_final_reads(&mut self) {
        for volume in (0..self.workload.volumes.len()).flat_map(|volume| [volume; 2]) {
            if self.is_there(volume) {
                self.add_reader(volume);
            }
        }
    }

    /// Adds an actor that reads all there is of a volume, block by block.
    pub(crate) fn add_reader(&mut self, volume: usize) {
        let script = Some(self.workload.volumes[volume].blocks().collect());
        self.add_actor(volume, script);
    }

    /// Adds an actor that reads and writes a volume that was made during the run.
    pub(crate) fn add_writer(&mut self, volume: usize) {
        self.add_actor(volume, None);
    }

    fn add_actor(&mut self, volume: usize, script: Option<VecDeque<u64>>) {
        let client = self.workload.fresh();
        let actor = self.workload.actors.len();
        let port = Port::None;
        let (attached, turn, pending) = (false, 0, None);
        self.workload.actors.push(Actor { client, volume, attached, port, turn, pending, script });
        self.next_turn(actor, 0);
    }

    /// Actors do not pause for a while: what happens now is about how requests meet it.
    pub(crate) fn burst(&mut self, span_ns: u64) {
        self.workload.burst_until_ns = self.time.now_ns() + span_ns;
        for actor in 0..self.workload.actors.len() {
            let this = &self.workload.actors[actor];
            if this.pending.is_none() && this.script.is_none() && this.port != Port::None {
                let delay_ns = self.workload.draw.below(5 * MS);
                self.next_turn(actor, delay_ns);
            }
        }
    }

    /// Whether the last readers are done.
    pub(crate) fn final_reads_done(&self) -> bool {
        let done = |a: &Actor| a.pending.is_none() && a.script.as_ref().is_none_or(VecDeque::is_empty);
        self.workload.actors.iter().all(done)
    }

    /// An actor's turn: it finds a port, or issues a request.
    pub(crate) fn on_turn(&mut self, actor: usize, turn: u64) {
        let this = &self.workload.actors[actor];
        let wants = this.script.as_ref().map_or(self.workload.issuing, |script| !script.is_empty());
        if this.turn != turn || this.pending.is_some() || !wants {
            return;
        }
        match self.port(actor) {
            Some(port) => self.issue(actor, port),
            None => self.next_turn(actor, 20 * MS),
        }
    }

    /// A session's volume was opened, or not.
    pub(crate) fn on_opened(&mut self, session: u64, volume: Option<VolumeId>) {
        let Some(&actor) = self.workload.sessions.get(&session) else { return };
        if let Port::Session { session: mine, opened, .. } = &mut self.workload.actors[actor].port
            && *mine == session
        {
            *opened = volume;
        }
    }

    /// An attached client found its volume, or not.
    pub(crate) fn on_attached(&mut self, node: usize, found: bool) {
        if !found {
            let what = format!("{} found no volume", self.nodes[node].id());
            self.judge(Err(Violation::new("live", what)));
        }
    }

    /// The unanswered requests of actors at an attached client: tag, and what.
    pub(crate) fn attached_requests(&self, client: usize) -> Vec<(u64, String)> {
        let on_it = |actor: &&Actor| actor.port == Port::Attached { node: client };
        let requests = self.workload.actors.iter().filter(on_it).filter_map(|actor| actor.pending.as_ref());
        requests.map(|pending| (pending.tag, pending.text.clone())).collect()
    }

    /// Lets idle actors at an attached client ask now.
    pub(crate) fn hurry_actors(&mut self, client: usize) {
        for actor in 0..self.workload.actors.len() {
            let this = &self.workload.actors[actor];
            if this.port == (Port::Attached { node: client }) && this.pending.is_none() {
                let delay_ns = self.workload.draw.below(2 * MS);
                self.next_turn(actor, delay_ns);
            }
        }
    }

    /// A request is answered.
    pub(crate) fn on_reply(&mut self, tag: u64, result: Result<IoReply, IoError>, content: &Payload) {
        self.end_failover(tag);
        let Some(actor) = self.workload.tags.remove(&tag) else {
            return self
                .judge(Err(Violation::new("effect once", format!("request #{tag} was answered twice"))));
        };
        let Some(pending) = self.workload.actors[actor].pending.take_if(|pending| pending.tag == tag) else {
            return;
        };
        let verdict = match result {
            Ok(_) => self.on_success(actor, &pending, content),
            Err(error) => self.on_failure(actor, &pending, error),
        };
        self.judge(verdict);
        let hurries =
            self.workload.actors[actor].script.is_some() || self.time.now_ns() < self.workload.burst_until_ns;
        let pause_ns = if hurries { 0 } else { self.draw_pause() };
        self.next_turn(actor, pause_ns);
    }

    /// A gateway or client died: the actors on it go on elsewhere, under fresh names.
    pub(crate) fn abandon(&mut self, node: usize) {
        for actor in 0..self.workload.actors.len() {
            let this = &mut self.workload.actors[actor];
            let on_it = match this.port {
                Port::Session { node: mine, .. } | Port::Attached { node: mine } => mine == node,
                Port::None => false,
            };
            if on_it {
                this.port = Port::None;
                let pending = this.pending.take();
                if let Some(pending) = pending {
                    self.workload.tags.remove(&pending.tag);
                    self.record(actor, &pending, None, &[]);
                    self.workload.actors[actor].client = self.workload.fresh();
                }
                self.next_turn(actor, 10 * MS);
            }
        }
    }

    fn next_turn(&mut self, actor: usize, delay_ns: u64) {
        let this = &mut self.workload.actors[actor];
        this.turn += 1;
        let turn = this.turn;
        self.later(delay_ns, Event::Actor { actor, turn });
    }

    fn draw_pause(&mut self) -> u64 {
        let work = &mut self.workload;
        if work.draw.percent(40) { work.draw.below(MS) } else { work.draw.below(2 * work.pause_ns) }
    }

    /// The actor's port, once it can be used; looks for another when it has none.
    fn port(&mut self, actor: usize) -> Option<Port> {
        match self.workload.actors[actor].port {
            Port::None => self.find_port(actor),
            port @ Port::Session { opened: Some(_), .. } => return Some(port),
            Port::Session { since_ns, .. } if self.time.now_ns() - since_ns > 10 * SECOND => {
                self.find_port(actor)
            }
            Port::Session { .. } => {}
            port @ Port::Attached { .. } => return Some(port),
        }
        None
    }

    fn find_port(&mut self, actor: usize) {
        let name = self.workload.volumes[self.workload.actors[actor].volume].name.clone();
        if self.workload.actors[actor].attached {
            let nodes = self
                .nodes
                .matching(|n| n.is_alive() && matches!(n.kind(), NodeKind::Client(_, of) if *of == name));
            if !nodes.is_empty() {
                let node = *self.workload.draw.pick(&nodes);
                self.workload.actors[actor].port = Port::Attached { node };
                return;
            }
        }
        let nodes = self.nodes.matching(|n| n.is_alive() && matches!(n.kind(), NodeKind::Gateway(_)));
        if nodes.is_empty() {
            return;
        }
        let node = *self.workload.draw.pick(&nodes);
        let session = self.workload.fresh();
        self.workload.sessions.insert(session, actor);
        self.workload.actors[actor].port =
            Port::Session { node, session, opened: None, since_ns: self.time.now_ns() };
        self.deliver(node, Input::Open { session, name });
    }

    fn issue(&mut self, actor: usize, port: Port) {
        let tag = self.workload.fresh();
        let (io, payload, pending) = self.workload.draw_request(actor, tag, self.time.now_ns());
        for &(register, value) in pending.parts.iter().filter(|_| pending.kind == Kind::Write) {
            self.workload.history.announce(value, register);
        }
        self.workload.tags.insert(tag, actor);
        if let Port::Attached { node } = port {
            self.on_attached_request(node, tag, &pending.text);
        }
        self.workload.actors[actor].pending = Some(pending);
        self.hand_over(port, tag, io, payload);
    }

    fn hand_over(&mut self, port: Port, tag: u64, io: Io, payload: Payload) {
        match port {
            Port::Session { node, session, opened: Some(volume), .. } => {
                self.deliver(node, Input::SessionIo { session, tag, volume, io, payload });
            }
            Port::Attached { node } => self.deliver(node, Input::ClientIo { tag, io, payload }),
            _ => unreachable!("a port that can be used"),
        }
    }

    fn on_success(&mut self, actor: usize, pending: &Pending, content: &Payload) -> Result<(), Violation> {
        let mut values = Vec::new();
        if pending.kind == Kind::Read {
            let wanted = pending.parts.len() * pending.grain;
            if content.len() != wanted {
                let what = format!("{} returned {} B instead of {wanted}", pending.text, content.len());
                return Err(Violation::new("no wrong bytes", what));
            }
            for (at, &(register, _)) in pending.parts.iter().enumerate() {
                let value = bytes::value_of(&content.slice(at * pending.grain, pending.grain), register)?;
                bytes::check(&self.workload.history, register, value)?;
                values.push(value);
            }
        }
        if self.workload.actors[actor].script.is_some() {
            let asked_ns = pending.asked_ns;
            let seen = pending.parts.iter().zip(&values);
            let seen = seen.map(|(&(register, _), &value)| Final { register, value, asked_ns });
            self.workload.finals.extend(seen);
        }
        self.workload.count(if pending.kind == Kind::Read { "reads" } else { "writes" });
        self.record(actor, pending, Some(self.time.now_ns()), &values);
        Ok(())
    }

    fn on_failure(&mut self, actor: usize, pending: &Pending, error: IoError) -> Result<(), Violation> {
        self.record(actor, pending, None, &[]);
        self.workload.actors[actor].client = self.workload.fresh();
        if error == IoError::NoSpace {
            self.workload.count("no space");
            self.judges.count_rare(Seen::NoSpaceAnswered);
        } else {
            self.workload.count("errors");
        }
        let volume = self.workload.actors[actor].volume;
        live::check_error(error, self.excuses(volume), &pending.text)
    }

    /// Writes an operation a register into the history; unanswered reads say nothing.
    fn record(&mut self, actor: usize, pending: &Pending, answered_ns: Option<u64>, values: &[u64]) {
        let client = self.workload.actors[actor].client;
        for (at, &(register, written)) in pending.parts.iter().enumerate() {
            let value = match pending.kind {
                Kind::Write => written,
                Kind::Read if answered_ns.is_some() => values[at],
                Kind::Read => continue,
            };
            let asked_ns = pending.asked_ns;
            let operation = Operation { client, register, kind: pending.kind, value, asked_ns, answered_ns };
            self.workload.history.push(operation);
        }
    }
}

impl Workload {
    /// Draws what an actor asks next.
    fn draw_request(&mut self, actor: usize, tag: u64, asked_ns: u64) -> (Io, Payload, Pending) {
        let volume = self.actors[actor].volume;
        let plan = Rc::clone(&self.volumes[volume]);
        let target = match self.actors[actor].script.as_mut().and_then(VecDeque::pop_front) {
            Some(block) => Target::one_block(&plan, block),
            None if plan.sector_blocks > 0 && self.draw.percent(20) => self.draw_sectors(&plan),
            None => self.draw_blocks(&plan),
        };
        self.request(volume, target, tag, asked_ns)
    }

    fn draw_blocks(&mut self, plan: &VolumePlan) -> Target {
        let draw = &mut self.draw;
        let choice = match draw.below(100) {
            0..50 => Choice::Read,
            50..92 => Choice::Write,
            _ => Choice::Zero,
        };
        let is_far = plan.far_stripes > 0 && draw.percent(50);
        let (base, stripes) = if is_far { (plan.far_block, plan.far_stripes) } else { (0, plan.hot_stripes) };
        if draw.percent(15) {
            let first = base + draw.below(stripes) * plan.stripe_blocks();
            return Target { choice, first, count: plan.stripe_blocks(), grain: BLOCK };
        }
        let blocks = stripes * plan.stripe_blocks();
        let first = draw.below(blocks);
        let count = if draw.percent(60) { 1 } else { draw.between(1, 6) };
        Target { choice, first: base + first, count: count.min(blocks - first), grain: BLOCK }
    }

    fn draw_sectors(&mut self, plan: &VolumePlan) -> Target {
        let sectors = BLOCK_U64 / SECTOR as u64;
        let all = plan.sector_blocks * sectors;
        let first = self.draw.below(all);
        let count = if self.draw.percent(50) { 1 } else { self.draw.between(1, 12) };
        let choice = match self.draw.below(100) {
            0..40 => Choice::Read,
            40..95 => Choice::Write,
            _ => Choice::Zero,
        };
        Target {
            choice,
            first: plan.hot_blocks() * sectors + first,
            count: count.min(all - first),
            grain: SECTOR,
        }
    }

    fn request(&mut self, volume: usize, target: Target, tag: u64, asked_ns: u64) -> (Io, Payload, Pending) {
        let Target { choice, first, count, grain } = target;
        let (offset, length) = (first * grain as u64, count * grain as u64);
        let (kind, io) = match choice {
            Choice::Read => (Kind::Read, Io::Read { offset, length: length as u32 }),
            Choice::Write => (Kind::Write, Io::Write { offset }),
            Choice::Zero => (Kind::Write, Io::Zero { offset, length }),
        };
        let register =
            |at| if grain == BLOCK { Register::block(volume, at) } else { Register::sector(volume, at) };
        let mut parts: Vec<(Register, u64)> = (first..first + count).map(|at| (register(at), 0)).collect();
        let mut payload = Payload::new();
        if choice == Choice::Write {
            parts.iter_mut().for_each(|part| part.1 = self.fresh());
            payload = content(&parts, grain);
        }
        let text = format!("{choice:?} #{tag} of {length} B at {offset} of {}", self.volumes[volume].name);
        (io, payload, Pending { tag, kind, parts, grain, asked_ns, text })
    }
}

/// What a request is about: `count` registers of `grain` bytes from number `first`.
struct Target {
    choice: Choice,
    first: u64,
    count: u64,
    grain: usize,
}

impl Target {
    fn one_block(plan: &VolumePlan, block: u64) -> Target {
        let sectors = BLOCK_U64 / SECTOR as u64;
        if block < plan.hot_blocks() || block >= plan.hot_blocks() + plan.sector_blocks {
            return Target { choice: Choice::Read, first: block, count: 1, grain: BLOCK };
        }
        Target { choice: Choice::Read, first: block * sectors, count: sectors, grain: SECTOR }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Choice {
    Read,
    Write,
    Zero,
}

/// Each value, repeated through its register's bytes.
fn content(parts: &[(Register, u64)], grain: usize) -> Payload {
    let mut bytes = BytesMut::zeroed(parts.len() * grain);
    for (target, (_, value)) in bytes.chunks_exact_mut(grain).zip(parts) {
        let word = value.to_le_bytes();
        target.as_chunks_mut::<8>().0.iter_mut().for_each(|slot| *slot = word);
    }
    Payload::from(bytes.freeze())
}
