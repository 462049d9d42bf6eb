//! Clusters whose processors take time.

use core::time::Duration;
use model::drive::{DriveModel, find};
use model::host::{Costs, Kind, Work};
use sim::timed::{
    self, Arrivals, BrickSpec, Cluster, Conditions, Hosts, Incident, Length, Lived, Locality, Mix, Network,
    Scheme, Sizes, Victim, Workload, WriteRelease,
};
use std::sync::Arc;

/// Nanoseconds of a turn, of waking for it, of a packet, a KiB, a request at the gateway and at the client, a read, a write, and
/// a KiB of parity.
const COSTS: Costs =
    Costs { ns: [4e3, 0.0, 3e3, 200.0, 5e3, 8e3, 4e3, 20e3, 0.0, 0.0, 200.0, 500.0], sleep_ns: 0.0 };
const MIX: Mix =
    Mix { reads: 0.7, sizes: Sizes::Blocks(1), locality: Locality::Hot { share: 1.0, space: 1e-6 } };

fn cluster(processors: u32, is_shared: bool, gateways: u32) -> Cluster {
    let entry = find("sata-ssd").expect("the drive is in the library");
    let drive = Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive"));
    let brick = BrickSpec { depth: 32, ..BrickSpec::new(drive) };
    let network = Network { one_way_ns: 0, client_one_way_ns: 0, ..Network::default() };
    let hosts = Some(Hosts { costs: COSTS, processors, is_shared });
    let scheme = Scheme::Policy("usual".parse().expect("a policy"));
    Cluster { gateways, hosts, network, ..Cluster::uniform(brick, 3, 3, scheme) }
}

fn live(cluster: &Cluster, outstanding: u32) -> Lived {
    let workload = Workload::Closed { outstanding, mix: MIX };
    let length = Length { warmup: 1_000, requests: 8_000 };
    timed::live_through(cluster, workload, length, &Conditions::default(), 1).expect("it runs")
}

fn busy_s(lived: &Lived) -> f64 {
    let mut all = Work::default();
    [lived.worked.clients, lived.worked.gateways, lived.worked.bricks]
        .iter()
        .for_each(|work| all.extend(work));
    COSTS.of(&all) as f64 / 1e9
}

/// The utilisation law: with enough to do processors are hardly ever idle, and no time is lost or made up.
#[test]
fn processors_that_are_the_bottleneck_are_busy_all_the_time() {
    // Of two, one waits now and then: each daemon has one turn at a time, which takes all that has come, and a daemon that waits for one
    // processor is not taken to the other within half a millisecond of its last turn. Three gateways leave less of that.
    for (processors, gateways, least) in [(1, 1, 0.98), (2, 1, 0.88), (2, 3, 0.95)] {
        let lived = live(&cluster(processors, true, gateways), 64);
        let busy = busy_s(&lived) / lived.measured.seconds / f64::from(processors);
        assert!((least..=1.01).contains(&busy), "{processors} processors are busy for {busy:.3} of the time");
    }
    let rate = |lived: &Lived| lived.measured.requests_per_second();
    let (one, two) = (live(&cluster(1, true, 1), 64), live(&cluster(2, true, 1), 64));
    // More than twice as many can be, as turns of more requests cost less a request.
    assert!((1.5..=2.4).contains(&(rate(&two) / rate(&one))), "{} and {}", rate(&one), rate(&two));
}

/// With machines of their own nobody waits for others: one request at a time takes what its own way costs.
#[test]
fn a_request_alone_takes_the_turns_on_its_way() {
    let mut cluster = cluster(1, false, 1);
    let reads = Mix { reads: 1.0, ..MIX };
    let run = |cluster: &Cluster| {
        let workload = Workload::Closed { outstanding: 1, mix: reads };
        let length = Length { warmup: 100, requests: 1_000 };
        timed::live_through(cluster, workload, length, &Conditions::default(), 1).expect("it runs")
    };
    let with = run(&cluster);
    cluster.hosts = None;
    let without = run(&cluster);
    let mean_ns = |lived: &Lived| lived.measured.answered.response.mean_ms * 1e6;
    let count = |kind: Kind| {
        let all = [with.worked.clients, with.worked.gateways, with.worked.bricks];
        all.iter().map(|work| work.count(kind)).sum::<f64>() / 1_000.0
    };
    // Question and answer, each with its content at both ends, beside heartbeats.
    assert!((4.0..4.2).contains(&count(Kind::Packet)), "{} packets", count(Kind::Packet));
    assert!((1.0..1.01).contains(&count(Kind::Client)) && (1.0..1.01).contains(&count(Kind::Request)));
    let expected_ns = (4.0 * 5.0 + 4.0 * 3.0 + 5.0 + 8.0 + 4.0) * 1e3 + 4.0 * 5.0 * 200.0;
    let extra_ns = mean_ns(&with) - mean_ns(&without);
    assert!((0.9..=1.15).contains(&(extra_ns / expected_ns)), "{extra_ns:.0} ns, expected {expected_ns:.0}");
}

