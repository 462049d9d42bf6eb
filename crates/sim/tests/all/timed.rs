//! Whole machines in the timed world: in blocks, under incidents, judged.

use base::Time;
use core::time::Duration;
use model::drive::{DriveModel, DriveOptions, find};
use sim::timed::{
    self, Arrival, Arrivals, Arriving, BrickSpec, Cluster, Conditions, Groups, Incident, Length, Lived,
    Locality, Machines, Measured, Mix, Network, Scheme, Sizes, Through, TimedError, Victim, Workload,
    WriteRelease,
};
use std::sync::Arc;

fn brick() -> BrickSpec {
    let entry = find("quantum-atlas-10k").expect("the drive is in the library");
    let drive = Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive"));
    BrickSpec { options: DriveOptions::MECHANICS, ..BrickSpec::new(drive) }
}

fn cluster(bricks: u32, replicas: u32, scheme: &str, write_release: WriteRelease) -> Cluster {
    let scheme = Scheme::named(scheme).expect("a scheme");
    Cluster { write_release, ..Cluster::uniform(brick(), bricks, replicas, scheme) }
}

fn closed() -> Workload {
    let mix = Mix { reads: 0.9, sizes: Sizes::Blocks(1), locality: Locality::Uniform };
    Workload::Closed { outstanding: 16, mix }
}

fn whole(cluster: &Cluster) -> Measured {
    timed::run(cluster, closed(), Length { warmup: 1_000, requests: 8_000 }, 1).expect("it runs")
}

/// A read costs one access of a disk, however many were asked.
#[test]
fn whole_machines_read_once() {
    for (bricks, replicas, scheme, release) in [
        (8, 8, "claim", WriteRelease::Half),
        (8, 8, "hash", WriteRelease::Nvram),
        (4, 2, "lard", WriteRelease::All),
        (6, 3, "shortest-queue", WriteRelease::Half),
    ] {
        let measured = whole(&cluster(bricks, replicas, scheme, release));
        let reads: u64 = measured.bricks.iter().map(|brick| brick.reads).sum();
        let accesses = reads as f64 / measured.answered.reads as f64;
        assert!(accesses < 1.02, "{scheme}: {accesses:.3} reads of a disk for each read");
    }
}

#[test]
fn a_run_repeats_to_the_last_event() {
    let cluster = cluster(4, 4, "claim", WriteRelease::Half);
    assert_eq!(whole(&cluster), whole(&cluster));
}

#[test]
fn what_no_machine_can_be_is_refused_by_name() {
    let why = |change: fn(&mut Cluster)| {
        let mut cluster = cluster(4, 2, "hash", WriteRelease::Half);
        change(&mut cluster);
        timed::run(&cluster, closed(), Length { warmup: 0, requests: 1 }, 1).expect_err("refused").to_string()
    };
    assert!(why(|cluster| cluster.scheme = Scheme::Central).contains("'central'"));
    assert!(why(|cluster| cluster.groups = Groups(vec![vec![0, 1], vec![1, 2]])).contains("disjoint groups"));
}

fn killed_and_started(brick: u32) -> Vec<(Duration, Victim)> {
    [(2, Incident::Killed), (8, Incident::Started)]
        .map(|(at_s, incident)| (Duration::from_secs(at_s), Victim::Brick(brick, incident)))
        .into()
}

/// Three quick disks under an open load; something happens to a brick.
fn quick_disks(incidents: Vec<(Duration, Victim)>) -> timed::Lived {
    let entry = find("sata-ssd").expect("the drive is in the library");
    let drive = Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive"));
    let scheme = Scheme::Policy("usual".parse().expect("a policy"));
    let cluster = Cluster::uniform(BrickSpec::new(drive), 3, 3, scheme);
    let locality = Locality::Hot { share: 1.0, space: 1e-6 };
    let mix = Mix { reads: 0.6, sizes: Sizes::Blocks(1), locality };
    let workload = Workload::Open { per_second: 500.0, arrivals: Arrivals::Poisson, mix };
    let seconds = Duration::from_secs;
    let conditions = Conditions { incidents, is_judged: true, window: seconds(1), ..Conditions::default() };
    let length = Length { warmup: 0, requests: 7_500 };
    let lived = timed::live_through(&cluster, workload, length, &conditions, 1).expect("it runs");
    assert_eq!(lived.violation, None);
    assert_eq!(lived.windows.iter().map(|window| window.requests).sum::<u64>(), 7_500);
    lived
}

