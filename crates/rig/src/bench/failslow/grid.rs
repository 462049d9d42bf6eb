//! `--grid`: delays of many sizes, at the disk or on the network of one brick, for a moment, for a while or to the end, under reads and under writes.
//!
//! The axes are those of Lu et al., "One-Size-Fits-None: Understanding and Enhancing Slow-Fault Tolerance in Modern Distributed
//! Systems" (NSDI 2025): how much a slow fault hurts depends on its severity, its duration, its place and the workload together.
//!
//! Reading order: [`Choice`] (which cells), [`verb`], [`Cell::measure`] (a cluster of its own for each cell, as how long a brick
//! stays out depends on how often it has been), [`Story`] (what became of the brick), [`Measured`], then the table.

use super::awake::Awake;
use super::load::{Kind, Percentiles};
use super::state::BRICK;
use super::table::{millis, print_lateness, seconds};
use super::{JOBS, MIRROR, Options, Plan, READ_RATE, WRITE_BYTES, WRITE_RATE, filled, load, spec};
use anyhow::{Context, Result, anyhow, ensure};
use clap::{Args, ValueEnum};
use rig::cluster::{Cluster, Spec, Ways};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};
use wire::directory::BrickEntry;

/// The severities of the study, each ten times the one before.
const DELAYS_MS: [f64; 5] = [0.1, 1.0, 10.0, 100.0, 1000.0];
/// What emulated disks take.
const DELAY_MS_MAX: f64 = 60_000.0;
/// Load before the healthy time: the caches and what the gateway knows of its bricks are then those of a cluster in use.
const WARM: Duration = Duration::from_secs(1);
/// The begin of a fault, in which its detection falls.
const FIRST: Duration = Duration::from_secs(1);
/// Between two looks at the state of the brick.
const LOOK: Duration = Duration::from_millis(100);
const REDUNDANT_WITHIN: Duration = Duration::from_secs(120);

/// Which cells.
#[derive(Args)]
pub(super) struct Choice {
    /// Delays of 0.1 ms to 1 s at one brick, for 0.5 s, 5 s or to the end, under reads and under writes (an hour and a half)
    #[arg(long, conflicts_with_all = ["policies", "states", "turns"])]
    grid: bool,
    /// Only this place of the delay, in the grid; may be repeated
    #[arg(long = "place", value_enum, requires = "grid")]
    places: Vec<Place>,
    /// Only this delay, in the grid, in milliseconds; may be repeated
    #[arg(long = "delay-ms", value_name = "MS", value_parser = delay_ms, requires = "grid")]
    delays_ms: Vec<f64>,
    /// Only faults that last so many seconds, in the grid, or as long as there is load; may be repeated
    #[arg(long, value_name = "SECONDS", value_enum, requires = "grid")]
    lasts: Vec<Lasts>,
}

impl Choice {
    pub(super) fn is_wanted(&self) -> bool {
        self.grid
    }
}

fn delay_ms(text: &str) -> Result<f64, String> {
    let ms: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    let is_good = ms > 0.0 && ms <= DELAY_MS_MAX;
    if is_good { Ok(ms) } else { Err(format!("it must be above 0 and at most {DELAY_MS_MAX}")) }
}

/// What is late.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Place {
    /// The brick's disk, by so much on each access
    Disk,
    /// All packets to and from the brick, half of the delay each way; needs network namespaces, and so root
    Network,
}

impl Place {
    const ALL: [Place; 2] = [Place::Disk, Place::Network];

    fn name(self) -> &'static str {
        match self {
            Place::Disk => "disk",
            Place::Network => "network",
        }
    }

    fn set_late(self, cluster: &Cluster, ms: f64) -> Result<()> {
        match self {
            Place::Disk => cluster.emulate(BRICK, &format!("late_ms = {ms}\n")),
            Place::Network => {
                let late = Duration::from_secs_f64(ms * 1e-3);
                cluster.network()?.set_late(&format!("brick-{BRICK}"), late)
            }
        }
    }
}

/// How long the fault lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Lasts {
    #[value(name = "0.5")]
    Moment,
    #[value(name = "5")]
    While,
    #[value(name = "end")]
    ToTheEnd,
}

