//! Volumes over all bricks of a cluster, on bricks of several disks, for clients with machines of their own.

use model::drive::{DriveModel, find};
use sim::timed::{
    self, BrickSpec, CACHED, Cluster, Conditions, Length, Lived, Locality, Machines, Mix, Network, Scheme,
    Sizes, Spread, Through, Workload, WriteRelease,
};
use std::sync::Arc;

const BRICKS: u32 = 8;
/// Milliseconds of an access, wherever it is.
const ACCESS_MS: f64 = 5.0;

fn constant() -> BrickSpec {
    let text = "name = \"disk\"\ncapacity_sectors = 200000000\n[access]\nread_ms = 5\nwrite_ms = 5\n";
    let drive = DriveModel::parse("disk", text).expect("a drive");
    BrickSpec { depth: 4, stripe_bytes: Some(8192), ..BrickSpec::new(Arc::new(drive)) }
}

fn cluster(brick: BrickSpec, machines: Machines) -> Cluster {
    Cluster {
        write_release: WriteRelease::Nvram,
        gateways: if machines.gateways_on_bricks { BRICKS } else { 1 },
        network: Network { one_way_ns: 1_000, client_one_way_ns: 1_000, ..Network::default() },
        machines,
        exclusive: false,
        ..Cluster::uniform(brick, BRICKS, BRICKS, Scheme::Hash)
    }
}

fn live(cluster: &Cluster, layout: &str, (reads, outstanding): (f64, u32)) -> Lived {
    let conditions = Conditions {
        layout: Some(layout.parse().expect("a layout")),
        unit_bytes: Some(8192),
        spread: Some(Spread {
            groups: 32,
            placement: "periodic".parse().expect("a rule"),
            extents: 1000,
            piece_bytes: 256 << 10,
        }),
        ..Conditions::default()
    };
    let mix = Mix { reads, sizes: Sizes::Chunks(2), locality: Locality::Uniform };
    let length = Length { warmup: 100, requests: 2_000 };
    let workload = Workload::Closed { outstanding, mix };
    timed::live_through(cluster, workload, length, &conditions, 1).expect("it runs")
}

#[test]
fn extents_lie_on_all_bricks_evenly() {
    let lived = live(&cluster(constant(), Machines::default()), "raid4-4+1", (1.0, 16));
    let reads: Vec<u64> = lived.measured.bricks.iter().map(|brick| brick.reads).collect();
    assert!(reads.iter().all(|reads| (190..=310).contains(reads)), "{reads:?}");
}

#[test]
fn clients_with_machines_ask_the_gateway_beside_the_data() {
    let machines = |through| Machines { clients: 2, gateways_on_bricks: true, through };
    let one_way_ns = 1_000_000;
    let response_ms = |through| {
        let cluster = Cluster {
            network: Network { one_way_ns, client_one_way_ns: 1_000, ..Network::default() },
            ..cluster(constant(), machines(through))
        };
        live(&cluster, "raid4-4+1", (1.0, 1)).measured.answered.response.mean_ms
    };
    let (anywhere, there) = (response_ms(Through::All), response_ms(Through::Holders));
    assert!((there - ACCESS_MS).abs() < 0.1, "{there} ms where the data are");
    assert!(
        (anywhere - there - 2.0 * 7.0 / 8.0).abs() < 0.15,
        "{anywhere} ms anywhere: a round trip for seven of eight"
    );
}

/// A small write reads what was there, at the data brick and then at the parity brick, unless caches have it.
#[test]
fn what_is_written_through_is_on_the_disk_before_it_is_acknowledged() {
    let response_ms = |writes_through, cache_bytes| {
        let brick = BrickSpec { writes_through, cache_bytes, ..constant() };
        let cluster = cluster(brick, Machines::default());
        live(&cluster, "raid4-4+1", (0.0, 1)).measured.answered.response.mean_ms / ACCESS_MS
    };
    let accesses = [(true, 0), (true, CACHED), (false, 0), (false, CACHED)]
        .map(|(through, cache)| response_ms(through, cache));
    let expected = [4.0, 2.0, 1.0, 0.0];
    let near = accesses.iter().zip(expected).all(|(accesses, expected)| (accesses - expected).abs() < 0.1);
    assert!(near, "{accesses:?} accesses one after another");
}

#[test]
fn each_disk_of_a_brick_has_an_arm_of_its_own() {
    let entry = find("network-raid-7200").expect("the drive is in the library");
    let drive = Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive"));
    let per_second = |depth| {
        let brick = BrickSpec { depth, stripe_bytes: Some(8192), ..BrickSpec::new(Arc::clone(&drive)) };
        live(&cluster(brick, Machines::default()), "raid1x2", (1.0, 512)).measured.requests_per_second()
    };
    // One disk alone takes the nearest request first.
    let ratio = per_second(8) / per_second(2);
    assert!((3.2..=4.2).contains(&ratio), "{ratio}");
}
