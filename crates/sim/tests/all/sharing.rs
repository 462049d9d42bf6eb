//! Streams that share bricks of whole machines in the timed world.

use base::{StreamId, Time};
use core::time::Duration;
use model::drive::{DriveModel, find};
use reads::seat::{Places, Turns};
use rules::fair::{Clock, Cost, History, Order, Share};
use rules::layout::Layout;
use sim::timed::{
    self, BrickSpec, Cluster, Conditions, Length, Lived, Locality, Mix, Scheme, Sharing, Sizes, Threads,
    TimedError, VolumeSpec, Workload,
};
use std::sync::Arc;

const F: StreamId = StreamId(1);
const G: StreamId = StreamId(2);
const MIX: Mix =
    Mix { reads: 1.0, sizes: Sizes::Uniform { least: 2, most: 32 }, locality: Locality::Uniform };

/// Bricks of four disks that take 5 ms for an access.
fn cluster(bricks: u32) -> Cluster {
    let text = "name = \"disk\"\ncapacity_sectors = 2097152\n[access]\nread_ms = 5.0\nwrite_ms = 5.0\n";
    let drive = DriveModel::parse("disk", text).expect("a sound drive");
    let brick = BrickSpec { depth: 4, stripe_bytes: Some(1 << 16), ..BrickSpec::new(Arc::new(drive)) };
    Cluster::uniform(brick, bricks, 1, Scheme::Hash)
}

/// 20 places, bytes count, and shares are of the service in all.
fn sharing(volumes: Vec<VolumeSpec>, weights: [u32; 2]) -> Sharing {
    let order = Order::Shares { clock: Clock::StartTime, history: History::Forget };
    let shares = [(F, Share::total(weights[0])), (G, Share::total(weights[1]))];
    let turns = Turns { order, places: Places(20), cost: Cost::BYTES };
    Sharing { volumes, turns, shares: shares.into_iter().collect() }
}

fn run(cluster: &Cluster, sharing: Sharing, threads: &[u32]) -> Result<Lived, TimedError> {
    let conditions = Conditions {
        sharing: Some(sharing),
        window: Duration::from_secs(1),
        end: Some(Duration::from_secs(40)),
        ..Conditions::default()
    };
    let threads = threads.iter().map(|count| Threads::constant(MIX, *count)).collect();
    let length = Length { warmup: u64::MAX, requests: u64::MAX };
    timed::live_through(cluster, Workload::Threads(threads), length, &conditions, 1)
}

/// Of each volume, after two seconds.
fn bytes(lived: &Lived) -> Vec<f64> {
    let all = |served: &Vec<timed::Served>| served[2..].iter().map(|window| window.bytes as f64).sum();
    lived.served.iter().map(all).collect()
}

#[test]
fn two_streams_share_a_brick_by_their_weights_and_others_are_left_alone() {
    let volumes = vec![VolumeSpec::on(1, F), VolumeSpec::on(1, G)];
    let lived = run(&cluster(3), sharing(volumes, [1, 3]), &[30, 30]).expect("it runs");
    let [f, g] = bytes(&lived)[..] else { panic!("two volumes") };
    assert!((g / f / 3.0 - 1.0).abs() < 0.02, "{f} {g}");
    let reads: Vec<u64> = lived.measured.bricks.iter().map(|brick| brick.reads).collect();
    assert!(reads[0] == 0 && reads[1] > 20_000 && reads[2] == 0, "{reads:?}");
}

/// Section 4.2, Figure 9(a): what g is served on a brick of its own, f is given on the one that they share.
#[test]
fn totals_are_equal_where_one_stream_has_a_brick_of_its_own() {
    let volumes = || vec![VolumeSpec::on(0, F), VolumeSpec::on(0, G), VolumeSpec::on(1, G)];
    for on_b in [0, 3, 10] {
        let lived = run(&cluster(2), sharing(volumes(), [1, 1]), &[30, 30, on_b]).expect("it runs");
        let [f, g_a, g_b] = bytes(&lived)[..] else { panic!("three volumes") };
        assert!(((g_a + g_b) / f - 1.0).abs() < 0.02, "{on_b} threads: {f} {g_a} {g_b}");
        assert_eq!(g_b > 0.0, on_b > 0);
    }
}

#[test]
fn a_striped_volume_lies_on_the_bricks_that_are_named() {
    let volumes = vec![VolumeSpec::striped(vec![3, 0, 2], F), VolumeSpec::on(2, G)];
    let lived = run(&cluster(4), sharing(volumes, [1, 1]), &[12, 1]).expect("it runs");
    let reads: Vec<u64> = lived.measured.bricks.iter().map(|brick| brick.reads).collect();
    assert!(reads[1] == 0 && [0, 2, 3].iter().all(|brick| reads[*brick] > 2_000), "{reads:?}");
}

#[test]
fn what_cannot_be_shared_is_refused() {
    let why = |volumes: Vec<VolumeSpec>, threads: &[u32]| {
        run(&cluster(2), sharing(volumes, [1, 1]), threads).expect_err("refused").to_string()
    };
    assert!(why(vec![VolumeSpec::on(2, F)], &[1]).contains("names a brick that does not exist"));
    assert!(why(vec![VolumeSpec::striped(vec![1, 1], F)], &[1]).contains("needs 2 bricks, each once"));
    assert!(why(vec![VolumeSpec::on(1, F)], &[1, 1]).contains("threads that are not those of each"));
    let through = VolumeSpec { gateways: vec![1], ..VolumeSpec::on(1, F) };
    assert!(why(vec![through], &[1]).contains("names a gateway that does not exist"));
}

/// On three copies on drives whose heads are seen, so that reads are contested.
#[test]
fn a_limit_is_met_in_any_second_and_not_exceeded() {
    let entry = find("quantum-atlas-10k").expect("the drive is in the library");
    let drive = DriveModel::parse("quantum-atlas-10k", entry.text).expect("a sound drive");
    let brick = BrickSpec { speed: vec![(Time::ZERO, 25)], ..BrickSpec::new(Arc::new(drive)) };
    let cluster = Cluster::uniform(brick, 3, 1, Scheme::named("claim").expect("a scheme"));
    let layout = Layout::Raid1 { copies: 3 };
    let volume = VolumeSpec { bricks: vec![0, 1, 2], layout, stream: F, gateways: Vec::new() };
    let (cost, limit) = (Cost::DEVICE_TIME, 500);
    let share = Share::total(1).with_rates(0, limit * u64::from(cost.of(1)));
    let sharing = Sharing {
        volumes: vec![volume],
        turns: Turns { order: Order::FAIR, places: Places(2), cost },
        shares: [(F, share)].into_iter().collect(),
    };
    let conditions = Conditions {
        sharing: Some(sharing),
        window: Duration::from_millis(50),
        end: Some(Duration::from_secs(20)),
        ..Conditions::default()
    };
    // A sector, which is in one block wherever it lies.
    let mix = Mix { reads: 1.0, sizes: Sizes::Uniform { least: 1, most: 1 }, locality: Locality::Uniform };
    let workload = Workload::Threads(vec![Threads::constant(mix, 32)]);
    let length = Length { warmup: u64::MAX, requests: u64::MAX };
    let lived = timed::live_through(&cluster, workload, length, &conditions, 1).expect("it runs");
    let counts: Vec<u64> = lived.served[0].iter().map(|window| window.requests).collect();
    let in_a_second: Vec<u64> = counts.windows(20).map(|second| second.iter().sum()).collect();
    assert!(in_a_second.iter().all(|count| (490..=510).contains(count)), "{in_a_second:?}");
}