impl Lasts {
    const ALL: [Lasts; 3] = [Lasts::Moment, Lasts::While, Lasts::ToTheEnd];

    fn name(self) -> &'static str {
        match self {
            Lasts::Moment => "0.5 s",
            Lasts::While => "5 s",
            Lasts::ToTheEnd => "end",
        }
    }

    /// None for as long as there is load.
    fn span(self) -> Option<Duration> {
        match self {
            Lasts::Moment => Some(Duration::from_millis(500)),
            Lasts::While => Some(Duration::from_secs(5)),
            Lasts::ToTheEnd => None,
        }
    }
}

/// A fault under a workload.
#[derive(Clone, PartialEq, Debug)]
struct Cell {
    layout: String,
    place: Place,
    kind: Kind,
    delay_ms: f64,
    lasts: Lasts,
}

/// How long is measured.
struct Spans {
    healthy: Duration,
    /// A fault that lasts to the end.
    to_the_end: Duration,
    /// After a fault that ends before.
    after: Duration,
}

impl Spans {
    fn new(is_quick: bool) -> Spans {
        let seconds = |full, few| Duration::from_secs(if is_quick { few } else { full });
        Spans { healthy: seconds(10, 4), to_the_end: seconds(20, 8), after: seconds(15, 4) }
    }

    /// The load, from its start to its end.
    fn total(&self, lasts: Lasts) -> Duration {
        let fault = lasts.span().map_or(self.to_the_end, |span| span + self.after);
        WARM + self.healthy + fault
    }
}

/// All cells that are wanted, those that are to be compared side by side one after the other.
fn cells(options: &Options) -> Vec<Cell> {
    let Choice { places, delays_ms, lasts, .. } = &options.grid;
    let is_quick = options.quick;
    let layouts = given(&options.layouts, &[MIRROR.to_owned()]);
    let places = given(places, &Place::ALL);
    let delays_ms = given(delays_ms, if is_quick { &[100.0] } else { &DELAYS_MS });
    let lasts = given(lasts, if is_quick { &[Lasts::While] } else { &Lasts::ALL });
    let only = options.only.as_deref();
    let kinds =
        [Kind::Read, Kind::Write].into_iter().filter(|kind| only.is_none_or(|only| only == plural(*kind)));
    let mut cells = Vec::new();
    for layout in &layouts {
        for place in &places {
            for kind in kinds.clone() {
                for delay_ms in &delays_ms {
                    cells.extend(lasts.iter().map(|lasts| Cell {
                        layout: layout.clone(),
                        place: *place,
                        kind,
                        delay_ms: *delay_ms,
                        lasts: *lasts,
                    }));
                }
            }
        }
    }
    cells
}

fn given<T: Clone>(given: &[T], default: &[T]) -> Vec<T> {
    if given.is_empty() { default.to_vec() } else { given.to_vec() }
}

fn plural(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "reads",
        Kind::Write => "writes",
    }
}

/// Measures and prints. A cell that fails does not take the others with it.
pub(super) fn verb(options: &Options, binary: &Path, plan: &Plan) -> Result<()> {
    let spans = Spans::new(options.quick);
    let cells = cells(options);
    let mut told = Vec::new();
    let mut group = String::new();
    for cell in &cells {
        if cell.group() != group {
            group = cell.group();
            eprintln!("{group}\n{}", heading());
        }
        let found = cell.measure(binary, plan, &spans).map_err(|error| format!("{error:#}"));
        eprintln!("{}", line(cell, &found));
        told.push((cell.clone(), found));
    }
    if options.json {
        println!("{}", as_json(options, &told));
    } else {
        print(&told);
    }
    let failed = told.iter().filter(|(_, found)| found.is_err()).count();
    ensure!(failed == 0, "{failed} of {} cells could not be measured", cells.len());
    Ok(())
}

impl Cell {
    /// What it shares with those beside which it is printed.
    fn group(&self) -> String {
        format!("{}, {}, the {} late", self.layout, plural(self.kind), self.place.name())
    }

