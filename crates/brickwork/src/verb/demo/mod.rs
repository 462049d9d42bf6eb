//! `brickwork demo`: a whole cluster on this machine, real data through NBD, a brick killed under load and brought back,
//! and every byte verified.
//!
//! Reading order: this file (the story), [`act`] (the load), [`comeback`] (the brick's return), [`report`] (what is
//! printed).

mod act;
mod comeback;
mod report;

use crate::config::{Bytes, Period};
use crate::global::Global;
use crate::output;
use crate::security::files;
use act::{Act, Stage};
use anyhow::{Context, Result, bail, ensure};
use report::Report;
use rig::cluster::{self, Cluster, Spec, Storage};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A disk of a demo brick: room for both volumes, with some to spare.
const DISK: Bytes = Bytes(512 << 20);
const JOURNAL: Bytes = Bytes(64 << 20);
const CACHE: Bytes = Bytes(64 << 20);
/// The volumes: name and layout.
const VOLUMES: [(&str, &str); 2] = [("mirror", "raid1x3"), ("parity", "raid5-4+1")];
/// What the volumes take of disks for each byte of theirs: three copies, and a fifth more than the data.
const TAKEN_PER_BYTE: f64 = 3.0 + 1.25;
/// How much of the disks the volumes may take: groups are drawn, so that some bricks have more of them than others, and a full disk
/// takes no more writes.
const FILLED_MAX: f64 = 0.6;
/// Random load before the brick is killed, and after. A dead brick is left out when its lease has ended, after a third of a second.
const BEFORE_KILL: Duration = Duration::from_secs(2);
const AFTER_KILL: Duration = Duration::from_secs(4);

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Starts a directory, bricks and a gateway as processes on loopback, without TLS. Creates a volume of 3 copies and a RAID-5
volume and fills both through NBD. Reads and overwrites at random, and meanwhile kills a brick (SIGKILL). Starts the brick
again, waits until all data are redundant, and reads every byte back. All processes end with the demo, also on Ctrl-C, and
its files are removed, unless --keep is given. Exits with 1 if a byte was lost, an I/O failed, nothing was answered for as long
as --patience says, or the brick did not catch up.

Examples:
  brickwork demo
  brickwork demo --keep                      leaves the cluster up and says how to attach to it
  brickwork demo --stop /var/tmp/brickwork-demo-x    ends a cluster that was kept
  brickwork demo --json | tail -n 1 | jq .lost_bytes")]
pub struct Args {
    /// Leave the cluster running, and print how to use it
    #[arg(long)]
    keep: bool,
    /// Stop the cluster that `--keep` left in DIR
    #[arg(long, value_name = "DIR", conflicts_with_all = ["keep", "dir"])]
    stop: Option<PathBuf>,
    /// The folder for the cluster's files; default: a new one on a real disk
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How many bricks; the RAID-5 volume needs 5, and a spare one shows the rebuild
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(5..=32), value_name = "N")]
    bricks: u32,
    /// The size of each of the two volumes
    #[arg(long, default_value = "128MiB", value_name = "SIZE")]
    volume_size: Bytes,
    /// End with an error when nothing is answered for so long
    #[arg(long, default_value = "60s", value_name = "TIME")]
    patience: Period,
}

/// Runs the demo.
pub fn run(global: &Global, args: Args) -> Result<ExitCode> {
    if let Some(dir) = &args.stop {
        return stop(global, dir);
    }
    check_size(args.volume_size, args.bricks)?;
    ensure!(args.patience.seconds > 0, "--patience is {}; the least is 1s", args.patience);
    let start = Instant::now();
    let dir = Workspace::new(args.dir.as_deref(), args.keep)?;
    cluster::end_on_signal(dir.path.clone(), dir.ours.then(|| dir.path.clone()))?;
    let report = Report::new(global.json);
    report.opening(&dir.path, args.bricks);
    let spec = Spec {
        name: "demo",
        folder: Some(dir.path.clone()),
        bricks: args.bricks as usize,
        outlives: args.keep,
        storage: Storage {
            disk_bytes: DISK.0,
            journal_bytes: JOURNAL.0,
            cache_bytes: CACHE.0,
            ..Storage::default()
        },
        ..Spec::default()
    };
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut cluster = Cluster::start(&program, &spec).context("the demo's cluster did not start")?;
    report.started(spec.bricks, start.elapsed());
    let patience = Duration::from_secs(args.patience.seconds);
    let act = play(&mut cluster, &report, (args.volume_size, patience))?;
    let good = report.closing(&act, start.elapsed());
    if args.keep {
        report.how_to_attach(&cluster, &dir.path);
        cluster.leave_running();
    } else {
        report.whereto();
    }
    report.json(&act, start.elapsed(), args.keep.then_some(&dir.path));
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Refuses volumes for which the disks of the demo have no room, before anything is made.
fn check_size(size: Bytes, bricks: u32) -> Result<()> {
    ensure!(size.0 >= 1 << 20, "--volume-size is {size}; the least is 1 MiB");
    let disks = u64::from(bricks) * (DISK.0 - JOURNAL.0);
    let most = (disks as f64 * FILLED_MAX / TAKEN_PER_BYTE) as u64;
    let most = Bytes(most >> 20 << 20);
    if size > most {
        bail!(
            "--volume-size is {size}; {bricks} bricks with disks of {DISK} each have room for two volumes of {most} at the most"
        );
    }
    Ok(())
}

fn play(cluster: &mut Cluster, report: &Report, (size, patience): (Bytes, Duration)) -> Result<Act> {
    for (name, layout) in VOLUMES {
        cluster.create(name, size.0, layout)?;
    }
    report.created(size);
    let mut act = Act::new(&VOLUMES, size, patience);
    act.run(cluster, Stage::Fill)?;
    report.filled(&act);
    act.run(cluster, Stage::Kill { before: BEFORE_KILL, after: AFTER_KILL })?;
    report.killed(&act);
    act.comeback = Some(comeback::run(cluster, act.victim.as_deref().unwrap_or_default())?);
    report.returned(&act);
    act.run(cluster, Stage::Verify)?;
    report.verified(&act);
    Ok(act)
}

fn stop(global: &Global, dir: &Path) -> Result<ExitCode> {
    let ended = cluster::stop(dir, cluster::GRACE)?;
    if global.json {
        output::print_json(&json!({ "ended": ended, "dir": dir }));
    } else {
        println!(
            "Ended {}. Its files stay; remove them with:\n  rm -r {}",
            output::count(ended as u64, "process"),
            dir.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The demo's directory; removed at the end if the demo made it and does not keep it.
struct Workspace {
    path: PathBuf,
    ours: bool,
}

impl Workspace {
    fn new(given: Option<&Path>, keep: bool) -> Result<Workspace> {
        if let Some(path) = given {
            return Ok(Workspace { path: std::path::absolute(path)?, ours: false });
        }
        // By convention /var/tmp is on a disk, where /tmp may be memory.
        let parent = [PathBuf::from("/var/tmp"), std::env::temp_dir()].into_iter().find(|path| path.is_dir());
        let parent =
            parent.context("there is neither /var/tmp nor a temporary directory; name one with --dir")?;
        let path =
            parent.join(format!("brickwork-demo-{}", crate::security::hex(&crate::security::random::<4>())));
        files::make_dir(&path)?;
        Ok(Workspace { path, ours: !keep })
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if self.ours {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
