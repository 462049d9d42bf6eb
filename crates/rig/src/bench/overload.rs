//! `cargo xtask bench overload`: more writes than the disks take, and what becomes of the bricks. `brickwork lab run world.overload` is the same in
//! simulation.
//!
//! Reading order: [`verb`] (what is run), [`Case`] (a cluster and its load), [`Load`] (two clients that keep so many requests under way), [`Watch`]
//! (what the directory says of bricks meanwhile), [`Found`] (what is told). Real daemons; disks are files, or modelled drives behind files.

use super::demand::{self, Demand};
use crate::{clients, place};
use anyhow::{Context, Result, bail, ensure};
use base::BrickId;
use clap::{Args, ValueEnum};
use rig::cluster::{Cluster, Emulation, Spec, Storage};
use rig::nbd::Nbd;
use rig::noise::Noise;
use serde_json::{Value, json};
use sim::timed::Standings;
use sim::timed::standings::Change;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wire::{AdminReply, AdminRequest, ClusterStatus, StatusPart};

/// Requests under way at once the load: all clients together. Modelled drives are saturated by fewer.
const DEPTH: u32 = 32;
const CLIENTS: u32 = 2;
const WRITE_BYTES: usize = 4096;
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The brick that is slower than the others, where one is.
const SLOWER: usize = 2;
/// For so long all may take to be redundant again once the load has ended; so many times as long where a brick is slower.
const REDUNDANT_WITHIN: Duration = Duration::from_secs(300);

/// What bricks keep their bytes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Disks {
    /// Modelled drives: blocks cost what they would there, journals nothing
    Drives,
    /// Files as they are
    Files,
}

/// How to measure.
#[derive(Args)]
#[command(after_help = "\
At once the load, two clients keep 32 random writes of 4 KiB under way, and so many times as many beyond.

Examples:
  cargo xtask bench overload --quick
  cargo xtask bench overload --layout raid1x3 --disks drives --times 10
  cargo xtask bench overload --layout raid1x3 --times 2 --slower 3
  cargo xtask bench overload --disks drives --drive seagate-barracuda --drive-percent 100
  cargo xtask bench overload --layout raid1x3 --disks drives --times 4 --away 10")]
pub(crate) struct Options {
    /// Only this layout; may be repeated
    #[arg(long = "layout", default_values_t = ["raid1x3", "raid5-4+1", "rs-4+2"].map(str::to_owned))]
    layouts: Vec<String>,
    /// How many bricks there are; as many as the layout is wide without it
    #[arg(long)]
    bricks: Option<usize>,
    /// Only on these disks; may be repeated
    #[arg(long, value_enum, default_values_t = [Disks::Drives, Disks::Files])]
    disks: Vec<Disks>,
    /// How many times the load that saturates the disks; comma-separated
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 5, 10], value_parser = clap::value_parser!(u32).range(1..=64))]
    times: Vec<u32>,
    /// The second brick's drive is so many times slower than the others'; comma-separated
    #[arg(long, value_delimiter = ',', default_values_t = [1], value_parser = clap::value_parser!(u32).range(1..=100))]
    slower: Vec<u32>,
    /// A brick is killed for so many seconds under load: how long it catches up, while the load goes on and after it has ended
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=600))]
    away: u64,
    /// The drive that bricks imitate, of `brickwork disk list`
    #[arg(long, value_name = "MODEL", default_value = "quantum-atlas-10k")]
    drive: String,
    /// What the drive takes, in percent of what it took: 25 makes it four times as fast
    #[arg(long, value_name = "PERCENT", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=1000))]
    drive_percent: u32,
    /// Seconds of load in each case
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u64).range(5..))]
    seconds: u64,
    /// The size of the volume, in MiB; it is written all over before
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(16..))]
    volume_mib: u64,
    /// 20 seconds at once and ten times the load, copies on drives: to see that it works, not to quote
    #[arg(long)]
    quick: bool,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A cluster and its load.
