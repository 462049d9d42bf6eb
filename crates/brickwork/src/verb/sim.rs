//! `brickwork sim`: the very machines that serve real data, in a world full of faults.

use crate::global::Global;
use crate::output;
use anyhow::{Context, Result, anyhow, bail};
use clap::Subcommand;
use serde_json::{Value, json};
use sim::history::{History, Operation, Register};
use sim::{Options, Outcome, Violation, rare, replay, run};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// Failing seeds of which the trace is written and the command printed; more of them would say the same.
const FAILURES_SHOWN: usize = 3;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run simulated clusters under faults, and check that every promise holds
    Torture(Torture),
    /// Step through the trace of a failing seed
    Replay(Replay),
}

/// `sim torture`.
#[derive(clap::Args, Clone)]
#[command(after_help = "\
Each seed draws a cluster, its volumes, its clients and its faults: crashes, torn and lost writes, bit rot, slow and
full disks, lost, late, repeated and reordered messages, partitions, skewed clocks. Then all faults end, and
everything must converge. The same seed gives the same run, everywhere. A failing seed leaves its trace in the current
directory and prints the one command that repeats it; the code is then 1. From 1000 seeds on, a rare state that was
never reached is a failure too.

Examples:
  brickwork sim torture --seeds 50
  brickwork sim torture --seeds 1 --start 4711         repeats one seed
  brickwork sim torture --seeds 500 --each-protocol
  brickwork sim torture --seeds 20 --layout raid5-4+1 --bricks 6 --history h.jsonl --json")]
struct Torture {
    /// How many seeds to run
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    start: u64,
    /// How many seeds to run at a time; default: one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Write the history that clients saw: one JSON line for each operation on a block
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// How many shards a gateway has; default: drawn from the seed
    #[arg(long, value_name = "1|4", value_parser = clap::value_parser!(u16).range(1..=64))]
    shards: Option<u16>,
    /// How many bricks; default: drawn from the seed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    bricks: Option<u32>,
    /// Draw layouts from these only; may be repeated
    #[arg(long = "layout", value_name = "LAYOUT", value_parser = parse_layout)]
    layouts: Vec<String>,
    /// Draw read policies from these only; may be repeated
    #[arg(long = "read-policy", value_name = "POLICY")]
    read_policies: Vec<wire::ReadPolicy>,
    /// Draw placement rules from these only; may be repeated
    #[arg(long = "placement", value_name = "RULE")]
    placements: Vec<wire::Placement>,
    /// Draw protocols from these only, such as gw,ts,2pcw+read; may be repeated
    #[arg(long = "protocol", value_name = "PROTOCOL", value_parser = wire::known::parse)]
    protocols: Vec<wire::Protocol>,
    /// Run all seeds under each protocol of the network RAID paper, each preset, each variant and the default one
    #[arg(long, conflicts_with_all = ["protocols", "history"])]
    each_protocol: bool,
    /// Seconds of simulated time under faults; default: drawn from the seed
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    simulated_s: Option<u64>,
    /// About how many operations clients issue; default: drawn from the seed
    #[arg(long, value_name = "N")]
    operations: Option<u64>,
    /// Put and get segments of large objects beside
    #[arg(long)]
    objects: bool,
    /// Inject no faults
    #[arg(long)]
    no_faults: bool,
    /// Plant a bug (`all`: each in turn), and print which seed and checker find it
    #[cfg(feature = "planted")]
    #[arg(long, value_name = "NAME", conflicts_with = "history")]
    plant: Option<String>,
}

/// `sim replay`.
#[derive(clap::Args)]
#[command(after_help = "\
Runs the trace's seed again and prints its events, as long as both agree.

Examples:
  brickwork sim replay torture-4711.trace.jsonl --until 5000 | tail -n 40")]
struct Replay {
    /// The trace that a failing seed left
    trace: PathBuf,
    /// The last event to show
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    until: u64,
}

