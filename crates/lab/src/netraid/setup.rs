//! From assumptions to bricks, clients and what stands between them.
//!
//! Reading order: [`PROTOCOLS`] (which protocols figures have), [`Topology`] (who coordinates under them), [`Bed`] (what is assumed).

use crate::parameters::Parameters;
use model::drive::{DriveModel, find};
use sim::timed::{BrickSpec, Buses, Cluster, Machines, Network, Scheme, WriteRelease};
use std::sync::Arc;

/// What every experiment depends on.
pub(super) const ASSUMED: &[&str] = &[
    "unit_bytes",
    "link_megabits_per_second",
    "link_latency_us",
    "message_bytes",
    "memory_megabits_per_second",
    "io_megabits_per_second",
    "disks",
    "nvram_mib",
];

/// All protocols of the figures, by the names that volumes have, in the order of Table 1: a line each.
pub(super) const PROTOCOLS: &[&str] = &["direct,ts,2pcw", "gw,ts,2pcw"];

/// Who coordinates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Topology {
    Direct,
    Gateway,
}

/// The disks of section 4.1 without mechanics (*RAM disks*): a transfer over the ATA bus is all that an access takes.
const RAM_DISK: &str = "network-raid-ram-disk";
/// Data of a brick: more than figures write.
const DATA_BYTES: u64 = 1 << 30;

/// Assumptions that clusters meet.
#[derive(Clone, Copy)]
pub(super) struct Bed<'a> {
    pub(super) parameters: &'a Parameters,
}

impl Bed<'_> {
    pub(super) fn unit_bytes(self) -> u64 {
        // Whole blocks, which volumes are made of.
        self.parameters.count("unit_bytes").next_multiple_of(base::BLOCK_U64)
    }

    /// A brick whose disks have no mechanics.
    pub(super) fn ram_disks(self) -> BrickSpec {
        let entry = find(RAM_DISK).unwrap_or_else(|| panic!("no drive is named {RAM_DISK}"));
        let drive = DriveModel::parse(entry.id, entry.text).unwrap_or_else(|error| panic!("{error}"));
        BrickSpec {
            depth: self.parameters.count("disks") as u32,
            stripe_bytes: Some(self.unit_bytes()),
            journal_bytes: self.parameters.count("nvram_mib") << 20,
            data_bytes: Some(DATA_BYTES),
            ..BrickSpec::new(Arc::new(drive))
        }
    }

    /// So many bricks in one group. The client is part of its coordinator's process where the protocol is `direct`, and has a machine
    /// of its own where gateways coordinate.
    pub(super) fn cluster(self, brick: BrickSpec, bricks: u32, topology: Topology) -> Cluster {
        let number = |name: &str| self.parameters.number(name);
        let bytes_per_second = |name: &str| Some((number(name) * 1e6 / 8.0) as u64);
        let one_way_ns = (2.0 * number("link_latency_us") * 1e3) as u64;
        Cluster {
            network: Network {
                one_way_ns,
                client_one_way_ns: one_way_ns,
                bytes_per_second: bytes_per_second("link_megabits_per_second"),
                has_ports: true,
                message_bytes: self.parameters.count("message_bytes"),
                claims_lost_ppm: 0,
            },
            buses: Buses {
                memory: bytes_per_second("memory_megabits_per_second"),
                io: bytes_per_second("io_megabits_per_second"),
                xor: None,
                xor_in_memory: true,
            },
            machines: Machines { clients: topology.clients(), gateways_on_bricks: false },
            write_release: WriteRelease::Nvram,
            ..Cluster::uniform(brick, bricks, bricks, Scheme::Hash)
        }
    }
}

impl Topology {
    /// That of a protocol of this name.
    pub(super) fn of(protocol: &str) -> Topology {
        match protocol.split(',').next() {
            Some("direct") => Topology::Direct,
            Some("gw") => Topology::Gateway,
            _ => panic!("nothing is known of who coordinates under {protocol}"),
        }
    }

    /// Machines of clients alone.
    fn clients(self) -> u32 {
        match self {
            Topology::Direct => 0,
            Topology::Gateway => 1,
        }
    }
}

/// Whether the paper has the protocol: who coordinates a small write computes its parity. Otherwise the data brick tells the difference.
pub(super) fn is_papers(protocol: &str) -> bool {
    protocol.ends_with(",rmw")
}
