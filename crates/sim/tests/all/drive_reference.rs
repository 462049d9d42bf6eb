//! The Atlas 10K's model under head schedulers against DiskSim's curves, and against what the drive itself did.

use model::drive::{Drive, DriveModel, DriveOptions, find};
use rules::heads::Policy;
use sim::reference::{self, LoopConfig, Replacement};
use std::io::Read;
use std::sync::Arc;

fn atlas_10k(options: DriveOptions) -> Drive {
    let entry = find("quantum-atlas-10k").expect("it is in the library");
    let model = DriveModel::parse(entry.id, entry.text).expect("the library's files are right");
    Drive::with_options(Arc::new(model), options)
}

/// Every point of both configurations without a cache, as `brickwork disk validate` has them.
#[test]
fn throughput_is_within_half_a_percent_of_the_curves() {
    let Some(curves) = crate::shared::text("data/disks/atlas10k_reference_curves.csv") else { return };
    let Some(workload) = crate::shared::text("data/disks/atlas10k_closed_workload.csv") else { return };
    let points = reference::parse_curves(&curves).expect("it reads");
    let mut compared = 0;
    for point in points.iter().filter(|point| point.configuration != "C_stock") {
        let Some((config, options)) = reference::loop_of(point) else { continue };
        let accesses = reference::parse_workload(&workload, point.read_percent()).expect("it reads");
        let found = reference::closed_loop(&mut atlas_10k(options), config, &accesses);
        let apart = found.iops() / point.iops - 1.0;
        assert!(apart.abs() < 0.005, "{point:?} is {:.2} here", found.iops());
        compared += 1;
    }
    assert_eq!(compared, 168, "two configurations, three mixes, four schedulers, seven depths");
}

/// Traces of real drives, as each drive's file says how far it may be from its own.
const MEASURED: [(&str, &str); 6] = [
    ("quantum-atlas-10k", "data/traces/atlas10k.trace"),
    ("seagate-cheetah-9lp", "data/traces/measured/cheetah9LP.trace.gz"),
    ("seagate-barracuda", "data/traces/measured/barracuda.trace.gz"),
    ("quantum-atlas-iii", "data/traces/measured/atlas_III.trace.gz"),
    ("hp-c2247a", "data/traces/measured/hp_c2247a.trace.gz"),
    ("hp-c3323a", "data/traces/measured/hp_c3323a.trace.gz"),
];

#[test]
fn real_drives_are_met_as_closely_as_their_files_say() {
    for (id, path) in MEASURED {
        let Some(packed) = crate::shared::bytes(path) else { continue };
        let mut trace = String::new();
        let source = Box::new(std::io::Cursor::new(packed));
        trace::compress::plain(source).expect("it begins").read_to_string(&mut trace).expect("it reads");
        let trace = reference::parse_measured(&trace).expect("it reads");
        let entry = find(id).expect("it is in the library");
        let model = DriveModel::parse(entry.id, entry.text).expect("the library's files are right");
        let bound_ms = model.demerit_max_ms().expect("it was compared");
        let found =
            reference::replay_measured(&mut Drive::with_options(Arc::new(model), DriveOptions::FULL), &trace);
        let at = |ms: f64| (ms * 1000.0).round() / 1000.0;
        println!("{id}: {} ms", at(found.all.demerit_ms));
        for (class, of) in found.classes {
            println!(
                "  {}: {} of them, real {} ms, model {} ms, demerit {} ms",
                class.name(),
                of.accesses,
                at(of.real_ms),
                at(of.model_ms),
                at(of.demerit_ms)
            );
        }
        assert!(found.all.accesses > 9_000 && found.all.demerit_ms <= bound_ms, "{id}: {found:?}");
    }
}

#[test]
fn a_measured_access_is_followed_by_its_time_to_think() {
    let text = "W Hit 4583176 4 663.00000 45422.00000\nR Hit 3962268 12 6657.00000 64047.00000\n";
    let trace = reference::parse_measured(text).expect("it reads");
    let times: Vec<_> = trace.iter().map(|entry| (entry.service_ns, entry.think_ns)).collect();
    assert_eq!(times, [(663_000, 45_422_000), (6_657_000, 0)]);
    let error = reference::parse_measured(&text.replace("6657.0", "x")).expect_err("no time").to_string();
    assert!(error.contains("line 2") && error.contains("`response`"), "{error}");
}

/// Counted as the one chooses among, the depth decides; counted as outstanding, it depends on who comes first.
#[test]
fn a_replacement_before_the_choice_is_worth_one_of_depth() {
    let Some(workload) = crate::shared::text("data/disks/atlas10k_closed_workload.csv") else { return };
    let accesses = reference::parse_workload(&workload, 100).expect("it reads");
    let iops = |depth, replacement| {
        let config = LoopConfig {
            policy: Policy::Sptf,
            depth,
            replacement,
            write_initiation_ns: None,
            knows_destages: true,
        };
        reference::closed_loop(&mut atlas_10k(DriveOptions::MECHANICS), config, &accesses[..10_000]).iops()
    };
    let (after, before) = (iops(9, Replacement::AfterChoice), iops(8, Replacement::BeforeChoice));
    assert!((after / before - 1.0).abs() < 0.005, "{after} {before}");
    assert!(iops(8, Replacement::AfterChoice) < before * 0.98);
}
