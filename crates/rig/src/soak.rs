//! `cargo xtask soak`: daemons killed, stopped and restarted under clients that share blocks (`brickwork soak`), and what the
//! clients saw judged twice: by the binary's own checker, and by porcupine.

use crate::place;
use crate::porcupine::{self, Accepted};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use job::process::{Job, last_object, tail};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A round hurts for 20 s at most, and the next begins when all data are redundant again.
const ROUND_LIMIT_S: u64 = 60;

/// How long, and from which seed.
#[derive(Args)]
#[command(after_help = "\
Real processes (a directory, seven bricks, two gateways, an attach for each volume), killed with SIGKILL, stopped with SIGSTOP
for up to 20 s, or ended and restarted at random, under clients that share blocks of raid1x3, raid5-4+1 and rs-4+2 volumes
through all ways in. Fails if an acknowledged write is lost, a stale read returned, a request through attach fails, data do
not become redundant again between rounds, or porcupine finds no order that explains the history.

Examples:
  cargo xtask soak --rounds 100
  cargo xtask soak --rounds 10 --seed 7 --json")]
pub(crate) struct Options {
    /// How many rounds of harm
    #[arg(long, value_name = "N", default_value_t = 100)]
    rounds: u64,
    /// Decides what is hurt when; 1 when absent, so that a run can be repeated
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where cluster and history are kept; made anew in the target folder, and removed if all is well, when absent
    #[arg(long)]
    dir: Option<PathBuf>,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Seconds within which all data must be redundant again after a round; 0 goes on without
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    redundant_within: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Soaks, judges and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let binary = place::binary(options.binary.as_deref())?;
    let dir = match &options.dir {
        Some(dir) => std::path::absolute(dir)?,
        None => job::scratch("clusters")?.join(format!("{}-soak", std::process::id())),
    };
    let plan = Plan {
        rounds: options.rounds,
        seed: options.seed,
        dir: &dir,
        redundant_within: options.redundant_within,
    };
    let outcome = run(&binary, &plan)?;
    if options.dir.is_none() {
        std::fs::remove_dir_all(&dir)?;
    }
    if options.json {
        println!("{}", json!({ "soak": outcome.said, "porcupine": outcome.accepted.json() }));
    } else {
        println!("{}", outcome.sentence());
    }
    Ok(())
}

/// What to run.
pub(crate) struct Plan<'a> {
    /// Rounds of harm.
    pub(crate) rounds: u64,
    /// What is hurt when.
    pub(crate) seed: u64,
    /// Where cluster and history are kept.
    pub(crate) dir: &'a Path,
    /// Seconds until all data must be redundant again after a round; 0 goes on without.
    pub(crate) redundant_within: u64,
}

/// What came of a good run.
pub(crate) struct Outcome {
    /// What the binary said.
    said: Value,
    accepted: Accepted,
}

/// Soaks and judges. An error says what is wrong, and where the evidence lies.
pub(crate) fn run(binary: &Path, plan: &Plan<'_>) -> Result<Outcome> {
    porcupine::test().context("porcupine must reject bad histories before it judges ours")?;
    std::fs::create_dir_all(plan.dir)?;
    let history = plan.dir.join("history.jsonl");
    let mut command = Command::new(binary);
    command.args(["soak", "--json", "--rounds", &plan.rounds.to_string(), "--seed", &plan.seed.to_string()]);
    command.args(["--redundant-within", &plan.redundant_within.to_string()]);
    command.arg("--dir").arg(plan.dir.join("cluster")).arg("--history").arg(&history);
    let limit = Duration::from_secs(300 + plan.rounds * (ROUND_LIMIT_S + plan.redundant_within));
    let finished = Job::spawn("soak", &mut command)?.wait_showing(limit)?;
    let kept = plan.dir.display();
    let Some(said) = last_object(&finished.stdout) else {
        bail!(
            "the soak ended with {} and said nothing; its files are in {kept}\n{}",
            finished.status,
            tail(&finished.stderr, 20)
        );
    };
    let accepted = porcupine::judge(&history).with_context(|| format!("its files are in {kept}"));
    complaint(&said).map_or(Ok(()), |complaint| match &accepted {
        Ok(_) => bail!("{complaint}; porcupine accepts the history; files are in {kept}"),
        Err(error) => bail!("{complaint}; {error:#}"),
    })?;
    finished.success()?;
    let outcome = Outcome { said, accepted: accepted? };
    ensure!(
        outcome.said["operations"].as_u64() == Some(outcome.accepted.operations),
        "the history has {} operations, of {} that were made",
        outcome.accepted.operations,
        outcome.said["operations"]
    );
    Ok(outcome)
}

/// What the binary complains of.
fn complaint(said: &Value) -> Option<String> {
    let violations = said["violations"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(first) = violations.first().and_then(Value::as_str) {
        return Some(format!("{} violations; the first: {first}", violations.len()));
    }
    if let Some(why) = said["stuck"].as_str() {
        return Some(format!("it did not come to its end: {why}"));
    }
    let (lost, refused) = (&said["attach_lost"], &said["attach_refused"]);
    (lost != 0 || refused != 0)
        .then(|| format!("{lost} requests through attach were lost, and {refused} refused"))
}

impl Outcome {
    /// What happened, for people.
    pub(crate) fn sentence(&self) -> String {
        let hurt = |role: &str| {
            let blows = &self.said["hurt"][role];
            let count = |how: &str| blows[how].as_u64().unwrap_or(0);
            format!("{}/{}/{}", count("kills"), count("pauses"), count("restarts"))
        };
        let (operations, registers) = (self.accepted.operations, self.accepted.registers);
        let pause_s = self.said["longest_pause_ms"].as_f64().unwrap_or(0.0) / 1000.0;
        let return_s = self.said["longest_return_ms"].as_f64().unwrap_or(0.0) / 1000.0;
        format!(
            "soak: {} rounds, seed {}: {operations} operations on {registers} blocks; SIGKILL/SIGSTOP/SIGTERM to bricks {}, \
             gateways {}, directory {}, the longest stop {pause_s:.1} s, redundant again within {return_s:.1} s; no acknowledged \
             write lost, no stale read, {} plain requests lost with their gateway and {} refused; porcupine accepts it ({:.1} s)",
            self.said["rounds"],
            self.said["seed"],
            hurt("brick"),
            hurt("gateway"),
            hurt("directory"),
            self.said["plain_lost"],
            self.said["plain_refused"],
            self.accepted.seconds
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told() {
        let good = json!({"violations": [], "stuck": null, "attach_lost": 0, "attach_refused": 0});
        assert_eq!(complaint(&good), None);
        for (key, bad) in [
            ("violations", json!(["no order"])),
            ("stuck", json!("brick-1 ended")),
            ("attach_lost", json!(1)),
            ("attach_refused", json!(2)),
        ] {
            let mut said = good.clone();
            said[key] = bad;
            assert!(complaint(&said).is_some(), "{key}");
        }
    }
}
