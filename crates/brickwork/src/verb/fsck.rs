//! `brickwork fsck`: checks a brick's disks while the brick does not run, and repairs them when asked.

use super::daemon;
use crate::config::{self, BrickFile, keys};
use crate::global::Global;
use crate::output;
use anyhow::{Result, ensure};
use base::BrickId;
use host::DiskSpec;
use host::disk::DiskFile;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use store::{Finding, FsckOptions, FsckReport, Outcome, Owner, State, fsck};

const REPAIRED: u8 = 1;
const DAMAGED: u8 = 4;
const NOT_CHECKED: u8 = 8;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Checks superblocks, journal, metadata, and the content of every block against its checksum. It writes nothing without
--repair. The brick must be stopped: a disk that is in use is refused.

A repair restores superblocks from their copies, truncates a torn journal, destages the journal, and marks unreadable blocks
as lost. The brick's next scrub (`brickwork scrub`) fetches those from other bricks. A repair never invents content.

Exit codes: 0 no errors, 1 all errors repaired, 4 errors remain, 8 a disk could not be checked (for several disks their sum),
2 invalid command line.

Examples:
  brickwork fsck --config /var/lib/brickwork/brick.toml            all disks of a brick
  brickwork fsck --config brick.toml --repair
  brickwork fsck /dev/sdb --json | jq '.disks[].findings'")]
pub struct Args {
    /// Block devices or files; default: the disks of --config
    #[arg(value_name = "DISK")]
    disks: Vec<PathBuf>,
    /// Repair errors where possible
    #[arg(long)]
    repair: bool,
}

/// A disk to be checked.
struct Target {
    spec: DiskSpec,
    owner: Option<Owner>,
}

/// Runs the verb.
pub fn run(global: &Global, args: &Args) -> Result<ExitCode> {
    let targets = targets(global, args)?;
    // A disk that is in use is waited for, which is logged.
    daemon::start_logs(global);
    let check = |target| (target, check(target, args.repair, global.json));
    let checked: Vec<_> = targets.iter().map(check).collect();
    let code = checked.iter().map(|(_, result)| exit_code(result)).fold(0, |all, code| all | code);
    if global.json {
        let disks: Vec<_> = checked.iter().map(|(target, result)| to_json(target, result)).collect();
        output::print_json(&json!({ "code": code, "disks": disks }));
        return Ok(ExitCode::from(code));
    }
    for (target, result) in &checked {
        match result {
            Ok(report) => print(target, report),
            Err(why) => output::print_marked("!", &format!("{}: {why}", target.spec.path.display())),
        }
    }
    Ok(ExitCode::from(code))
}

fn targets(global: &Global, args: &Args) -> Result<Vec<Target>> {
    if !args.disks.is_empty() {
        let target = |path: &PathBuf| Target { spec: spec(path.clone(), None), owner: None };
        return Ok(args.disks.iter().map(target).collect());
    }
    ensure!(
        global.config.is_some(),
        "which disks? name them, or the brick's configuration with --config brick.toml"
    );
    let file: BrickFile = config::load(Some(daemon::config_path(global, "brick")?), daemon::flags([]))?;
    let cluster = keys::cluster_id(&file.cluster).map_err(anyhow::Error::msg)?;
    let target = |(disk_index, disk): (u16, &config::DiskFile)| Target {
        spec: spec(disk.path.clone(), disk.size.map(|size| size.0)),
        owner: Some(Owner { cluster, brick: BrickId(file.id), disk_index }),
    };
    Ok((0..).zip(&file.disks).map(target).collect())
}

fn spec(path: PathBuf, size_bytes: Option<u64>) -> DiskSpec {
    DiskSpec { path, size_bytes }
}

