//! `brickwork disk`: models of disks, and how real ones compare.

mod probe;

use crate::args::Global;
use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure a real device or file, and print a model of it
    Probe(probe::Probe),
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<ExitCode> {
    match args.command {
        Command::Probe(args) => probe::probe(global, &args).map(|()| ExitCode::SUCCESS),
    }
}