#[derive(Clone)]
struct Case {
    layout: String,
    bricks: usize,
    disks: Disks,
    times: u32,
    slower: u32,
    span: Duration,
    volume_bytes: u64,
    away: Option<Away>,
    /// Of modelled drives: which, and how long it takes in percent of what it took.
    drive: String,
    drive_percent: u32,
}

/// A brick is killed, and started again.
#[derive(Clone, Copy)]
struct Away {
    seconds: u64,
    /// Whether the load goes on when it is back.
    under_load: bool,
}

/// Measures and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let binary = place::binary(options.binary.as_deref())?;
    let mut all = Vec::new();
    for case in cases(options) {
        let found = case.measure(&binary).with_context(|| case.name())?;
        if !options.json {
            found.print();
        }
        all.push(found);
    }
    let demands = demands(&all);
    if options.json {
        let cases: Vec<Value> = all.iter().map(Found::json).collect();
        let demands: Vec<Value> = demands.iter().map(Demand::json).collect();
        println!(
            "{}",
            json!({"depth": DEPTH, "write_bytes": WRITE_BYTES, "cases": cases, "claims": demands})
        );
    } else {
        demand::print(&demands);
    }
    Ok(())
}

fn cases(options: &Options) -> Vec<Case> {
    let (layouts, disks, times, seconds) = match options.quick {
        true => (vec!["raid1x3".to_owned()], vec![Disks::Drives], vec![1, 10], 20),
        false => (options.layouts.clone(), options.disks.clone(), options.times.clone(), options.seconds),
    };
    let away = |under_load| Some(Away { seconds: options.away, under_load });
    let aways = if options.away > 0 { vec![away(false), away(true)] } else { vec![None] };
    let mut cases = Vec::new();
    for layout in &layouts {
        for disks in &disks {
            for slower in options.slower.iter().filter(|slower| **slower == 1 || *disks == Disks::Drives) {
                for (times, away) in
                    times.iter().flat_map(|times| aways.iter().map(move |away| (times, away)))
                {
                    cases.push(Case {
                        layout: layout.clone(),
                        bricks: options.bricks.unwrap_or_else(|| clients::width(layout)),
                        disks: *disks,
                        times: *times,
                        slower: *slower,
                        span: Duration::from_secs(seconds),
                        volume_bytes: options.volume_mib << 20,
                        away: *away,
                        drive: options.drive.clone(),
                        drive_percent: options.drive_percent,
                    });
                }
            }
        }
    }
    cases
}

impl Case {
    fn name(&self) -> String {
        let disks = match self.disks {
            Disks::Drives => "drives",
            Disks::Files => "files",
        };
        let slower = if self.slower > 1 { format!(", one {}x slower", self.slower) } else { String::new() };
        let away = self.away.map_or(String::new(), |away| {
            let load = if away.under_load { "loaded" } else { "idle" };
            format!(", {} s away, then {load}", away.seconds)
        });
        format!("{} on {} bricks, {disks}, {}x{slower}{away}", self.layout, self.bricks, self.times)
    }

    fn measure(&self, binary: &Path) -> Result<Found> {
        let disk_bytes = self.volume_bytes / clients::data(&self.layout) * 5 / 4 + (512 << 20);
        let spec = Spec {
            name: "overload",
            bricks: self.bricks,
            metrics: true,
            storage: Storage {
                disk_bytes,
                emulation: if self.disks == Disks::Drives { Emulation::Each } else { Emulation::None },
                ..Storage::default()
            },
            ..Spec::default()
        };
        let mut cluster = Cluster::start(binary, &spec)?;
        cluster.create("v", self.volume_bytes, &self.layout)?;
        fill(&cluster, self.volume_bytes)?;
        cluster.wait_until_destaged();
        if self.disks == Disks::Drives {
            for brick in 1..=self.bricks {
                let slower = if brick == SLOWER { self.slower } else { 1 };
                cluster.emulate(brick, &drive(&self.drive, self.drive_percent * slower))?;
            }
            cluster.wait_for_drives(true)?;
        }
        let mut load = Load::start(&cluster, DEPTH * self.times)?;
        let mut watch = Watch::default();
        let back = match self.away {
            None => {
                watch.until(&cluster, &load, self.span)?;
                None
            }
            Some(away) => Some(self.lose(away, &mut cluster, &mut load, &mut watch)?),
        };
        let at_end = watch.standings.lacks_redundancy;
        let span = load.stop();
        let samples = load.finish()?;
        let redundant = cluster.wait_until_redundant(REDUNDANT_WITHIN * self.slower)?;
        cluster.all_alive()?;
        let redundant = back.unwrap_or(redundant);
        Ok(Found::of((self, span), &samples, watch, at_end, redundant))
    }

