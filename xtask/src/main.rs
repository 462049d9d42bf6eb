//! `cargo xtask`: the one door to checking, testing, measuring and fuzzing.
//!
//! Reading order: `tidy` (what the sources must keep), `test` (everything that must be green), `clients` (real programs
//! against a real cluster, with `cluster` to start one), `soak`, `partition` and `rot` (what is done to real daemons, with
//! `history` and `porcupine` to judge what clients saw), `bench` (figures beside their bounds), `fuzz`.

mod bench;
mod clients;
mod cluster;
mod fuzz;
mod history;
mod nbd;
mod noise;
mod partition;
mod porcupine;
mod process;
mod report;
mod rot;
mod soak;
mod stamp;
mod test;
mod tidy;
mod workspace;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Checks, tests, measures and fuzzes Brickwork", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Checks the sources: arrows between crates, pure crates, forbidden words, file lengths, links
    Tidy,
    /// Runs every test; installs what they need first
    Test(test::Options),
    /// Runs only the tests with real NBD clients against a real cluster
    Clients(clients::Options),
    /// Kills, stops and restarts daemons under load, and has the history judged by porcupine
    Soak(soak::Options),
    /// Cuts the network between daemons under load, heals it, and has the history judged by porcupine
    Partition(partition::Options),
    /// Changes bytes anywhere in the bricks' disks, reads everything back, scrubs
    Rot(rot::Options),
    /// Measures, side by side with what the machine can do
    #[command(subcommand)]
    Bench(Bench),
    /// Fuzzes every target in fuzz/, or the one named
    Fuzz(fuzz::Options),
}

#[derive(Subcommand)]
enum Bench {
    /// Block volumes beside nbdkit and the bare disk
    Block(bench::Options),
    /// A lost brick, rebuilt under client load, beside a plain copy
    Rebuild(bench::rebuild::Options),
    /// One slow brick of several: what clients see, and when it leaves
    Failslow(bench::failslow::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<()> {
    if !matches!(verb, Verb::Tidy) {
        workspace::sweep()?;
    }
    match verb {
        Verb::Tidy => tidy::verb(),
        Verb::Test(options) => test::verb(&options),
        Verb::Clients(options) => clients::verb(&options),
        Verb::Soak(options) => soak::verb(&options),
        Verb::Partition(options) => partition::verb(&options),
        Verb::Rot(options) => rot::verb(&options),
        Verb::Bench(Bench::Block(options)) => bench::verb(&options),
        Verb::Bench(Bench::Rebuild(options)) => bench::rebuild::verb(&options),
        Verb::Bench(Bench::Failslow(options)) => bench::failslow::verb(&options),
        Verb::Fuzz(options) => fuzz::verb(&options),
    }
}
