//! From assumptions to bricks, clients and what stands between them.
//!
//! Reading order: [`PROTOCOLS`] (which protocols figures have), [`Topology`] (who coordinates under them), [`Bed`] (what is assumed).

use crate::parameters::Parameters;
use model::drive::{self, DriveModel};
use sim::timed::{BrickSpec, Buses, Cluster, Machines, Network, Scheme, Through, WriteRelease};
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
    "writes_through",
];

/// All protocols of the figures, by the names that volumes have: the lower bound, those of Table 1 in its order, then ours. A line each.
pub(super) const PROTOCOLS: &[&str] = &[
    "direct,none,none,rmw",
    "coord,seq,none,rmw",
    "direct,slock,none,rmw",
    "gw,slock,none,rmw",
    "amongst,slock,none",
    "direct,ts,2pcw,rmw",
    "gw,ts,2pcw,rmw",
    "amongst,ts,2pcw",
    "direct,ts,2pcw",
    "gw,ts,2pcw",
];

/// Those that the paper has.
pub(super) fn papers() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().copied().filter(|protocol| is_papers(protocol))
}

/// Those in pictures, which have no more than seven curves: gateways with locks, and among bricks with locks, are as those with stamps.
pub(super) const DRAWN: [&str; 7] = [
    "direct,none,none,rmw",
    "coord,seq,none,rmw",
    "direct,slock,none,rmw",
    "direct,ts,2pcw,rmw",
    "gw,ts,2pcw,rmw",
    "amongst,ts,2pcw",
    "gw,ts,2pcw",
];

/// Those of them under which the client coordinates, and under which somebody else does.
pub(super) fn directs() -> impl Iterator<Item = &'static str> {
    papers().filter(|protocol| Topology::of(protocol) == Topology::Direct)
}

pub(super) fn offloading() -> impl Iterator<Item = &'static str> {
    papers().filter(|protocol| Topology::of(protocol) != Topology::Direct)
}

/// Those of Figure 12, and orders of writes that the paper does not have.
pub(super) const CONTENDED: &[&str] = &[
    "direct,none,none,rmw",
    "coord,seq,none,rmw",
    "direct,slock,none,rmw",
    "direct,ts,2pcw,rmw",
    "direct,hybrid,2pcw,rmw",
    "direct,ts-wait,2pcw,rmw",
    "direct,ts-wait,2pcw",
];

/// The paper's names of protocols that its text tells apart.
pub(super) const DIRECT_NONE: &str = "direct,none,none";
pub(super) const DIRECT_SLOCK: &str = "direct,slock,none";
pub(super) const DIRECT_TS: &str = "direct,ts,2pcw";
/// Ours, of the last two.
pub(super) const DIRECT_HYBRID: &str = "direct,hybrid,2pcw";
pub(super) const COORD_SEQ: &str = "coord,seq,none";
pub(super) const GW_SLOCK: &str = "gw,slock,none";
pub(super) const GW_TS: &str = "gw,ts,2pcw";

/// The protocol that stands for the paper's of this name, if there is one: where who coordinates computes parity, if there is that one.
pub(super) fn find(name: &str) -> Option<&'static str> {
    find_in(PROTOCOLS, name)
}

/// The same among these.
pub(super) fn find_in(protocols: &'static [&'static str], name: &str) -> Option<&'static str> {
    let named = |wanted: &dyn Fn(&str) -> bool| protocols.iter().copied().find(|protocol| wanted(protocol));
    named(&|protocol| protocol.strip_suffix(",rmw") == Some(name))
        .or_else(|| named(&|protocol| protocol == name))
}

/// Who coordinates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Topology {
    /// The client.
    Direct,
    /// Any gateway.
    Gateway,
    /// The gateway beside the first brick of the group.
    Coordinator,
    /// The gateway beside the brick of the first unit.
    Amongst,
}

/// Disks of section 4.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Disks {
    /// Without mechanics: a transfer over the ATA bus is all that an access takes.
    Ram,
    Rotating,
}

/// What those that rotate depend on.
pub(super) const ROTATING: &[&str] = &["disk_times", "seek_ms", "turn_ms", "disk_megabytes_per_second"];