    fn measure(&self, binary: &Path, plan: &Plan, spans: &Spans) -> Result<Measured> {
        let is_network = self.place == Place::Network;
        let spec = Spec {
            ways: if is_network { Ways::Namespaces { late: Some(BRICK) } } else { Ways::Loopback },
            // Nobody outside its namespace sees the metrics of a daemon.
            metrics: !is_network,
            ..spec(&self.layout, plan)
        };
        let mut cluster = filled(Cluster::start(binary, &spec)?, &self.layout, plan)?;
        let over = AtomicBool::new(false);
        let (troubled, looks) = thread::scope(|scope| {
            let watching = scope.spawn(|| watch(&cluster, &over));
            let troubled = self.trouble(&cluster, plan, spans);
            over.store(true, Ordering::Relaxed);
            (troubled, watching.join().map_err(|_| anyhow!("the watch over the brick panicked")))
        });
        let ((fault, latencies), looks) = (troubled?, looks??);
        cluster.all_alive()?;
        Ok(Measured { story: Story::of(&looks, fault), latencies, lasted: fault.end - fault.begin })
    }

    /// Puts load on the cluster, lets the brick ail and be well again, and waits until all is redundant.
    fn trouble(&self, cluster: &Cluster, plan: &Plan, spans: &Spans) -> Result<(Fault, Latencies)> {
        let (rate, bytes) = match self.kind {
            Kind::Read => (plan.read_rate, plan.read_bytes),
            Kind::Write => (WRITE_RATE, WRITE_BYTES),
        };
        let (awake, total) = (Awake::begin()?, spans.total(self.lasts));
        let paced = load(cluster, self.kind, bytes).start(JOBS, rate, total)?;
        let epoch = paced.began;
        sleep((WARM + spans.healthy).saturating_sub(epoch.elapsed()));
        let begin = Instant::now();
        self.place.set_late(cluster, self.delay_ms)?;
        let mut end = None;
        if let Some(span) = self.lasts.span() {
            sleep(span.saturating_sub(begin.elapsed()));
            end = Some(Instant::now());
            self.place.set_late(cluster, 0.0)?;
        }
        let samples = paced.finish()?;
        awake.end()?;
        let fault = Fault { begin, end: end.unwrap_or_else(Instant::now) };
        self.place.set_late(cluster, 0.0)?;
        cluster.wait_until_redundant(REDUNDANT_WITHIN)?;
        let of = |(from, until)| Percentiles::of(&samples, from, until);
        let begin = begin - epoch;
        let [first, rest, after] = windows(begin, end.map_or(total, |end| end - epoch), total);
        Ok((
            fault,
            Latencies {
                healthy: of((WARM, begin)),
                first: first.map(of),
                rest: rest.map(of),
                after: after.map(of),
            },
        ))
    }
}

/// From when to when the brick ailed.
#[derive(Clone, Copy)]
struct Fault {
    begin: Instant,
    end: Instant,
}

type Window = (Duration, Duration);

/// The first second of a fault (all of a shorter one), the rest of it, and the time after it; none where there is none.
fn windows(begin: Duration, end: Duration, total: Duration) -> [Option<Window>; 3] {
    let first = end.min(begin + FIRST);
    [(begin, first), (first, end), (end, total)].map(|(from, until)| (from < until).then_some((from, until)))
}

/// The state of the brick at a moment.
struct Look {
    at: Instant,
    /// It is held for slow, and is to be left out for that.
    is_slow: bool,
    /// No group has it, whether it is held for slow or for dead.
    is_gone: bool,
    /// All its groups have it, and it lacks nothing.
    is_whole: bool,
}

impl Look {
    fn at(at: Instant, brick: &BrickEntry) -> Look {
        let is_slow = brick.slow.as_ref().is_some_and(|slow| slow.is_out);
        Look {
            at,
            is_slow,
            is_gone: brick.stale_groups == brick.groups && brick.joining_groups == 0,
            is_whole: brick.alive && !is_slow && brick.stale_groups == 0,
        }
    }
}

