//! A short torture: fixed seeds, no violation, the same hash twice.

use crate::process::Job;
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

/// The last JSON object of an output: the whole of it, or its last line.
pub(super) fn last_object(text: &str) -> Option<Value> {
    let whole = serde_json::from_str(text).ok().filter(Value::is_object);
    let last_line =
        || text.lines().rev().find_map(|line| serde_json::from_str(line).ok().filter(Value::is_object));
    whole.or_else(last_line).or_else(|| {
        let start = if text.starts_with('{') { 0 } else { text.rfind("\n{")? + 1 };
        serde_json::from_str(&text[start..]).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_last_object() {
        let lines = last_object("seed 1\n{\"a\":1}\n{\"b\":[{\"c\":2}]}\n\n");
        assert_eq!(lines.map(|value| value["b"][0]["c"] == 2), Some(true));
        let pretty = last_object("seed 1\n{\n  \"a\": {\n    \"b\": 3\n  }\n}\n");
        assert_eq!(pretty.map(|value| value["a"]["b"] == 3), Some(true));
        assert_eq!(last_object("nothing\n"), None);
    }
}
