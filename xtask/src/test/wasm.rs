//! The pure crates build for wasm, and a seed run there has the trace hash that it has natively.

use super::tools::WASM;
use super::torture;
use crate::process::{self, Job, installed};
use crate::report::{Outcome, Report};
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PACKAGE: &str = "brickwork-simwasm";
const PURE: [&str; 9] = ["base", "code", "wire", "nbd", "model", "proto", "store", "node", "sim"];
const SEEDS: [u64; 4] = [1, 2, 3, 17];

/// Both steps.
pub(super) fn run(report: &mut Report, binary: &Path, profile: &str) {
    if !report.step("wasm: pure crates build", || build(profile)) {
        return;
    }
    match installed("node") {
        false => report.skip("wasm: trace hashes", "node is not installed"),
        true => drop(report.step("wasm: trace hashes", || hashes(binary, profile))),
    }
}

fn build(profile: &str) -> Result<Outcome> {
    let packages: Vec<String> = PURE.iter().map(|name| format!("brickwork-{name}")).collect();
    let mut arguments = vec!["build", "--target", WASM, "--profile", profile, "-p", PACKAGE];
    packages.iter().for_each(|package| arguments.extend(["-p", package]));
    let mut command = workspace::cargo(&arguments);
    Job::spawn("wasm-build", &mut command)?.wait_showing(Duration::from_secs(900))?.success()?;
    Ok(Outcome::Passed(PURE.len() as u64))
}

fn hashes(binary: &Path, profile: &str) -> Result<Outcome> {
    let folder = workspace::target()?.join(WASM).join(profile);
    let names = ["brickwork_simwasm.wasm", "simwasm.wasm"].map(|name| folder.join(name));
    let module = names.iter().find(|path| path.is_file()).context("the wasm build left no module")?;
    let script = workspace::root().join("tests/wasm/trace_hash.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg(module).args(SEEDS.map(|seed| seed.to_string()));
    let output = process::run("node", &mut command, 600)?.stdout;
    for (seed, in_wasm) in SEEDS.iter().zip(output.lines()) {
        let native = torture::trace_hash(binary, *seed)?;
        ensure!(native == in_wasm, "seed {seed}: natively {native}, in wasm {in_wasm}");
    }
    ensure!(output.lines().count() == SEEDS.len(), "node printed {output:?}");
    Ok(Outcome::Passed(SEEDS.len() as u64))
}
