//! What crosses memories (network RAID, section 3), operation by operation, against what can be counted by hand.

use base::Time;
use core::time::Duration;
use model::drive::DriveModel;
use sim::timed::{
    self, Arrival, BrickSpec, Cluster, Conditions, Crossed, Crossings, Length, Machines, Network, Scheme,
    Through, Workload, WriteRelease,
};
use std::sync::Arc;

/// Bytes of a stripe unit, which is what a request is for.
const UNIT: u64 = 8192;
const SECTORS: u64 = UNIT / 512;
const REQUESTS: u64 = 8;
/// Requests before: a client has found its coordinator then.
const WARM_UP: u64 = 2;
/// Between two requests: all is quiet when one comes.
const GAP_NS: u64 = 20_000_000;

/// Five bricks without caches whose disks only transfer, and either a client of the gateway's own process or one with a machine of its own.
fn cluster(bricks: u32, machines: Machines) -> Cluster {
    let text = "name = \"RAM\"\ncapacity_sectors = 65536\n[access]\nread_ms = 0\nwrite_ms = 0\nbytes_per_second = 1e8\n";
    let drive = DriveModel::parse("RAM", text).expect("a drive");
    let brick = BrickSpec { depth: 8, ..BrickSpec::new(Arc::new(drive)) };
    Cluster {
        write_release: WriteRelease::Nvram,
        machines,
        gateways: if machines.gateways_on_bricks { bricks } else { 1 },
        network: Network { one_way_ns: 20_000, client_one_way_ns: 20_000, ..Network::default() },
        ..Cluster::uniform(brick, bricks, bricks, Scheme::Hash)
    }
}

/// What an operation crossed, in stripe units, and the bricks by their slots. Each is for `units` that begin with the one of this number in a stripe
/// of its own.
fn crossed(layout: &str, protocol: &str, clients: u32, what: (u64, u64, bool)) -> Seen {
    crossed_on(layout, protocol, Machines { clients, ..Machines::default() }, what)
}

fn crossed_on(
    layout: &str,
    protocol: &str,
    machines: Machines,
    (unit, units, is_write): (u64, u64, bool),
) -> Seen {
    let layout: rules::layout::Layout = layout.parse().expect("a layout");
    let stripe = u64::from(layout.data());
    let arrivals = (0..WARM_UP + REQUESTS).map(move |number| Arrival {
        at: Time(number * GAP_NS),
        sector: (number * stripe.max(units) + unit) * SECTORS,
        count: (units * SECTORS) as u32,
        is_write,
    });
    let conditions = Conditions {
        layout: Some(layout),
        protocol: protocol.parse().expect("a protocol"),
        unit_bytes: Some(UNIT),
        counts_crossings: Some(Duration::from_nanos(GAP_NS)),
        are_blocks: true,
        ..Conditions::default()
    };
    let length = Length { warmup: WARM_UP, requests: u64::MAX };
    let workload = Workload::Stream(Box::new(arrivals));
    let cluster = cluster(u32::from(layout.width()), machines);
    let lived = timed::live_through(&cluster, workload, length, &conditions, 1).expect("it runs");
    assert_eq!(lived.measured.answered.requests, REQUESTS);
    Seen(lived.crossings)
}

struct Seen(Crossings);

/// Of an operation, in units: sent, received, to or from disks, for parity; and messages.
fn of(crossed: &Crossed) -> [u64; 5] {
    let unit = |bytes: u64| {
        assert!(bytes.is_multiple_of(UNIT * REQUESTS), "{bytes} bytes are no whole units an operation");
        bytes / (UNIT * REQUESTS)
    };
    assert!(crossed.messages().is_multiple_of(REQUESTS), "{crossed:?}");
    let Crossed { sent_bytes, received_bytes, disk_bytes, coded_bytes, .. } = *crossed;
    let [sent, received, disk, coded] = [sent_bytes, received_bytes, disk_bytes, coded_bytes].map(unit);
    [sent, received, disk, coded, crossed.messages() / REQUESTS]
}

