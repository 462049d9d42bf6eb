//! `cargo xtask bench object`: objects put and read at a fixed rate while bricks are slow or stand still, by turns with all healthy.

use super::demand::{self, Demand};
use crate::place;
use anyhow::{Context, Result, bail};
use base::{Payload, Rng};
use clap::Args;
use clap::builder::PossibleValuesParser;
use host::{ObjectUser, Shutdown, Waker, run_objects};
use job::process;
use objects::object::{AccessStrategy, NewObject, ObjectNews, ObjectWish, SEGMENT_BYTES, WantedObject};
use rig::cluster::{Cluster, Emulation, Spec, Storage};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wire::ObjectName;

/// How to measure.
#[derive(Args)]
#[command(after_help = "\
64 MiB are put and read once a second each, and 4 MiB four times a second each, by one process beside eight bricks. By turns no
brick is slow, the disk of one answers 50 ms late, that of two, and one brick is stopped and continued every 200 ms. Each latency
is of a whole object, from when it was due.")]
pub(crate) struct Options {
    /// Print everything as one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// How often all is measured
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    turns: usize,
    /// How fragments are asked for: `brickwork object get --help`
    #[arg(long, default_value = "paced", value_parser = PossibleValuesParser::new(AccessStrategy::NAMED.map(|(name, _)| name)))]
    access: String,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

const BRICKS: usize = 8;
const LATE_MS: u64 = 50;
const STANDSTILL: Duration = Duration::from_millis(200);
/// A slow brick may cost so much of the 99th percentile.
const BOUND: f64 = 1.2;
/// So many names are put and read of each size.
const NAMES: u64 = 8;

/// Objects of one size, and how often one is put and one is read.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    bytes: usize,
    every: Duration,
}

const KINDS: [Kind; 2] = [
    Kind { name: "64 MiB", bytes: 64 << 20, every: Duration::from_secs(1) },
    Kind { name: "4 MiB", bytes: 4 << 20, every: Duration::from_millis(250) },
];

/// How the bricks are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Healthy,
    OneLate,
    TwoLate,
    OneStops,
}

const STATES: [(State, &str); 4] = [
    (State::Healthy, "all healthy"),
    (State::OneLate, "one 50 ms late"),
    (State::TwoLate, "two 50 ms late"),
    (State::OneStops, "one stops and goes on"),
];

/// Of what: whether a put, and which kind.
type What = (bool, usize);

/// What was measured in one state.
#[derive(Default)]
struct Measured {
    took: BTreeMap<What, Vec<Duration>>,
    failed: u64,
    bytes: u64,
    seconds: f64,
    processor_s: f64,
}

/// Measures and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let access = AccessStrategy::named(&options.access).context("an access that has no name")?;
    let spec = Spec {
        bricks: BRICKS,
        storage: Storage { disk_bytes: 8 << 30, emulation: Emulation::Each, ..Storage::default() },
        ..Spec::default()
    };
    let cluster = Cluster::start(&place::binary(options.binary.as_deref())?, &spec)?;
    let mut all: Vec<Measured> = STATES.iter().map(|_| Measured::default()).collect();
    fill(&cluster)?;
    for turn in 0..options.turns {
        for (at, (state, name)) in STATES.into_iter().enumerate() {
            eprintln!("    turn {} of {}: {name}", turn + 1, options.turns);
            let how = (Duration::from_secs(options.seconds), access);
            measure(&cluster, state, how, &mut all[at])?;
        }
    }
    let demands = demands(&all);
    if options.json {
        println!("{}", as_json(&all, &demands));
    } else {
        print(&all, &demands);
    }
    Ok(())
}

/// Puts each object once, so that there is something to read.
fn fill(cluster: &Cluster) -> Result<()> {
    let mut load = Load::new(Duration::ZERO, AccessStrategy::USUAL);
    let names = (0..KINDS.len()).flat_map(|kind| (0..NAMES).map(move |number| (kind, number)));
    load.at_first = names.collect();
    run(cluster, &mut load)?;
    if load.measured.failed > 0 {
        bail!("{} of the first puts failed", load.measured.failed);
    }
    Ok(())
}

