//! What happens in the world, and when: the queue of events.

use crate::faults::Fault;
use base::{NodeId, Payload, VolumeId};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use store::IoDone;
use wire::{Io, Packet};

/// What happens to one node.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// A packet came.
    Packet { from: NodeId, packet: Packet },
    /// A peer can be reached.
    Up(NodeId),
    /// A connection is gone.
    Down(NodeId),
    /// A disk answers.
    Disk { disk: usize, done: IoDone },
    /// The directory's store answers.
    Stored { token: u64 },
    /// A plain client opens a volume.
    Open { session: u64, name: String },
    /// A plain client's I/O.
    SessionIo { session: u64, tag: u64, volume: VolumeId, io: Io, payload: Payload },
    /// I/O of an attached client.
    ClientIo { tag: u64, io: Io, payload: Payload },
    /// Its deadline.
    Wake,
}

/// What happens in the world. `life` numbers a node's runs: what was meant for an earlier run is void.
#[derive(Debug)]
pub(crate) enum Event {
    /// Something happens to a node.
    Node { node: usize, life: u32, input: Input },
    /// A batch of inputs ends.
    Settle { node: usize, life: u32 },
    /// A request to a disk is done.
    Disk { node: usize, life: u32, disk: usize, ticket: u64, token: u64 },
    /// A put of the directory reached stable storage.
    Put { node: usize, life: u32, token: u64 },
    /// A node starts.
    Boot { node: usize },
    /// A brick crashes in the middle of a write.
    Crash { node: usize, life: u32 },
    /// A paused node goes on.
    Resume { node: usize },
    /// Two nodes try to connect.
    Connect { pair: (usize, usize), epoch: u32 },
    /// Two nodes find out that their connection is gone.
    Break { pair: (usize, usize), epoch: u32 },
    /// A workload's actor has its turn.
    Actor { actor: usize, turn: u64 },
    /// A request whose gateway was killed should have been answered by now.
    Failover { tag: u64 },
    /// The administrator has its turn.
    Administer,
    /// A fault begins.
    Fault,
    /// A fault ends.
    FaultEnd(Fault),
}

struct Entry {
    at_ns: u64,
    sequence: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.sequence == other.sequence
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        (other.at_ns, other.sequence).cmp(&(self.at_ns, self.sequence))
    }
}

/// Events in the order of time; at one moment, in the order in which they were scheduled.
#[derive(Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Entry>,
    sequence: u64,
}

impl Queue {
    /// Schedules `event`.
    pub(crate) fn push(&mut self, at_ns: u64, event: Event) {
        self.sequence += 1;
        self.heap.push(Entry { at_ns, sequence: self.sequence, event });
    }

    /// The next event, if it is due by `until_ns`.
    pub(crate) fn pop(&mut self, until_ns: u64) -> Option<(u64, Event)> {
        if self.heap.peek()?.at_ns > until_ns {
            return None;
        }
        self.heap.pop().map(|entry| (entry.at_ns, entry.event))
    }
}
