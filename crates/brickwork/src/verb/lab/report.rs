//! `brickwork lab report`.

use super::{Manner, experiments};
use crate::global::Global;
use crate::output;
use anyhow::{Context, Result};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// `lab report`.
#[derive(clap::Args)]
#[command(after_help = "\
The page needs nothing beside it: figures, tables, claims, assumptions and the commands are all in it.

Examples:
  brickwork lab report --quick                         everything, for a first look
  brickwork lab report --seeds 5 --keep results        go on from there when interrupted
  brickwork lab report dsptf.table1 --out table1.html")]
pub(super) struct Report {
    /// Experiments: an id, a paper (`dsptf`), `all`, or a file of one's own
    #[arg(value_name = "ID", default_value = "all")]
    ids: Vec<String>,
    #[command(flatten)]
    manner: Manner,
    /// The page
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Keep outcomes and points in this folder, and go on from what is there
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: &Report) -> Result<ExitCode> {
    let mut outcomes = Vec::new();
    for experiment in experiments(&args.ids)? {
        let outcome = args.manner.run(experiment.as_ref(), args.keep.as_deref(), None)?;
        if let Some(folder) = &args.keep {
            lab::files::write(folder, &outcome, true)?;
        }
        outcomes.push(outcome);
    }
    let command = format!("brickwork lab report {}{}", args.ids.join(" "), args.manner.flags());
    let page = lab::report::html(&outcomes, &command, env!("CARGO_PKG_VERSION"));
    outfile::write(&args.out, page.as_bytes())
        .with_context(|| format!("cannot write the report {}", args.out.display()))?;
    let claims = outcomes.iter().flat_map(|outcome| &outcome.claims);
    let (count, hold) = (claims.clone().count(), claims.filter(|claim| claim.holds).count());
    if global.json {
        output::print_json(&json!({
            "report": args.out, "experiments": outcomes.len(), "claims": count, "hold": hold,
        }));
    } else {
        let experiments = output::count(outcomes.len() as u64, "experiment");
        // Experiments of one's own claim nothing.
        let claims = if count > 0 { format!(", {hold} of {count} claims hold") } else { String::new() };
        println!("{}: {experiments}{claims}.", args.out.display());
    }
    Ok(ExitCode::SUCCESS)
}
