//! The independent judge of histories: a small Go program over the porcupine checker, in `tests/soak/porcupine`.

use crate::place;
use anyhow::{Context, Result, bail, ensure};
use job::process::{self, Job, installed, last_object};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Time for one register, after which the verdict is that there is none.
const REGISTER_LIMIT: &str = "2m";
const LIMIT: Duration = Duration::from_secs(1800);

/// What it says of a history that it accepts.
pub(crate) struct Accepted {
    pub(crate) operations: u64,
    /// Registers (blocks) that they were on.
    pub(crate) registers: u64,
    /// How long it took.
    pub(crate) seconds: f64,
}

impl Accepted {
    /// As part of a report for programs.
    pub(crate) fn json(&self) -> Value {
        serde_json::json!({
            "linearizable": true, "operations": self.operations, "registers": self.registers, "seconds": self.seconds,
        })
    }
}

/// Judges a history. An error if no order explains it, or if none was found in time.
pub(crate) fn judge(history: &Path) -> Result<Accepted> {
    let mut command = Command::new(program()?);
    let command = command.args(["-limit", REGISTER_LIMIT]).arg(history);
    let finished = Job::spawn("porcupine", command)?.wait_showing(LIMIT)?;
    let Some(verdict) = last_object(&finished.stdout) else {
        finished.success()?;
        bail!("porcupine printed no verdict");
    };
    ensure!(
        verdict["linearizable"] == true,
        "porcupine finds no order that explains {}: blocks {} are wrong, {} undecided",
        history.display(),
        verdict["illegal"],
        verdict["unknown"]
    );
    let count = |name: &str| verdict[name].as_u64().with_context(|| format!("porcupine says no {name}"));
    let seconds = verdict["seconds"].as_f64().unwrap_or(0.0);
    Ok(Accepted { operations: count("operations")?, registers: count("registers")?, seconds })
}

/// Runs its own tests: histories made by hand, of which it must accept some and reject the others.
pub(crate) fn test() -> Result<()> {
    let mut command = Command::new("go");
    command.current_dir(sources()).args(["test", "./..."]);
    process::run("go-test", &mut command, 600).map(drop)
}

/// The program, built once in a run.
fn program() -> Result<&'static Path> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = BUILT.get() {
        return Ok(path);
    }
    ensure!(installed("go"), "go is not installed; `cargo xtask test` installs it (Debian's golang-go)");
    let path = job::scratch("porcupine")?.join("porcupine");
    let mut command = Command::new("go");
    command.current_dir(sources()).args(["build", "-o"]).arg(&path).arg(".");
    process::run("go-build", &mut command, 600)?;
    Ok(BUILT.get_or_init(|| path))
}

fn sources() -> PathBuf {
    place::root().join("tests/soak/porcupine")
}
