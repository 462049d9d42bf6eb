//! Clients that ask at a rate, and how long they wait: Figures 8 to 12.

use super::setup::{Bed, ClusterShape, Disks, Topology};
use crate::cell::Cell;
use crate::experiment::{Scale, Table};
use crate::plot::{Series, Spot};
use crate::system::{Load, System};
use base::BLOCK_U64;
use rules::layout::Layout;
use sim::timed::{Arrivals, CACHED, Conditions, Length, Locality, Mix, Sizes, Spread, Through};

/// What they depend on, beside what all experiments do.
pub(super) const ASSUMED: &[&str] = &[
    "cache_mib",
    "extent_bytes",
    "groups_a_brick",
    "placement",
    "warm_up_requests",
    "requests",
    "outstanding_max",
];

/// The paper's bricks where it says how many, and what it does not say.
pub(super) const BRICKS: u32 = 8;
/// Its rank of five.
pub(super) const RAID4: Layout = Layout::Raid4 { data: 4 };
/// Its other layout.
pub(super) const RAID1: Layout = Layout::Raid1 { copies: 2 };

/// What is watched where something fails.
pub(super) const JUDGED: &str = "Every message and step is checked, and in the end each block's reads and writes are to be linearizable, or under none \
     a regular register: what a dead writer left may be seen and gone again.";

/// Figures of a point.
pub(super) const FIGURES: &[&str] = &["requests_per_second", "response_ms"];

/// Which requests come, and to what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driven {
    pub(super) protocol: &'static str,
    pub(super) layout: Layout,
    pub(super) disks: Disks,
    pub(super) bricks: u32,
    /// Machines of clients, which ask in turn.
    pub(super) clients: u32,
    /// Requests a second, of all clients.
    pub(super) per_second: f64,
    /// The share of reads.
    pub(super) reads: f64,
    pub(super) request: Request,
    pub(super) client_link_us: Option<f64>,
    /// Extents that are used.
    pub(super) extents: u64,
    /// Whether the bricks' caches hold all of that from the beginning.
    pub(super) is_cached: bool,
}

/// What one request is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Request {
    /// A stripe unit.
    Unit,
    /// The first unit of a stripe, through a gateway on its brick where gateways coordinate.
    FirstUnit,
    /// A block of 4 KiB.
    Block,
}

impl Driven {
    /// One client that reads or writes units of a layout on RAM disks.
    pub(super) fn one_client(
        bed: Bed<'_>,
        protocol: &'static str,
        layout: Layout,
        (per_second, reads): (f64, f64),
    ) -> Driven {
        Driven {
            protocol,
            layout,
            disks: Disks::Ram,
            bricks: BRICKS,
            clients: 1,
            per_second,
            reads,
            request: Request::Unit,
            client_link_us: None,
            extents: bed.parameters.count("extents"),
            is_cached: false,
        }
    }

    /// One client that reads and writes blocks on disks that rotate, while something fails: so few that what is left can serve all.
    pub(super) fn failing(bed: Bed<'_>, protocol: &'static str, scale: Scale) -> Driven {
        // A quick run asks for less.
        let share = if scale == Scale::Quick { 0.2 } else { 1.0 };
        let per_second = bed.parameters.number("crash_per_second") * share;
        Driven {
            disks: Disks::Rotating,
            request: Request::Block,
            is_cached: true,
            ..Driven::one_client(bed, protocol, RAID4, (per_second, 0.5))
        }
    }

    /// As a job.
    pub(super) fn system(self, bed: Bed<'_>, scale: Scale) -> System {
        let count = |name: &str| bed.parameters.count(name);
        let cache_bytes = if self.is_cached { CACHED } else { count("cache_mib") << 20 };
        let brick = bed.brick(self.disks, cache_bytes);
        let drives = brick.drive.name().to_owned();
        let topology = Topology::of(self.protocol);
        let mut cluster = bed.cluster(
            brick,
            ClusterShape {
                bricks: self.bricks,
                topology,
                clients: self.clients,
                gateways_on_bricks: true,
                client_link_us: self.client_link_us,
            },
        );
        if topology == Topology::Gateway && self.request == Request::FirstUnit {
            cluster.machines.through = Through::Holders;
        }
        let protocol = self.protocol.parse().unwrap_or_else(|error| panic!("{error}"));
        let placement = bed.parameters.text("placement").parse();
        let conditions = Conditions {
            layout: Some(self.layout),
            protocol,
            unit_bytes: Some(bed.unit_bytes()),
            spread: Some(Spread {
                groups: count("groups_a_brick") as u32 * self.bricks,
                placement: placement.unwrap_or_else(|error| panic!("{error}")),
                extents: self.extents,
                piece_bytes: count("extent_bytes"),
            }),
            outstanding_max: Some(count("outstanding_max") as u32),
            ..Conditions::default()
        };
        let mix = Mix { reads: self.reads, sizes: self.sizes(bed), locality: Locality::Uniform };
        let load = Load::Open { per_second: self.per_second, arrivals: Arrivals::Poisson, mix };
        let length =
            Length { warmup: scale.of(count("warm_up_requests")), requests: scale.of(count("requests")) };
        System { cluster, load, length, conditions, drives }
    }

    fn sizes(self, bed: Bed<'_>) -> Sizes {
        let unit = (bed.unit_bytes() / BLOCK_U64) as u32;
        match self.request {
            Request::Unit => Sizes::Chunks(unit),
            Request::FirstUnit => Sizes::Spaced { blocks: unit, every: unit * u32::from(self.layout.data()) },
            Request::Block => Sizes::Blocks(1),
        }
    }
}

/// A figure of a table by what is swept, in the rows where these cells stand.
pub(super) fn curve(table: &Table, cells: &[(&str, Cell)], x: &str, y: &str) -> Vec<[f64; 2]> {
    let spot = |row: &crate::cell::Row| Some([row.get(x)?.number()?, row.get(y)?.number()?]);
    table.select(cells).filter_map(spot).collect()
}

/// The same as a curve of a picture, with its confidence intervals.
pub(super) fn series(name: &str, table: &Table, cells: &[(&str, Cell)], x: &str, y: &str) -> Series {
    let spot = |row: &crate::cell::Row| {
        let Cell::Number(height, ci95) = row.get(y)? else { return None };
        Some(Spot { x: row.get(x)?.number()?, y: *height, ci95: *ci95 })
    };
    Series { name: name.to_owned(), spots: table.select(cells).filter_map(spot).collect() }
}

/// The most that a curve reaches: what is answered a second where more is asked for.
pub(super) fn most(curve: &[[f64; 2]]) -> f64 {
    curve.iter().map(|spot| spot[1]).fold(f64::NAN, f64::max)
}
