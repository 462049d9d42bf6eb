//! `brickwork sim`: the very machines that serve real data, in a world full of faults.

mod lines;
mod options;
mod panics;
mod replay;
mod shrink;
mod torture;
mod years;

use crate::global::Global;
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
    /// Run simulated clusters under faults, and check that every promise holds
    Torture(torture::Torture),
    /// Let one simulated cluster grow old, and check that its tables do not grow
    Years(years::Years),
    /// Do the run of a trace again, and show its events
    Replay(replay::Replay),
    /// Find a smaller run with the same violation
    Shrink(shrink::Shrink),
}

/// Runs the verb.
pub fn run_verb(global: &Global, args: Args) -> Result<ExitCode> {
    match args.command {
        Command::Torture(args) => torture::run(global, &args),
        Command::Years(args) => years::run(global, &args),
        Command::Replay(args) => replay::run(global, &args),
        Command::Shrink(args) => shrink::run(global, &args),
    }
}
