//! What happens in the world, and what nodes ask of it.

use super::hosts::Who;
use crate::faults::Fault;
use crate::timed::LoadEvent;
use base::{NodeId, Payload, Time, VolumeId};
use code::{Computation, Computed};
use objects::index::{ShardEffect, ShardEvent};
use roles::directory::Put;
use store::{IoDone, IoToken};
use wire::{Io, IoError, IoReply, Packet};

/// What happens to one node.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Packet {
        from: NodeId,
        packet: Packet,
    },
    /// A peer can be reached.
    Up(NodeId),
    /// A connection is gone.
    Down(NodeId),
    /// Somebody else answers where a peer was.
    Gone(NodeId),
    Disk {
        disk: usize,
        done: IoDone,
    },
    /// What it had computed.
    Computed {
        number: u64,
        made: Computed,
    },
    /// The directory's store answers.
    Stored {
        token: u64,
    },
    /// A plain client opens a volume.
    Open {
        session: u64,
        name: String,
    },
    /// A plain client's I/O.
    SessionIo {
        session: u64,
        tag: u64,
        volume: VolumeId,
        io: Io,
        payload: Payload,
    },
    /// A segment of an object is to be put.
    Put {
        tag: u64,
        put: Box<objects::object::Put>,
    },
    /// A segment of an object is to be got.
    Get {
        tag: u64,
        get: Box<objects::object::Get>,
    },
    /// Somebody wants something of objects.
    Object {
        tag: u64,
        wish: Box<objects::object::ObjectWish>,
    },
    /// The store of a shard of the directory's index answers.
    Shard {
        shard: u16,
        event: ShardEvent,
    },
    /// I/O of an attached client.
    ClientIo {
        tag: u64,
        io: Io,
        payload: Payload,
    },
    Wake,
}

/// What happens in the world. `life` numbers a node's runs: what was meant for an earlier run is void.
#[derive(Debug)]
pub(crate) enum Event {
    /// Something happens to a node.
    Node {
        node: usize,
        life: u32,
        input: Input,
    },
    /// A packet is at the switch's port to a node.
    Port {
        node: usize,
        life: u32,
        from: NodeId,
        packet: Packet,
    },
    /// A batch of inputs ends.
    Settle {
        node: usize,
        life: u32,
    },
    /// A request to a disk is done.
    Disk {
        node: usize,
        life: u32,
        disk: usize,
        ticket: u64,
        token: IoToken,
    },
    /// The same of a disk that keeps its contents elsewhere.
    Shelf {
        node: usize,
        life: u32,
        disk: usize,
        token: IoToken,
        moved: Moved,
    },
    /// The load of a cluster that is measured goes on.
    Load(LoadEvent),
    /// Somebody's turn on its machine's processors begins.
    Turn(Who),
    /// The turn is over.
    TurnOver(Who),
    /// A put of the directory reached stable storage.
    Put {
        node: usize,
        life: u32,
        token: u64,
    },
    Boot {
        node: usize,
    },
    /// A brick crashes in the middle of a write.
    Crash {
        node: usize,
        life: u32,
    },
    /// A paused node goes on.
    Resume {
        node: usize,
    },
    /// Two nodes try to connect.
    Connect {
        pair: (usize, usize),
        epoch: u32,
    },
    /// Two nodes find out that their connection is gone.
    Break {
        pair: (usize, usize),
        epoch: u32,
    },
    /// A workload's actor has its turn.
    Actor {
        actor: usize,
        turn: u64,
    },
    /// A change of a shard of the directory's index reached stable storage.
    ShardPut {
        node: usize,
        life: u32,
        shard: u16,
        token: u64,
        /// Whether the directory hears that it did.
        result: Result<(), String>,
    },
    /// Somebody who puts and reads objects has its turn.
    Object {
        actor: usize,
        turn: u64,
    },
    /// Somebody who puts and gets segments of objects has its turn.
    Segment {
        actor: usize,
        turn: u64,
    },
    /// A request whose gateway was killed should have been answered by now.
    Failover {
        tag: u64,
    },
    /// The administrator has its turn.
    Administer,
    /// The administrator asks again what it got no clear answer to.
    AskAgain {
        question: u64,
    },
    /// It has its turn with streams.
    AdministerStreams,
    Churn,
    Fault,
    FaultEnd(Fault),
}

/// What an access has moved.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moved {
    Nothing,
    /// So many bytes, which are to go to memory.
    Read(u64),
    /// What is there now.
    Written {
        offset: u64,
    },
}

/// What a node asks of the world.
#[derive(Debug)]
pub(crate) enum Output {
    /// A packet for a peer.
    Send {
        to: NodeId,
        packet: Packet,
    },
    /// A peer to be connected to.
    Address(NodeId),
    /// A peer that is to be called no more.
    Forget(NodeId),
    /// Something to be computed.
    Compute {
        number: u64,
        computation: Computation,
    },
    /// Puts for the directory's store.
    Store {
        token: u64,
        puts: Vec<Put>,
    },
    /// A request to a disk, and when it is done by the node's clock where the disk's heads are seen.
    Disk {
        disk: usize,
        io: store::Io,
        due: Option<Time>,
    },
    Ready,
    /// A brick cannot start, or its disks failed.
    Failed(String),
    /// A session's volume is open, or not.
    Opened {
        session: u64,
        volume: Option<VolumeId>,
    },
    /// An attached client found its volume, or not.
    Attached(bool),
    /// A segment of an object was put or got.
    Segment {
        tag: u64,
        segment: roles::gateway::Segment,
    },
    /// What is told of an object.
    Object {
        tag: u64,
        news: objects::object::ObjectNews,
    },
    /// What a shard of the directory's index asks of its store.
    Shard {
        shard: u16,
        effect: ShardEffect,
    },
    /// The answer to a client's request.
    Reply {
        tag: u64,
        result: Result<IoReply, IoError>,
        payload: Payload,
    },
}
