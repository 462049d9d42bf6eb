//! `brickwork trace`: block traces looked at, converted and made.
//!
//! Reading order: `reading` (the flags with which any trace is read), [`info`], [`convert`], [`generate`], `writing`.

mod convert;
mod generate;
mod info;
mod reading;
mod writing;

use crate::global::Global;
use anyhow::Result;
use clap::Subcommand;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Formats are told by the content; gzip, xz and zstd are read as if they were plain. A trace may be of any length.

Examples:
  brickwork trace info Financial1.spc.gz
  brickwork trace convert hm_0.csv.gz hm_0.trace.zst
  brickwork trace generate sap sap.trace.zst --seed 1")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show what can be said of traces: rate, sizes, bursts, locality, and what looks wrong
    Info(info::Args),
    /// Read a trace, check it, and write it in another format
    Convert(convert::Args),
    /// Make a synthetic trace from a statistical description
    Generate(generate::Args),
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<()> {
    match args.command {
        Command::Info(args) => info::run(global, &args),
        Command::Convert(args) => convert::run(global, &args),
        Command::Generate(args) => generate::run(global, &args),
    }
}