/// Looks at the brick again and again until `over`, and once more then.
fn watch(cluster: &Cluster, over: &AtomicBool) -> Result<Vec<Look>> {
    let (id, mut looks) = (cluster.brick_id(BRICK)?, Vec::new());
    loop {
        let is_last = over.load(Ordering::Relaxed);
        let status = cluster.health()?;
        let brick = status.bricks.iter().find(|brick| brick.id.0.to_string() == id);
        let brick = brick.with_context(|| format!("the directory knows no brick {id}"))?;
        looks.push(Look::at(Instant::now(), brick));
        if is_last {
            return Ok(looks);
        }
        sleep(LOOK);
    }
}

/// What became of the brick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Story {
    /// From the begin of the fault until the directory held it for slow, and until no group had it.
    slow: Option<Duration>,
    left: Option<Duration>,
    /// How often it left all groups, as far as looks tell: it may have come back while it still ailed.
    times_left: usize,
    /// From the end of the fault until it was in all its groups again and lacked nothing; none if that never changed.
    back: Option<Duration>,
}

impl Story {
    fn of(looks: &[Look], fault: Fault) -> Story {
        let looks: Vec<&Look> = looks.iter().filter(|look| look.at >= fault.begin).collect();
        let first = |is: fn(&Look) -> bool| {
            looks.iter().find(|look| is(look)).map(|look| look.at.saturating_duration_since(fault.begin))
        };
        let stays = looks.chunk_by(|one, next| one.is_gone == next.is_gone);
        let whole = looks.iter().rposition(|look| !look.is_whole).and_then(|last| looks.get(last + 1));
        Story {
            slow: first(|look| look.is_slow),
            left: first(|look| look.is_gone),
            times_left: stays.filter(|stay| stay[0].is_gone).count(),
            back: whole.map(|look| look.at.saturating_duration_since(fault.end)),
        }
    }
}

/// Of requests that were due in each of the times.
struct Latencies {
    healthy: Percentiles,
    first: Option<Percentiles>,
    rest: Option<Percentiles>,
    after: Option<Percentiles>,
}

impl Latencies {
    fn all(&self) -> impl Iterator<Item = &Percentiles> {
        let ailing = [&self.first, &self.rest, &self.after].into_iter().flatten();
        std::iter::once(&self.healthy).chain(ailing)
    }
}

/// What was found in a cell.
struct Measured {
    /// How long the fault lasted in truth.
    lasted: Duration,
    latencies: Latencies,
    story: Story,
}

impl Measured {
    /// How many times the healthy 99th percentile that is.
    fn ratio(&self, ms: f64) -> f64 {
        ms / self.latencies.healthy.p99_ms
    }

    fn json(&self) -> Value {
        let part = |part: &Option<Percentiles>| match part {
            None => Value::Null,
            Some(part) => {
                let mut json = part.json();
                json["p50_over_healthy_p99"] = self.ratio(part.p50_ms).into();
                json["p99_over_healthy_p99"] = self.ratio(part.p99_ms).into();
                json
            }
        };
        let seconds = |span: Option<Duration>| span.map(|span| span.as_secs_f64());
        let Latencies { healthy, first, rest, after } = &self.latencies;
        json!({
            "fault_s": self.lasted.as_secs_f64(), "healthy": healthy.json(), "first_second": part(first),
            "rest_of_fault": part(rest), "after_fault": part(after), "slow_s": seconds(self.story.slow),
            "left_s": seconds(self.story.left),
            "times_left": self.story.times_left, "back_s": seconds(self.story.back),
        })
    }
}

/// A cell, and what was found in it, or why nothing was.
type Told = (Cell, Result<Measured, String>);

fn as_json(options: &Options, told: &[Told]) -> Value {
    let cell = |(cell, found): &Told| {
        let mut json = match found {
            Ok(measured) => measured.json(),
            Err(why) => json!({ "failed": why }),
        };
        json["layout"] = cell.layout.as_str().into();
        json["place"] = cell.place.name().into();
        json["workload"] = plural(cell.kind).into();
        json["delay_ms"] = cell.delay_ms.into();
        json["lasts"] = cell.lasts.name().into();
        json
    };
    json!({
        "machine": { "processors": thread::available_parallelism().map_or(0, usize::from) },
        "quick": options.quick, "paced_jobs": JOBS, "read_bytes": options.read_kib << 10,
        "reads_per_second_at_most": READ_RATE, "writes_per_second": WRITE_RATE,
        "cells": told.iter().map(cell).collect::<Vec<_>>(),
    })
}

