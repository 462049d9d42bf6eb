//! What takes time on the way of content: buses inside a machine, its network card, wires, and the switch between all machines.
//! Each bus, card and port is a resource that serves one transfer after another, and so is the engine that computes parity.
//!
//! Content that leaves a machine, or goes to its disk, is read from memory and crosses the I/O bus at the same time; what comes goes
//! the other way. A packet is at the switch when all of it has left the card.

use crate::timed::{Buses, Grain, Network};
use model::bus::Bus;

/// What content passes, for all nodes.
pub(crate) struct Wires {
    network: Network,
    buses: Buses,
    /// What content stands for.
    grain: Grain,
    nodes: Vec<Inside>,
}

/// One node's.
struct Inside {
    memory: Bus,
    io: Bus,
    xor: Bus,
    card: Bus,
    /// The switch's port, where what is sent to this node waits.
    port: Bus,
}

/// What a packet is to the network.
#[derive(Clone, Copy)]
pub(crate) struct Parcel {
    pub(crate) is_between_bricks: bool,
    pub(crate) content_bytes: u64,
    /// What the sender had to multiply and add for it.
    pub(crate) coded_bytes: u64,
}

impl Wires {
    pub(crate) fn new(network: Network, buses: Buses, grain: Grain) -> Wires {
        Wires { network, buses, grain, nodes: Vec::new() }
    }

    fn inside(&mut self, node: usize) -> &mut Inside {
        if self.nodes.len() <= node {
            let (Network { bytes_per_second, has_ports, .. }, Buses { memory, io, xor }) =
                (self.network, self.buses);
            self.nodes.resize_with(node + 1, || Inside {
                memory: Bus::new(memory),
                io: Bus::new(io),
                xor: Bus::new(xor),
                card: Bus::new(bytes_per_second),
                port: Bus::new(bytes_per_second.filter(|_| has_ports)),
            });
        }
        &mut self.nodes[node]
    }

    /// When a packet that `from` sends now is at the switch's port. What its content is computed for goes through the XOR engine
    /// before.
    pub(super) fn send(&mut self, now_ns: u64, from: usize, parcel: Parcel) -> u64 {
        let now_ns = self.code(now_ns, from, parcel.coded_bytes);
        let Network { one_way_ns, client_one_way_ns, .. } = self.network;
        let way_ns = if parcel.is_between_bricks { one_way_ns } else { client_one_way_ns };
        let bytes = self.bytes(parcel.content_bytes);
        let inside = self.inside(from);
        let out_ns = inside.cross(now_ns, bytes);
        inside.card.carry(out_ns, bytes) + way_ns
    }

    /// Whether a packet still has something to pass when it is at the switch's port.
    pub(super) fn takes_in(&self) -> bool {
        let Buses { memory, io, xor } = self.buses;
        let has_ports = self.network.has_ports && self.network.bytes_per_second.is_some();
        has_ports || memory.is_some() || io.is_some() || xor.is_some()
    }

    /// When a packet with such content, which is at its port now, is in the memory of `node`.
    pub(super) fn take_in(&mut self, now_ns: u64, node: usize, content_bytes: u64) -> u64 {
        let bytes = self.bytes(content_bytes);
        let inside = self.inside(node);
        let through_ns = inside.port.carry(now_ns, bytes);
        inside.cross(through_ns, bytes)
    }

    /// When the XOR engine of `node` has multiplied and added so many bytes of content, behind all that came before.
    pub(super) fn code(&mut self, now_ns: u64, node: usize, content_bytes: u64) -> u64 {
        if content_bytes == 0 {
            return now_ns;
        }
        let bytes = self.grain.on_disk(content_bytes);
        self.inside(node).xor.carry(now_ns, bytes)
    }

    /// When such content has gone from memory to a disk of `node`, or from there to memory.
    pub(super) fn cross_for_disk(&mut self, now_ns: u64, node: usize, content_bytes: u64) -> u64 {
        let bytes = self.grain.on_disk(content_bytes);
        self.inside(node).cross(now_ns, bytes)
    }

    fn bytes(&self, content_bytes: u64) -> u64 {
        self.network.message_bytes + self.grain.on_disk(content_bytes)
    }
}

impl Inside {
    fn cross(&mut self, from_ns: u64, bytes: u64) -> u64 {
        self.memory.carry(from_ns, bytes).max(self.io.carry(from_ns, bytes))
    }
}