/// Nothing says that it is gone: it is waited for as long as a brick may be silent.
#[test]
fn a_brick_that_stands_still_is_waited_for_no_longer_than_a_second() {
    let incidents = [(2, Incident::Stopped), (8, Incident::Continued)];
    let at = |(at_s, incident)| (Duration::from_secs(at_s), Victim::Brick(1, incident));
    let lived = quick_disks(incidents.map(at).into());
    let longest_ms = lived.windows[2..4].iter().map(|window| window.max_ms).fold(0.0, f64::max);
    assert!((400.0..1000.0).contains(&longest_ms), "{longest_ms} ms");
    assert!(lived.windows[4..8].iter().all(|window| window.p99_ms < 2.0), "{:?}", lived.windows);
}

/// The second brick dies and comes back.
#[test]
fn a_killed_brick_breaks_nothing_and_is_missed_for_as_long_as_its_lease() {
    let lived = quick_disks(killed_and_started(1));
    let longest_ms = lived.windows[2].max_ms;
    assert!((150.0..500.0).contains(&longest_ms), "writes wait until its lease has ended: {longest_ms} ms");
    // In the second in which it comes back a view is made, for which some wait.
    let quiet = lived.windows[6..8].iter().chain(&lived.windows[9..14]);
    assert!(quiet.into_iter().all(|window| window.p99_ms < 2.0), "{:?}", lived.windows);
    assert!(lived.windows[8].max_ms < 2_000.0, "{:?}", lived.windows[8]);
    let reads = |brick: usize| lived.measured.bricks[brick].reads + lived.measured.bricks[brick].writes;
    assert!(reads(1) > 0 && reads(1) < reads(0), "it was away for a while");
    let writes = |brick: usize| lived.measured.bricks[brick].writes as f64;
    assert!(writes(1) > 0.5 * writes(0), "it is back: {} writes of {}", writes(1), writes(0));
}

/// Parity of eight bricks, content and all: one dies and comes back, and every block reads as it was written.
#[test]
fn parity_is_right_while_a_brick_is_away() {
    let entry = find("sata-ssd").expect("the drive is in the library");
    let drive = Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive"));
    let scheme = Scheme::Policy("usual".parse().expect("a policy"));
    let cluster = Cluster::uniform(BrickSpec::new(drive), 8, 8, scheme);
    let locality = Locality::Hot { share: 1.0, space: 1e-7 };
    let mix = Mix { reads: 0.5, sizes: Sizes::Blocks(1), locality };
    let open = || Workload::Open { per_second: 300.0, arrivals: Arrivals::Poisson, mix };
    let seconds = Duration::from_secs;
    let conditions = Conditions {
        layout: Some("raid5-7+1".parse().expect("a layout")),
        incidents: killed_and_started(3),
        is_judged: true,
        window: seconds(1),
        ..Conditions::default()
    };
    let length = Length { warmup: 0, requests: 4_500 };
    let run = |workload| timed::live_through(&cluster, workload, length, &conditions, 1);
    let closed = run(Workload::Closed { outstanding: 1, mix }).expect_err("refused");
    assert!(closed.to_string().contains("a disk may be away"), "{closed}");
    let lived = run(open()).expect("it runs");
    assert_eq!(lived.violation, None);
    assert_eq!(lived.windows.iter().map(|window| window.requests).sum::<u64>(), 4_500);
}

/// The first write of a coded volume leaves some bricks of its group out. These did not count as full, and were taken for the next group as
/// well: they served both, and others served none.
#[test]
fn groups_of_coded_volumes_have_no_brick_in_common() {
    for (layout, replicas) in [("rs-4+2", 6), ("raid5-4+1", 5), ("raid5-2+1", 3)] {
        let cluster = cluster(3 * replicas, replicas, "claim", WriteRelease::Nvram);
        let layout = Some(layout.parse().expect("a layout"));
        let conditions = Conditions { layout, ..Conditions::default() };
        let length = Length { warmup: 100, requests: 3_000 };
        let lived = timed::live_through(&cluster, closed(), length, &conditions, 1).expect("it runs");
        let idle = lived.measured.bricks.iter().filter(|brick| brick.reads == 0).count();
        assert_eq!(idle, 0, "{layout:?}: bricks that serve nothing");
    }
}