    /// Kills a brick and starts it again: how long it takes from there until all is redundant.
    fn lose(
        &self,
        away: Away,
        cluster: &mut Cluster,
        load: &mut Load,
        watch: &mut Watch,
    ) -> Result<Duration> {
        watch.until(cluster, load, Duration::from_secs(5))?;
        cluster.kill("brick-3")?;
        watch.until(cluster, load, Duration::from_secs(5 + away.seconds))?;
        if !away.under_load {
            load.stop();
        }
        cluster.start_again("brick-3")?;
        let begun = Instant::now();
        loop {
            watch.look(cluster, load.began)?;
            if watch.standings.all_serve() {
                return Ok(begun.elapsed());
            }
            ensure!(begun.elapsed() < REDUNDANT_WITHIN, "it was not redundant within {REDUNDANT_WITHIN:?}");
            thread::sleep(LOOK_EVERY);
        }
    }
}

fn drive(model: &str, percent: u32) -> String {
    format!("[drive]\nmodel = \"{model}\"\nslow_percent = {percent}\n")
}

fn fill(cluster: &Cluster, bytes: u64) -> Result<()> {
    let mut nbd = cluster.connect_patiently(0, "v")?;
    let chunk = Noise::new(99).bytes(1 << 20);
    for offset in (0..bytes).step_by(chunk.len()) {
        nbd.write(offset, &chunk[..chunk.len().min((bytes - offset) as usize)])?;
    }
    Ok(())
}

/// A write: when it was answered, since the beginning, and how long it took.
#[derive(Clone, Copy)]
struct Sample {
    at: Duration,
    took: Duration,
}

/// Clients that keep so many writes under way, all together, until they are stopped.
struct Load {
    began: Instant,
    /// When it was stopped.
    ended: Option<Duration>,
    stops: Arc<AtomicBool>,
    clients: Vec<thread::JoinHandle<Result<Vec<Sample>>>>,
}

impl Load {
    fn start(cluster: &Cluster, depth: u32) -> Result<Load> {
        let connections = (0..CLIENTS).map(|_| cluster.connect(0, "v")).collect::<Result<Vec<_>>>()?;
        let (began, stops) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let start = |(client, nbd)| {
            let noise = Noise::new(u64::from(depth) << 8 | (client as u64 + 1));
            let stops = Arc::clone(&stops);
            thread::spawn(move || write(nbd, noise, depth / CLIENTS, began, &stops))
        };
        let clients = connections.into_iter().enumerate().map(start).collect();
        Ok(Load { began, ended: None, stops, clients })
    }

    /// No new writes from now on. When that was said first.
    fn stop(&mut self) -> Duration {
        self.stops.store(true, Ordering::Relaxed);
        *self.ended.get_or_insert(self.began.elapsed())
    }

    fn finish(self) -> Result<Vec<Sample>> {
        let mut all = Vec::new();
        for client in self.clients {
            let Ok(samples) = client.join() else { bail!("a client of the load panicked") };
            all.append(&mut samples?);
        }
        Ok(all)
    }
}

