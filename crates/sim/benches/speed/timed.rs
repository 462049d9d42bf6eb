//! Clusters whose speed is measured: requests that are simulated in a second of the processor.

use model::drive::{DriveModel, DriveOptions, find};
use sim::timed::{self, Conditions};
use sim::timed::{BrickSpec, Cluster, Length, Locality, Mix, Scheme, Sizes, Workload, WriteRelease};
use std::sync::Arc;

const REQUESTS: u64 = 30_000;

pub(crate) fn bench() {
    let entry = find("quantum-atlas-10k").expect("the drive is in the library");
    let drive = Arc::new(DriveModel::parse(entry.id, entry.text).expect("a sound drive"));
    let brick = BrickSpec { options: DriveOptions::MECHANICS, ..BrickSpec::new(drive) };
    let mix = Mix { reads: 0.9, sizes: Sizes::Blocks(1), locality: Locality::Uniform };
    let length = Length { warmup: 0, requests: REQUESTS };
    println!("timed: requests a second, of eight bricks with the same data (9 reads, 1 write)");
    for (name, outstanding) in [("claim", 16), ("claim", 64), ("hash", 16), ("lard", 16)] {
        let cluster = Cluster::uniform(brick.clone(), 8, 8, Scheme::named(name).expect("a scheme"));
        let workload = || Workload::Closed { outstanding, mix };
        let per_second = |work: &dyn Fn()| REQUESTS as f64 / super::elapsed(work).as_secs_f64();
        let whole = per_second(&|| drop(sim::timed::run(&cluster, workload(), length, 1).expect("it runs")));
        println!("  {name:6} {outstanding:3} outstanding: whole machines {whole:9.0}");
    }
    let cluster = Cluster {
        write_release: WriteRelease::Nvram,
        ..Cluster::uniform(brick, 8, 8, Scheme::Policy("usual".parse().expect("a policy")))
    };
    let conditions =
        Conditions { layout: Some("raid5-7+1".parse().expect("a layout")), ..Conditions::default() };
    for reads in [0.7, 0.0] {
        let workload = Workload::Closed { outstanding: 64, mix: Mix { reads, ..mix } };
        let run = || drop(timed::live_through(&cluster, workload, length, &conditions, 1).expect("it runs"));
        let whole = REQUESTS as f64 / super::elapsed(run).as_secs_f64();
        println!("  raid5-7+1, 64 outstanding, {:3.0}% reads: whole machines {whole:9.0}", reads * 100.0);
    }
}
