//! What a participant is asked, what it may look at in a step, and what it asks for in turn.

use crate::view::Groups;
use base::{BrickId, ClusterTime, GroupId, NodeId, Payload, Stamp, StreamId, Time, ViewNumber};
use reads::seat::Stay;
use rules::counters::{Counter, Counters};
use wire::disk::{Attempt, Command};
use wire::{Contest, FragmentId, FragmentOutcome, Message, Packet, Service, Sight, Span};

/// What a participant asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send this; it may get lost.
    Send { to: NodeId, packet: Packet },
    /// Answer a request of a stream; it may get lost.
    Answer { to: NodeId, stream: StreamId, stay: Stay, packet: Packet },
    /// Ask the disk's store.
    Store(Command),
    /// Another brick serves a contested read, which may wait at the disk.
    Claimed {
        attempt: Attempt,
        /// What it takes there, in nanoseconds.
        bid_ns: u64,
        brick: BrickId,
    },
}

/// What a step may look at and do beside the participant itself.
pub struct Context<'a> {
    /// When the step happens.
    pub now: Time,
    pub groups: &'a Groups,
    /// Whether the brick's lease is in force.
    pub leased: bool,
    /// The latest time of a stamp that may be taken.
    pub stamps_until: ClusterTime,
    /// Takes what is asked for.
    pub fx: &'a mut Vec<Effect>,
    pub counters: &'a mut Counters,
}

impl Context<'_> {
    pub(super) fn send(&mut self, to: NodeId, message: Message, payload: Payload) {
        self.fx.push(Effect::Send { to, packet: Packet { message, payload } });
    }

    /// Answers a request.
    pub(super) fn answer(
        &mut self,
        to: NodeId,
        (service, stay): (Service, Stay),
        message: Message,
        payload: Payload,
    ) {
        let packet = Packet { message, payload };
        self.fx.push(Effect::Answer { to, stream: service.stream, stay, packet });
    }

    /// Whether the stamp is further ahead of the cluster's time than any that an honest writer draws. A member has nothing to do with such a
    /// one: on a block, or as the floor below which all writes are refused, it would keep honest writers out.
    pub(super) fn is_far_ahead(&mut self, stamp: Stamp) -> bool {
        let is_far_ahead = stamp.time() > self.stamps_until;
        if is_far_ahead {
            self.counters.count(Counter::StampFarAheadOfTheClusterRefused);
        }
        is_far_ahead
    }

    pub(super) fn store(&mut self, command: Command) {
        self.fx.push(Effect::Store(command));
    }
}

/// A read as it was asked.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    pub from: NodeId,
    pub operation: u64,
    pub group: GroupId,
    /// The view under which it was asked.
    pub view: ViewNumber,
    /// The blocks.
    pub span: Span,
    /// Stamps a block.
    pub width: u8,
    /// Whether stamps are wanted.
    pub stamps: bool,
    /// Whether content is wanted.
    pub content: bool,
    /// Who else was asked the same.
    pub contest: Option<Contest>,
    pub service: Service,
    /// What it sees of writes that are not decided.
    pub sight: Sight,
    pub stay: Stay,
}

/// A repair as it was asked.
#[derive(Clone, Debug)]
pub struct RepairRequest {
    pub asker: RepairAsker,
    pub group: GroupId,
    /// The view under which it was asked.
    pub view: ViewNumber,
    /// The blocks.
    pub span: Span,
    /// Stamps a block.
    pub width: u8,
    pub stamps: Vec<Stamp>,
    /// The content; none where the brick itself found that it is lost.
    pub content: Payload,
    pub service: Service,
    pub stay: Stay,
}

/// Whom to tell what became of a repair.
#[derive(Clone, Copy, Debug)]
pub struct RepairTold {
    pub asker: RepairAsker,
    pub span: Span,
    pub service: Service,
    pub stay: Stay,
}

impl RepairRequest {
    /// Whom to tell what becomes of it.
    pub fn told(&self) -> RepairTold {
        let RepairRequest { asker, span, service, stay, .. } = *self;
        RepairTold { asker, span, service, stay }
    }
}

/// A fragment as it was asked for, or brought.
#[derive(Clone, Debug)]
pub struct FragmentRequest {
    pub from: NodeId,
    pub operation: u64,
    pub fragment: FragmentId,
    pub blocks: u32,
    /// Set where it lies alone, as earlier releases have put all: what is answered if it is not there.
    pub alone: Option<FragmentOutcome>,
    pub wish: FragmentWish,
    pub service: Service,
    pub stay: Stay,
}

/// What is wanted of a fragment.
#[derive(Clone, Debug)]
pub enum FragmentWish {
    /// It is to hold this. With `is_new` it is given back if whoever puts it calls that off.
    Put {
        content: Payload,
        is_new: bool,
    },
    Get,
    /// Whether it is there, and with `reads` whether it can be read.
    Check {
        reads: bool,
    },
}

impl FragmentWish {
    pub fn is_put(&self) -> bool {
        matches!(self, FragmentWish::Put { .. })
    }

    /// Whether the disk moves the fragment; otherwise it looks it up.
    pub fn moves(&self) -> bool {
        !matches!(self, FragmentWish::Check { reads: false })
    }

    /// How much comes along.
    pub fn bytes(&self) -> usize {
        match self {
            FragmentWish::Put { content, .. } => content.len(),
            FragmentWish::Get | FragmentWish::Check { .. } => 0,
        }
    }
}

/// A small fragment that an earlier release may have put where it lies alone.
#[derive(Clone, Copy, Debug)]
pub struct Alone {
    pub fragment: FragmentId,
    pub blocks: u32,
    /// Whether it is read.
    pub reads: bool,
}

/// Whom to tell what became of a fragment.
#[derive(Clone, Copy, Debug)]
pub struct FragmentTold {
    pub from: NodeId,
    pub operation: u64,
    pub is_put: bool,
    /// Whether its content is wanted.
    pub is_wanted: bool,
    /// Set where it may lie alone as well, which is looked at if it is not here.
    pub alone: Option<Alone>,
    /// What is answered if it is not here.
    pub otherwise: FragmentOutcome,
    pub service: Service,
    pub stay: Stay,
}

/// Who wants blocks repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairAsker {
    /// A gateway or brick that has good content, and which question it is.
    Node(NodeId, u64),
    /// This brick, which found a block lost, and for which job.
    Lost(u64),
}

/// Who wants to know a write's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A gateway that settles it.
    Gateway(NodeId, u64),
    /// A gateway that only looks: nothing is refused for that.
    Looker(NodeId, u64),
    /// The making of a view: `(job, index)`.
    View(u64, usize),
}
