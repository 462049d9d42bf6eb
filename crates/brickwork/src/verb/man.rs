//! `brickwork man`: manual pages, one a verb.

use crate::security::files;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  brickwork man --dir /usr/local/share/man/man1
  brickwork man --dir /tmp/man && man /tmp/man/brickwork-volume-create.1")]
pub struct Args {
    /// Where to write the pages
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// Writes the pages of a command line.
pub fn run(args: Args, command_line: clap::Command) -> Result<()> {
    files::make_dir(&args.dir)?;
    clap_mangen::generate_to(command_line, &args.dir)
        .with_context(|| format!("cannot write manual pages into {}", args.dir.display()))
}
