//! Buses, network cards, the switch's ports and engines for parity: what each carries at the most.

use model::drive::{DriveModel, find};
use sim::timed::{
    self, BrickSpec, Buses, Cluster, Conditions, Length, Lived, Locality, Mix, Network, Scheme, Sizes,
    Workload, WriteRelease,
};
use std::sync::Arc;

/// Blocks of a request, and its bytes with those of the message.
const BLOCKS: u32 = 8;
const BYTES: f64 = 4096.0 * BLOCKS as f64 + 50.0;
/// Bytes of a question or of an acknowledgement.
const MESSAGE: f64 = 50.0;
/// Bytes a second of whatever is the bottleneck.
const RATE: u64 = 20_000_000;

/// Three bricks that serve from memory, and a gateway that asks only one of them for each block.
fn cluster() -> Cluster {
    let entry = find("sata-ssd").expect("the drive is in the library");
    let drive = Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive"));
    let brick = BrickSpec { depth: 64, data_bytes: Some(64 << 20), ..BrickSpec::new(drive) };
    Cluster { write_release: WriteRelease::Nvram, ..Cluster::uniform(brick, 3, 3, Scheme::Hash) }
}

fn live(cluster: &Cluster, reads: f64) -> Lived {
    let mix = Mix { reads, sizes: Sizes::Blocks(BLOCKS), locality: Locality::Uniform };
    run(cluster, Workload::Closed { outstanding: 96, mix }, &Conditions::default())
}

fn run(cluster: &Cluster, workload: Workload, conditions: &Conditions) -> Lived {
    timed::live_through(cluster, workload, Length { warmup: 500, requests: 3_000 }, conditions, 1)
        .expect("it runs")
}

/// Copies of two units and their parity.
fn with_parity() -> Conditions {
    let layout = Some("raid5-2+1".parse().expect("a layout"));
    Conditions { layout, ..Conditions::default() }
}

/// Bytes a second that the bottleneck carries, where each request takes it these bytes.
fn carried(cluster: &Cluster, reads: f64, bytes: f64) -> f64 {
    let lived = live(cluster, reads);
    lived.measured.requests_per_second() * bytes / RATE as f64
}

fn assert_full(what: &str, carried: f64) {
    assert!((0.97..=1.01).contains(&carried), "{what} carries {carried:.3} of what it can");
}

/// A gateway's memory gets each block once; a brick's has it twice, from the disk and to the network card, but of a third of the
/// blocks only.
#[test]
fn reads_cross_the_memory_of_their_gateway_once() {
    let buses = Buses { memory: Some(RATE), ..Buses::default() };
    assert_full("memory", carried(&Cluster { buses, ..cluster() }, 1.0, BYTES + MESSAGE));
}

#[test]
fn the_io_bus_carries_what_the_memory_does() {
    let buses = Buses { memory: Some(10 * RATE), io: Some(RATE), ..Buses::default() };
    assert_full("the I/O bus", carried(&Cluster { buses, ..cluster() }, 1.0, BYTES + MESSAGE));
}

/// A write leaves its gateway's memory for each of three bricks, which answer, and are told of the decision with what comes later. It takes
/// half a second for all that are outstanding to leave: nothing is sent twice for that.
#[test]
fn writes_cross_the_memory_of_their_gateway_once_a_copy() {
    let buses = Buses { memory: Some(RATE), ..Buses::default() };
    let carried = carried(&Cluster { buses, ..cluster() }, 0.0, 3.0 * (BYTES + MESSAGE));
    assert!((0.94..=1.01).contains(&carried), "memory carries {carried:.3} of what it can");
}

/// Three bricks answer at three times the rate of a card; the switch's port to the gateway has the rate of one.
#[test]
fn a_port_carries_as_much_as_one_card() {
    let with = |has_ports| Network { bytes_per_second: Some(RATE), has_ports, ..Network::default() };
    let without = carried(&Cluster { network: with(false), ..cluster() }, 1.0, BYTES);
    assert!((2.0..=3.01).contains(&without), "three cards carry {without:.2} times as much as one");
    assert_full("the port", carried(&Cluster { network: with(true), ..cluster() }, 1.0, BYTES));
}

/// Of a part of a stripe the data brick computes the difference to what was there, and the parity brick adds it up: each byte passes
/// two of three engines.
#[test]
fn engines_of_bricks_compute_the_differences_of_small_writes() {
    let buses = Buses { xor: Some(RATE), ..Buses::default() };
    let mix = Mix { reads: 0.0, sizes: Sizes::Blocks(BLOCKS), locality: Locality::Uniform };
    let workload = Workload::Closed { outstanding: 96, mix };
    let lived = run(&Cluster { buses, ..cluster() }, workload, &with_parity());
    let bytes = lived.measured.requests_per_second() * f64::from(BLOCKS) * 4096.0;
    let carried = bytes * 2.0 / 3.0 / RATE as f64;
    assert!((0.85..=1.01).contains(&carried), "the engines carry {carried:.3} of what they can");
}

/// A whole stripe is sent when its parity is computed: 128 KiB pass the gateway's engine before.
#[test]
fn a_stripe_waits_for_its_parity() {
    let mean_ms = |xor| {
        let locality = Locality::Hot { share: 1.0, space: 1e-9 };
        let mix = Mix { reads: 0.0, sizes: Sizes::Blocks(32), locality };
        let cluster = Cluster { buses: Buses { xor, ..Buses::default() }, ..cluster() };
        let lived = run(&cluster, Workload::Closed { outstanding: 1, mix }, &with_parity());
        lived.measured.answered.response.mean_ms
    };
    let (without, with) = (mean_ms(None), mean_ms(Some(RATE)));
    let stripe_ms = 131_072.0 / RATE as f64 * 1e3;
    assert!(((with - without) / stripe_ms - 1.0).abs() < 0.01, "{with:.3} ms, and {without:.3} ms without");
}