impl Seen {
    fn slot(&self, slot: usize) -> [u64; 5] {
        of(&self.0.bricks[self.0.members[0][slot] as usize])
    }

    fn client(&self) -> [u64; 5] {
        of(&self.0.clients)
    }

    fn gateway(&self) -> [u64; 5] {
        of(&self.0.gateways)
    }

    /// Crossings in all.
    fn total(&self) -> u64 {
        let bricks = self.0.bricks.iter().copied().fold(Crossed::default(), |sum, more| sum + more);
        let all = of(&(bricks + self.0.clients + self.0.gateways));
        all[..4].iter().sum()
    }
}

const PARITY: usize = 4;

#[test]
fn a_read_crosses_a_bricks_memory_twice_and_its_readers_once() {
    let direct = crossed("raid4-4+1", "direct,ts,2pcw", 0, (1, 1, false));
    assert_eq!((direct.gateway(), direct.slot(1)), ([0, 1, 0, 0, 2], [1, 0, 1, 0, 2]));
    assert_eq!((direct.total(), direct.slot(PARITY)), (3, [0; 5]));
    let gw = crossed("raid4-4+1", "gw,ts,2pcw", 1, (1, 1, false));
    assert_eq!((gw.client(), gw.gateway(), gw.slot(1)), ([0, 1, 0, 0, 2], [1, 1, 0, 0, 4], [1, 0, 1, 0, 2]));
    assert_eq!(gw.total(), 5);
    assert_eq!(crossed("raid1x2", "direct,ts,2pcw", 0, (0, 1, false)).total(), 3);
    assert_eq!(crossed("raid1x2", "gw,ts,2pcw", 1, (0, 1, false)).total(), 5);
}

#[test]
fn a_write_of_copies_crosses_each_bricks_memory_twice() {
    let direct = crossed("raid1x2", "direct,ts,2pcw", 0, (0, 1, true));
    assert_eq!(
        (direct.gateway(), direct.slot(0), direct.slot(1)),
        ([2, 0, 0, 0, 4], [0, 1, 1, 0, 2], [0, 1, 1, 0, 2])
    );
    assert_eq!(direct.total(), 6);
    assert_eq!(crossed("raid1x2", "gw,ts,2pcw", 1, (0, 1, true)).total(), 8);
}

/// The data brick and the parity brick each read what is there and add something to it.
#[test]
fn a_small_write_with_the_difference_from_the_data_brick() {
    let direct = crossed("raid4-4+1", "direct,ts,2pcw", 0, (1, 1, true));
    assert_eq!(direct.gateway(), [2, 1, 0, 0, 4]);
    assert_eq!((direct.slot(1), direct.slot(PARITY)), ([1, 1, 2, 3, 2], [0, 1, 2, 3, 2]));
    assert_eq!((direct.total(), direct.slot(0)), (16, [0; 5]));
    let gw = crossed("raid4-4+1", "gw,ts-wait,2pcw", 1, (2, 1, true));
    assert_eq!((gw.client(), gw.gateway()), ([1, 0, 0, 0, 2], [2, 2, 0, 0, 6]));
    assert_eq!((gw.slot(2), gw.slot(PARITY), gw.total()), ([1, 1, 2, 3, 2], [0, 1, 2, 3, 2], 18));
}

#[test]
fn a_full_stripe_is_computed_by_who_coordinates() {
    let direct = crossed("raid4-4+1", "direct,ts,2pcw", 0, (0, 4, true));
    assert_eq!((direct.gateway(), direct.total()), ([5, 0, 0, 5, 10], 20));
    assert!((0..5).all(|slot| direct.slot(slot) == [0, 1, 1, 0, 2]));
    let gw = crossed("raid4-4+1", "gw,ts,2pcw", 1, (0, 4, true));
    assert_eq!((gw.client(), gw.gateway(), gw.total()), ([4, 0, 0, 0, 2], [5, 4, 0, 5, 12], 28));
    let decisions = |seen: &Seen| seen.0.gateways.decisions_sent / REQUESTS;
    assert_eq!((decisions(&direct), decisions(&gw)), (5, 5), "one message to each member, not answered");
}

