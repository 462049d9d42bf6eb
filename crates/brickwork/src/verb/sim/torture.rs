//! `sim torture`: many seeds, each a cluster under faults that is checked for every promise.

use super::lines;
use super::options::RunOptions;
use super::panics;
use crate::global::Global;
use crate::output;
#[cfg(feature = "planted")]
use anyhow::bail;
use anyhow::{Context, Result};
use indicatif::ProgressBar;
use outfile::Outfile;
use serde_json::{Value, json};
use sim::history::{History, Operation, Register};
use sim::replay::Header;
use sim::{Options, Outcome, Violation, rare};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Instant;

const SEEDS: u64 = 50;
/// Failing seeds of which the trace is written and the command printed; more of them would say the same.
const FAILURES_SHOWN: usize = 3;

/// `sim torture`.
#[derive(clap::Args, Clone)]
#[command(after_help = "\
Each seed draws a cluster, its volumes, its clients and its faults: crashes, torn and lost writes, bit rot, slow and
full disks, lost, late, repeated and reordered messages, partitions, skewed clocks. Then all faults end, and
everything must converge. The same seed gives the same run, everywhere. Each of the first three failing seeds leaves its trace
in the current directory, with the command that repeats it; the code is then 1. From 1000 seeds on, a rare state that was
never reached is a failure too. --each-protocol leaves no traces, and does not look for rare states.

Examples:
  brickwork sim torture --seeds 50
  brickwork sim torture --seeds 1 --start 4711         repeats one seed
  brickwork sim torture --seeds 500 --each-protocol
  brickwork sim torture --seeds 20 --layout raid5-4+1 --bricks 6 --history h.jsonl --json")]
pub(super) struct Torture {
    /// How many seeds to run; default: 50
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    start: u64,
    /// How many seeds to run at a time; default: one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Write the history that clients saw: one JSON line for each operation on a block
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    #[command(flatten)]
    run: RunOptions,
    /// Run all seeds under each protocol of the network RAID paper, each preset, each variant and the default one
    #[arg(long, conflicts_with_all = ["protocols", "history"])]
    each_protocol: bool,
    /// Plant a bug (`all`: each in turn), and print which of 200 seeds (or --seeds) and which checker find it
    #[cfg(feature = "planted")]
    #[arg(long, value_name = "NAME", conflicts_with = "history")]
    plant: Option<String>,
}

impl Torture {
    fn seeds(&self) -> u64 {
        #[cfg(feature = "planted")]
        let usual = if self.plant.is_some() { sim::plants::SEEDS } else { SEEDS };
        #[cfg(not(feature = "planted"))]
        let usual = SEEDS;
        self.seeds.unwrap_or(usual)
    }
}

