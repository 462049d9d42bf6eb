//! Prints D-SPTF's random-workload tables as the performance simulator has them, beside the paper's figures.
//!
//! `cargo run --release -p brickwork-sim --example perf -- table1 [requests]`; without a name, all of them.

use model::drive::{DriveModel, DriveOptions, find};
use proto::distribute::claim::bids::Defer;
use proto::distribute::lard::LardConfig;
use proto::heads::Policy;
use sim::perf::run;
use sim::timed::ClaimOptions;
use sim::timed::{
    Arrivals, BrickSpec, Cluster, Groups, Length, Measured, Mix, Scheme, Workload, WriteRelease,
};
use std::sync::Arc;

type Table = (&'static str, fn(u64));

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = arguments.first().map_or("", String::as_str);
    let requests = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(40_000);
    let tables: [Table; 9] = [
        ("table1", table1),
        ("idle", idle),
        ("fig5", fig5),
        ("table4", table4),
        ("table5", table5),
        ("fig9", fig9),
        ("steps", steps),
        ("nvram", nvram),
        ("failslow", failslow),
    ];
    for (name, table) in tables.iter().filter(|(name, _)| wanted.is_empty() || *name == wanted) {
        println!("== {name}, {requests} requests");
        table(requests);
    }
}

fn atlas() -> Arc<DriveModel> {
    let entry = find("quantum-atlas-10k").expect("the drive is in the library");
    Arc::new(DriveModel::parse("quantum-atlas-10k.toml", entry.text).expect("the library's drives are sound"))
}

fn brick(options: DriveOptions) -> BrickSpec {
    BrickSpec { options, ..BrickSpec::new(atlas()) }
}

/// Addresses by the megabyte, so that a short warm-up has given most of them their home.
fn lard() -> Scheme {
    Scheme::Lard(LardConfig { granule: 1 << 20, ..LardConfig::default() })
}

fn four() -> [Scheme; 4] {
    [Scheme::Central, Scheme::Claim(ClaimOptions::default()), Scheme::Hash, lard()]
}

fn hash_first() -> [Scheme; 4] {
    let [central, claim, hash, lard] = four();
    [hash, lard, claim, central]
}

fn measure(cluster: &Cluster, reads: f64, requests: u64) -> Measured {
    let workload = Workload::Closed { outstanding: 16, mix: Mix::random(reads) };
    // LARD comes to rest when most addresses have their home.
    let warmup = if matches!(cluster.scheme, Scheme::Lard(_)) { 60_000 } else { requests / 4 };
    run(cluster, workload, Length { warmup, requests }, 1).expect("the cluster can be")
}

fn row(what: &str, measured: &Measured) {
    println!(
        "{what:28} {:14} {:7.2}/s idle {:5.2}% service {:6.3} ms response {:7.2} ms queue {:5.2} messages {:6.3} conflicts {:6.3}% reads/read {:.4} {:.1} M events",
        measured.scheme,
        measured.throughput_iops(),
        measured.idle() * 100.0,
        measured.service_ms(),
        measured.answered.response.mean_ms,
        measured.queue_seen(),
        measured.messages_per_request(),
        measured.conflicts_per_request() * 100.0,
        measured.device_reads_per_read(),
        measured.events as f64 / 1e6,
    );
}

fn table1(requests: u64) {
    for (name, options) in [("A", DriveOptions::UNCACHED), ("B", DriveOptions::MECHANICS)] {
        for release in [WriteRelease::Nvram, WriteRelease::Half, WriteRelease::All] {
            let mut hash = 1.0;
            for scheme in hash_first() {
                let cluster =
                    Cluster { write_release: release, ..Cluster::uniform(brick(options), 8, 8, scheme) };
                let measured = measure(&cluster, 0.9, requests);
                if measured.scheme == "hash" {
                    hash = measured.throughput_iops();
                }
                let gain = (measured.throughput_iops() / hash - 1.0) * 100.0;
                row(&format!("{name} {release:?} {gain:+.1}%"), &measured);
            }
        }
    }
}

fn idle(requests: u64) {
    for reads in [1.0, 0.9, 0.6] {
        for scheme in [Scheme::Hash, lard()] {
            let cluster = Cluster::uniform(brick(DriveOptions::MECHANICS), 8, 8, scheme);
            row(&format!("reads {reads}"), &measure(&cluster, reads, requests));
        }
    }
}

fn fig5(requests: u64) {
    for replicas in [2, 3, 4, 6, 8] {
        for scheme in four() {
            let cluster = Cluster::uniform(brick(DriveOptions::MECHANICS), replicas, replicas, scheme);
            row(&format!("replicas {replicas}"), &measure(&cluster, 0.67, requests));
        }
    }
}