/// It reads the old unit and the old parity, and computes the new one of both and of what it got.
#[test]
fn who_coordinates_a_small_write_by_rmw_computes_its_parity() {
    let direct = crossed("raid4-4+1", "direct,ts,2pcw,rmw", 0, (1, 1, true));
    assert_eq!((direct.gateway(), direct.total()), ([2, 2, 0, 4, 8], 16));
    assert_eq!((direct.slot(1), direct.slot(PARITY)), ([1, 1, 2, 0, 4], [1, 1, 2, 0, 4]));
    let gw = crossed("raid4-4+1", "gw,ts,2pcw,rmw", 1, (1, 1, true));
    assert_eq!((gw.client(), gw.gateway(), gw.total()), ([1, 0, 0, 0, 2], [2, 3, 0, 4, 10], 18));
    let beside = Machines { clients: 1, gateways_on_bricks: true, through: Through::All };
    let coord = crossed_on("raid4-4+1", "coord,seq,none,rmw", beside, (1, 1, true));
    assert_eq!((coord.client(), coord.gateway(), coord.total()), (gw.client(), gw.gateway(), 18));
    // With the data brick on its own machine, neither the old unit nor the new one crosses the network.
    assert_eq!(crossed_on("raid4-4+1", "coord,seq,none,rmw", beside, (0, 1, true)).total(), 14);
}

/// The gateway beside the first brick coordinates; that brick has nothing of this write.
#[test]
fn a_coordinator_of_its_own_passes_on_what_it_gets() {
    let beside = Machines { clients: 1, gateways_on_bricks: true, through: Through::All };
    let seen = crossed_on("raid4-4+1", "coord,seq,none", beside, (1, 1, true));
    assert_eq!((seen.client(), seen.gateway(), seen.slot(0)), ([1, 0, 0, 0, 2], [2, 2, 0, 0, 6], [0; 5]));
    assert_eq!((seen.slot(1), seen.slot(PARITY), seen.total()), ([1, 1, 2, 3, 2], [0, 1, 2, 3, 2], 18));
    assert_eq!(crossed_on("raid4-4+1", "coord,seq,none", beside, (1, 1, false)).total(), 5);
}

#[test]
fn among_bricks_a_small_write_costs_least() {
    let beside = Machines { clients: 1, gateways_on_bricks: true, through: Through::All };
    let seen = crossed_on("raid4-4+1", "amongst,ts,2pcw", beside, (1, 1, true));
    assert_eq!((seen.client(), seen.gateway()), ([1, 0, 0, 0, 2], [1, 1, 0, 0, 4]));
    assert_eq!((seen.slot(1), seen.slot(PARITY), seen.total()), ([0, 0, 2, 3, 0], [0, 1, 2, 3, 2], 14));
    assert_eq!(crossed_on("raid4-4+1", "amongst,ts,2pcw", beside, (1, 1, false)).total(), 3);
    assert_eq!(crossed_on("raid4-4+1", "amongst,ts,2pcw", beside, (0, 4, true)).total(), 26);
}

/// What a gateway and a brick on one machine say to each other stays there: as if bricks did it among themselves.
#[test]
fn a_gateway_on_the_data_brick_moves_least() {
    let machines = Machines { clients: 1, gateways_on_bricks: true, through: Through::Holders };
    let seen = crossed_on("raid4-4+1", "gw,ts,2pcw", machines, (1, 1, true));
    assert_eq!((seen.client(), seen.gateway()), ([1, 0, 0, 0, 2], [1, 1, 0, 0, 4]));
    assert_eq!((seen.slot(1), seen.slot(PARITY), seen.total()), ([0, 0, 2, 3, 0], [0, 1, 2, 3, 2], 14));
    let seen = crossed_on("raid4-4+1", "gw,ts,2pcw", machines, (2, 1, false));
    assert_eq!((seen.gateway(), seen.slot(2), seen.total()), ([1, 0, 0, 0, 2], [0, 0, 1, 0, 0], 3));
}