/// One client.
fn write(
    mut nbd: Nbd,
    mut noise: Noise,
    depth: u32,
    began: Instant,
    stops: &AtomicBool,
) -> Result<Vec<Sample>> {
    let mut buffer = [0; WRITE_BYTES];
    let mut next = |nbd: &mut Nbd, handle: u64| -> Result<Instant> {
        let offset = noise.below(nbd.size / WRITE_BYTES as u64) * WRITE_BYTES as u64;
        noise.fill(&mut buffer);
        let asked = Instant::now();
        nbd.send_write(handle, offset, &buffer)?;
        Ok(asked)
    };
    let (mut samples, mut under_way) = (Vec::new(), HashMap::new());
    for handle in 0..u64::from(depth) {
        under_way.insert(handle, next(&mut nbd, handle)?);
    }
    while !under_way.is_empty() {
        let reply = nbd.reply()?;
        ensure!(reply.error == 0, "a write failed with error {}", reply.error);
        let asked = under_way.remove(&reply.handle).context("a write was answered that nobody asked for")?;
        samples.push(Sample { at: began.elapsed(), took: asked.elapsed() });
        if !stops.load(Ordering::Relaxed) {
            under_way.insert(reply.handle, next(&mut nbd, reply.handle)?);
        }
    }
    Ok(samples)
}

/// What the directory says of bricks.
#[derive(Default)]
struct Watch {
    /// By id, counted from 1.
    numbers: BTreeMap<BrickId, usize>,
    standings: Standings,
}

