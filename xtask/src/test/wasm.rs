//! The pure crates build for wasm, and a seed run there has the trace hash that it has natively.

use super::tools::WASM;
use super::torture;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use job::process::{self, Job, installed};
use job::report::{Outcome, Report};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PACKAGE: &str = "brickwork-simwasm";
const PURE: [&str; 13] = [
    "base", "code", "wire", "nbd", "model", "rules", "reads", "volume", "objects", "roles", "store", "node",
    "sim",
];
const SEEDS: u64 = 5;

/// Seeds run in wasm are few and short: compiled quickly rather than for speed.
const PROFILE: &str = "ci-wasm";

/// The compiler at work, beside other steps: they wait for daemons more than they compute, and go first.
pub(super) struct Building(Result<Job>);

/// Begins to compile.
pub(super) fn begin() -> Building {
    let packages = PURE.iter().flat_map(|name| ["-p".to_owned(), format!("brickwork-{name}")]);
    let mut command = Command::new("nice");
    command.current_dir(workspace::root()).args(["-n", "10"]).arg(workspace::cargo(&[]).get_program());
    command.args(["build", "--target", WASM, "--profile", PROFILE, "-p", PACKAGE]).args(packages);
    Building(Job::spawn("wasm-build", &mut command))
}

impl Building {
    /// Waits for the compiler, and runs what it made beside what `binary` does.
    pub(super) fn finish(self, report: &mut Report, binary: &Path) {
        let builds = report.step("wasm: pure crates build", || {
            self.0?.wait_showing(Duration::from_secs(900))?.success()?;
            Ok(Outcome::Passed(PURE.len() as u64))
        });
        match installed("node") {
            _ if !builds => {}
            false => report.skip("wasm: trace hashes", "node is not installed"),
            true => drop(report.step("wasm: trace hashes", || hashes(binary))),
        }
    }
}

fn hashes(binary: &Path) -> Result<Outcome> {
    let folder = job::target()?.join(WASM).join(PROFILE);
    let names = ["brickwork_simwasm.wasm", "simwasm.wasm"].map(|name| folder.join(name));
    let module = names.iter().find(|path| path.is_file()).context("the wasm build left no module")?;
    let script = workspace::root().join("tests/wasm/trace_hash.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg(module).args((1..=SEEDS).map(|seed| seed.to_string()));
    let output = process::run("node", &mut command, 900)?.stdout;
    let hashes: Vec<u64> = output
        .lines()
        .map(|line| u64::from_str_radix(line, 16).context("node printed no hash"))
        .collect::<Result<_>>()?;
    ensure!(hashes.len() as u64 == SEEDS, "node printed {output:?}");
    let native = torture::trace_hash(binary, 1, SEEDS)?;
    let in_wasm = format!("{:016x}", together(&hashes));
    ensure!(
        native == in_wasm,
        "seeds 1 to {SEEDS}: natively {native}, in wasm {in_wasm} from {hashes:016x?}"
    );
    Ok(Outcome::Passed(SEEDS))
}

/// The hashes of several seeds as `brickwork sim torture` folds them into one.
fn together(hashes: &[u64]) -> u64 {
    hashes.iter().fold(0, |sum: u64, hash| (sum.rotate_left(7) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
