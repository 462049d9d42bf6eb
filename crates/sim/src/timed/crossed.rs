//! What crosses the memory of machines, and which messages they exchange for the sake of requests (network RAID, section 3): counted where
//! running machines send, receive, go to a disk, or compute.
//!
//! Only content counts. A block that is staged counts when it goes to its disk, and not before: the journal of these bricks is the
//! [shelf](crate::shelf)'s non-volatile memory.

use base::NodeId;
use core::ops::{Add, AddAssign};
use wire::{Message, Packet};

/// What a node did: bytes of content, each time that they crossed its memory bus, and messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Crossed {
    /// From memory to the network.
    pub sent_bytes: u64,
    /// From the network to memory.
    pub received_bytes: u64,
    /// From a disk to memory, or from memory to a disk.
    pub disk_bytes: u64,
    /// What parity was computed of, and the result.
    pub coded_bytes: u64,
    /// Messages of requests that were sent.
    pub sent: u64,
    /// Messages of requests that were received.
    pub received: u64,
    /// Messages that were sent to tell what became of writes.
    pub decisions_sent: u64,
    pub decisions_received: u64,
}

impl Crossed {
    /// All bytes that crossed the memory bus.
    pub fn bytes(&self) -> u64 {
        self.sent_bytes + self.received_bytes + self.disk_bytes + self.coded_bytes
    }

    /// All messages of requests, sent or received.
    pub fn messages(&self) -> u64 {
        self.sent + self.received
    }

    /// All messages that tell what became of writes, sent or received.
    pub fn decisions(&self) -> u64 {
        self.decisions_sent + self.decisions_received
    }

    pub(crate) fn send(&mut self, class: Option<Class>, content_bytes: u64) {
        match class {
            Some(Class::Request) => self.sent += 1,
            Some(Class::Decision) => self.decisions_sent += 1,
            None => {}
        }
        self.sent_bytes += content_bytes;
    }

    pub(crate) fn receive(&mut self, class: Option<Class>, content_bytes: u64) {
        match class {
            Some(Class::Request) => self.received += 1,
            Some(Class::Decision) => self.decisions_received += 1,
            None => {}
        }
        self.received_bytes += content_bytes;
    }
}

impl AddAssign for Crossed {
    fn add_assign(&mut self, more: Crossed) {
        self.sent_bytes += more.sent_bytes;
        self.received_bytes += more.received_bytes;
        self.disk_bytes += more.disk_bytes;
        self.coded_bytes += more.coded_bytes;
        self.sent += more.sent;
        self.received += more.received;
        self.decisions_sent += more.decisions_sent;
        self.decisions_received += more.decisions_received;
    }
}

impl Add for Crossed {
    type Output = Crossed;

    fn add(mut self, more: Crossed) -> Crossed {
        self += more;
        self
    }
}

/// What crossed the memories of a cluster's machines.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Crossings {
    /// Machines with clients alone.
    pub clients: Crossed,
    pub gateways: Crossed,
    /// Each of the cluster's bricks.
    pub bricks: Vec<Crossed>,
    /// Of each volume, the bricks by their slots.
    pub members: Vec<Vec<u32>>,
}

/// As what a message counts that is sent for the sake of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// A question, or its answer.
    Request,
    /// What became of writes: what the paper calls a commit exchange is two messages for each member, and here one that is not
    /// answered, and that carries the decisions of all writes that ended meanwhile.
    Decision,
}

impl Class {
    /// What is said to the directory, or for the sake of connections, views and maintenance, counts for no request. All else does, also what is
    /// not known here.
    pub(crate) fn of((from, to): (NodeId, NodeId), packet: &Packet) -> Option<Class> {
        if from == NodeId::Directory || to == NodeId::Directory {
            return None;
        }
        match packet.message {
            Message::Decide { .. } => Some(Class::Decision),
            Message::Ping { .. }
            | Message::Pong { .. }
            | Message::Attach { .. }
            | Message::Attached { .. }
            | Message::Elsewhere { .. }
            | Message::Doubtful { .. }
            | Message::Inventory { .. }
            | Message::InventoryDone { .. }
            | Message::GetCompletions { .. }
            | Message::CompletionsDone { .. } => None,
            _ => Some(Class::Request),
        }
    }
}