fn print(told: &[Told]) {
    println!(
        "\nAt random {READ_RATE} reads or {WRITE_RATE} writes a second, of 4 KiB unless told, while one brick"
    );
    println!("is late by so many ms: its disk on each access, or its network by half of it");
    println!("each way. p50/p99 in ms from when due (k: thousands) in the fault's first");
    println!("second, in the rest of it, and after it; x: that p99 over the healthy p99 of the");
    println!("same cluster. s from its begin until the brick was held for slow and until it had");
    println!("left all groups (*: several times), from its end until it was back and whole.");
    let mut group = String::new();
    for (cell, found) in told {
        if cell.group() != group {
            group = cell.group();
            println!("\n{group}\n{}", heading());
        }
        println!("{}", line(cell, found));
    }
    let measured = told.iter().filter_map(|(_, found)| found.as_ref().ok());
    print_lateness(measured.flat_map(|measured| measured.latencies.all()));
}

fn heading() -> String {
    row(["late", "lasts", "healthy", "first s", "x", "rest", "x", "after", "x", "slow", "left", "back"]
        .map(str::to_owned))
}

fn line(cell: &Cell, found: &Result<Measured, String>) -> String {
    let (late, lasts) = (cell.delay_ms.to_string(), cell.lasts.name().to_owned());
    let measured = match found {
        Ok(measured) => measured,
        Err(why) => return format!("{late:>5} {lasts:<5} failed: {why}"),
    };
    let Latencies { healthy, first, rest, after } = &measured.latencies;
    let both = |part: &Percentiles| format!("{}/{}", figures(part.p50_ms), figures(part.p99_ms));
    let [first, rest, after] = [first, rest, after].map(|part| match part {
        Some(part) if part.samples > 0 => [both(part), figures(measured.ratio(part.p99_ms))],
        _ => ["-".to_owned(), "-".to_owned()],
    });
    let Story { slow, left, times_left, back } = measured.story;
    let [slow, mut left, back] = [slow, left, back].map(seconds);
    if times_left > 1 {
        left.push('*');
    }
    let ([first, first_x], [rest, rest_x], [after, after_x]) = (first, rest, after);
    row([late, lasts, both(healthy), first, first_x, rest, rest_x, after, after_x, slow, left, back])
}

/// 80 columns at the most.
fn row(columns: [String; 12]) -> String {
    let [late, lasts, healthy, first, first_x, rest, rest_x, after, after_x, slow, left, back] = columns;
    format!(
        "{late:>5} {lasts:<5} {healthy:>7} {first:>9} {first_x:>4} {rest:>9} {rest_x:>4} {after:>9} {after_x:>4} {slow:>4} {left:>4} {back:>4}"
    )
}