/// Checks one disk. An error is why it cannot be checked.
fn check(target: &Target, repair: bool, is_silent: bool) -> Result<FsckReport, String> {
    let mut disk = DiskFile::open(&target.spec).map_err(|error| error.to_string())?;
    let options = FsckOptions { disk_bytes: disk.size_bytes(), owner: target.owner, repair };
    let name = target.spec.path.file_name().unwrap_or_default().to_string_lossy();
    let bar = output::progress(0, &format!("checking {name}"), true);
    let report = fsck(&mut disk, &options, &mut |done, total| {
        if !is_silent {
            bar.set_length(total);
            bar.set_position(done);
        }
    });
    bar.finish_and_clear();
    report.map_err(|error| error.to_string())
}

fn exit_code(result: &Result<FsckReport, String>) -> u8 {
    match result.as_ref().map(FsckReport::outcome) {
        Ok(Outcome::Clean) => 0,
        Ok(Outcome::Repaired) => REPAIRED,
        Ok(Outcome::Damaged) => DAMAGED,
        Err(_) => NOT_CHECKED,
    }
}

fn print(target: &Target, report: &FsckReport) {
    let Owner { brick, disk_index, cluster } = report.owner;
    let (mark, words) = match report.outcome() {
        Outcome::Clean => ("=", "clean"),
        Outcome::Repaired => ("=", "repaired"),
        Outcome::Damaged => ("!", "damaged"),
    };
    output::print_marked(
        mark,
        &format!(
            "{}: {words}. Disk {disk_index} of {brick}, cluster {cluster}; {} checked, {} in doubt in the journal, {} lost \
             here.",
            target.spec.path.display(),
            output::count(report.blocks, "block"),
            output::count(report.staged_writes, "write"),
            output::count(report.lost_blocks, "block"),
        ),
    );
    for Finding { offset, what, state } in &report.findings {
        let state = state_words(*state);
        output::print_marked("   -", &format!("byte {offset}: {what} ({state}). {}", what.meaning()));
    }
    if report.left_out > 0 {
        output::print_marked("   -", &format!("and {} more", report.left_out));
    }
    if report.findings.iter().any(|finding| finding.state == State::Repairable) {
        println!("  Repair it: brickwork fsck --repair {}", target.spec.path.display());
    }
    if report.lost_blocks > 0 {
        println!("  Start the brick, then fetch what is lost from the other bricks: brickwork scrub --wait");
    }
}

fn state_words(state: State) -> &'static str {
    match state {
        State::Harmless => "harmless",
        State::Repaired => "repaired",
        State::Repairable => "can be repaired",
        State::Beyond => "cannot be repaired here",
    }
}

fn to_json(target: &Target, result: &Result<FsckReport, String>) -> Value {
    let path = &target.spec.path;
    let report = match result {
        Ok(report) => report,
        Err(why) => return json!({ "path": path, "outcome": "not-checked", "why": why }),
    };
    let outcome = match report.outcome() {
        Outcome::Clean => "clean",
        Outcome::Repaired => "repaired",
        Outcome::Damaged => "damaged",
    };
    json!({
        "path": path,
        "outcome": outcome,
        "cluster": report.owner.cluster.to_string(),
        "brick": report.owner.brick.0,
        "disk": report.owner.disk_index,
        "identity": format!("{:016x}", report.identity),
        "blocks_checked": report.blocks,
        "pages_checked": report.pages,
        "journal_bytes": report.journal_bytes,
        "staged_writes": report.staged_writes,
        "lost_blocks": report.lost_blocks,
        "findings": report.findings.iter().map(finding_json).collect::<Vec<_>>(),
        "findings_left_out": report.left_out,
    })
}

fn finding_json(finding: &Finding) -> Value {
    let blocks = finding.what.blocks();
    json!({
        "kind": finding.what.name(),
        "offset": finding.offset,
        "state": state_words(finding.state),
        "what": finding.what.to_string(),
        "meaning": finding.what.meaning(),
        "volume": blocks.map(|(volume, ..)| volume.0),
        "block": blocks.map(|(_, lba, _)| lba),
        "blocks": blocks.map(|(.., count)| count),
    })
}