impl Disks {
    pub(super) fn name(self) -> &'static str {
        match self {
            Disks::Ram => "RAM disks",
            Disks::Rotating => "rotating disks",
        }
    }

    fn drive(self, parameters: &Parameters) -> DriveModel {
        let id = match self {
            Disks::Ram => "network-raid-ram-disk",
            Disks::Rotating if parameters.text("disk_times") == "constant" => return constant(parameters),
            Disks::Rotating => "network-raid-7200",
        };
        let entry = drive::find(id).unwrap_or_else(|| panic!("no drive is named {id}"));
        DriveModel::parse(entry.id, entry.text).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// A disk whose accesses all take as long, and their transfer.
fn constant(parameters: &Parameters) -> DriveModel {
    let access_ms = parameters.number("seek_ms") + parameters.number("turn_ms") / 2.0;
    let rate = parameters.number("disk_megabytes_per_second") * 1e6;
    // As the library's disks of this paper: 100 GB behind a bus of 100 MB/s.
    let text = format!(
        "name = \"7200 rpm disk, {access_ms:.3} ms an access\"\ncapacity_sectors = 195312500\n\
         [access]\nread_ms = {access_ms}\nwrite_ms = {access_ms}\nbytes_per_second = {rate:e}\n\
         [controller]\nbus_ms_per_sector = 0.00512\n"
    );
    DriveModel::parse("7200 rpm disk", &text).unwrap_or_else(|error| panic!("{error}"))
}

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

    /// A brick with so many bytes of cache.
    pub(super) fn brick(self, disks: Disks, cache_bytes: u64) -> BrickSpec {
        let drive = disks.drive(self.parameters);
        BrickSpec {
            depth: self.parameters.count("disks") as u32,
            stripe_bytes: Some(self.unit_bytes()),
            writes_through: self.parameters.flag("writes_through"),
            cache_bytes,
            journal_bytes: self.parameters.count("nvram_mib") << 20,
            ..BrickSpec::new(Arc::new(drive))
        }
    }

    /// So many bricks in one group, and the machines of so many clients; a client's link to the switch has such a latency. Where clients coordinate,
    /// they are part of their coordinators' processes, and otherwise have machines of their own. Gateways stand on bricks' machines, one on each, or on
    /// one machine of their own.
    pub(super) fn cluster(self, brick: BrickSpec, shape: ClusterShape) -> Cluster {
        let number = |name: &str| self.parameters.number(name);
        let bytes_per_second = |name: &str| Some((number(name) * 1e6 / 8.0) as u64);
        let link_us = number("link_latency_us");
        let way_ns = |links_us: f64| (links_us * 1e3) as u64;
        let ClusterShape { bricks, topology, clients, gateways_on_bricks, client_link_us } = shape;
        let machines = match topology {
            Topology::Direct => Machines::default(),
            Topology::Gateway | Topology::Coordinator | Topology::Amongst => {
                Machines { clients, gateways_on_bricks, through: Through::All }
            }
        };
        Cluster {
            network: Network {
                one_way_ns: way_ns(2.0 * link_us),
                client_one_way_ns: way_ns(link_us + client_link_us.unwrap_or(link_us)),
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
            gateways: match topology {
                Topology::Direct => clients,
                _ if gateways_on_bricks => bricks,
                Topology::Gateway | Topology::Coordinator | Topology::Amongst => 1,
            },
            machines,
            write_release: WriteRelease::Nvram,
            exclusive: false,
            ..Cluster::uniform(brick, bricks, bricks, Scheme::Hash)
        }
    }
}

/// How many there are of what.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClusterShape {
    pub(super) bricks: u32,
    pub(super) topology: Topology,
    /// Machines of clients.
    pub(super) clients: u32,
    pub(super) gateways_on_bricks: bool,
    /// The latency of a client's link, where it is not as others.
    pub(super) client_link_us: Option<f64>,
}

impl Topology {
    /// That of a protocol of this name.
    pub(super) fn of(protocol: &str) -> Topology {
        match protocol.split(',').next() {
            Some("direct") => Topology::Direct,
            Some("gw") => Topology::Gateway,
            Some("coord") => Topology::Coordinator,
            Some("amongst") => Topology::Amongst,
            _ => panic!("nothing is known of who coordinates under {protocol}"),
        }
    }
}

/// Whether the paper has the protocol: who coordinates a small write computes its parity, and among bricks the data brick tells the
/// difference. Ours has the data brick tell it in all cases.
pub(super) fn is_papers(protocol: &str) -> bool {
    protocol.ends_with(",rmw") || Topology::of(protocol) == Topology::Amongst
}
