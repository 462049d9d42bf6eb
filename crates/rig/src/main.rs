//! `rig`: runs of real processes. `cargo xtask clients`, `soak`, `partition`, `pauses`, `rot` and `bench` build and start it.
//!
//! Reading order: `clients` (real programs against a real cluster), `soak`, `partition`, `pauses` and `rot` (what is done to real
//! daemons, with `history` and `porcupine` to judge what clients saw), `bench` (figures beside their bounds).

mod bench;
mod clients;
mod history;
mod partition;
mod pauses;
mod place;
mod porcupine;
mod rot;
mod soak;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tests and measures real Brickwork processes", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Runs the tests with real NBD clients against a real cluster
    Clients(clients::Options),
    /// Kills, stops and restarts daemons under load, and has the history judged by porcupine
    Soak(soak::Options),
    /// Replaces the daemons of the release before by those of this one, one at a time, under load
    Neighbours(clients::neighbours::Options),
    /// Cuts the network between daemons under load, heals it, and has the history judged by porcupine
    Partition(partition::Options),
    /// Pauses a brick and a gateway together while their clocks stand, and counts old reads
    Pauses(pauses::Options),
    /// Changes bytes anywhere in the bricks' disks, reads everything back, scrubs
    Rot(rot::Options),
    /// Measures, side by side with what the machine can do
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Subcommand)]
enum Bench {
    /// Block volumes beside nbdkit and the bare disk
    Block(bench::Options),
    /// A lost brick, rebuilt under client load, beside a plain copy
    Rebuild(bench::rebuild::Options),
    /// One slow brick of several: what clients see, and when it leaves
    Failslow(bench::failslow::Options),
    /// Streams that share disks: shares, reservations, limits, a quiet one beside a greedy one
    Fairness(bench::fairness::Options),
    /// The protocols of the network RAID paper beside each other: latency, and what each party pays
    Netraid(bench::netraid::Options),
    /// Objects put and read while bricks are slow or stand still
    Object(bench::object::Options),
    /// The index of objects: names put and listed, and what the directory holds in memory for them
    Index(bench::index::Options),
    /// Opening a disk that is full: what is read, how long it takes, what it takes of memory
    Disk(bench::disk::Options),
    /// Many volumes and groups: idle daemons, `status`, a brick or the directory lost
    Many(bench::many::Options),
    /// More writes than the disks take: whether bricks keep their places
    Overload(bench::overload::Options),
    /// A brick dies under load, again and again: for how long writes pause
    Outage(bench::outage::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rig: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result<()> {
    job::sweep()?;
    match verb {
        Verb::Clients(options) => clients::verb(&options),
        Verb::Soak(options) => soak::verb(&options),
        Verb::Neighbours(options) => clients::neighbours::verb(&options),
        Verb::Partition(options) => partition::verb(&options),
        Verb::Pauses(options) => pauses::verb(&options),
        Verb::Rot(options) => rot::verb(&options),
        Verb::Bench(Bench::Block(options)) => bench::verb(&options),
        Verb::Bench(Bench::Rebuild(options)) => bench::rebuild::verb(&options),
        Verb::Bench(Bench::Failslow(options)) => bench::failslow::verb(&options),
        Verb::Bench(Bench::Fairness(options)) => bench::fairness::verb(&options),
        Verb::Bench(Bench::Netraid(options)) => bench::netraid::verb(&options),
        Verb::Bench(Bench::Object(options)) => bench::object::verb(&options),
        Verb::Bench(Bench::Index(options)) => bench::index::verb(&options),
        Verb::Bench(Bench::Disk(options)) => bench::disk::verb(&options),
        Verb::Bench(Bench::Many(options)) => bench::many::verb(&options),
        Verb::Bench(Bench::Overload(options)) => bench::overload::verb(&options),
        Verb::Bench(Bench::Outage(options)) => bench::outage::verb(&options),
    }
}