/// As [`millis`], and in thousands from ten thousand on: four characters at most.
fn figures(number: f64) -> String {
    if number < 9999.5 { millis(number) } else { format!("{:.0}k", number / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn chosen(words: &[&str]) -> Vec<Cell> {
        let words = ["failslow", "--grid"].iter().chain(words);
        cells(&Command::try_parse_from(words).map_err(|error| error.to_string()).expect("they parse").options)
    }

    #[test]
    fn every_delay_meets_every_duration_place_and_workload() {
        let all = chosen(&[]);
        assert_eq!(all.len(), 5 * 3 * 2 * 2);
        assert!(all.iter().all(|cell| cell.layout == MIRROR));
        let repeated = |cell: &Cell| all.iter().filter(|other| *other == cell).count() > 1;
        assert!(!all.iter().any(repeated));
        // What is printed under one heading is measured together.
        let mut groups: Vec<String> = all.iter().map(Cell::group).collect();
        groups.dedup();
        assert_eq!(groups.len(), 4);
    }

    #[test]
    fn cells_are_chosen_by_their_axes() {
        assert_eq!(chosen(&["--quick"]).len(), 4);
        let one =
            chosen(&["--quick", "--place", "disk", "--only", "writes", "--delay-ms", "20", "--lasts", "end"]);
        let layout = MIRROR.to_owned();
        let cell =
            Cell { layout, place: Place::Disk, kind: Kind::Write, delay_ms: 20.0, lasts: Lasts::ToTheEnd };
        assert_eq!(one, [cell]);
        assert_eq!(
            chosen(&["--layout", "rs-4+2", "--delay-ms", "0.1", "--delay-ms", "1"]).len(),
            2 * 3 * 2 * 2
        );
        assert!(delay_ms("0").is_err() && delay_ms("nan").is_err() && delay_ms("much").is_err());
        assert!(Command::try_parse_from(["failslow", "--lasts", "end"]).is_err());
    }

    #[test]
    fn a_request_is_of_one_time_only() {
        let s = Duration::from_secs_f64;
        let short = windows(s(4.0), s(4.5), s(9.0));
        assert_eq!(short, [Some((s(4.0), s(4.5))), None, Some((s(4.5), s(9.0)))]);
        let long = windows(s(4.0), s(9.0), s(9.0));
        assert_eq!(long, [Some((s(4.0), s(5.0))), Some((s(5.0), s(9.0))), None]);
    }

    #[test]
    fn a_brick_is_back_when_it_is_whole_for_good() {
        let (epoch, ms) = (Instant::now(), Duration::from_millis);
        let look = |at, is_slow, is_gone, is_whole| Look { at: epoch + ms(at), is_slow, is_gone, is_whole };
        let fault = Fault { begin: epoch + ms(1000), end: epoch + ms(3000) };
        let well = || look(2000, false, false, true);
        // What was before the fault is not its doing, and a look after its end may find the brick whole for the moment.
        let looks = [
            look(500, true, true, false),
            well(),
            look(2500, true, true, false),
            look(3100, false, false, true),
            look(3600, true, true, false),
            look(7000, false, false, true),
        ];
        let story = Story { slow: Some(ms(1500)), left: Some(ms(1500)), times_left: 2, back: Some(ms(4000)) };
        assert_eq!(Story::of(&looks, fault), story);
        assert_eq!(Story::of(&[well()], fault), Story { slow: None, left: None, times_left: 0, back: None });
    }

    fn percentiles(p50_ms: f64, p99_ms: f64) -> Percentiles {
        Percentiles { samples: 100, p50_ms, p99_ms, ..Percentiles::default() }
    }

    #[test]
    fn the_widest_row_fits_a_terminal() {
        let cell = &chosen(&["--delay-ms", "1000", "--lasts", "0.5"])[0];
        let part = Some(percentiles(19_999.0, 19_999.0));
        let long = Some(Duration::from_secs_f64(9.9));
        let measured = Measured {
            lasted: Duration::from_secs(1),
            latencies: Latencies { healthy: percentiles(0.24, 12.4), first: part, rest: part, after: part },
            story: Story { slow: long, left: long, times_left: 2, back: long },
        };
        let line = line(cell, &Ok(measured));
        assert!(line.starts_with(" 1000 0.5 s  0.2/12   20k/20k 1613 "), "{line}");
        assert!(line.len() <= 80 && heading().len() <= 80, "{line}");
    }

    #[test]
    fn what_is_missing_is_told_as_such() {
        let cell = &chosen(&["--delay-ms", "0.1"])[0];
        let measured = Measured {
            lasted: Duration::from_millis(501),
            latencies: Latencies {
                healthy: percentiles(0.2, 0.5),
                first: Some(percentiles(1.0, 2.0)),
                rest: None,
                after: None,
            },
            story: Story { slow: None, left: None, times_left: 0, back: None },
        };
        let json = measured.json();
        assert_eq!(
            (json["first_second"]["p99_over_healthy_p99"].as_f64(), &json["rest_of_fault"]),
            (Some(4.0), &Value::Null)
        );
        assert_eq!(
            line(cell, &Ok(measured)).split_whitespace().collect::<Vec<_>>(),
            ["0.1", "0.5", "s", "0.2/0.5", "1.0/2.0", "4.0", "-", "-", "-", "-", "-", "-", "-"]
        );
        assert!(line(cell, &Err("why".to_owned())).ends_with("failed: why"));
    }
}
