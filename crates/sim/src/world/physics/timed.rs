//! What takes time on the way of content: buses inside a machine, its network card, wires, and the switch between all machines.
//! Each bus, card and port is a resource that serves one transfer after another, and so is the engine that computes parity.
//!
//! Content that leaves a machine, or goes to its disk, is read from memory and crosses the I/O bus at the same time; what comes goes
//! the other way. A packet is at the switch when all of it has left the card.
//!
//! Several nodes may stand on one machine. What they say to each other stays in its memory: it takes no time, and crosses nothing.

use crate::timed::{Buses, Class, Crossed, Grain, Network};
use code::Computation;
use model::bus::Bus;

/// What content passes, for all nodes.
pub(crate) struct Wires {
    network: Network,
    buses: Buses,
    /// What content stands for.
    grain: Grain,
    machines: Vec<Inside>,
    /// On whose machine a node stands, where that is not its own.
    homes: Vec<usize>,
    /// The nodes whose machines are clients'. Where it is not known, all are that are no bricks.
    clients: Option<Vec<usize>>,
    /// What crossed the memory, by node, where that is counted.
    crossed: Option<Vec<Crossed>>,
}

/// One machine's.
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
    /// What the sender had to compute for it.
    pub(crate) coded: Coded,
    /// As what it counts.
    pub(crate) class: Option<Class>,
}

/// Work on content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Coded {
    /// What is multiplied and added: an engine or a processor is busy with it.
    pub(crate) added_bytes: u64,
    /// What is read from memory for it, and what is written there.
    pub(crate) moved_bytes: u64,
}

impl Coded {
    /// The sum of so many contents, each of so many bytes.
    pub(crate) fn sum(contents: u64, bytes: u64) -> Coded {
        Coded { added_bytes: (contents - 1) * bytes, moved_bytes: (contents + 1) * bytes }
    }
}

impl From<&Computation> for Coded {
    fn from(computation: &Computation) -> Coded {
        let results_bytes = match computation {
            Computation::Encode { code, data } => {
                data.first().map_or(0, |shard| shard.len() as u64) * u64::from(code.parity())
            }
            Computation::Reconstruct { shards, .. } => {
                shards.first().map_or(0, |(_, shard)| shard.len() as u64)
            }
            Computation::Sums { schedule, blocks } => {
                blocks.first().map_or(0, |block| block.len() as u64) * schedule.cost().writes as u64
            }
        };
        let added_bytes = computation.bytes();
        Coded { added_bytes, moved_bytes: added_bytes + results_bytes }
    }
}

impl Wires {
    pub(crate) fn new(network: Network, buses: Buses, grain: Grain) -> Wires {
        let (machines, homes) = (Vec::new(), Vec::new());
        Wires { network, buses, grain, machines, homes, clients: None, crossed: None }
    }

    /// From now on a node stands on another one's machine.
    pub(crate) fn settle_at(&mut self, node: usize, home: usize) {
        while self.homes.len() <= node {
            self.homes.push(self.homes.len());
        }
        self.homes[node] = home;
    }

    /// From now on it is known which nodes' machines are clients'; what is sent from one to another of the rest does not pass a client's link.
    pub(crate) fn name_clients(&mut self, nodes: Vec<usize>) {
        self.clients = Some(nodes);
    }

    /// Counts what crosses the memories from now on.
    pub(crate) fn count(&mut self) {
        self.crossed = Some(Vec::new());
    }

    /// What crossed the memory because of this node, since it is counted.
    pub(crate) fn crossed(&self, node: usize) -> Crossed {
        self.crossed.as_ref().and_then(|crossed| crossed.get(node)).copied().unwrap_or_default()
    }

    fn note(&mut self, node: usize, note: impl FnOnce(&mut Crossed)) {
        let Some(crossed) = &mut self.crossed else { return };
        if crossed.len() <= node {
            crossed.resize_with(node + 1, Crossed::default);
        }
        note(&mut crossed[node]);
    }

    fn home(&self, node: usize) -> usize {
        self.homes.get(node).copied().unwrap_or(node)
    }

