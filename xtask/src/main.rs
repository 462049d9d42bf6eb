//! `cargo xtask`: the one door to checking, testing, measuring and fuzzing.
//!
//! Reading order: `tidy` (what the sources must keep), `test` (everything that must be green), `fuzz`, `words` (the command
//! line), `workspace` (building), `before` (building the release before). Runs of real processes are `crates/rig`, which `clients`,
//! `neighbours`, `soak`, `partition`, `pauses`, `rot` and `bench` build and start.

mod before;
mod fuzz;
mod test;
mod tidy;
mod words;
mod workspace;

use anyhow::{Result, bail};
use std::process::ExitCode;
use words::Words;

const HELP: &str = "\
Checks, tests, measures and fuzzes Brickwork

Usage: cargo xtask VERB [OPTIONS]

  tidy         Check the sources: arrows between crates, pure crates, forbidden words, file lengths, links
  test         Run the tests; install what they need first
                 --all         also what takes long: soak, partition, rot, all clients, more seeds, fuzzing
                 --quick       only what needs no real processes
                 --start N     the first of the fresh seeds of the torture; drawn from the clock when absent
                 --seeds N     how many fresh seeds: 40, with --all 150
                 --fuzz-seconds N   for each fuzz target of --all: 600
  clients      Run real NBD clients against a real cluster
  soak         Kill, stop and restart daemons under load; porcupine judges the history
  neighbours   Replace the daemons of the release before by those of this one, one at a time, under load
  partition    Cut the network between daemons under load, heal it; porcupine judges the history
  pauses       Pause a brick and a gateway while their clocks stand; count reads that are old
  rot          Change bytes anywhere in the bricks' disks, read everything back, scrub
  bench        block, rebuild, failslow, fairness, netraid, index, object or disk: measure, side by side with what the machine can do
  fuzz         Fuzz every target in fuzz/, or the one named
                 --seconds N   for each target: 600

`cargo xtask clients --help` and its like list the options of the other verbs.";

fn main() -> ExitCode {
    match run(Words::of_this_process()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut words: Words) -> Result<ExitCode> {
    let Some(verb) = words.next() else {
        println!("{HELP}");
        return Ok(ExitCode::from(2));
    };
    match verb.as_str() {
        "help" | "-h" | "--help" => println!("{HELP}"),
        "tidy" => words.end().and_then(|()| tidy::verb())?,
        "test" => test::verb(&test::Options::read(words)?)?,
        "fuzz" => fuzz::verb(&fuzz::Options::read(words)?)?,
        "neighbours" => {
            let before = before::build(test::PROFILE)?;
            let words = words.with(&["--before".to_owned(), before.display().to_string()]);
            return workspace::rig(test::PROFILE, &verb, words);
        }
        "clients" | "soak" | "partition" | "pauses" | "rot" => {
            return workspace::rig(test::PROFILE, &verb, words);
        }
        // Figures are those of the build that users run.
        "bench" => return workspace::rig("release", &verb, words),
        other => bail!("there is no `cargo xtask {other}`; `cargo xtask --help` lists what there is"),
    }
    Ok(ExitCode::SUCCESS)
}