/// Runs the verb.
pub fn run_verb(global: &Global, args: Args) -> Result<ExitCode> {
    match args.command {
        Command::Torture(args) => run_torture(global, &args),
        Command::Replay(args) => run_replay(global, &args),
    }
}

fn run_torture(global: &Global, args: &Torture) -> Result<ExitCode> {
    let options = args.options()?;
    keep_panics();
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
    let bar = output::progress(args.seeds, "torturing", false);
    for_each_seed(args, &options, |seed, outcome, history| {
        bar.inc(1);
        if let Some(histories) = &mut histories {
            histories.write(&history)?;
        }
        sum.add(seed, outcome);
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
    let missing = if args.seeds >= rare::SEEDS_MIN { rare::missing(&sum.rare) } else { Vec::new() };
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
        let args = Torture { protocols: vec![protocol], each_protocol: false, ..args.clone() };
        let (options, start, mut sum) = (args.options()?, Instant::now(), Sum::default());
        let bar = output::progress(args.seeds, &protocol.to_string(), false);
        for_each_seed(&args, &options, |seed, outcome, _| {
            bar.inc(1);
            sum.add(seed, outcome);
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
        let (seeds, failed) = (output::count(args.seeds, "seed"), sum.failures.len() as u64);
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
    fn options(&self) -> Result<Options> {
        let narrowest = self.layouts.iter().filter_map(|layout| width(layout).ok()).min().unwrap_or(0);
        // Without --bricks a seed may draw as few as 4.
        if narrowest > self.bricks.unwrap_or(4) {
            bail!("these layouts need {narrowest} bricks at least: give --bricks {narrowest} or more");
        }
        Ok(Options {
            simulated_s: self.simulated_s,
            shards: self.shards,
            bricks: self.bricks,
            layouts: self.layouts.clone(),
            read_policies: self.read_policies.iter().map(ToString::to_string).collect(),
            placements: self.placements.iter().map(ToString::to_string).collect(),
            protocols: self.protocols.iter().map(ToString::to_string).collect(),
            faults: !self.no_faults,
            operations: self.operations,
            objects: self.objects,
            plant: None,
        })
    }

    /// The one command that repeats `seed`.
    fn command(&self, seed: u64) -> String {
        let mut command = format!("brickwork sim torture --seeds 1 --start {seed}");
        let mut add = |flag: &str, value: Option<String>| {
            command.extend(value.map(|value| format!(" {flag} {value}")));
        };
        add("--shards", self.shards.map(|shards| shards.to_string()));
        add("--bricks", self.bricks.map(|bricks| bricks.to_string()));
        add("--simulated-s", self.simulated_s.map(|seconds| seconds.to_string()));
        add("--operations", self.operations.map(|operations| operations.to_string()));
        self.layouts.iter().for_each(|layout| add("--layout", Some(layout.clone())));
        self.read_policies.iter().for_each(|policy| add("--read-policy", Some(policy.to_string())));
        self.placements.iter().for_each(|rule| add("--placement", Some(rule.to_string())));
        self.protocols.iter().for_each(|protocol| add("--protocol", Some(protocol.to_string())));
        let flags = [(self.objects, " --objects"), (self.no_faults, " --no-faults")];
        flags.into_iter().filter(|(is_given, _)| *is_given).for_each(|(_, flag)| command.push_str(flag));
        command
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
                    if index >= args.seeds {
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

/// Runs a seed. A machine whose invariant is broken panics; here that is a finding like any other.
fn one_seed(seed: u64, options: &Options) -> (Result<Outcome, Violation>, History) {
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| run(seed, options, None)));
    result.map_or_else(
        |_| {
            let what = LAST_PANIC.take().unwrap_or_else(|| "a machine panicked".to_owned());
            (Err(Violation::new("invariant", what)), History::default())
        },
        |(outcome, history)| (Ok(outcome), history),
    )
}

thread_local! {
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A broken invariant is reported with its seed, not where it happens to interrupt the progress bar. `RUST_BACKTRACE`
/// brings the usual noise back.
fn keep_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place =
            panic.location().map_or(String::new(), |place| format!(" ({}:{})", place.file(), place.line()));
        let text = panic.payload_as_str().unwrap_or("a machine panicked");
        LAST_PANIC.set(Some(format!("{text}{place}")));
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            usual(panic);
        }
    }));
}

/// Runs the seed once more and writes its events down. Returns where, if that could be done.
fn leave_trace(seed: u64, options: &Options) -> Option<PathBuf> {
    let path = PathBuf::from(format!("torture-{seed}.trace.jsonl"));
    let file = File::create(&path).ok()?;
    // A panic ends the trace where it happened, which is where a reader wants it to end.
    let written = std::panic::catch_unwind(AssertUnwindSafe(|| {
        replay::write_trace(seed, options, Box::new(BufWriter::new(file)))
    }));
    match written {
        Ok(Err(_)) => None,
        _ => Some(path),
    }
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
                None => println!("{name:<26} not found within {}", output::count(args.seeds, "seed")),
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
            &json!({ "seeds": args.seeds, "plants": rows.iter().map(row).collect::<Vec<_>>() }),
        );
    }
    let all = rows.iter().all(|(_, found)| found.is_some());
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The first seed that finds what is planted, and how.
#[cfg(feature = "planted")]
fn find_plant(args: &Torture, options: &Options) -> Option<(u64, Violation)> {
    (args.start..args.start.saturating_add(args.seeds)).find_map(|seed| {
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
    fn add(&mut self, seed: u64, outcome: Result<Outcome, Violation>) {
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
        self.failures.extend(violation.map(|violation| Failure { seed, violation, trace: None }));
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
            "version": env!("CARGO_PKG_VERSION"), "seeds": args.seeds, "start": args.start,
            "simulated_hours": self.hours(), "operations": self.operations, "events": self.events,
            "summary": self.summary, "answers": self.answers, "faults": self.faults, "rare": self.rare, "rare_missing": missing,
            "violations": self.failures.iter().map(violation).collect::<Vec<_>>(),
            "trace_hash": self.trace_hash(), "wall_s": wall_s,
        })
    }

    fn print(&self, args: &Torture, missing: &[&str], wall_s: f64) {
        let seeds = output::count(args.seeds, "seed");
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
        }
        match self.failures.len() {
            0 => println!("\nNo violation."),
            count => println!("\n{} of {seeds} violated a promise.", count),
        }
    }
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
    out: BufWriter<File>,
    path: PathBuf,
    clients: u64,
    registers: u64,
    values: u64,
}

