//! The simulated world: the committed trace hashes, and fresh seeds.

use anyhow::{Context, Result, ensure};
use job::process::{self, Job, last_object};
use job::report::{Outcome, Report};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Seeds whose hashes are committed; `crates/sim/examples/hashes.rs` says how to write them anew.
const COMMITTED: u64 = 50;

/// Both steps, with the programs in `folder`.
pub(super) fn run(report: &mut Report, folder: &Path, start: u64, seeds: u64) {
    report.step(&format!("trace hashes of {COMMITTED} committed seeds"), || {
        process::run("hashes", &mut Command::new(folder.join("examples/hashes")), 900)?;
        Ok(Outcome::Passed(COMMITTED))
    });
    report.step(&format!("torture, {seeds} fresh seeds from {start}"), || {
        let summary = torture(&folder.join("brickwork"), start, seeds)?;
        let simulated = summary["simulated_hours"].as_f64().unwrap_or(0.0);
        eprintln!("    {simulated:.2} simulated hours, {} operations", summary["operations"]);
        Ok(Outcome::Passed(seeds))
    });
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
    command.current_dir(job::scratch("torture")?);
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
