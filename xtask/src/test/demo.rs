//! The demo: what a newcomer runs first must hold what it says.

use crate::process::{Job, last_object};
use crate::report::Outcome;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Runs `brickwork demo --json` and checks its closing object.
pub(super) fn run(binary: &Path) -> Result<Outcome> {
    let folder = crate::workspace::scratch("clusters")?.join(format!("{}-demo", std::process::id()));
    let mut command = Command::new(binary);
    command.args(["demo", "--json", "--dir"]).arg(&folder);
    let finished = Job::spawn("demo", &mut command)?.wait_showing(Duration::from_secs(180))?.success();
    let _ = std::fs::remove_dir_all(&folder);
    let finished = finished?;
    let object = last_object(&finished.stdout).context("`demo --json` ends without an object")?;
    ensure!(object["verified_bytes"].as_u64() > Some(0), "verified nothing: {object}");
    for (key, expected) in [("lost_bytes", 0), ("io_errors", 0), ("bricks_killed", 1)] {
        ensure!(object[key] == expected, "{key} is {}: {object}", object[key]);
    }
    eprintln!("    the demo took {:.0} s", finished.took.as_secs_f64());
    Ok(Outcome::Passed(1))
}