fn measure(
    cluster: &Cluster,
    state: State,
    (length, access): (Duration, AccessStrategy),
    into: &mut Measured,
) -> Result<()> {
    for number in 1..=BRICKS {
        let is_late = matches!((state, number), (State::OneLate | State::TwoLate, 1) | (State::TwoLate, 2));
        cluster.set_late(number, if is_late { LATE_MS } else { 0 })?;
    }
    // The bricks look for changes of that a few times a second.
    thread::sleep(Duration::from_secs(1));
    let mut load = Load::new(length, access);
    let (before, done) = (processor_s(cluster)?, AtomicBool::new(false));
    let outcome = thread::scope(|scope| {
        if state == State::OneStops {
            scope.spawn(|| stop_and_go(cluster, &done));
        }
        let outcome = run(cluster, &mut load);
        done.store(true, Ordering::SeqCst);
        outcome
    });
    outcome?;
    into.processor_s += processor_s(cluster)? - before;
    into.seconds += length.as_secs_f64();
    into.bytes += load.measured.bytes;
    into.failed += load.measured.failed;
    for (what, took) in load.measured.took {
        into.took.entry(what).or_default().extend(took);
    }
    Ok(())
}

fn stop_and_go(cluster: &Cluster, done: &AtomicBool) {
    while !done.load(Ordering::SeqCst) {
        let brick = &cluster.bricks[0];
        if brick.stand_still().is_ok() {
            thread::sleep(STANDSTILL);
            drop(brick.go_on());
        }
        thread::sleep(STANDSTILL);
    }
}

/// Of all bricks, the directory and this process.
pub(super) fn processor_s(cluster: &Cluster) -> Result<f64> {
    let daemons = cluster.bricks.iter().chain([&cluster.directory]).map(|daemon| daemon.pid());
    let us = daemons.chain([std::process::id()]).map(process::processor_us).sum::<Result<u64>>()?;
    Ok(us as f64 / 1e6)
}

fn run(cluster: &Cluster, load: &mut Load) -> Result<()> {
    let admin = cluster.admin_options()?;
    let shutdown = Shutdown::on_signals().context("cannot watch for signals")?;
    Ok(run_objects(&admin.node, &admin.directory, &shutdown, load)?)
}

/// Puts and reads objects when they are due, whatever became of those before.
struct Load {
    length: Duration,
    access: AccessStrategy,
    begun: Instant,
    /// When the next put and the next get of each kind are due.
    due: BTreeMap<What, Instant>,
    at_first: Vec<(usize, u64)>,
    open: BTreeMap<u64, Open>,
    last: u64,
    content: Payload,
    measured: Measured,
}

struct Open {
    what: What,
    due: Instant,
    sent: usize,
}

impl Load {
    fn new(length: Duration, access: AccessStrategy) -> Load {
        let now = Instant::now();
        let begin = |(is_put, kind): What| {
            ((is_put, kind), now + KINDS[kind].every.mul_f64(if is_put { 0.3 } else { 0.8 }))
        };
        let due = [(true, 0), (false, 0), (true, 1), (false, 1)].map(begin).into();
        let mut content = vec![0; SEGMENT_BYTES];
        Rng::with_seed(1).fill(&mut content);
        Load {
            length,
            access,
            begun: now,
            due,
            at_first: Vec::new(),
            open: BTreeMap::new(),
            last: 0,
            content: Payload::from(content),
            measured: Measured::default(),
        }
    }

    fn begin_one(&mut self, what: What, number: u64, due: Instant) -> Vec<(u64, ObjectWish)> {
        self.last += 1;
        self.open.insert(self.last, Open { what, due, sent: 0 });
        let (is_put, kind) = what;
        let name = ObjectName { bucket: "bench".to_owned(), key: format!("{kind}/{number}") };
        let wish = match is_put {
            true => ObjectWish::Put(NewObject::usual(name)),
            false => ObjectWish::Get(WantedObject { name, range: None, access: self.access }),
        };
        let more = (!is_put).then_some((self.last, ObjectWish::More));
        [(self.last, wish)].into_iter().chain(more).collect()
    }
}

impl ObjectUser for Load {
    fn begin(&mut self, waker: &Waker) -> Vec<(u64, ObjectWish)> {
        self.begun = Instant::now();
        let (waker, until) = (waker.clone(), self.begun + self.length);
        thread::spawn(move || {
            while Instant::now() < until {
                thread::sleep(Duration::from_millis(5));
                waker.wake();
            }
        });
        let now = Instant::now();
        let at_first = std::mem::take(&mut self.at_first);
        at_first.into_iter().flat_map(|(kind, number)| self.begin_one((true, kind), number, now)).collect()
    }

    fn gather(&mut self) -> Vec<(u64, ObjectWish)> {
        let (now, end) = (Instant::now(), self.begun + self.length);
        let mut wishes = Vec::new();
        for what in self.due.keys().copied().collect::<Vec<_>>() {
            let due = self.due[&what];
            if due <= now && due < end {
                self.due.insert(what, due + KINDS[what.1].every);
                // Those that are read are not those that are put just now.
                let number = (self.last + if what.0 { 0 } else { NAMES / 2 }) % NAMES;
                wishes.extend(self.begin_one(what, number, due));
            }
        }
        wishes
    }

