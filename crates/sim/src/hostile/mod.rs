//! A small cluster in which peers lie to one machine: what it is told may be repeated, crossed with what others were told,
//! or bent in any field that still reads as a message. The machine, and those that it answers, must keep their invariants.
//!
//! No byte of content is checked: a peer that lies may spoil what it holds. What may never happen is a panic, an endless
//! loop, or a queue without bound. The same driver serves the fuzz targets `hostile_*` and the test `hostile`.
//!
//! Reading order: this file (an input becomes moves), then `bed` (the cluster).

mod bed;

use base::{BrickId, GatewayId, NodeId, Payload};
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
    let mut bed = Bed::new(victim.node());
    let mut choices = Choices(input);
    for _ in 0..MOVES_MAX {
        let Some(kind) = choices.next() else { break };
        make_move(&mut bed, kind, &mut choices);
    }
    bed.pass(Duration::from_secs(4));
    bed.check_deep();
}

fn make_move(bed: &mut Bed, kind: u8, choices: &mut Choices<'_>) {
    match kind % 10 {
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

/// Says again what was said, with some of its bytes changed; what does not read as a message any more is not said, as a
/// connection would end with it.
fn bend(bed: &mut Bed, choices: &mut Choices<'_>) {
    let Some(Parcel { from, packet, .. }) = bed.heard(choices.wide()).cloned() else { return };
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
