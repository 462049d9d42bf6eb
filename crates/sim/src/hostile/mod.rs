//! A small cluster in which peers lie to one machine: what it is told may be repeated, crossed with what others were told,
//! or bent in any field that still reads as a message. The machine, and those that it answers, must keep their invariants.
//!
//! No byte of content is checked: a peer that lies may spoil what it holds. What may never happen is a panic, an endless
//! loop, or a queue without bound. The same driver serves the fuzz targets `hostile_*` and the test `hostile`.
//!
//! What is said in the name of others is said as the transport would let it through: by a node with a valid certificate, of each role, one that takes part or
//! one that has no part in anything. What the index keeps of an object must still be its record in the end.
//!
//! Reading order: this file (an input becomes moves), then `bed` (the cluster), `objects`.

mod bed;
mod objects;

use base::{BrickId, ClientId, GatewayId, NodeId, Payload};
use bed::{Bed, Parcel};
use core::time::Duration;
use wire::{Io, Message, Packet, Wire};

/// Who is lied to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victim {
    /// A brick with its store.
    Brick,
    Directory,
    Gateway,
}

/// Moves that are made of one input: a longer one finds nothing that a shorter one would not.
const MOVES_MAX: usize = 64;
/// Kinds of moves from here on are of objects, and of senders with certificates that have no part in anything.
const OF_STRANGERS: u8 = 160;
/// Kinds from here on commit another object than was put.
const COMMITS: u8 = 240;
const STRANGERS: [NodeId; 6] = [
    NodeId::Gateway(GatewayId(66)),
    NodeId::Brick(BrickId(66)),
    NodeId::Brick(BrickId(3)),
    NodeId::Client(ClientId(66)),
    NodeId::Client(ClientId::operator(66)),
    NodeId::Directory,
];
/// The longest that time passes in one move.
const PASS_UNIT: Duration = Duration::from_millis(20);

impl Victim {
    /// All of them, with the names of their fuzz targets.
    pub const ALL: [(Victim, &str); 3] = [
        (Victim::Brick, "hostile_brick"),
        (Victim::Directory, "hostile_directory"),
        (Victim::Gateway, "hostile_gateway"),
    ];

    fn node(self) -> NodeId {
        match self {
            Victim::Brick => NodeId::Brick(BrickId(1)),
            Victim::Directory => NodeId::Directory,
            Victim::Gateway => NodeId::Gateway(GatewayId(1)),
        }
    }
}

/// Makes the moves that `input` says, and panics when the cluster does not bear them.
pub fn run(victim: Victim, input: &[u8]) {
    run_in(Bed::new(victim.node()), input);
}

/// The same where something is broken on purpose.
#[cfg(feature = "planted")]
pub fn run_planted(victim: Victim, input: &[u8], plant: rules::planted::Plant) {
    let mut bed = Bed::new(victim.node());
    bed.set_rules(rules::planted::rules(Some(plant)));
    run_in(bed, input);
}

fn run_in(mut bed: Bed, input: &[u8]) {
    let mut choices = Choices(input);
    for _ in 0..MOVES_MAX {
        let Some(kind) = choices.next() else { break };
        make_move(&mut bed, kind, &mut choices);
    }
    bed.pass(Duration::from_secs(4));
    bed.check_deep();
}

fn make_move(bed: &mut Bed, kind: u8, choices: &mut Choices<'_>) {
    match kind.checked_sub(OF_STRANGERS).map_or(kind % 10, |kind| 10 + kind % 4) {
        _ if kind >= COMMITS => commit(bed, choices),
        10 => begin_object(bed, choices),
        11 => amend(bed, choices),
        12 => impersonate(bed, choices),
        13 => bend_as_stranger(bed, choices),
        0 | 1 => bed.deliver(1 + choices.below(16)),
        2 => begin_io(bed, choices),
        3 => bed.pass(PASS_UNIT * choices.below(128) as u32),
        4 => repeat(bed, choices),
        5 => cross(bed, choices),
        6 => bed.lose(choices.below(4)),
        7 => bed.part(choices.below(8), choices.below(2) == 0),
        _ => bend(bed, choices),
    }
}

fn begin_io(bed: &mut Bed, choices: &mut Choices<'_>) {
    let (kind, offset) = (choices.below(4), choices.wide() as u64 * 512);
    let length = 1 + choices.wide();
    let (io, payload) = match kind {
        0 | 1 => (Io::Write { offset }, Payload::from(vec![7; length])),
        2 => (Io::Read { offset, length: length as u32 }, Payload::new()),
        _ => (Io::Zero { offset, length: length as u64 }, Payload::new()),
    };
    bed.begin_io(io, payload);
}

fn repeat(bed: &mut Bed, choices: &mut Choices<'_>) {
    let parcel = bed.heard(choices.wide()).cloned();
    parcel.into_iter().for_each(|parcel| bed.lie(parcel.from, parcel.packet));
}

