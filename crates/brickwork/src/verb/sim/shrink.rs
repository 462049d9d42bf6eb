//! `sim shrink`: a smaller run with the same violation.

use super::lines::{Lines, leave_trace};
use super::options::RunOptions;
use super::panics;
use crate::global::Global;
use crate::output;
use anyhow::{Result, bail};
use serde_json::json;
use sim::replay::Header;
use sim::shrink::{Size, Verdict, shrink};
use sim::{Course, Options, Recording, Violation, run_course};
use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "\
Runs a seed that violates a promise again and again with less: fewer operations of clients, fewer faults and commands of
the administrator, a shorter time under faults, fewer volumes, bricks, gateways and clients. A smaller run is kept only if
the same check fails in it. What is left out changes the order of the packets behind it, so that a violation which needs a
rare order shrinks less than others; with more runs it may shrink further.

Give the options with which `sim torture` found the violation: they decide what the seed is. Progress is told on standard
error. The smallest run is left as a trace, which `sim replay` shows.

Examples:
  brickwork sim shrink 4711
  brickwork sim shrink 4711 --objects --seconds 600 --out small.trace.jsonl
  brickwork sim replay shrunk-4711.trace.jsonl")]
pub(super) struct Shrink {
    /// The seed that violates a promise
    seed: u64,
    #[command(flatten)]
    run: RunOptions,
    /// The bug that is planted
    #[cfg(feature = "planted")]
    #[arg(long, value_name = "NAME")]
    plant: Option<String>,
    /// Make no more runs than these
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Begin no further run after so many seconds
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Where the trace of the smallest run goes; default: shrunk-SEED.trace.jsonl
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Shrink {
    fn options(&self) -> Result<Options> {
        Ok(Options { plant: self.plant()?, ..self.run.options()? })
    }

    #[cfg(feature = "planted")]
    fn plant(&self) -> Result<Option<String>> {
        match &self.plant {
            Some(name) if !sim::plants::NAMES.contains(&name.as_str()) => {
                bail!("no bug is named '{name}'; there are {}", sim::plants::NAMES.join(", "))
            }
            plant => Ok(plant.clone()),
        }
    }

    #[cfg(not(feature = "planted"))]
    fn plant(&self) -> Result<Option<String>> {
        Ok(None)
    }
}

pub(super) fn run(global: &Global, args: &Shrink) -> Result<ExitCode> {
    let (seed, options) = (args.seed, args.options()?);
    let path = args.out.clone().unwrap_or_else(|| format!("shrunk-{seed}.trace.jsonl").into());
    // Nobody wants to learn it after the search.
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        bail!("there is no folder {} for the smaller run's trace", folder.display());
    }
    panics::keep();
    let start = Instant::now();
    let recording = Recording::default();
    let events = Lines::default();
    let (violation, events_before) =
        (violation_of(seed, &options, &Course::Recorded(recording.clone()), Some(&events)), events.count());
    let Some(violation) = violation else {
        bail!("seed {seed} violates nothing with these options: there is nothing to shrink");
    };
    let full = recording.schedule();
    let before = Size::of(seed, &options, &full);
    let progress = Progress::new();
    progress.tell(&format!("seed {seed}: {}", one_line(&violation)), true);
    let mut runs = 1;
    let until = start + Duration::from_secs(args.seconds);
    let best = shrink(seed, &options, full, &mut |schedule| {
        if runs >= args.runs || Instant::now() >= until {
            return Verdict::Stop;
        }
        runs += 1;
        let found = violation_of(seed, &options, &Course::Scheduled(schedule.clone()), None);
        let is_same = found.is_some_and(|found| found.is_like(&violation));
        if is_same {
            let Size { operations, faults, .. } = Size::of(seed, &options, schedule);
            let operations = output::count(operations as u64, "operation");
            let faults = output::count(faults as u64, "fault");
            progress.tell(&format!("run {runs}: {operations}, {faults}"), false);
        }
        if is_same { Verdict::Same } else { Verdict::Other }
    });
    let after = Size::of(seed, &options, &best);
    let (found, events_after) = leave_trace(&path, &Header::new(seed, &options, Some(best)))?;
    let Some(found) = found.filter(|found| found.is_like(&violation)) else {
        bail!("the smallest run did not violate the promise again: a run is not the same each time");
    };
    let (wall_s, command) =
        (start.elapsed().as_secs_f64(), format!("brickwork sim replay {}", path.display()));
    if global.json {
        let size = |size: &Size, events: u64| {
            let mut value = json!(size);
            value["events"] = events.into();
            value
        };
        output::print_json(&json!({
            "seed": seed, "checker": found.checker, "what": found.what, "runs": runs, "wall_s": wall_s,
            "before": size(&before, events_before), "after": size(&after, events_after),
            "trace": path, "command": command,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    print_table((&before, events_before), (&after, events_after));
    println!("\nThe smaller run violates: {found}");
    println!("\n{} in {wall_s:.0} s. Its events: {command}", output::count(runs, "run"));
    Ok(ExitCode::SUCCESS)
}

/// What a run violates. Its events are counted if that is wanted.
fn violation_of(seed: u64, options: &Options, course: &Course, lines: Option<&Lines>) -> Option<Violation> {
    let lines = lines.map(|lines| Box::new(lines.clone()) as Box<dyn Write>);
    panics::catch(|| run_course(seed, options, course, lines).0.violation).unwrap_or_else(Some)
}

/// Tells how far shrinking has come: on a terminal each step, elsewhere one every few seconds.
struct Progress {
    is_terminal: bool,
    told: Cell<Instant>,
}

impl Progress {
    const PAUSE: Duration = Duration::from_secs(5);

    fn new() -> Progress {
        Progress { is_terminal: io::stderr().is_terminal(), told: Cell::new(Instant::now()) }
    }

    fn tell(&self, what: &str, always: bool) {
        if always || self.is_terminal || self.told.get().elapsed() >= Progress::PAUSE {
            eprintln!("{what}");
            self.told.set(Instant::now());
        }
    }
}

fn one_line(violation: &Violation) -> String {
    violation.to_string().lines().next().unwrap_or_default().to_owned()
}

fn print_table((before, events_before): (&Size, u64), (after, events_after): (&Size, u64)) {
    let mut table = output::table(&["", "before", "after"]);
    output::align_right(&mut table, &[1, 2]);
    let seconds = |size: &Size| format!("{:.1}", size.safety_ms as f64 / 1000.0);
    let rows = [
        ("operations", before.operations as u64, after.operations as u64),
        ("faults and commands", before.faults as u64, after.faults as u64),
        ("events", events_before, events_after),
        ("bricks", before.bricks.into(), after.bricks.into()),
        ("gateways", before.gateways.into(), after.gateways.into()),
        ("attached clients", before.clients.into(), after.clients.into()),
        ("volumes", before.volumes as u64, after.volumes as u64),
    ];
    for (name, before, after) in rows {
        table.add_row([name.to_owned(), before.to_string(), after.to_string()]);
    }
    table.add_row(["seconds under faults".to_owned(), seconds(before), seconds(after)]);
    println!("{}", output::render(&table));
}