/// The parity of a whole stripe: the gateway's loop computes what is small, and its worker what is large.
#[test]
fn a_stripe_alone_takes_what_its_parity_costs() {
    for (layout, bricks, kib) in [("raid5-2+1", 3, 128.0), ("raid5-4+1", 5, 256.0)] {
        let run = |coded_ns: f64| {
            let mut one = cluster(2, false, 1);
            one = Cluster {
                hosts: one.hosts,
                network: one.network,
                ..Cluster::uniform(one.bricks[0].clone(), bricks, bricks, one.scheme)
            };
            one.hosts.as_mut().expect("it has hosts").costs.ns[Kind::Coded as usize] = coded_ns;
            one.write_release = WriteRelease::Nvram;
            let locality = Locality::Hot { share: 1.0, space: 1e-9 };
            let mix = Mix { reads: 0.0, sizes: Sizes::Blocks(kib as u32 / 4), locality };
            let conditions =
                Conditions { layout: Some(layout.parse().expect("a layout")), ..Conditions::default() };
            let length = Length { warmup: 50, requests: 500 };
            timed::live_through(&one, Workload::Closed { outstanding: 1, mix }, length, &conditions, 1)
                .expect("it runs")
        };
        let (with, without) = (run(500.0), run(0.0));
        let coded = with.worked.gateways.count(Kind::Coded) / 500.0;
        assert!((0.99..1.01).contains(&(coded / kib)), "{layout}: {coded} KiB a stripe");
        let extra_ns =
            (with.measured.answered.response.mean_ms - without.measured.answered.response.mean_ms) * 1e6;
        assert!((0.98..1.02).contains(&(extra_ns / (kib * 500.0))), "{layout}: {extra_ns:.0} ns");
    }
}

/// A brick dies in the middle of whatever it does and comes back, before all checkers.
#[test]
fn a_brick_killed_in_its_turn_breaks_nothing() {
    let seconds = Duration::from_secs;
    let conditions = Conditions {
        incidents: vec![
            (seconds(2), Victim::Brick(1, Incident::Killed)),
            (seconds(6), Victim::Brick(1, Incident::Started)),
            (seconds(8), Victim::Brick(0, Incident::Stopped)),
            (seconds(9), Victim::Brick(0, Incident::Continued)),
        ],
        is_judged: true,
        ..Conditions::default()
    };
    let workload = Workload::Open { per_second: 600.0, arrivals: Arrivals::Poisson, mix: MIX };
    let length = Length { warmup: 0, requests: 7_000 };
    let lived = timed::live_through(&cluster(1, true, 2), workload, length, &conditions, 1).expect("it runs");
    assert_eq!(lived.violation, None);
    assert_eq!(lived.measured.answered.requests, 7_000);
}

/// A gateway dies in the middle of whatever it does, and with it what its clients had asked.
#[test]
fn a_gateway_killed_in_its_turn_breaks_nothing() {
    let conditions = Conditions {
        incidents: vec![(Duration::from_secs(2), Victim::Gateway(0))],
        is_judged: true,
        ..Conditions::default()
    };
    let length = Length { warmup: 0, requests: 5_000 };
    for is_shared in [false, true] {
        let workload = Workload::Open { per_second: 600.0, arrivals: Arrivals::Poisson, mix: MIX };
        let cluster = cluster(1, is_shared, 2);
        let lived = timed::live_through(&cluster, workload, length, &conditions, 1).expect("it runs");
        assert_eq!(lived.violation, None);
        assert_eq!(lived.measured.answered.requests, 5_000);
    }
}

#[test]
fn machines_that_cannot_be_are_refused() {
    let why = |cluster: &Cluster| cluster.validate().expect_err("refused").to_string();
    assert!(why(&cluster(0, true, 1)).contains("1 to 4096 processors"));
    assert!(why(&cluster(1, true, 0)).contains("0 gateways"));
    let mut endless = cluster(1, true, 1);
    endless.hosts.as_mut().expect("it has hosts").costs.sleep_ns = f64::NAN;
    assert!(why(&endless).contains("costs"));
}
