//! The workload: actors that read and write a few hot blocks, so that they meet.
//!
//! An actor is one client of the history: it has one request at a time. It speaks through a plain session of a gateway
//! or through an attached client. When its request is answered with an error, or its gateway or client dies, its write
//! may take effect any time or never, and the actor goes on under a fresh name.
//!
//! What actors are and ask is here; `turns` is how they act in the world.

mod stuck;
mod turns;

use crate::history::{History, Kind, Operation, Register};
use crate::options::{Shape, VolumePlan};
use ::bytes::BytesMut;
use base::{BLOCK, BLOCK_U64, HashMap, Payload, VolumeId};
use model::Draw;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use wire::Io;

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
        if plan.links() && is_far && draw.percent(40) {
            // Over the border between two groups.
            let stripe = plan.stripe_blocks();
            let (before, after) = (draw.between(1, stripe), draw.between(1, stripe));
            return Target { choice, first: base + stripe - before, count: before + after, grain: BLOCK };
        }
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
