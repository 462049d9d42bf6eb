//! `brickwork lab`: published experiments and one's own, with what they claim.
//!
//! A file each: `list`, `run` with how it is shown in `show`, `report`, and `calibrate`.

mod calibrate;
mod list;
mod report;
mod run;
mod show;

use crate::global::Global;
use anyhow::{Result, ensure};
use clap::Subcommand;
use lab::experiment::{Experiment, Scale};
use lab::outcome::{self, Outcome};
use lab::parameters::Parameters;
use lab::requests::RequestsFile;
use lab::runner::Runner;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

impl Args {
    /// Whether daemons are started.
    pub fn is_live(&self) -> bool {
        match &self.command {
            Command::Run(args) => args.live,
            Command::Calibrate(_) => true,
            Command::List(_) | Command::Report(_) => false,
        }
    }
}

#[derive(Subcommand)]
enum Command {
    /// Name all experiments, or show what one assumes
    List(list::List),
    /// Run experiments, and print their tables and claims
    Run(run::Run),
    /// Run experiments, and put everything into one HTML page
    Report(report::Report),
    /// Measure what work costs this machine's processors, for predictions
    Calibrate(calibrate::Calibrate),
}

/// How experiments are run, whatever is done with what comes out.
#[derive(clap::Args, Clone, Debug)]
struct Manner {
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many seeds to run, from --seed on; with two or more, figures have 95% confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// A tenth of the length: for a first look
    #[arg(long)]
    quick: bool,
    /// Points at a time; as many as there are processors when absent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Assume something else; may be repeated (`brickwork lab list ID` names the assumptions)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Run all requests of a paper's traces, not a slice of each interval (`retrieval`); short for --set whole_intervals=true
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Take a trace from a file, or from all files of a folder in the order of their names, and do not generate it; each file is an
    /// interval (`retrieval` has exchange, tpc-c and tpc-e); may be repeated
    #[arg(long = "trace", value_name = "TRACE=PATH")]
    traces: Vec<String>,
    /// Count the time that planning takes on this machine, so that two runs differ (`retrieval`); short for --set planning_is_measured=true
    #[arg(long)]
    measured: bool,
    /// Do not measure claims under other assumptions as well
    #[arg(long)]
    no_sensitivity: bool,
}

/// Runs the verb.
pub fn run_verb(global: &Global, args: Args) -> Result<ExitCode> {
    match args.command {
        Command::List(list) => list::run(global, &list).map(|()| ExitCode::SUCCESS),
        Command::Run(run) => run::run(global, &run),
        Command::Report(report) => report::run(global, &report),
        Command::Calibrate(calibrate) => calibrate::run(global, &calibrate).map(|()| ExitCode::SUCCESS),
    }
}

/// What the names mean, each experiment once, in the order of the names. A name that ends in `.toml` is a user's file.
fn experiments(names: &[String]) -> Result<Vec<Box<dyn Experiment>>> {
    let mut found: Vec<Box<dyn Experiment>> = Vec::new();
    for name in names {
        let meant = if name.ends_with(".toml") {
            vec![lab::own::read(Path::new(name))?]
        } else {
            lab::catalogue::find(name)?
        };
        for experiment in meant {
            if found.iter().all(|known| known.id() != experiment.id()) {
                found.push(experiment);
            }
        }
    }
    Ok(found)
}

/// The assumptions that `--full` and `--measured` make.
const WHOLE: &str = "whole_intervals";
const MEASURED: &str = "planning_is_measured";

impl Manner {
    fn options(&self) -> outcome::Options {
        let scale = if self.quick { Scale::Quick } else { Scale::Full };
        outcome::Options { seed: self.seed, seeds: self.seeds, scale, sensitivity: !self.no_sensitivity }
    }

    /// The paper's assumptions as its file has them, then as the command line wants them.
    fn parameters(&self, experiment: &dyn Experiment) -> Result<Parameters> {
        let mut parameters = experiment.parameters();
        self.set.iter().try_for_each(|setting| parameters.set(setting))?;
        self.traces.iter().try_for_each(|setting| parameters.take_trace(setting))?;
        let has = |name: &str| parameters.all().iter().any(|assumption| assumption.name == name);
        let (has_slices, has_plans) = (has(WHOLE), has(MEASURED));
        if self.full {
            ensure!(has_slices, "--full: {} runs no slices of a trace that could be whole", experiment.id());
            parameters.set(&format!("{WHOLE}=true"))?;
        }
        if self.measured {
            ensure!(has_plans, "--measured: {} plans nothing whose time could be measured", experiment.id());
            parameters.set(&format!("{MEASURED}=true"))?;
        }
        Ok(parameters)
    }

    /// Runs one experiment with a progress bar, keeping its points in `folder`, and its requests in a file if there is one for them.
    fn run(
        &self,
        experiment: &dyn Experiment,
        folder: Option<&Path>,
        requests: Option<&Path>,
    ) -> Result<Outcome> {
        let (parameters, options) = (self.parameters(experiment)?, self.options());
        let total = outcome::point_count(experiment, &parameters, &options)?;
        let bar = crate::output::progress(total, experiment.id(), false);
        let on_point = || bar.inc(1);
        let kept_in = folder.map(lab::files::points);
        let file = requests
            .map(|path| RequestsFile::create(path, &experiment.points(&parameters, options.scale)?))
            .transpose()?;
        let (jobs, recorder) = (self.threads(), file.as_ref());
        let runner = Runner { jobs, kept_in, build: build(), recorder, on_point: &on_point };
        let outcome = outcome::run(experiment, &parameters, &options, &runner);
        bar.finish_and_clear();
        let mut outcome = outcome?;
        outcome.provenance.command = format!("brickwork lab run {}{}", experiment.name(), self.flags());
        file.map(RequestsFile::finish).transpose()?;
        Ok(outcome)
    }

    fn threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(all, |jobs| jobs as usize)
    }

    /// The flags that make the same run again.
    fn flags(&self) -> String {
        let mut flags = format!(" --seed {}", self.seed);
        if self.seeds > 1 {
            flags += &format!(" --seeds {}", self.seeds);
        }
        if self.quick {
            flags += " --quick";
        }
        if self.full {
            flags += " --full";
        }
        if self.measured {
            flags += " --measured";
        }
        if self.no_sensitivity {
            flags += " --no-sensitivity";
        }
        self.set.iter().for_each(|setting| flags += &format!(" --set {setting}"));
        self.traces.iter().for_each(|setting| flags += &format!(" --trace {setting}"));
        flags
    }
}

/// Names this very program, so that points of another one are never taken for its own.
fn build() -> String {
    let exe: Option<PathBuf> = std::env::current_exe().ok();
    let checksum = exe.and_then(|path| std::fs::read(path).ok()).map_or(0, |bytes| crc32c::crc32c(&bytes));
    format!("{} {checksum:08x}", env!("CARGO_PKG_VERSION"))
}
