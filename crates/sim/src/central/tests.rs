//! The ideal against theory and against itself.

use crate::timed::{Arrivals, BrickSpec, Cluster, Length, Measured, Mix, Scheme, Sizes, Workload};
use model::drive::{DriveModel, DriveOptions, find};
use rules::heads::Policy;
use std::sync::Arc;

fn atlas() -> BrickSpec {
    let entry = find("quantum-atlas-10k").expect("the drive is in the library");
    let drive = DriveModel::parse("quantum-atlas-10k", entry.text).expect("a sound drive");
    BrickSpec { options: DriveOptions::MECHANICS, ..BrickSpec::new(Arc::new(drive)) }
}

/// Reads and writes take a tenth of a millisecond.
fn flash() -> BrickSpec {
    let text = "name = \"flash\"\ncapacity_sectors = 1000000\n[access]\nread_ms = 0.1\nwrite_ms = 0.1\n";
    let drive = DriveModel::parse("flash", text).expect("a sound drive");
    BrickSpec { policy: Policy::Fcfs, ..BrickSpec::new(Arc::new(drive)) }
}

fn closed(cluster: &Cluster, reads: f64, requests: u64) -> Measured {
    let workload = Workload::Closed { outstanding: 16, mix: Mix::random(reads) };
    super::run(cluster, workload, Length { warmup: requests / 4, requests }, 7).expect("a sound cluster")
}

/// Table 1's first row with what is assumed there, to the last event of seed 7: the scheduler is a ruler, and must not change.
#[test]
fn a_ruler_does_not_change() {
    let measured = closed(&Cluster::uniform(atlas(), 8, 8, Scheme::Central), 0.9, 4000);
    assert_eq!(measured, closed(&Cluster::uniform(atlas(), 8, 8, Scheme::Central), 0.9, 4000));
    let figures = [measured.throughput_iops(), measured.service_ms(), measured.queue_seen()];
    assert_eq!(figures.map(|figure| (figure * 1e3).round() / 1e3), RULER);
    for brick in &measured.bricks {
        let busy = brick.throughput_iops * brick.service_ms / 1e3;
        assert!((busy - (1.0 - brick.idle)).abs() < 1e-9, "{brick:?}");
    }
}

const RULER: [f64; 3] = [191.857, 5.212, 14.223];

/// M/D/1: the mean wait is half the load over the rest, in service times.
#[test]
fn one_queue_with_poisson_arrivals_waits_as_long_as_theory_says() {
    let mut cluster = Cluster::uniform(flash(), 1, 1, Scheme::Central);
    (cluster.network.one_way_ns, cluster.network.client_one_way_ns) = (0, 0);
    let mix = Mix { sizes: Sizes::Fixed(1), ..Mix::random(1.0) };
    for load in [0.5, 0.8] {
        let workload = Workload::Open { per_second: load * 10_000.0, arrivals: Arrivals::Poisson, mix };
        let length = Length { warmup: 1000, requests: 100_000 };
        let measured = super::run(&cluster, workload, length, 1).expect("a sound cluster");
        let theory_ms = 0.1 * (1.0 + load / (2.0 * (1.0 - load)));
        let response_ms = measured.answered.response.mean_ms;
        assert!(
            (0.97..1.03).contains(&(response_ms / theory_ms)),
            "load {load}: {response_ms} ms, theory {theory_ms}"
        );
        assert!((measured.idle() - (1.0 - load)).abs() < 0.01, "{}", measured.idle());
    }
}

#[test]
fn the_slow_disk_serves_less() {
    let mut cluster = Cluster::uniform(atlas(), 2, 2, Scheme::Central);
    cluster.bricks[1].speed = vec![(base::Time::ZERO, 200)];
    let [fast, slow] = [0, 1].map(|brick| closed(&cluster, 1.0, 2000).bricks[brick].throughput_iops);
    assert!(fast > slow * 1.7, "{fast} and {slow}");
}