fn table4(requests: u64) {
    let weighted = Scheme::WeightedHash(vec![2.0, 1.0]);
    for scheme in four().into_iter().chain([weighted]) {
        let mut cluster = Cluster::uniform(brick(DriveOptions::MECHANICS), 2, 2, scheme);
        cluster.bricks[1].speed = vec![(base::Time::ZERO, 200)];
        let measured = measure(&cluster, 0.9, requests);
        let [fast, slow] = [0, 1].map(|brick| measured.bricks[brick].throughput_iops);
        row(&format!("fast {fast:.1} slow {slow:.1}"), &measured);
    }
}

fn table5(requests: u64) {
    for replicas in [2, 4, 6, 8] {
        for bricks in [16, 128] {
            let scheme = Scheme::Claim(ClaimOptions::default());
            let mut cluster = Cluster::uniform(brick(DriveOptions::MECHANICS), bricks, replicas, scheme);
            cluster.groups = Groups::disjoint(bricks, replicas);
            let requests = requests * u64::from(bricks / replicas) / 4;
            row(&format!("{bricks} bricks, {replicas} replicas"), &measure(&cluster, 0.9, requests));
        }
    }
}

fn fig9(requests: u64) {
    for one_way_us in [0, 50, 200, 500, 1000, 1500, 1750, 2000, 2500, 3000] {
        for (hold_rotation_only, client_ns) in [(false, one_way_us * 1000), (true, 0), (false, 0)] {
            let scheme = Scheme::Claim(ClaimOptions { hold_rotation_only, ..ClaimOptions::default() });
            let mut cluster = Cluster::uniform(brick(DriveOptions::MECHANICS), 8, 8, scheme);
            cluster.network.one_way_ns = one_way_us * 1000;
            cluster.network.client_one_way_ns = client_ns;
            row(
                &format!("{one_way_us} us, client {}, {hold_rotation_only}", client_ns / 1000),
                &measure(&cluster, 0.9, requests),
            );
        }
    }
}

/// What it does to claims when all platters turn in step.
fn steps(requests: u64) {
    for replicas in [2, 4, 6, 8] {
        for release in [WriteRelease::Half, WriteRelease::All] {
            for synchronised in [false, true] {
                let scheme = Scheme::Claim(ClaimOptions::default());
                let cluster = Cluster::uniform(brick(DriveOptions::MECHANICS), replicas, replicas, scheme);
                let cluster = Cluster { synchronised, write_release: release, ..cluster };
                row(
                    &format!("{replicas} {release:?} in step {synchronised}"),
                    &measure(&cluster, 0.9, requests),
                );
            }
        }
    }
}

/// Writes released by the journal, which has room for so much.
fn nvram(requests: u64) {
    for journal_bytes in [1 << 14, 1 << 15, 1 << 16, 1 << 18, 1 << 20] {
        for scheme in hash_first() {
            let brick = BrickSpec { journal_bytes, ..brick(DriveOptions::MECHANICS) };
            let cluster = Cluster::uniform(brick, 8, 8, scheme);
            let cluster = Cluster { write_release: WriteRelease::Nvram, ..cluster };
            row(&format!("journal {} KiB", journal_bytes >> 10), &measure(&cluster, 0.9, requests));
        }
    }
}

/// Three bricks of flash, of which one becomes 50 times slower.
fn failslow(requests: u64) {
    let text = "name = \"flash\"\ncapacity_sectors = 1000000\n[access]\nread_ms = 0.1\nwrite_ms = 0.1\n";
    let flash = Arc::new(DriveModel::parse("flash", text).expect("a sound drive"));
    let defer = Some(Defer::default());
    let claim = ClaimOptions { defer, told_by_client: true, blind: true, ..ClaimOptions::default() };
    let names = ["hash", "lard", "shortest-queue", "hedged", "tied", "probing"];
    let others = names.into_iter().filter_map(Scheme::named);
    for scheme in [Scheme::Claim(claim)].into_iter().chain(others) {
        for percent in [100, 5000] {
            let brick = BrickSpec { depth: 4, policy: Policy::Fcfs, ..BrickSpec::new(Arc::clone(&flash)) };
            let mut cluster = Cluster::uniform(brick, 3, 3, scheme.clone());
            cluster.bricks[0].speed = vec![(base::Time(100_000_000), percent)];
            let workload =
                Workload::Open { per_second: 1000.0, arrivals: Arrivals::Poisson, mix: Mix::random(1.0) };
            let length = Length { warmup: 1000, requests };
            let measured = run(&cluster, workload, length, 1).expect("the cluster can be");
            let response = measured.answered.response;
            row(&format!("p99 {:.3} p99.9 {:.3} {percent}%", response.p99_ms, response.p999_ms), &measured);
        }
    }
}
