//! `brickwork trace convert`.

use super::reading::{self, Reading};
use super::writing::{Writing, is_standard};
use crate::global::Global;
use crate::output;
use anyhow::Result;
use serde_json::json;
use std::path::PathBuf;

/// `trace convert`.
#[derive(clap::Args)]
#[command(after_help = format!("\
The file appears when all of it is written: a trace with an error in it leaves none.

Formats that are read:
{}
Examples:
  brickwork trace convert Financial1.spc.gz financial1.trace.zst
  brickwork trace convert hm_0.csv.gz hm_0.dis --to disksim --take 1000000
  brickwork trace convert atlas.trace - --volume-sectors 17783240 --beyond wrap | head", reading::formats()))]
pub(super) struct Args {
    /// The trace to read, `-` for standard input
    trace: PathBuf,
    /// The file to write, `-` for standard output; .gz, .xz and .zst are compressed
    out: PathBuf,
    #[command(flatten)]
    writing: Writing,
    #[command(flatten)]
    reading: Reading,
}

/// Runs the verb.
pub(super) fn run(global: &Global, args: &Args) -> Result<()> {
    let mut trace = args.reading.open(&args.trace)?;
    let mut written = args.writing.open(&args.out)?;
    for record in &mut trace {
        written.write(&record?)?;
    }
    let records = written.finish()?;
    trace.warn(global.json);
    let (path, format) = (&args.out, trace.reader.format());
    if is_standard(path) {
        return Ok(());
    }
    if global.json {
        let warnings: Vec<String> = trace.reader.warnings().iter().map(ToString::to_string).collect();
        let from = format.name();
        output::print_json(&json!({ "requests": records, "from": from, "path": path, "warnings": warnings }));
    } else {
        println!("{}: {} from {}", path.display(), output::count(records, "request"), format.name());
    }
    Ok(())
}
