//! Whole runs: a seed is the run, and short runs of fixed seeds hold all promises.

use sim::{Options, run, run_seed};

fn short() -> Options {
    Options { simulated_s: Some(5), operations: Some(300), ..Options::default() }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let (first, second) = (run_seed(7, &short()), run_seed(7, &short()));
    assert_eq!(
        (first.trace_hash, first.events, &first.rare),
        (second.trace_hash, second.events, &second.rare)
    );
    assert_ne!(first.trace_hash, run_seed(8, &short()).trace_hash);
}

#[test]
fn every_layout_serves_without_faults() {
    for (seed, layout) in (1..).zip(["raid0x2", "raid1x3", "raid4-2+1", "raid5-4+1", "rs-4+2"]) {
        let options = Options { faults: false, bricks: Some(6), layouts: vec![layout.to_owned()], ..short() };
        let (outcome, history) = run(seed, &options, None);
        assert_eq!(outcome.violation, None, "seed {seed} {layout}");
        assert!(outcome.operations > 100 && history.operations().len() as u64 >= outcome.operations);
    }
}

#[test]
fn every_placement_rule_holds_all_promises_under_faults() {
    for (seed, rule) in (1..).zip(["hashed", "periodic", "weighted", "periodic", "weighted", "periodic"]) {
        let options = Options { placements: vec![rule.to_owned()], simulated_s: Some(20), ..short() };
        let outcome = run_seed(seed, &options);
        assert_eq!(outcome.violation, None, "seed {seed}: {}", outcome.cluster);
        assert_eq!(outcome.cluster.contains(rule), rule != "hashed", "{}", outcome.cluster);
    }
}

#[test]
fn short_runs_with_faults_hold_all_promises() {
    for seed in 1..=20 {
        let outcome = run_seed(seed, &short());
        assert_eq!(outcome.violation, None, "seed {seed}: {}", outcome.cluster);
    }
}

/// The short form of `brickwork sim torture --plant all`: needs the feature `planted`.
#[cfg(feature = "planted")]
#[test]
fn planted_bugs_are_found() {
    for name in ["timestamp_check_off", "journal_sync_off"] {
        let options = Options { plant: Some(name.to_owned()), ..Options::default() };
        let broken = |seed: &u64| {
            let options = options.clone();
            let seed = *seed;
            let outcome = std::panic::catch_unwind(move || run_seed(seed, &options).violation);
            outcome.map_or(true, |violation| violation.is_some())
        };
        assert!((1..=20).find(broken).is_some(), "nobody finds {name}");
    }
}

/// Segments of objects come back under all faults, and change nothing of what a seed draws beside.
#[test]
fn segments_of_objects_come_back() {
    let options = Options { objects: true, ..short() };
    let mut got = 0;
    for seed in 100..108 {
        let outcome = run_seed(seed, &options);
        assert_eq!(outcome.violation, None, "seed {seed}");
        assert_eq!(outcome.cluster, run_seed(seed, &short()).cluster);
        got += outcome.answers.get("segments got").copied().unwrap_or(0);
    }
    assert!(got > 100, "{got}");
}