impl Histories {
    fn create(path: &Path) -> Result<Histories> {
        let file =
            File::create(path).with_context(|| format!("cannot write the history {}", path.display()))?;
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

    fn finish(mut self) -> Result<()> {
        self.out.flush().with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn number(known: &mut HashMap<u64, u64>, last: &mut u64, old: u64) -> u64 {
    *known.entry(old).or_insert_with(|| {
        *last += 1;
        *last
    })
}

fn run_replay(global: &Global, args: &Replay) -> Result<ExitCode> {
    let file =
        File::open(&args.trace).with_context(|| format!("cannot read the trace {}", args.trace.display()))?;
    let mut out = std::io::stdout().lock();
    let mut nowhere = std::io::sink();
    let shown: &mut dyn Write = if global.json { &mut nowhere } else { &mut out };
    let count = replay::replay(&mut BufReader::new(file), args.until, shown)
        .with_context(|| format!("the trace {} cannot be replayed", args.trace.display()))?;
    if global.json {
        output::print_json(&json!({ "events": count, "agree": true }));
    } else {
        println!("{} agree with the trace.", output::count(count, "event"));
    }
    Ok(ExitCode::SUCCESS)
}

fn parse_layout(text: &str) -> Result<String> {
    width(text).map(|_| text.to_owned())
}

/// How many bricks a layout needs.
fn width(text: &str) -> Result<u32> {
    let layout: proto::layout::Layout = text.parse().map_err(|error| anyhow!("{error}"))?;
    Ok(u32::from(layout.width()))
}
