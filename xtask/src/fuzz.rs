//! `cargo xtask fuzz`: every cargo-fuzz target, a bounded time each.

use crate::words::{Words, unknown};
use crate::workspace;
use anyhow::{Context, Result, ensure};
use job::process::{Job, installed};
use job::report::{Outcome, Report};
use std::process::Command;
use std::time::Duration;

/// What to fuzz, and for how long.
pub(crate) struct Options {
    /// Seconds for each target.
    seconds: u64,
    /// One target instead of all.
    target: Option<String>,
}

impl Options {
    /// From the command line.
    pub(crate) fn read(mut words: Words) -> Result<Options> {
        let mut options = Options { seconds: 600, target: None };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seconds" => options.seconds = words.value("--seconds")?,
                _ if word.starts_with('-') || options.target.is_some() => return unknown(word),
                _ => options.target = Some(word),
            }
        }
        Ok(options)
    }
}

/// Runs the targets one after another and prints a table of what came of each.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let mut report = Report::default();
    let targets = match &options.target {
        Some(one) => vec![one.clone()],
        None => targets()?,
    };
    run(&mut report, &targets, options.seconds);
    report.close()
}

/// Fuzzes so many seconds with each target, a step each.
pub(crate) fn run(report: &mut Report, targets: &[String], seconds: u64) {
    if report.step("tools: nightly, cargo-fuzz", || install().map(|()| Outcome::Passed(1))) {
        for target in targets {
            report.step(&format!("fuzz {target}"), || fuzz(target, seconds));
        }
    }
}

/// The targets that `fuzz/Cargo.toml` names.
pub(crate) fn targets() -> Result<Vec<String>> {
    let path = workspace::root().join("fuzz/Cargo.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let names = text.split("\n[[bin]]\n").skip(1).filter_map(|section| {
        let line = section.lines().find(|line| line.trim_start().starts_with("name"))?;
        Some(line.split('"').nth(1)?.to_owned())
    });
    let names: Vec<String> = names.collect();
    ensure!(!names.is_empty(), "{} names no [[bin]]", path.display());
    Ok(names)
}

/// Whether a nightly toolchain is here.
fn nightly() -> bool {
    let output = Command::new("rustup").args(["toolchain", "list"]).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("nightly"))
}

fn install() -> Result<()> {
    if !nightly() {
        let mut command = Command::new("rustup");
        command.args(["toolchain", "install", "nightly", "--profile", "minimal"]);
        Job::spawn("install-nightly", &mut command)?.wait_showing(Duration::from_secs(600))?.success()?;
    }
    if !installed("cargo-fuzz") {
        let mut command = workspace::cargo(&["install", "cargo-fuzz", "--locked"]);
        Job::spawn("install-cargo-fuzz", &mut command)?.wait_showing(Duration::from_secs(900))?.success()?;
    }
    Ok(())
}

/// Where new inputs are kept, and the committed ones to begin with, if there are any.
fn corpora(target: &str) -> Result<Vec<String>> {
    let (kept, seeds) = (format!("fuzz/corpus/{target}"), format!("fuzz/seeds/{target}"));
    std::fs::create_dir_all(workspace::root().join(&kept))?;
    let has_seeds = workspace::root().join(&seeds).is_dir();
    Ok(if has_seeds { vec![kept, seeds] } else { vec![kept] })
}

fn fuzz(target: &str, seconds: u64) -> Result<Outcome> {
    let time = format!("-max_total_time={seconds}");
    let mut command = Command::new("cargo");
    command.current_dir(workspace::root());
    command.args(["+nightly", "fuzz", "run", target]);
    command.args(corpora(target)?);
    command.args(["--", &time, "-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"]);
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    let finished = Job::spawn(&format!("fuzz-{target}"), &mut command)?
        .wait_showing(Duration::from_secs(seconds + 1200))?
        .success()
        .with_context(|| format!("a finding lies in fuzz/artifacts/{target}"))?;
    let executions =
        finished.stderr.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    eprintln!("    {} executions", executions.map_or("unknown", str::trim));
    Ok(Outcome::Passed(1))
}
