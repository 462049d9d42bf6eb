//! The solver of continuous retrieval against OR-tools: its last arrivals are possible, and none a nanosecond earlier is.
//! `tests/retrieval/check.py` judges instances that an example of `reads` writes.

use crate::workspace;
use anyhow::{Context, Result};
use job::process::{Finished, Job, installed};
use job::report::{Outcome, Report, totals_of};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What the example can write, and who judges it.
const KINDS: [(&str, &str); 2] = [
    ("copies", "retrieval: OR-tools' maximum flow, 1,000 instances of copies"),
    ("coded", "retrieval: an integer program, 300 instances of any k of n"),
];
/// The exit status of `with_ortools.py` where OR-tools cannot be installed.
const SKIPPED: i32 = 77;
/// OR-tools is installed in this time too: 60 MB from PyPI, with what it needs.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs it with the example in `folder`.
pub(super) fn run(report: &mut Report, folder: &Path) {
    for (kind, name) in KINDS {
        match installed("python3") {
            false => report.skip(name, "python3 is not installed"),
            true => drop(report.step(name, || check(folder, kind))),
        }
    }
}

fn check(folder: &Path, kind: &str) -> Result<Outcome> {
    let file = job::scratch("clusters")?.join(format!("{}-{kind}.jsonl", std::process::id()));
    let mut command = Command::new(folder.join("examples/retrieval_instances"));
    Job::spawn("retrieval-instances", command.arg(kind).arg(&file))?
        .wait_showing(Duration::from_secs(120))?
        .success()?;
    let judged = judge(&file);
    let _ = std::fs::remove_file(&file);
    outcome(judged?)
}

fn judge(file: &Path) -> Result<Finished> {
    let scripts = workspace::root().join("tests/retrieval");
    let mut command = Command::new("python3");
    command.arg(scripts.join("with_ortools.py")).arg(job::scratch("ortools")?);
    command.arg(scripts.join("check.py")).arg(file);
    Job::spawn("retrieval-check", &mut command)?.wait_showing(LIMIT)
}

fn outcome(finished: Finished) -> Result<Outcome> {
    if finished.status.code() == Some(SKIPPED) {
        return Ok(Outcome::Skipped(finished.stdout.trim().to_owned()));
    }
    let finished = finished.success()?;
    let (passed, failed, skipped) = totals_of(&finished.stdout).context("no totals")?;
    Ok(Outcome::Mixed { passed, failed, skipped, why: finished.stdout })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(script: &str) -> Result<Outcome> {
        let mut command = Command::new("sh");
        outcome(Job::spawn("sh", command.args(["-c", script]))?.wait(Duration::from_secs(60))?)
    }

    #[test]
    fn what_cannot_be_installed_is_a_skip_and_what_is_wrong_a_failure() {
        let skipped = after("echo skipped: no network; exit 77");
        assert!(matches!(skipped, Ok(Outcome::Skipped(why)) if why == "skipped: no network"));
        let wrong = after("echo x:1: all can arrive before; echo 7 passed, 1 failed, 0 skipped");
        assert!(matches!(wrong, Ok(Outcome::Mixed { passed: 7, failed: 1, skipped: 0, .. })));
        assert!(after("exit 1").is_err() && after("echo ready").is_err());
    }
}