impl Watch {
    /// Looks again and again until the load has lasted for so long.
    fn until(&mut self, cluster: &Cluster, load: &Load, span: Duration) -> Result<()> {
        while load.began.elapsed() < span {
            self.look(cluster, load.began)?;
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn look(&mut self, cluster: &Cluster, began: Instant) -> Result<()> {
        let status = summary(cluster)?;
        if self.numbers.is_empty() {
            for number in 1..=status.bricks.len() {
                let id = cluster.brick_id(number)?;
                let brick = status.bricks.iter().find(|brick| brick.id.0.to_string() == id);
                self.numbers.extend(brick.map(|brick| (brick.id, number)));
            }
        }
        self.standings.look(began.elapsed(), &status);
        Ok(())
    }

    /// What changed, and when.
    fn changes(&self) -> Vec<(Duration, String)> {
        let in_words = |Change { after, brick, standing }: &Change| {
            let number = self.numbers.get(brick).copied().unwrap_or(0);
            let now = if standing.is_well() { "well".to_owned() } else { standing.to_string() };
            (*after, format!("brick {number}: {now}"))
        };
        self.standings.changes.iter().map(in_words).collect()
    }
}

fn summary(cluster: &Cluster) -> Result<ClusterStatus> {
    match cluster.call(AdminRequest::Status { part: StatusPart::Summary { most: 1000 } })? {
        AdminReply::Status(status) => Ok(*status),
        other => bail!("the directory answered a question about its status with {other:?}"),
    }
}

/// What was found.
struct Found {
    case: Case,
    writes_a_second: f64,
    /// Of the second in which fewest were answered, but the first and the last.
    least_a_second: usize,
    p50_ms: f64,
    p99_ms: f64,
    most_ms: f64,
    changes: Vec<(Duration, String)>,
    left: u32,
    unwell_at_end: bool,
    /// From the end of the load until all was redundant; from the brick's return where one was away.
    redundant: Duration,
}

impl Found {
    fn of(
        (case, span): (&Case, Duration),
        samples: &[Sample],
        watch: Watch,
        unwell_at_end: bool,
        redundant: Duration,
    ) -> Found {
        let seconds = span.as_secs() as usize;
        let mut each = vec![0; seconds];
        for sample in samples {
            if let Some(second) = each.get_mut(sample.at.as_secs() as usize) {
                *second += 1;
            }
        }
        let mut took: Vec<f64> = samples.iter().map(|sample| sample.took.as_secs_f64() * 1e3).collect();
        took.sort_by(f64::total_cmp);
        let at = |part: f64| took[((took.len() as f64 * part) as usize).min(took.len() - 1)];
        // The journals take what comes in the first seconds.
        let steady = &each[seconds / 3..];
        Found {
            case: case.clone(),
            writes_a_second: steady.iter().sum::<usize>() as f64 / steady.len() as f64,
            least_a_second: each[1..].iter().copied().min().unwrap_or(0),
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            most_ms: at(1.0),
            changes: watch.changes(),
            left: watch.standings.left,
            unwell_at_end,
            redundant,
        }
    }

    fn print(&self) {
        println!("{}", self.case.name());
        println!(
            "  {:.0} writes a second, {} in the worst one; p50 {:.0} ms, p99 {:.0} ms, longest {:.0} ms",
            self.writes_a_second, self.least_a_second, self.p50_ms, self.p99_ms, self.most_ms
        );
        for (at, change) in &self.changes {
            println!("  {:>6.1} s  {change}", at.as_secs_f64());
        }
        let end = if self.unwell_at_end { "less redundant at the end; " } else { "" };
        println!("  {end}{:.1} s until all is redundant", self.redundant.as_secs_f64());
    }

    fn json(&self) -> Value {
        let changes = self.changes.iter().map(|(at, what)| json!({"at_s": at.as_secs_f64(), "what": what}));
        json!({
            "layout": self.case.layout, "bricks": self.case.bricks, "drives": self.case.disks == Disks::Drives,
            "drive": (self.case.disks == Disks::Drives).then_some(&self.case.drive), "drive_percent": self.case.drive_percent,
            "times": self.case.times, "slower": self.case.slower, "seconds": self.case.span.as_secs(),
            "writes_a_second": self.writes_a_second, "least_a_second": self.least_a_second,
            "p50_ms": self.p50_ms, "p99_ms": self.p99_ms, "longest_ms": self.most_ms,
            "away_s": self.case.away.map(|away| away.seconds),
            "loaded_when_back": self.case.away.map(|away| away.under_load), "left": self.left, "unwell_at_end": self.unwell_at_end, "redundant_s": self.redundant.as_secs_f64(),
            "changes": changes.collect::<Vec<Value>>(),
        })
    }
}

/// What must hold where no brick is slower than others, and where one was away.
fn demands(all: &[Found]) -> Vec<Demand> {
    let mut demands = Vec::new();
    let equal = |found: &&Found| found.case.slower == 1 && found.case.away.is_none();
    for found in all.iter().filter(equal) {
        let name = found.case.name();
        demands.push(Demand::at_most(format!("{name}: bricks left out"), f64::from(found.left), 0.0));
        let unwell = f64::from(u8::from(found.unwell_at_end));
        demands.push(Demand::at_most(format!("{name}: not redundant"), unwell, 0.0));
        let alike = all
            .iter()
            .filter(equal)
            .filter(|other| (&other.case.layout, other.case.disks) == (&found.case.layout, found.case.disks));
        let most = alike.clone().map(|other| other.case.times).max();
        let best = alike.map(|other| other.writes_a_second).fold(0.0, f64::max);
        if most == Some(found.case.times) && most > Some(1) {
            let share = found.writes_a_second / best;
            demands.push(Demand::at_least(format!("{name}: share of the best"), share, 0.9));
        }
    }
    demands.extend(all.iter().filter_map(|found| catches_up(all, found)));
    demands
}

/// A brick that was away catches up under load in twice the time that it takes without, and in the time in which the disks take what is written in
/// so long.
fn catches_up(all: &[Found], found: &Found) -> Option<Demand> {
    let is_loaded = |found: &Found| found.case.away.map(|away| away.under_load);
    let is_alike = |other: &&Found| {
        let key = |case: &Case| {
            (case.layout.clone(), case.bricks, case.disks == Disks::Drives, case.times, case.slower)
        };
        key(&other.case) == key(&found.case) && is_loaded(other) == Some(false)
    };
    let idle = all.iter().find(is_alike).filter(|_| is_loaded(found) == Some(true))?;
    let took = found.redundant.as_secs_f64();
    let twice = 2.0 * idle.redundant.as_secs_f64();
    let bound = twice + twice * found.writes_a_second / idle.writes_a_second;
    Some(Demand::at_most(format!("{}: s until redundant", found.case.name()), took, bound))
}
