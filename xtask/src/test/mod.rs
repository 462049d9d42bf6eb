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
use crate::process::Job;
use crate::report::{Outcome, Report};
use crate::{tidy, workspace};
use anyhow::{Result, bail};
use clap::Args;
use std::path::Path;
use std::process::Command;
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
        report.skip("soak", "--quick");
        report.skip("real clients", "--quick");
        return;
    }
    report.step("demo", || demo::run(binary));
    report.step("soak, 5 rounds", || soak(binary));
    clients::run_all(report, binary, None);
}

/// Real processes killed at random under clients that share blocks; then the history of what those saw is judged.
fn soak(binary: &Path) -> Result<Outcome> {
    let folder = workspace::scratch("clusters")?.join(format!("{}-soak", std::process::id()));
    let mut command = Command::new(binary);
    command.args(["soak", "--rounds", "5", "--seed", "1", "--json", "--dir"]).arg(&folder);
    Job::spawn("soak", &mut command)?.wait_showing(Duration::from_secs(300))?.success()?;
    std::fs::remove_dir_all(&folder)?;
    Ok(Outcome::Passed(1))
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