/// Three quick disks under gateways of which the first is killed at 2 s, with so many machines of clients.
fn gateway_killed(gateways: u32, machines: Machines, protocol: &str) -> Result<Lived, TimedError> {
    let entry = find("sata-ssd").expect("the drive is in the library");
    let drive = Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive"));
    let scheme = Scheme::Policy("usual".parse().expect("a policy"));
    let uniform = Cluster::uniform(BrickSpec::new(drive), 3, 3, scheme);
    // Longer than between two requests, so that some are outstanding at any time.
    let network = Network { client_one_way_ns: 1_000_000, ..Network::default() };
    let cluster = Cluster { gateways, machines, network, ..uniform };
    let locality = Locality::Hot { share: 1.0, space: 1e-6 };
    let mix = Mix { reads: 0.5, sizes: Sizes::Blocks(1), locality };
    let workload = Workload::Open { per_second: 2_000.0, arrivals: Arrivals::Poisson, mix };
    let conditions = Conditions {
        protocol: protocol.parse().expect("a protocol"),
        incidents: vec![(Duration::from_secs(2), Victim::Gateway(0))],
        is_judged: true,
        window: Duration::from_secs(1),
        ..Conditions::default()
    };
    timed::live_through(&cluster, workload, Length { warmup: 0, requests: 16_000 }, &conditions, 1)
}

#[test]
fn clients_that_are_attached_go_on_through_another_gateway() {
    for through in [Through::All, Through::One] {
        let machines = Machines { clients: 1, gateways_on_bricks: true, through };
        let lived = gateway_killed(3, machines, "gw,ts-wait,2pcw+read").expect("it runs");
        assert_eq!((lived.violation, lived.lost), (None, 0));
        assert_eq!(lived.measured.answered.requests, 16_000);
        let longest_ms = lived.windows.iter().map(|window| window.max_ms).fold(0.0, f64::max);
        assert!(longest_ms < 3_000.0, "{through:?}: {longest_ms} ms");
    }
}

#[test]
fn requests_of_a_client_that_coordinates_are_lost_with_it_and_others_pass_its_locks() {
    let lived = gateway_killed(2, Machines::default(), "direct,slock,none").expect("it runs");
    assert_eq!(lived.violation, None);
    assert_eq!(lived.measured.answered.requests, 16_000, "the other client asks in its place");
    assert!((1..50).contains(&lived.lost), "{} were lost", lived.lost);
    let longest_ms = lived.windows.iter().map(|window| window.max_ms).fold(0.0, f64::max);
    assert!(longest_ms < 3_000.0, "{longest_ms} ms");
}

#[test]
fn the_last_gateway_is_not_killed() {
    let refused = gateway_killed(1, Machines::default(), "direct,slock,none").expect_err("refused");
    assert!(refused.to_string().contains("nobody is left to ask"), "{refused}");
}

/// What clients of real daemons are asked to do is what the simulator does: told one by one, the requests give the same run.
#[test]
fn requests_that_are_told_are_those_of_the_run() {
    let entry = find("sata-ssd").expect("the drive is in the library");
    let drive = Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive"));
    let bytes: u64 = 64 << 20;
    let brick = BrickSpec { data_bytes: Some(bytes), ..BrickSpec::new(drive) };
    let cluster = Cluster::uniform(brick, 2, 2, Scheme::Policy("usual".parse().expect("a policy")));
    let locality = Locality::Hot { share: 0.5, space: 0.1 };
    let mix = Mix { reads: 0.7, sizes: Sizes::Exponential(3000.0), locality };
    let bursts = Arrivals::Bursts { factor: 3.0, period_ns: 100_000_000 };
    let open = || Workload::Open { per_second: 1000.0, arrivals: bursts, mix };
    let conditions = Conditions { are_blocks: true, ..Conditions::default() };
    let length = Length { warmup: 100, requests: 2_000 };
    let run = |workload| {
        let lived = timed::live_through(&cluster, workload, length, &conditions, 7).expect("it runs");
        lived.measured.answered
    };
    let told = Arriving::new(open(), bytes / 512, 7);
    assert_eq!(run(Workload::Stream(Box::new(told))), run(open()));
}

/// A request that may not be asked yet waits, and its time counts from when it came.
#[test]
fn requests_beyond_those_that_may_be_outstanding_wait() {
    let cluster = Cluster::uniform(brick(), 1, 1, Scheme::named("hash").expect("a scheme"));
    let together = |sector| Arrival { at: Time(1_000), sector, count: 8, is_write: false };
    let longest_ms = |outstanding_max| {
        let workload = Workload::Stream(Box::new((0..20).map(|at| at * 100_000).map(together)));
        let conditions = Conditions { are_blocks: true, outstanding_max, ..Conditions::default() };
        let length = Length { warmup: 0, requests: u64::MAX };
        let lived = timed::live_through(&cluster, workload, length, &conditions, 3).expect("it runs");
        let response = lived.measured.answered.response;
        assert_eq!(response.count, 20);
        response.max_ms
    };
    let (one, all) = (longest_ms(Some(1)), longest_ms(None));
    assert!(one > all, "{one} ms one by one, {all} ms where the disk can choose");
    assert_eq!(longest_ms(Some(20)), all);
}