/// Says what one peer said, or what was meant for someone else, in the name of another.
fn cross(bed: &mut Bed, choices: &mut Choices<'_>) {
    let (one, other) = (choices.wide(), choices.wide());
    let said = if one.is_multiple_of(2) { bed.heard(one) } else { bed.overheard(one) };
    let lie = said.zip(bed.heard(other)).map(|(said, name)| (name.from, said.packet.clone()));
    lie.into_iter().for_each(|(from, packet)| bed.lie(from, packet));
}

fn begin_object(bed: &mut Bed, choices: &mut Choices<'_>) {
    match choices.below(2) {
        0 => bed.begin_put(choices.below(4), Payload::from(vec![8; 1 + choices.wide() * 16])),
        _ => bed.begin_get(choices.below(4)),
    }
}

/// A brick says where the fragments of an object are from now on.
fn amend(bed: &mut Bed, choices: &mut Choices<'_>) {
    let from = NodeId::Brick(BrickId(1 + choices.below(4) as u32));
    let (which, times) = (choices.wide(), choices.below(4));
    let bend = |manifest: &mut Vec<u8>| {
        let donor = manifest.clone();
        (0..times).for_each(|_| bend_bytes(manifest, &donor, choices));
    };
    let lie = bed.amendment(which, bend);
    lie.into_iter().for_each(|packet| bed.lie(from, packet));
}

/// A gateway commits something else than it put.
fn commit(bed: &mut Bed, choices: &mut Choices<'_>) {
    let times = 1 + choices.below(3);
    let bends: Vec<u8> = (0..times * 4).filter_map(|_| choices.next()).collect();
    bed.bend_commit(move |manifest| {
        let (donor, mut choices) = (manifest.clone(), Choices(&bends));
        (0..times).for_each(|_| bend_bytes(manifest, &donor, &mut choices));
    });
}

/// Says what anybody said, as somebody with a valid certificate who has no part in it.
fn impersonate(bed: &mut Bed, choices: &mut Choices<'_>) {
    let (which, from) = (choices.wide(), STRANGERS[choices.below(STRANGERS.len())]);
    let said = if choices.below(2) == 0 { bed.heard(which) } else { bed.overheard(which) };
    let lie = said.map(|said| said.packet.clone());
    lie.into_iter().for_each(|packet| bed.lie(from, packet));
}

fn bend_as_stranger(bed: &mut Bed, choices: &mut Choices<'_>) {
    let from = STRANGERS[choices.below(STRANGERS.len())];
    bend_of(bed, Some(from), choices);
}

/// Says again what was said, with some of its bytes changed; what does not read as a message any more is not said, as a
/// connection would end with it.
fn bend(bed: &mut Bed, choices: &mut Choices<'_>) {
    bend_of(bed, None, choices);
}

fn bend_of(bed: &mut Bed, stranger: Option<NodeId>, choices: &mut Choices<'_>) {
    let Some(Parcel { from, packet, .. }) = bed.heard(choices.wide()).cloned() else { return };
    let from = stranger.unwrap_or(from);
    let donor = bed.heard(choices.wide()).map(|parcel| parcel.packet.message.to_bytes()).unwrap_or_default();
    let mut bytes = packet.message.to_bytes();
    for _ in 0..1 + choices.below(3) {
        bend_bytes(&mut bytes, &donor, choices);
    }
    let payload = match choices.below(8) {
        0 => Payload::new(),
        1 => packet.payload.slice(0, packet.payload.len() / 2),
        2 => Payload::from(vec![1; 1 + choices.wide()]),
        _ => packet.payload,
    };
    if let Ok(message) = Message::from_bytes(&bytes) {
        bed.lie(from, Packet { message, payload });
    }
}

fn bend_bytes(bytes: &mut [u8], donor: &[u8], choices: &mut Choices<'_>) {
    let (at, how) = (choices.wide() % bytes.len(), choices.below(8));
    let end = (at + 8).min(bytes.len());
    match how {
        0 => bytes[at] ^= choices.below(256) as u8,
        1 => bytes[at..end].fill(0xff),
        2 => bytes[at..end].fill(0),
        3 => bytes[at] = bytes[at].wrapping_add(1),
        4 => bytes[at] = bytes[at].wrapping_sub(1),
        5 => bytes[at..end].copy_from_slice(&u64::to_le_bytes(1 << choices.below(64))[..end - at]),
        _ => {
            let from = donor.get(at..).unwrap_or_default();
            bytes[at..end].iter_mut().zip(from).for_each(|(byte, other)| *byte = *other);
        }
    }
}

/// An input as a series of choices; zeros follow its end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.next().unwrap_or(0)) % bound
    }

    fn wide(&mut self) -> usize {
        self.below(256) << 8 | self.below(256)
    }
}
