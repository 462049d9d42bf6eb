//! `cargo xtask test`: what must be green, in a fresh clone, from an empty target folder. Two tiers: what a change must
//! pass (the aim is 12 minutes on a quiet machine with two cores), and with `--all` also what takes long.
//!
//! Reading order: [`verb`] (the steps in their order), `tools` (what they need), then a file a kind of step. The last line
//! it prints is `N passed, N failed, N skipped`.

mod real;
mod retrieval;
mod tools;
mod torture;
mod units;
mod wasm;

use crate::words::{Words, unknown};
use crate::{fuzz, tidy, workspace};
use anyhow::{Result, bail, ensure};
use job::process::Job;
use job::report::{Outcome, Report};
use real::Tier;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The one profile in which tests, the binary and the torture are compiled: each further one costs minutes.
pub(crate) const PROFILE: &str = "ci";

/// Fresh seeds of the torture, and how many with `--all`.
const SEEDS: u64 = 40;
const SEEDS_OF_ALL: u64 = 150;

/// How much to test.
pub(crate) struct Options {
    all: bool,
    quick: bool,
    start: Option<u64>,
    seeds: Option<u64>,
    fuzz_seconds: u64,
}

impl Options {
    /// From the command line.
    pub(crate) fn read(mut words: Words) -> Result<Options> {
        let mut options = Options { all: false, quick: false, start: None, seeds: None, fuzz_seconds: 600 };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--all" => options.all = true,
                "--quick" => options.quick = true,
                "--start" => options.start = Some(words.value("--start")?),
                "--seeds" => options.seeds = Some(words.value("--seeds")?),
                "--fuzz-seconds" => options.fuzz_seconds = words.value("--fuzz-seconds")?,
                _ => return unknown(word),
            }
        }
        ensure!(!(options.all && options.quick), "--all and --quick contradict each other");
        Ok(options)
    }

    fn seeds(&self) -> u64 {
        self.seeds.unwrap_or(if self.all { SEEDS_OF_ALL } else { SEEDS })
    }
}

/// Runs all steps; the process ends with 1 if one failed.
pub(crate) fn verb(options: &Options) -> Result<()> {
    job::sweep()?;
    let mut report = Report::default();
    let start = options.start.unwrap_or_else(fresh_seed);
    eprintln!("Repeat with: cargo xtask test --start {start} --seeds {}", options.seeds());
    tools::install(&mut report);
    report.step("format", || cargo_passes("format", &["fmt", "--all", "--check"], 120));
    report.step("tidy", tidied);
    // With the bugs that are planted on purpose: but for `--all` nothing else compiles them.
    let all = ["--workspace", "--all-targets", "--features", "brickwork/planted"];
    let clippy = [&["clippy", "--profile", PROFILE], &all[..], &["--", "-D", "warnings"]].concat();
    report.step("clippy", || cargo_passes("clippy", &clippy, 900));
    if units::run(&mut report, PROFILE) {
        let folder = workspace::built(PROFILE)?;
        retrieval::run(&mut report, &folder);
        torture::run(&mut report, &folder, start, options.seeds());
        let wasm = wasm::begin();
        match options.quick {
            true => real::skip(&mut report, "--quick"),
            false => real::run(&mut report, &folder, if options.all { Tier::All } else { Tier::Usual }),
        }
        wasm.finish(&mut report, &folder.join("brickwork"));
    }
    if options.all {
        let binary = ["run", "--profile", PROFILE, "-p", "brickwork", "--features", "planted", "--"];
        let plants = [&binary[..], &["sim", "torture", "--plant", "all", "--seeds", "200"]].concat();
        report.step("bugs planted on purpose are found", || cargo_passes("plants", &plants, 1800));
        let each = ["run", "--profile", PROFILE, "-p", "brickwork", "--", "sim", "torture", "--seeds", "50"];
        let each = [&each[..], &["--each-protocol"]].concat();
        report.step("torture under each protocol", || cargo_passes("protocols", &each, 3600));
        fuzz::run(&mut report, &fuzz::targets()?, options.fuzz_seconds);
    }
    report.close()
}

/// Another one in each run, small enough to be typed again.
fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    1_000_000 + now.as_secs() % 1_000_000_000
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
