//! The ideal is what the performance model has.

use crate::timed::{BrickSpec, Cluster, Length, Mix, Scheme, Workload};
use model::drive::{DriveModel, DriveOptions, find};
use std::sync::Arc;

#[test]
fn the_same_as_the_model() {
    let entry = find("quantum-atlas-10k").expect("the drive is in the library");
    let drive = DriveModel::parse("quantum-atlas-10k", entry.text).expect("a sound drive");
    let brick = BrickSpec {
        options: DriveOptions::MECHANICS,
        cache_bytes: 1 << 24,
        ..BrickSpec::new(Arc::new(drive))
    };
    let mut cluster = Cluster::uniform(brick, 8, 4, Scheme::Central);
    cluster.bricks[1].speed = vec![(base::Time::ZERO, 200)];
    let workload = || Workload::Closed { outstanding: 16, mix: Mix::random(0.7) };
    let length = Length { warmup: 1000, requests: 5000 };
    let mut old = crate::perf::run(&cluster, workload(), length, 3).expect("it runs");
    let mut new = super::run(&cluster, workload(), length, 3).expect("it runs");
    new.events = old.events;
    println!("{:?} {:?}", old.traffic, old.contention);
    (old.traffic, old.contention) = (new.traffic, new.contention);
    assert_eq!(old, new);
}