pub(super) fn run(global: &Global, args: &Torture) -> Result<ExitCode> {
    let options = args.run.options()?;
    panics::keep();
    #[cfg(feature = "planted")]
    if let Some(name) = &args.plant {
        return run_plants(global, args, &options, name);
    }
    if args.each_protocol {
        return run_each_protocol(global, args);
    }
    let start = Instant::now();
    let mut sum = Sum::default();
    let mut histories = args.history.as_deref().map(Histories::create).transpose()?;
    let bar = output::progress(args.seeds(), "torturing", false);
    for_each_seed(args, &options, |seed, outcome, history| {
        bar.inc(1);
        if let Some(histories) = &mut histories {
            histories.write(&history)?;
        }
        sum.add(seed, outcome, &bar);
        Ok(())
    })?;
    bar.finish_and_clear();
    if let Some(histories) = histories {
        histories.finish()?;
    }
    sum.failures.sort_by_key(|failure| failure.seed);
    for failure in sum.failures.iter_mut().take(FAILURES_SHOWN) {
        failure.trace = leave_trace(failure.seed, &options);
    }
    let missing =
        if args.seeds() >= rare::SEEDS_MIN { rare::missing(&sum.rare, options.objects) } else { Vec::new() };
    if global.json {
        output::print_json(&sum.json(args, &missing, start.elapsed().as_secs_f64()));
    } else {
        sum.print(args, &missing, start.elapsed().as_secs_f64());
    }
    Ok(if sum.failures.is_empty() && missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs all seeds under one protocol after the other, a line each.
fn run_each_protocol(global: &Global, args: &Torture) -> Result<ExitCode> {
    let mut rows = Vec::new();
    let mut is_clean = true;
    for protocol in wire::known::named() {
        let run = args.run.under(protocol);
        let args = Torture { run, each_protocol: false, ..args.clone() };
        let (options, start, mut sum) = (args.run.options()?, Instant::now(), Sum::default());
        let bar = output::progress(args.seeds(), &protocol.to_string(), false);
        for_each_seed(&args, &options, |seed, outcome, _| {
            bar.inc(1);
            sum.add(seed, outcome, &bar);
            Ok(())
        })?;
        bar.finish_and_clear();
        sum.failures.sort_by_key(|failure| failure.seed);
        is_clean &= sum.failures.is_empty();
        let wall_s = start.elapsed().as_secs_f64();
        if global.json {
            let mut row = sum.json(&args, &[], wall_s);
            row["protocol"] = protocol.to_string().into();
            rows.push(row);
            continue;
        }
        let (seeds, failed) = (output::count(args.seeds(), "seed"), sum.failures.len() as u64);
        println!(
            "{:<26} {seeds}, {} in {wall_s:.0} s",
            protocol.to_string(),
            output::count(failed, "violation")
        );
        for failure in sum.failures.iter().take(FAILURES_SHOWN) {
            println!("  {}\n  Repeat it: {}", failure.violation, args.command(failure.seed));
        }
    }
    if global.json {
        output::print_json(&rows.into());
    }
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Torture {
    /// The one command that repeats `seed`.
    fn command(&self, seed: u64) -> String {
        self.run.command(&format!("torture --seeds 1 --start {seed}"))
    }
}

/// Runs all seeds on as many threads as wanted, and hands each result to `take`.
fn for_each_seed(
    args: &Torture,
    options: &Options,
    mut take: impl FnMut(u64, Result<Outcome, Violation>, History) -> Result<()>,
) -> Result<()> {
    let jobs = args
        .jobs
        .map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |jobs| jobs as usize);
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(jobs);
        for _ in 0..jobs {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= args.seeds() {
                        return;
                    }
                    let seed = args.start.wrapping_add(index);
                    let (outcome, history) = one_seed(seed, options);
                    if sender.send((seed, outcome, history)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        receiver.iter().try_for_each(|(seed, outcome, history)| take(seed, outcome, history))
    })
}

/// Runs a seed.
fn one_seed(seed: u64, options: &Options) -> (Result<Outcome, Violation>, History) {
    match panics::catch(|| sim::run(seed, options, None)) {
        Ok((outcome, history)) => (Ok(outcome), history),
        Err(violation) => (Err(violation), History::default()),
    }
}

/// Runs the seed once more and writes its events down. Returns where, if that could be done.
fn leave_trace(seed: u64, options: &Options) -> Option<PathBuf> {
    let path = PathBuf::from(format!("torture-{seed}.trace.jsonl"));
    lines::leave_trace(&path, &Header::new(seed, options, None)).ok()?;
    Some(path)
}

/// Plants bugs, and prints by which seed and checker each is found.
#[cfg(feature = "planted")]
fn run_plants(global: &Global, args: &Torture, options: &Options, name: &str) -> Result<ExitCode> {
    let names: Vec<&str> =
        sim::plants::NAMES.into_iter().filter(|known| name == "all" || name == *known).collect();
    if names.is_empty() {
        bail!("no bug is named '{name}'; there are {} and all", sim::plants::NAMES.join(", "));
    }
    let mut rows = Vec::new();
    for name in names {
        let options = Options { plant: Some(name.to_owned()), ..options.clone() };
        let found = find_plant(args, &options);
        if !global.json {
            match &found {
                Some((seed, violation)) => println!("{name:<26} seed {seed:>4}  {}", violation.checker),
                None => println!("{name:<26} not found within {}", output::count(args.seeds(), "seed")),
            }
        }
        rows.push((name, found));
    }
    if global.json {
        let row = |(name, found): &(&str, Option<(u64, Violation)>)| {
            let seed = found.as_ref().map(|(seed, _)| *seed);
            let violation = found.as_ref().map(|(_, violation)| violation);
            json!({ "plant": name, "found": seed.is_some(), "seed": seed, "violation": violation })
        };
        output::print_json(
            &json!({ "seeds": args.seeds(), "plants": rows.iter().map(row).collect::<Vec<_>>() }),
        );
    }
    let all = rows.iter().all(|(_, found)| found.is_some());
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The first seed that finds what is planted, and how.
#[cfg(feature = "planted")]
fn find_plant(args: &Torture, options: &Options) -> Option<(u64, Violation)> {
    (args.start..args.start.saturating_add(args.seeds())).find_map(|seed| {
        let violation = match one_seed(seed, options).0 {
            Ok(outcome) => outcome.violation?,
            Err(violation) => violation,
        };
        Some((seed, violation))
    })
}

struct Failure {
    seed: u64,
    violation: Violation,
    trace: Option<PathBuf>,
}

/// What all seeds together showed.
#[derive(Default)]
struct Sum {
    simulated_ns: u128,
    events: u64,
    operations: u64,
    answers: BTreeMap<String, u64>,
    faults: BTreeMap<String, u64>,
    summary: BTreeMap<String, u64>,
    rare: BTreeMap<String, u64>,
    hashes: BTreeMap<u64, u64>,
    failures: Vec<Failure>,
}

impl Sum {
    /// Who interrupts a long run has been told what it found.
    fn add(&mut self, seed: u64, outcome: Result<Outcome, Violation>, bar: &ProgressBar) {
        let violation = match outcome {
            Err(violation) => Some(violation),
            Ok(outcome) => {
                self.simulated_ns += u128::from(outcome.simulated_ns);
                self.events += outcome.events;
                self.operations += outcome.operations;
                add_all(&mut self.answers, outcome.answers);
                add_all(&mut self.faults, outcome.faults);
                add_all(&mut self.summary, outcome.summary);
                add_all(&mut self.rare, outcome.rare);
                self.hashes.insert(seed, outcome.trace_hash);
                outcome.violation
            }
        };
        let Some(violation) = violation else { return };
        bar.suspend(|| eprintln!("! Seed {seed}: {}", first_line(&violation)));
        self.failures.push(Failure { seed, violation, trace: None });
    }

    fn hours(&self) -> f64 {
        self.simulated_ns as f64 / 3.6e12
    }

    /// One hash for all seeds, in their order.
    fn trace_hash(&self) -> String {
        let hash = self
            .hashes
            .values()
            .fold(0u64, |sum, hash| (sum.rotate_left(7) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        format!("{hash:016x}")
    }

    fn json(&self, args: &Torture, missing: &[&str], wall_s: f64) -> Value {
        let violation = |failure: &Failure| {
            json!({
                "seed": failure.seed, "checker": failure.violation.checker, "what": failure.violation.what,
                "command": args.command(failure.seed), "trace": failure.trace,
            })
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"), "seeds": args.seeds(), "start": args.start,
            "simulated_hours": self.hours(), "operations": self.operations, "events": self.events,
            "summary": self.summary, "answers": self.answers, "faults": self.faults, "rare": self.rare, "rare_missing": missing,
            "violations": self.failures.iter().map(violation).collect::<Vec<_>>(),
            "trace_hash": self.trace_hash(), "wall_s": wall_s,
        })
    }

    fn print(&self, args: &Torture, missing: &[&str], wall_s: f64) {
        let seeds = output::count(args.seeds(), "seed");
        println!(
            "{seeds} from {}: {:.2} simulated hours in {wall_s:.1} s, {} operations, {} events, trace hash {}",
            args.start,
            self.hours(),
            self.operations,
            self.events,
            self.trace_hash()
        );
        print_counts("Summary", &self.summary);
        print_counts("Faults", &self.faults);
        print_counts("Rare states", &self.rare);
        print_counts("Answers", &self.answers);
        for name in missing {
            println!("! The rare state '{name}' was never reached: these seeds prove nothing about it.");
        }
        for failure in self.failures.iter().take(FAILURES_SHOWN) {
            println!("\n! Seed {}: {}", failure.seed, failure.violation);
            println!("  Repeat it:  {}", args.command(failure.seed));
            if let Some(trace) = &failure.trace {
                println!("  Its events: brickwork sim replay {}", trace.display());
            }
            println!("  Shrink it:  {}", args.run.command(&format!("shrink {}", failure.seed)));
        }
        for failure in self.failures.iter().skip(FAILURES_SHOWN) {
            println!("\n! Seed {}: {}", failure.seed, first_line(&failure.violation));
        }
        match self.failures.len() {
            0 => println!("\nNo violation."),
            count => println!("\n{} of {seeds} violated a promise.", count),
        }
    }
}

fn first_line(violation: &Violation) -> String {
    violation.to_string().lines().next().unwrap_or_default().to_owned()
}

fn add_all(sum: &mut BTreeMap<String, u64>, more: BTreeMap<String, u64>) {
    more.into_iter().for_each(|(name, count)| *sum.entry(name).or_default() += count);
}

/// Counts by name, in two columns where 80 characters are enough.
fn print_counts(title: &str, counts: &BTreeMap<String, u64>) {
    println!("\n{title}");
    let cells: Vec<String> = counts.iter().map(|(name, count)| format!("{count:>8} {name}")).collect();
    let width = cells.iter().map(String::len).max().unwrap_or(0) + 2;
    let columns = if 2 * width <= 82 { 2 } else { 1 };
    let rows = cells.len().div_ceil(columns);
    for row in 0..rows {
        let line: String =
            (row..cells.len()).step_by(rows).map(|at| format!("{:<width$}", cells[at])).collect();
        println!("{}", line.trim_end());
    }
}

/// The histories of all seeds in one file. Seeds know nothing of each other, so clients, registers and values are
/// renumbered to be unique in the file; what one seed did stays together.
struct Histories {
    out: BufWriter<Outfile>,
    path: PathBuf,
    clients: u64,
    registers: u64,
    values: u64,
}

impl Histories {
    fn create(path: &Path) -> Result<Histories> {
        let file =
            Outfile::create(path).with_context(|| format!("cannot write the history {}", path.display()))?;
        Ok(Histories {
            out: BufWriter::new(file),
            path: path.to_owned(),
            clients: 0,
            registers: 0,
            values: 0,
        })
    }

    fn write(&mut self, history: &History) -> Result<()> {
        let (mut clients, mut registers, mut values) =
            (HashMap::new(), HashMap::new(), HashMap::from([(0, 0)]));
        for operation in history.operations() {
            let renumbered = Operation {
                client: number(&mut clients, &mut self.clients, operation.client),
                register: Register(number(&mut registers, &mut self.registers, operation.register.0)),
                value: number(&mut values, &mut self.values, operation.value),
                ..*operation
            };
            writeln!(self.out, "{}", renumbered.to_json())
                .with_context(|| format!("cannot write {}", self.path.display()))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        let file = self.out.into_inner().map_err(std::io::IntoInnerError::into_error);
        file.and_then(Outfile::finish).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn number(known: &mut HashMap<u64, u64>, last: &mut u64, old: u64) -> u64 {
    *known.entry(old).or_insert_with(|| {
        *last += 1;
        *last
    })
}
