//! `cargo xtask test`: everything that must be green, in a fresh clone, from an empty target folder.
//!
//! Reading order: [`verb`] (the steps in their order), `tools` (what they need), then a file a kind of step. The last line
//! it prints is `N passed, N failed, N skipped`.

mod demo;
mod fuzzing;
mod tools;
mod torture;
mod units;
mod wasm;

use crate::clients;
use crate::process::{Job, installed};
use crate::report::{Outcome, Report};
use crate::{partition, porcupine, rot, soak, tidy, workspace};
use anyhow::{Result, bail};
use clap::Args;
use std::path::Path;
use std::time::Duration;

/// How much to test.
#[derive(Args)]
pub(crate) struct Options {
    /// Leave out the long torture, the demo and the real clients
    #[arg(long)]
    quick: bool,
    /// Seeds of the torture
    #[arg(long, default_value_t = 150)]
    seeds: u64,
}

/// The profile of the binary that is tortured and driven by real clients: fast, with every assertion on.
const PROFILE: &str = "torture";

/// Rounds, enough to see that it works; `cargo xtask soak`, `partition` and `rot` run more. There are eight kinds of cuts.
const SOAK_ROUNDS: u64 = 5;
const CUTS: u64 = 8;
const ROT_ROUNDS: u64 = 12;
const REDUNDANT_WITHIN_S: u64 = 120;

/// Runs all steps; the process ends with 1 if one failed.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let mut report = Report::default();
    tools::install(&mut report);
    report.step("format", || cargo_passes("format", &["fmt", "--all", "--check"], 120));
    report.step("tidy", tidied);
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    report.step("clippy", || cargo_passes("clippy", &clippy, 900));
    units::run(&mut report);
    if let Some(binary) = build(&mut report) {
        after_build(&mut report, options, &binary);
    }
    fuzzing::run(&mut report);
    report.close()
}

fn after_build(report: &mut Report, options: &Options, binary: &Path) {
    wasm::run(report, binary, PROFILE);
    let seeds = if options.quick { options.seeds.min(20) } else { options.seeds };
    report.step(&format!("torture, {seeds} seeds"), || torture::run(binary, seeds));
    if options.quick {
        report.skip("demo", "--quick");
        for name in ["soak", "partition", "rot"] {
            report.skip(name, "--quick");
        }
        report.skip("real clients", "--quick");
        return;
    }
    report.step("demo", || demo::run(binary));
    faults(report, binary);
    clients::run_all(report, binary, None);
}

/// Real processes hurt in ways that a client does not see coming.
fn faults(report: &mut Report, binary: &Path) {
    if !installed("go") {
        report.skip("soak", "go is not installed");
    } else if report.step("porcupine", || porcupine::test().map(|()| Outcome::Passed(1))) {
        report.step(&format!("soak, {SOAK_ROUNDS} rounds"), || soaked(binary));
    }
    match partition::cannot_run() {
        Some(why) => report.skip("partition", &why),
        None => drop(report.step(&format!("partition, {CUTS} rounds"), || {
            eprintln!("    {}", partition::run(binary, CUTS, 1, REDUNDANT_WITHIN_S)?.sentence());
            Ok(Outcome::Passed(CUTS))
        })),
    }
    report.step(&format!("rot, {ROT_ROUNDS} rounds"), || {
        eprintln!("    {}", rot::run(binary, ROT_ROUNDS, 1)?.sentence());
        Ok(Outcome::Passed(ROT_ROUNDS))
    });
}

/// Real processes hurt at random under clients that share blocks; then the history of what those saw is judged.
fn soaked(binary: &Path) -> Result<Outcome> {
    let dir = workspace::scratch("clusters")?.join(format!("{}-soak", std::process::id()));
    let plan = soak::Plan { rounds: SOAK_ROUNDS, seed: 1, dir: &dir, redundant_within: REDUNDANT_WITHIN_S };
    eprintln!("    {}", soak::run(binary, &plan)?.sentence());
    std::fs::remove_dir_all(&dir)?;
    Ok(Outcome::Passed(SOAK_ROUNDS))
}

fn build(report: &mut Report) -> Option<std::path::PathBuf> {
    let mut built = None;
    report.step("build the binary", || {
        built = Some(workspace::build(PROFILE)?);
        Ok(Outcome::Passed(1))
    });
    built
}

fn cargo_passes(name: &str, arguments: &[&str], limit_s: u64) -> Result<Outcome> {
    let mut command = workspace::cargo(arguments);
    Job::spawn(name, &mut command)?.wait_showing(Duration::from_secs(limit_s))?.success()?;
    Ok(Outcome::Passed(1))
}

fn tidied() -> Result<Outcome> {
    let complaints = tidy::complaints()?;
    if complaints.is_empty() {
        return Ok(Outcome::Passed(1));
    }
    bail!("{}", complaints.join("\n"))
}
