//! Runs by a schedule, and smaller runs with the same violation.

use sim::schedule::By;
use sim::{Course, Options, Outcome, Recording, Schedule, run_course, run_seed};

fn short() -> Options {
    Options { simulated_s: Some(5), operations: Some(300), ..Options::default() }
}

/// A seed's run, and its turns.
fn record(seed: u64, options: &Options) -> (Outcome, Schedule) {
    let recording = Recording::default();
    let (outcome, _) = run_course(seed, options, &Course::Recorded(recording.clone()), None);
    (outcome, recording.schedule())
}

fn follow(seed: u64, options: &Options, schedule: &Schedule) -> Outcome {
    run_course(seed, options, &Course::Scheduled(schedule.clone()), None).0
}

#[test]
fn a_run_by_all_turns_of_its_seed_is_the_run_of_the_seed() {
    for (seed, objects) in [(1, false), (2, false), (6, true)] {
        let options = Options { objects, ..short() };
        let (recorded, schedule) = record(seed, &options);
        assert_eq!(recorded.trace_hash, run_seed(seed, &options).trace_hash, "recording changes nothing");
        let followed = follow(seed, &options, &schedule);
        assert_eq!(
            (seed, followed.trace_hash, followed.events),
            (seed, recorded.trace_hash, recorded.events)
        );
    }
}

#[test]
fn turns_that_are_left_out_are_not_taken() {
    let (full, schedule) = record(1, &short());
    let mut fewer = schedule.clone();
    fewer.turns.retain(|turn| turn.by == By::Client && turn.actor == 0);
    let outcome = follow(1, &short(), &fewer);
    assert_eq!(outcome.violation, None);
    assert!(outcome.events < full.events / 2, "{} of {}", outcome.events, full.events);
    assert_eq!(outcome.trace_hash, follow(1, &short(), &fewer).trace_hash);
    let faults: u64 = outcome.summary.values().sum();
    assert_eq!((faults > 0, full.summary.values().sum::<u64>() > 0), (false, true));
}

/// Needs the feature `planted`.
#[cfg(feature = "planted")]
#[test]
fn a_planted_bug_is_found_by_a_smaller_run() {
    use sim::shrink::{Size, Verdict, shrink};
    let options = Options {
        simulated_s: Some(2),
        operations: Some(60),
        bricks: Some(4),
        layouts: vec!["raid1x3".to_owned()],
        plant: Some("timestamp_check_off".to_owned()),
        ..Options::default()
    };
    let found = |seed| {
        let (outcome, full) = record(seed, &options);
        Some((seed, outcome.violation?, full))
    };
    let (seed, violation, full) = (1..=sim::plants::SEEDS).find_map(found).expect("the bug is found");
    let before = Size::of(seed, &options, &full);
    let mut runs = 0;
    let best = shrink(seed, &options, full, &mut |schedule| {
        runs += 1;
        let found = || follow(seed, &options, schedule).violation;
        match runs {
            RUNS_MAX.. => Verdict::Stop,
            _ if found().is_some_and(|found| found.is_like(&violation)) => Verdict::Same,
            _ => Verdict::Other,
        }
    });
    let after = Size::of(seed, &options, &best);
    assert!(after.operations * 4 < before.operations, "{before:?}, {after:?}");
    assert!(after.faults < before.faults, "{before:?}, {after:?}");
    let found = follow(seed, &options, &best).violation.expect("the same violation");
    assert!(found.is_like(&violation), "{found} instead of {violation}");
}

#[cfg(feature = "planted")]
const RUNS_MAX: u32 = 60;
