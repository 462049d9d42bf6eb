//! Real processes: the demo, real clients, and with `--all` daemons that are hurt in ways that a client does not see coming.
//! `crates/rig` does the work; here its runs are steps.

use crate::before;
use anyhow::{Context, Result, ensure};
use job::process::{Finished, Job, installed, last_object};
use job::report::{Outcome, Report, totals_of};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How much of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    /// The demo, one pass of each client, and one paused pair.
    Usual,
    /// Clients over every layout, soak, partition, rot, two releases in one cluster.
    All,
}

/// A run that hurts daemons: enough rounds to see that it works; `cargo xtask soak`, `partition` and `rot` run more.
struct Harm {
    verb: &'static str,
    rounds: u64,
    needs: &'static [&'static str],
    limit_s: u64,
}

/// There are eight kinds of cuts, and three layouts that rot.
const HARMS: [Harm; 3] = [
    Harm { verb: "soak", rounds: 5, needs: &["go"], limit_s: 1500 },
    Harm { verb: "partition", rounds: 8, needs: &["go", "ip", "nft"], limit_s: 1500 },
    Harm { verb: "rot", rounds: 12, needs: &[], limit_s: 1500 },
];

/// Says that nothing of it is run.
pub(super) fn skip(report: &mut Report, why: &str) {
    report.skip("demo", why);
    report.skip("real clients", why);
    report.skip(PAUSE, why);
}

const PAUSE: &str = "confirmed reads of a paused pair";

/// One pause, after which reads that are only leased are old.
fn pause(report: &mut Report, folder: &Path) {
    if !installed("faketime") {
        return report.skip(PAUSE, "faketime is not installed");
    }
    report.step(PAUSE, || {
        let words = ["pauses", "--seconds", "7", "--rounds", "1", "--policy", "usual", "--policy", "claim"];
        let finished = rig(folder, &words, 300)?.success()?;
        eprintln!("    {}", finished.stderr.trim());
        Ok(Outcome::Passed(1))
    });
}

/// Runs it with the programs in `folder`.
pub(super) fn run(report: &mut Report, folder: &Path, tier: Tier) {
    report.step("demo", || demo(&folder.join("brickwork")));
    let clients: &[&str] = if tier == Tier::All { &["clients", "--all"] } else { &["clients"] };
    report.step("real clients", || {
        let finished = rig(folder, clients, 2400)?;
        let (passed, failed, skipped) =
            totals_of(&finished.stdout).with_context(|| format!("no totals:\n{}", finished.stderr))?;
        let why = finished.stdout.lines().filter(|line| !line.trim().is_empty());
        let why = why.collect::<Vec<_>>().join("\n");
        Ok(Outcome::Mixed { passed, failed, skipped, why })
    });
    pause(report, folder);
    if tier == Tier::All {
        HARMS.iter().for_each(|harm| harm.run(report, folder));
        neighbours(report, folder);
    }
}

/// The release before beside this one.
fn neighbours(report: &mut Report, folder: &Path) {
    const NAME: &str = "neighbours: the release before beside this one";
    if !before::is_known() {
        return report.skip(NAME, "the history does not reach back to it");
    }
    report.step(NAME, || {
        let before = before::build(super::PROFILE)?;
        let before = before.to_str().context("the target folder has a name in UTF-8")?;
        let finished = rig(folder, &["neighbours", "--before", before], 1500)?.success()?;
        eprintln!("    {}", finished.stdout.trim().replace('\n', "\n    "));
        Ok(Outcome::Passed(1))
    });
}

impl Harm {
    fn run(&self, report: &mut Report, folder: &Path) {
        let name = format!("{}, {} rounds", self.verb, self.rounds);
        if let Some(missing) = self.needs.iter().find(|program| !installed(program)) {
            return report.skip(&name, &format!("{missing} is not installed"));
        }
        report.step(&name, || {
            let rounds = self.rounds.to_string();
            let finished = rig(folder, &[self.verb, "--rounds", &rounds], self.limit_s)?.success()?;
            eprintln!("    {}", finished.stdout.trim());
            Ok(Outcome::Passed(self.rounds))
        });
    }
}

fn rig(folder: &Path, arguments: &[&str], limit_s: u64) -> Result<Finished> {
    let mut command = Command::new(folder.join("rig"));
    Job::spawn(&format!("rig-{}", arguments[0]), command.args(arguments))?
        .wait_showing(Duration::from_secs(limit_s))
}

/// What a newcomer runs first must hold what it says: runs `brickwork demo --json` and checks its closing object.
fn demo(binary: &Path) -> Result<Outcome> {
    let folder = job::scratch("clusters")?.join(format!("{}-demo", std::process::id()));
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
