//! Compares the trace hashes of 50 torture seeds with the committed ones: a change that claims to leave behaviour as it
//! was is held to it.
//!
//! ```text
//! cargo run --profile torture -p brickwork-sim --example hashes              # compare
//! cargo run --profile torture -p brickwork-sim --example hashes -- --write   # a change of behaviour: write them anew
//! ```
//!
//! The commit that writes them anew says which change of behaviour did it.

use sim::{Options, run_seed};
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

const SEEDS: u64 = 50;

fn main() -> ExitCode {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios/trace-hashes.txt");
    let found = render(&hashes());
    if std::env::args().any(|argument| argument == "--write") {
        std::fs::write(&file, found).expect("the file of hashes can be written");
        return ExitCode::SUCCESS;
    }
    let expected = std::fs::read_to_string(&file).expect("the committed hashes can be read");
    let differing: Vec<&str> =
        found.lines().zip(expected.lines()).filter(|(now, then)| now != then).map(|(now, _)| now).collect();
    if differing.is_empty() && found.lines().count() == expected.lines().count() {
        println!("{SEEDS} seeds: trace hashes as committed");
        return ExitCode::SUCCESS;
    }
    println!("{} of {SEEDS} seeds have another trace hash than committed:", differing.len());
    differing.iter().for_each(|line| println!("  {line}"));
    ExitCode::FAILURE
}

/// The hash of each seed, or the violation that it ended with. Workers take seeds in turns.
fn hashes() -> Vec<String> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let work = |first: usize| (first..=SEEDS as usize).step_by(workers).map(|seed| (seed, hash(seed as u64)));
    let mut hashes: Vec<(usize, String)> = std::thread::scope(|scope| {
        let work = |first| scope.spawn(move || work(first).collect::<Vec<_>>());
        let running: Vec<_> = (1..=workers).map(work).collect();
        running.into_iter().flat_map(|worker| worker.join().expect("a worker ends")).collect()
    });
    hashes.sort();
    hashes.into_iter().map(|(_, hash)| hash).collect()
}

fn hash(seed: u64) -> String {
    let outcome = run_seed(seed, &Options::default());
    match outcome.violation {
        None => format!("{:016x}", outcome.trace_hash),
        Some(violation) => format!("violation: {violation:?}"),
    }
}

fn render(hashes: &[String]) -> String {
    let mut text =
        String::from("# seed, trace hash: `cargo run --profile torture -p brickwork-sim --example hashes`\n");
    for (seed, hash) in (1..).zip(hashes) {
        writeln!(text, "{seed} {hash}").expect("a string takes what is written");
    }
    text
}
