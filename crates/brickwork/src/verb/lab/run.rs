//! `brickwork lab run`.

use super::{Manner, build, experiments, show};
use crate::global::Global;
use crate::live::table1::{self, ASSUMPTIONS, Plan};
use crate::live::{dsfq, own};
use crate::output;
use anyhow::{Context, Result, ensure};
use lab::dsfq::live::Figure;
use lab::outcome::{Outcome, Provenance};
use lab::parameters::Parameters;
use model::host::Machine;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where pictures go when they are wanted and no folder is named.
const FOLDER: &str = "lab-results";

/// `lab run`.
#[derive(clap::Args)]
#[command(after_help = "\
The same seed prints the same, whether on one core or on all; only wall_s differs (with --measured or --live, other figures too). With --out, points that were already
computed by this program under the same assumptions are taken from there, so that an interrupted run goes on.

With --live, files of one's own run on real daemons on this machine, beside their prediction: every kind of workload, on one group
of bricks, with emulated disks or files in memory (disk = \"ram-disk\"). Both worlds are asked for the same requests, rounded
out to whole blocks of 4 KiB, as every block that is read is checked. The time of a request of an open loop or a trace counts
from when it was due; a run that could not send in time says so. What work costs on this machine is in the file that `brickwork lab
calibrate` writes.

With --live, dsptf.table1 runs on eight bricks, each a process with an emulated disk, beside its simulation, and says how far
off that was. Where the machine is too slow for that, the disks answer late, and the run says that it is not valid:
--dilate N lets the disks' time pass N times slower. --set can change these assumptions: drive, drive_parts, journal_bytes,
network_one_way_us. dsfq.fig8, dsfq.fig9a and dsfq.fig12 run with --live, too, without --dilate: two streams on one or two bricks. For them --set can change disks,
random_access_ms, disk_megabytes_per_second and places. The files, up to 3 GiB, are in memory where there is a file system for that (/dev/shm), and are
removed at the end; when a run fails, its logs stay.

The traces that `retrieval` replays are at SNIA (Exchange, TPC-C, TPC-E), and generated here from what is known of them. Whoever has
them runs them with --trace: reads alone count, in any format that `brickwork trace info` can tell, compressed or not.

A claim that does not hold is a result, not an error: the code is 0, unless --check is given.

Examples:
  brickwork lab run dsptf.table1 --json
  brickwork lab run dsptf --seeds 5 --plot --out results
  brickwork lab run dsptf.fig9 --quick --set network_one_way_us=100
  brickwork lab run retrieval.fig12 --full --plot
  brickwork lab run retrieval.fig15 --measured --jobs 1
  brickwork lab run retrieval.fig12 --trace exchange=Exchange/
  brickwork lab run mine.toml --plot
  brickwork lab run mine.toml --requests-out requests.parquet
  brickwork lab run dsptf.table1 --live --dilate 4
  brickwork lab run dsfq.fig8 --live --plot
  brickwork lab run mine.toml --live --costs costs.toml
  brickwork lab run docs/lab/open/poisson.toml --live --costs costs.toml")]
pub(super) struct Run {
    /// Experiments: an id, a paper (`dsptf`), `all`, or a file of one's own (`mine.toml`)
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    manner: Manner,
    /// Draw the figures (SVG and PNG, the data beside them); into `lab-results` unless --out says where
    #[arg(long)]
    plot: bool,
    /// Write tables and outcomes here, and go on from what is there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a line for each request: when it was asked and answered, its address and size, whether memory or a disk served it, where on
    /// that disk, and how many accesses waited there. FILE.parquet is Parquet, any other name comma-separated values
    #[arg(long, value_name = "FILE", conflicts_with = "live")]
    requests_out: Option<PathBuf>,
    /// Run on real daemons on this machine, beside the simulation (dsptf.table1, dsfq.fig8, dsfq.fig9a, dsfq.fig12, or a file of one's own)
    #[arg(long, conflicts_with = "seeds")]
    pub(super) live: bool,
    /// With --live of dsptf.table1: the disks' time passes so many times slower than the clock
    #[arg(long, value_name = "N", default_value_t = 1, requires = "live")]
    dilate: u32,
    /// With --live of files of one's own: what work costs on this machine, as `brickwork lab calibrate` has measured it
    #[arg(long, value_name = "FILE", requires = "live")]
    costs: Option<PathBuf>,
    /// End with code 1 when a claim does not hold
    #[arg(long)]
    check: bool,
}

pub(super) fn run(global: &Global, args: &Run) -> Result<ExitCode> {
    if args.live {
        return live(global, args);
    }
    let folder = args.out.clone().or_else(|| args.plot.then(|| PathBuf::from(FOLDER)));
    let mut all_hold = true;
    let experiments = experiments(&args.ids)?;
    ensure!(
        args.requests_out.is_none() || experiments.len() == 1,
        "--requests-out takes one experiment at a time: tables of several do not fit together, and {} were named",
        experiments.len()
    );
    for (at, experiment) in experiments.iter().enumerate() {
        let outcome =
            args.manner.run(experiment.as_ref(), folder.as_deref(), args.requests_out.as_deref())?;
        if global.json {
            output::print_json(&serde_json::to_value(&outcome)?);
        } else {
            if at > 0 {
                println!();
            }
            show::print(&outcome, experiment.id());
        }
        if let Some(folder) = &folder {
            let written = lab::files::write(folder, &outcome, args.plot)?;
            if !global.json {
                println!("\nWrote {} to {}.", output::count(written.len() as u64, "file"), folder.display());
            }
        }
        if let Some(path) = args.requests_out.as_ref().filter(|_| !global.json) {
            println!("\nWrote the requests to {}.", path.display());
        }
        all_hold &= outcome.claims.iter().all(|claim| claim.holds);
    }
    Ok(if args.check && !all_hold { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What `--live` can run of the laboratory's experiments.
const LIVE: &str = "dsptf.table1";

fn live(global: &Global, args: &Run) -> Result<ExitCode> {
    ensure!(args.manner.traces.is_empty(), "--trace is for the simulator alone");
    ensure!(!args.manner.full, "--full is for the simulator alone");
    ensure!(!args.manner.measured, "--measured is for the simulator alone");
    let id = args.ids.first().expect("clap wants one at least");
    let outcome = if args.ids.iter().all(|id| id.ends_with(".toml")) {
        ensure!(args.dilate == 1, "--dilate is for {LIVE}");
        ensure!(args.manner.set.is_empty(), "--set is for {LIVE}: change the file");
        let Manner { seed, quick, .. } = args.manner;
        let machine = args.costs.as_deref().map(machine).transpose()?;
        let files = args.ids.iter().map(PathBuf::from).collect();
        own::run(&own::Live { files, machine, seed, is_quick: quick }, &|what| eprintln!("{what}"))?
    } else {
        ensure!(
            args.ids.len() == 1 && (id == LIVE || dsfq::figure(id).is_some()),
            "--live runs one of {LIVE}, dsfq.fig8, dsfq.fig9a and dsfq.fig12, or files of one's own, not {}",
            args.ids.join(" ")
        );
        ensure!(args.costs.is_none(), "--costs is for files of one's own");
        match dsfq::figure(id) {
            Some(figure) => dsfq_live(args, figure)?,
            None => table1_live(args)?,
        }
    };
    let outcome = Outcome { provenance: live_provenance(args), ..outcome };
    if global.json {
        output::print_json(&serde_json::to_value(&outcome)?);
    } else {
        show::print(&outcome, id);
    }
    let folder = args.out.clone().or_else(|| args.plot.then(|| PathBuf::from(FOLDER)));
    if let Some(folder) = &folder {
        let written = lab::files::write(folder, &outcome, args.plot)?;
        if !global.json {
            println!("\nWrote {} to {}.", output::count(written.len() as u64, "file"), folder.display());
        }
    }
    let all_hold = outcome.claims.iter().all(|claim| claim.holds);
    Ok(if args.check && !all_hold { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// How a live run came to be; what it depends on is in its table and notes.
fn live_provenance(args: &Run) -> Provenance {
    let mut command = format!("brickwork lab run {} --live{}", args.ids.join(" "), args.manner.flags());
    if args.dilate > 1 {
        command += &format!(" --dilate {}", args.dilate);
    }
    args.costs.iter().for_each(|costs| command += &format!(" --costs {}", costs.display()));
    let file = args.ids.first().filter(|id| id.ends_with(".toml"));
    let description = file.and_then(|file| std::fs::read_to_string(file).ok());
    Provenance { program: build(), command, description, ..Provenance::default() }
}

/// A file of `lab calibrate`.
fn machine(path: &Path) -> Result<Machine> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the costs in {}", path.display()))?;
    Machine::parse(&text).with_context(|| format!("{}", path.display()))
}

fn dsfq_live(args: &Run, figure: Figure) -> Result<Outcome> {
    ensure!(args.dilate == 1, "--dilate is for {LIVE}");
    let Manner { seed, quick, .. } = args.manner;
    let live =
        dsfq::Live { figure, parameters: live_parameters(args, &dsfq::ASSUMPTIONS)?, seed, is_quick: quick };
    dsfq::run(&live, &|what| eprintln!("{what}"))
}

fn table1_live(args: &Run) -> Result<Outcome> {
    let Manner { seed, quick, .. } = args.manner;
    let plan = Plan::new(&live_parameters(args, &ASSUMPTIONS)?, args.dilate, seed, quick)?;
    table1::run(&plan, &|what| eprintln!("{what}"))
}

/// The assumptions of an experiment, of which a live run takes these.
fn live_parameters(args: &Run, taken: &[&str]) -> Result<Parameters> {
    let experiments = experiments(&args.ids)?;
    let experiment = experiments.first().expect("it has a name, so that it is there");
    for name in args.manner.set.iter().filter_map(|setting| Some(setting.split_once('=')?.0)) {
        ensure!(
            taken.contains(&name),
            "--set {name} is for the simulator alone; --live has {}",
            taken.join(", ")
        );
    }
    args.manner.parameters(experiment.as_ref())
}
