//! A short torture: fixed seeds, no violation, every rare state reached, the same hash twice.

use crate::process::{self, Job};
use crate::report::Outcome;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Tortures so many seeds, beginning with 1.
pub(super) fn run(binary: &Path, seeds: u64) -> Result<Outcome> {
    let summary = torture(binary, seeds)?;
    let violations = summary["violations"]
        .as_u64()
        .or_else(|| summary["violations"].as_array().map(|all| all.len() as u64));
    ensure!(violations == Some(0), "violations: {}", summary["violations"]);
    let (first, second) = (trace_hash(binary, 1)?, trace_hash(binary, 1)?);
    ensure!(first == second, "seed 1 has the trace hash {first} and then {second}");
    Ok(Outcome::Passed(seeds + 1))
}

fn torture(binary: &Path, seeds: u64) -> Result<Value> {
    let mut command = Command::new(binary);
    command.args(["sim", "torture", "--start", "1", "--json", "--seeds", &seeds.to_string()]);
    let finished = Job::spawn("torture", &mut command)?.wait_showing(Duration::from_secs(1200))?.success()?;
    last_object(&finished.stdout).context("`sim torture --json` printed no object")
}

/// The trace hash of one seed.
pub(super) fn trace_hash(binary: &Path, seed: u64) -> Result<String> {
    let mut command = Command::new(binary);
    command.args(["sim", "torture", "--seeds", "1", "--json", "--start", &seed.to_string()]);
    let finished = process::run("torture-hash", &mut command, 300)?;
    let value = last_object(&finished.stdout).context("`sim torture --json` printed no object")?;
    find_hash(&value).with_context(|| format!("no trace_hash in {value}"))
}

fn find_hash(value: &Value) -> Option<String> {
    match value {
        Value::Object(fields) => match fields.get("trace_hash") {
            Some(Value::String(hash)) => Some(hash.trim_start_matches("0x").to_owned()),
            Some(Value::Number(hash)) => Some(format!("{:016x}", hash.as_u64()?)),
            _ => fields.values().find_map(find_hash),
        },
        Value::Array(items) => items.iter().find_map(find_hash),
        _ => None,
    }
}

/// The last JSON object of an output: the whole of it, or its last line.
pub(super) fn last_object(text: &str) -> Option<Value> {
    let whole = serde_json::from_str(text).ok().filter(Value::is_object);
    whole.or_else(|| {
        text.lines().rev().find_map(|line| serde_json::from_str(line).ok().filter(Value::is_object))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_last_object_and_the_hash_in_it() {
        let value = last_object("seed 1\n{\"a\":1}\n{\"runs\":[{\"trace_hash\":\"0x00ab\"}]}\n\n");
        assert_eq!(value.and_then(|value| find_hash(&value)), Some("00ab".to_owned()));
        assert_eq!(last_object("nothing\n"), None);
    }
}