    fn told(&mut self, tag: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)> {
        let Some(open) = self.open.get_mut(&tag) else { return Vec::new() };
        let bytes = KINDS[open.what.1].bytes;
        match news {
            ObjectNews::WantsContent { .. } => {
                let length = (bytes - open.sent).min(SEGMENT_BYTES);
                open.sent += length;
                let (content, is_last) = (self.content.slice(0, length), open.sent == bytes);
                return vec![(tag, ObjectWish::Content { content, is_last })];
            }
            ObjectNews::Begun(_) => {}
            ObjectNews::Content(_) => return vec![(tag, ObjectWish::More)],
            ObjectNews::Put(Ok(_)) | ObjectNews::Got(Ok(())) => {
                let Open { what, due, .. } = *open;
                self.measured.took.entry(what).or_default().push(due.elapsed());
                self.measured.bytes += bytes as u64;
                self.open.remove(&tag);
            }
            _ => {
                self.measured.failed += 1;
                self.open.remove(&tag);
            }
        }
        Vec::new()
    }

    fn is_done(&self) -> bool {
        self.begun.elapsed() >= self.length && self.open.is_empty() && self.at_first.is_empty()
    }

    fn interrupt(&mut self) -> Vec<(u64, ObjectWish)> {
        self.length = Duration::ZERO;
        let open = std::mem::take(&mut self.open);
        open.into_keys().map(|tag| (tag, ObjectWish::CallOff)).collect()
    }
}

// ---- what came of it ----

/// Milliseconds below which that part of them is.
fn quantile(took: &[Duration], part: f64) -> f64 {
    let mut sorted = took.to_vec();
    sorted.sort_unstable();
    let at = ((sorted.len() as f64 * part).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(at).map_or(f64::NAN, |took| took.as_secs_f64() * 1e3)
}

fn text((is_put, kind): What) -> String {
    format!("{} of {}", if is_put { "put" } else { "get" }, KINDS[kind].name)
}

fn demands(all: &[Measured]) -> Vec<Demand> {
    let [healthy, one_late, _, one_stops] = all else { return Vec::new() };
    let mut demands = Vec::new();
    for (name, state) in [("one late", one_late), ("one stops", one_stops)] {
        for (what, took) in &state.took {
            let before = healthy.took.get(what).map_or(f64::NAN, |took| quantile(took, 0.99));
            let ratio = quantile(took, 0.99) / before;
            demands.push(Demand::at_most(
                format!("p99 of {}, {name}, of healthy", text(*what)),
                ratio,
                BOUND,
            ));
        }
    }
    demands
}

fn cost(measured: &Measured) -> f64 {
    measured.processor_s / (measured.bytes as f64 / f64::from(1 << 30))
}

fn print(all: &[Measured], demands: &[Demand]) {
    println!("{:<22} {:<15} {:>6} {:>9} {:>9}", "bricks", "what", "count", "p50 ms", "p99 ms");
    for ((_, name), measured) in STATES.iter().zip(all) {
        for (what, took) in &measured.took {
            let (p50, p99) = (quantile(took, 0.5), quantile(took, 0.99));
            println!("{name:<22} {:<15} {:>6} {p50:>9.0} {p99:>9.0}", text(*what), took.len());
        }
        let rate = measured.bytes as f64 / 1e6 / measured.seconds;
        println!(
            "{name:<22} {rate:.0} MB/s, {:.2} processor s a GiB, {} failed",
            cost(measured),
            measured.failed
        );
    }
    demand::print(demands);
}

fn as_json(all: &[Measured], demands: &[Demand]) -> Value {
    let state = |((_, name), measured): (&(State, &str), &Measured)| {
        let of = |(what, took): (&What, &Vec<Duration>)| {
            json!({
                "what": text(*what), "count": took.len(), "p50_ms": quantile(took, 0.5), "p99_ms": quantile(took, 0.99),
            })
        };
        json!({
            "bricks": name, "latencies": measured.took.iter().map(of).collect::<Vec<_>>(), "failed": measured.failed,
            "mb_per_second": measured.bytes as f64 / 1e6 / measured.seconds, "processor_s_per_gib": cost(measured),
        })
    };
    json!({
        "states": STATES.iter().zip(all).map(state).collect::<Vec<_>>(),
        "claims": demands.iter().map(Demand::json).collect::<Vec<_>>(),
    })
}
