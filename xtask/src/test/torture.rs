//! A short torture: fixed seeds, no violation, the same hash twice.

use crate::process::{Job, last_object};
use crate::report::Outcome;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Tortures so many seeds, beginning with 1; the first ones twice.
pub(super) fn run(binary: &Path, seeds: u64) -> Result<Outcome> {
    let summary = torture(binary, 1, seeds)?;
    let simulated = summary["simulated_hours"].as_f64().unwrap_or(0.0);
    eprintln!("    {simulated:.2} simulated hours, {} operations", summary["operations"]);
    let (first, second) = (trace_hash(binary, 1, 3)?, trace_hash(binary, 1, 3)?);
    ensure!(first == second, "seeds 1 to 3 have the trace hash {first} and then {second}");
    Ok(Outcome::Passed(seeds + 1))
}

/// One hash of all events of so many seeds.
pub(super) fn trace_hash(binary: &Path, start: u64, seeds: u64) -> Result<String> {
    let summary = torture(binary, start, seeds)?;
    let hash = summary["trace_hash"].as_str().with_context(|| format!("no trace_hash in {summary}"))?;
    Ok(hash.to_owned())
}

/// Runs `sim torture --json`; an error names each failing seed with the command that repeats it. Traces of failing seeds
/// are left in `target/xtask/torture`.
fn torture(binary: &Path, start: u64, seeds: u64) -> Result<Value> {
    let mut command = Command::new(binary);
    command.current_dir(workspace::scratch("torture")?);
    command.args(["sim", "torture", "--json", "--start", &start.to_string(), "--seeds", &seeds.to_string()]);
    let finished = Job::spawn("torture", &mut command)?.wait_showing(Duration::from_secs(1500))?;
    let Some(summary) = last_object(&finished.stdout) else {
        finished.success()?;
        anyhow::bail!("`sim torture --json` printed no object");
    };
    let violations = summary["violations"].as_array().context("no list of violations")?;
    let lines =
        violations.iter().map(|one| format!("{}: {}\n    {}", one["checker"], one["what"], one["command"]));
    ensure!(
        violations.is_empty(),
        "{} violations\n{}",
        violations.len(),
        lines.collect::<Vec<_>>().join("\n")
    );
    finished.success()?;
    Ok(summary)
}