    fn is_clients(&self, node: usize) -> bool {
        self.clients.as_ref().is_some_and(|nodes| nodes.contains(&self.home(node)))
    }

    fn inside(&mut self, node: usize) -> &mut Inside {
        let node = self.home(node);
        if self.machines.len() <= node {
            let (Network { bytes_per_second, has_ports, .. }, Buses { memory, io, xor, .. }) =
                (self.network, self.buses);
            self.machines.resize_with(node + 1, || Inside {
                memory: Bus::new(memory),
                io: Bus::new(io),
                xor: Bus::new(xor),
                card: Bus::new(bytes_per_second),
                port: Bus::new(bytes_per_second.filter(|_| has_ports)),
            });
        }
        &mut self.machines[node]
    }

    /// When a packet that `from` sends now is at the switch's port to `to`. What its content is computed for goes through the XOR engine
    /// before.
    pub(super) fn send(&mut self, now_ns: u64, (from, to): (usize, usize), parcel: Parcel) -> u64 {
        let now_ns = self.code(now_ns, from, parcel.coded);
        if self.are_together(from, to) {
            return now_ns;
        }
        let content_bytes = self.grain.on_disk(parcel.content_bytes);
        self.note(from, |crossed| crossed.send(parcel.class, content_bytes));
        let Network { one_way_ns, client_one_way_ns, .. } = self.network;
        let passes_clients_link = match self.clients {
            Some(_) => self.is_clients(from) || self.is_clients(to),
            None => !parcel.is_between_bricks,
        };
        let way_ns = if passes_clients_link { client_one_way_ns } else { one_way_ns };
        let bytes = self.bytes(parcel.content_bytes);
        let inside = self.inside(from);
        let out_ns = inside.cross(now_ns, bytes);
        inside.card.carry(out_ns, bytes) + way_ns
    }

    /// Whether two nodes stand on one machine.
    pub(super) fn are_together(&self, one: usize, other: usize) -> bool {
        !self.homes.is_empty() && self.home(one) == self.home(other)
    }

    /// Whether a packet still has something to pass when it is at the switch's port.
    pub(super) fn takes_in(&self) -> bool {
        let Buses { memory, io, xor, .. } = self.buses;
        let has_ports = self.network.has_ports && self.network.bytes_per_second.is_some();
        has_ports || memory.is_some() || io.is_some() || xor.is_some() || self.crossed.is_some()
    }

    /// When a packet with such content, which is at its port now, is in the memory of `node`.
    pub(super) fn take_in(
        &mut self,
        now_ns: u64,
        node: usize,
        (class, content_bytes): (Option<Class>, u64),
    ) -> u64 {
        let on_wire_bytes = self.grain.on_disk(content_bytes);
        self.note(node, |crossed| crossed.receive(class, on_wire_bytes));
        let bytes = self.bytes(content_bytes);
        let inside = self.inside(node);
        let through_ns = inside.port.carry(now_ns, bytes);
        inside.cross(through_ns, bytes)
    }

    /// When the XOR engine of `node` has done that, behind all that came before.
    pub(super) fn code(&mut self, now_ns: u64, node: usize, coded: Coded) -> u64 {
        if coded == Coded::default() {
            return now_ns;
        }
        let added_bytes = self.grain.on_disk(coded.added_bytes);
        let moved_bytes = self.grain.on_disk(coded.moved_bytes);
        self.note(node, |crossed| crossed.coded_bytes += moved_bytes);
        let is_in_memory = self.buses.xor_in_memory;
        let inside = self.inside(node);
        let added_ns = inside.xor.carry(now_ns, added_bytes);
        match is_in_memory {
            true => inside.memory.carry(now_ns, moved_bytes).max(added_ns),
            false => added_ns,
        }
    }

    /// When so many bytes have gone from memory to a disk of `node`, or from there to memory.
    pub(super) fn cross_for_disk(&mut self, now_ns: u64, node: usize, bytes: u64) -> u64 {
        self.note(node, |crossed| crossed.disk_bytes += bytes);
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
