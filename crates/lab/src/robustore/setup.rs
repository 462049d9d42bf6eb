//! From assumptions to a client, servers with disks that differ, and what their accesses take.
//!
//! Reading order: [`SCHEMES`] (the paper's four, and ours), [`Bed`] (what is assumed), [`Accesses`] (the job), then how tables and curves are
//! made of it.

use super::planned;
use crate::cell::{Cell, Row};
use crate::experiment::{Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart, Series, Spot};
use crate::system::System;
use ::objects::object::{AccessStrategy, LtDecoder};
use core::time::Duration;
use model::drive::{self, DriveModel, DriveOptions};
use reads::seat::{Places, Turns};
use rules::fair::Order;
use rules::heads::Policy;
use serde_json::json;
use sim::timed::objects::{
    self, FragmentOrder, Mapping, ObjectCode, ObjectLayout, ObjectMeasured, Objects, ObjectsMeasured,
    SequencesMeasured, Transferred, Writing,
};
use sim::timed::{Arrivals, Background, BrickSpec, Cluster, Locality, Mix, Network, Scheme, Sizes};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What every experiment with disks depends on.
pub(super) const ASSUMED: &[&str] = &[
    "accesses",
    "disk_rates",
    "disk_times",
    "read_rates",
    "replica_mapping",
    "fragment_order",
    "disk_places",
    "window_blocks",
    "metadata_round_trips",
    "solving_mb_s",
];

/// What experiments depend on that have other applications at the disks.
pub(super) const ASSUMED_OF_BACKGROUND: &[&str] = &["background_arrivals", "background_kib"];

const SECTORS_OF_KIB: u32 = 2;

/// The baseline of section 4.1.2: 1 GB, in blocks of 1 MB, on 64 of 128 servers, 1 ms there and back. MB are 2^20 bytes.
const BLOCKS: u32 = 1024;
pub(super) const MIB: u64 = 1 << 20;
const SERVERS: u32 = 128;
const DISKS: u32 = 64;
const ROUND_TRIP_MS: f64 = 1.0;
/// The slowest and the fastest disk, MB/s.
const SLOWEST_MB_S: f64 = 0.52;
const FASTEST_MB_S: f64 = 53.0;
/// Decoding of the last block, behind which all others were decoded.
const DECODE_MS: f64 = 5.0;
/// The baseline's redundancy, in percent: four times the storage.
pub(super) const BASELINE: f64 = 300.0;
/// A quick run has one access of so many: each takes up to two minutes of the simulated time.
const QUICK: u64 = 25;

pub(super) const RAID0: &str = "RAID-0";
pub(super) const RRAID: &str = "RRAID";
pub(super) const RRAID_S: &str = "RRAID-S";
pub(super) const RRAID_A: &str = "RRAID-A";
pub(super) const ROBUSTORE: &str = "RobuSTore";
/// Ours, read as RobuSTore is, and a few fragments at a time.
pub(super) const PRECODED: &str = "lt-precoded";
pub(super) const PACED: &str = "lt-precoded, paced";
/// Ours, read by claims.
pub(super) const CLAIMED: &str = "lt-precoded, claimed";
/// What no read can beat, of copies and of symbols.
pub(super) const PLANNED_COPIES: &str = "RRAID, planned";
pub(super) const PLANNED: &str = "lt-precoded, planned";

/// What is read where something else than redundancy varies, with the baseline's redundancy; stripes have none.
pub(super) const STORED: [(Stored, f64); 4] =
    [(Stored::Copies, 0.0), (Stored::Copies, BASELINE), (Stored::Lt, BASELINE), (Stored::Precoded, BASELINE)];
/// How that is read.
pub(super) const READ: [&str; 6] = [RAID0, RRAID_S, RRAID_A, ROBUSTORE, PRECODED, PACED];

/// What is stored, and how it is read back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stored {
    /// Stripes, and copies of them.
    Copies,
    /// Coded, as the paper has it.
    Lt,
    /// Coded as Brickwork has it.
    Precoded,
}

/// How coded blocks come to disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Striping {
    /// A fast disk gets more.
    Unbalanced,
    Balanced,
}

/// What a figure shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Measures {
    Writes,
    Reads,
}

impl Stored {
    const ALL: [Stored; 3] = [Stored::Copies, Stored::Lt, Stored::Precoded];

    fn code(self) -> ObjectCode {
        match self {
            Stored::Copies => ObjectCode::Copies,
            Stored::Lt => ObjectCode::Lt(LtDecoder::Peeling),
            Stored::Precoded => ObjectCode::Precoded,
        }
    }

    /// The scheme that writes so: copies are written alike however they are read.
    fn writer(self, redundancy: f64) -> &'static str {
        match self {
            Stored::Copies if redundancy == 0.0 => RAID0,
            Stored::Copies => RRAID,
            Stored::Lt => ROBUSTORE,
            Stored::Precoded => PRECODED,
        }
    }

    /// The schemes that read so, and how.
    fn readers(self, redundancy: f64, window: usize) -> Vec<(&'static str, AccessStrategy)> {
        match self {
            Stored::Copies if redundancy == 0.0 => vec![(RAID0, AccessStrategy::Speculative)],
            Stored::Copies => {
                vec![(RRAID_S, AccessStrategy::Speculative), (RRAID_A, AccessStrategy::Adaptive { window })]
            }
            Stored::Lt => vec![(ROBUSTORE, AccessStrategy::Speculative)],
            Stored::Precoded => {
                vec![(PRECODED, AccessStrategy::Speculative), (PACED, AccessStrategy::Paced { window })]
            }
        }
    }
}

/// Redundancies of the figures, in percent: 0 is RAID-0 and no code's, since a code that is decoded by peeling needs half as much again.
/// Copies that are written take minutes of the simulated time, and follow a law: few of them do.
fn redundancies(stored: Stored, what: Measures, scale: Scale) -> Vec<f64> {
    match (stored, what, scale) {
        (Stored::Copies, Measures::Writes, Scale::Full) => vec![0.0, 100.0, 300.0],
        (Stored::Copies, Measures::Writes, Scale::Quick) => vec![0.0, 300.0],
        (Stored::Copies, Measures::Reads, Scale::Full) => {
            vec![0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 700.0, 900.0]
        }
        (Stored::Copies, Measures::Reads, Scale::Quick) => vec![0.0, 100.0, 300.0, 900.0],
        (_, _, Scale::Full) => vec![50.0, 100.0, 200.0, 300.0, 400.0, 500.0, 700.0, 900.0],
        (_, _, Scale::Quick) => vec![100.0, 300.0, 900.0],
    }
}

/// Assumptions that accesses meet, and what of the baseline is varied.
#[derive(Clone, Copy)]
pub(super) struct Bed<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) scale: Scale,
    pub(super) disks: Disks,
    pub(super) round_trip_ms: f64,
    /// On so many disks is an object.
    pub(super) spread: u32,
    pub(super) blocks: u32,
    pub(super) block_bytes: u64,
    /// So many read at the same time.
    pub(super) clients: u32,
    /// Accesses a second of other applications at each disk.
    pub(super) background_per_second: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Disks {
    /// From the slowest to the fastest.
    Mixed,
    /// All are the fastest.
    Equal,
}

impl<'a> Bed<'a> {
    /// The baseline.
    pub(super) fn new(parameters: &'a Parameters, scale: Scale) -> Bed<'a> {
        Bed {
            parameters,
            scale,
            disks: Disks::Mixed,
            round_trip_ms: ROUND_TRIP_MS,
            spread: DISKS,
            blocks: BLOCKS,
            block_bytes: MIB,
            clients: 1,
            background_per_second: 0.0,
        }
    }
}

impl Bed<'_> {
    /// All that is stored, with each redundancy: written, or read by each scheme that reads so.
    pub(super) fn points(self, striping: Striping, what: Measures) -> Vec<Point> {
        let mut points = Vec::new();
        for stored in Stored::ALL {
            for redundancy in redundancies(stored, what, self.scale) {
                let accesses = self.accesses((stored, striping), redundancy, what);
                points.push(Point::new(accesses).with("redundancy_percent", redundancy));
            }
        }
        points
    }

    /// Objects of which that much is stored, written or read by each scheme that does so.
    pub(super) fn accesses(
        self,
        (stored, striping): (Stored, Striping),
        redundancy: f64,
        what: Measures,
    ) -> Accesses {
        let (text, count) =
            (|name: &str| self.parameters.text(name), |name: &str| self.parameters.count(name));
        let round_trip_s = self.round_trip_ms / 1e3;
        // The fastest disk is never without work while an answer is on its way.
        let window = count("window_blocks") as u32 + (round_trip_s * FASTEST_MB_S) as u32;
        let readers = match what {
            Measures::Writes => Vec::new(),
            Measures::Reads => stored.readers(redundancy, window as usize),
        };
        let layout = match (stored, striping) {
            (Stored::Copies, _) | (_, Striping::Balanced) => ObjectLayout::Even(self.mapping()),
            (_, Striping::Unbalanced) if what == Measures::Reads && text("read_rates") == "drawn-anew" => {
                ObjectLayout::ByOtherPaces((0..SERVERS).map(|server| self.rate_mb_s(server)).collect())
            }
            (_, Striping::Unbalanced) => ObjectLayout::ByPace,
        };
        let order = match text("fragment_order") {
            "as-written" => FragmentOrder::AsWritten,
            "drawn" => FragmentOrder::Drawn,
            other => panic!("the parameter file allows unknown orders {other}"),
        };
        let metadata_s = self.parameters.number("metadata_round_trips") * round_trip_s;
        let decode_s = match stored {
            Stored::Copies => 0.0,
            Stored::Lt => DECODE_MS / 1e3,
            // Nothing is solved before the last symbol has come.
            Stored::Precoded => self.bytes() / MIB as f64 / self.parameters.number("solving_mb_s"),
        };
        let places = count("disk_places") as usize;
        let objects = match self.scale {
            Scale::Full => count("accesses") as u32,
            Scale::Quick => (count("accesses") / QUICK).max(2) as u32,
        };
        Accesses {
            writer: stored.writer(redundancy),
            readers: readers.iter().map(|(name, _)| *name).collect(),
            drives: format!("{:?} {} {}", self.disks, text("disk_rates"), text("disk_times")),
            cluster: self.cluster(),
            objects: Objects {
                // All that read at the same time have as many to compete with.
                objects: objects.next_multiple_of(self.clients),
                at_once: self.clients,
                blocks: self.blocks,
                block_bytes: self.block_bytes,
                code: stored.code(),
                symbols: (f64::from(self.blocks) * (1.0 + redundancy / 100.0)) as u32,
                bricks: self.spread,
                writing: match (&layout, what) {
                    (ObjectLayout::Even(_) | ObjectLayout::ByOtherPaces(_), Measures::Reads) => Writing::Laid,
                    (ObjectLayout::ByPace, _) | (_, Measures::Writes) => Writing::Put,
                },
                layout,
                window,
                strategies: readers.into_iter().map(|(_, strategy)| strategy).collect(),
                order,
                weights: Vec::new(),
                turns: Turns { order: Order::Arrival, places: Places(places), ..Turns::default() },
                pause: until_quiet(places, self.block_bytes),
            },
            put_extra_s: metadata_s,
            get_extra_s: metadata_s + decode_s,
            planned: None,
            server_rates_mb_s: (0..SERVERS).map(|server| self.rate_mb_s(server)).collect(),
        }
    }

    /// Of an object.
    fn bytes(self) -> f64 {
        f64::from(self.blocks) * self.block_bytes as f64
    }

    fn mapping(self) -> Mapping {
        match self.parameters.text("replica_mapping") {
            "drawn" => Mapping::Drawn,
            "rotated" => Mapping::Rotated,
            other => panic!("the parameter file allows unknown mappings {other}"),
        }
    }

    /// One client, and all servers, each with a disk of a rate of its own.
    fn cluster(self) -> Cluster {
        let one_way_ns = (self.round_trip_ms / 2.0 * 1e6) as u64;
        let rates = (0..SERVERS).map(|server| self.rate_mb_s(server));
        let bricks: Vec<BrickSpec> = match self.parameters.text("disk_times") {
            "runs" => {
                let of_one_kind = scattered();
                rates
                    .map(|rate| BrickSpec { run_bytes: Some(run_bytes(rate)), ..of_one_kind.clone() })
                    .collect()
            }
            "constant" => rates.map(constant).collect(),
            other => panic!("the parameter file allows unknown disk times {other}"),
        };
        let background = self.background();
        let bricks: Vec<BrickSpec> =
            bricks.into_iter().map(|brick| BrickSpec { background, ..brick }).collect();
        let network = Network { one_way_ns, client_one_way_ns: one_way_ns, ..Network::default() };
        let first = bricks[0].clone();
        Cluster {
            bricks,
            network,
            exclusive: false,
            ..Cluster::uniform(first, SERVERS, SERVERS / 2, Scheme::Hash)
        }
    }

    /// Other applications' reads at each disk, each anywhere.
    fn background(self) -> Option<Background> {
        if self.background_per_second == 0.0 {
            return None;
        }
        let sectors = self.parameters.count("background_kib") as u32 * SECTORS_OF_KIB;
        let arrivals = match self.parameters.text("background_arrivals") {
            "poisson" => Arrivals::Poisson,
            "regular" => Arrivals::Regular,
            other => panic!("the parameter file allows unknown arrivals {other}"),
        };
        let mix = Mix { reads: 1.0, sizes: Sizes::Fixed(sectors), locality: Locality::Uniform };
        Some(Background { per_second: self.background_per_second, arrivals, mix })
    }

    fn rate_mb_s(self, server: u32) -> f64 {
        if self.disks == Disks::Equal {
            return FASTEST_MB_S;
        }
        let part = f64::from(server) / f64::from(SERVERS - 1);
        match self.parameters.text("disk_rates") {
            "even-on-log-scale" => even_on_log_scale(part),
            "even" => SLOWEST_MB_S + (FASTEST_MB_S - SLOWEST_MB_S) * part,
            other => panic!("the parameter file allows unknown rates {other}"),
        }
    }
}

/// The rate that has this part of the scale below it.
fn even_on_log_scale(part: f64) -> f64 {
    SLOWEST_MB_S * libm::pow(FASTEST_MB_S / SLOWEST_MB_S, part)
}

/// The rates of an object's disks.
#[cfg(test)]
pub(super) fn drawn_rates_mb_s(draw: &mut base::Rng) -> Vec<f64> {
    let part = |server: u32| f64::from(server) / f64::from(SERVERS - 1);
    let mut rates: Vec<f64> = (0..SERVERS).map(|server| even_on_log_scale(part(server))).collect();
    draw.shuffle(&mut rates);
    rates.truncate(DISKS as usize);
    rates
}

/// A server with the paper's kind of disk.
fn scattered() -> BrickSpec {
    let entry = drive::find("robustore-disk").expect("the drive is in the library");
    brick(DriveModel::parse(entry.id, entry.text).unwrap_or_else(|error| panic!("{error}")))
}

/// A server whose disk has that rate, whatever it does.
fn constant(rate_mb_s: f64) -> BrickSpec {
    let text = format!(
        "name = \"{rate_mb_s:.2} MB/s\"\ncapacity_sectors = 142800000\n\
         [access]\nread_ms = 0\nwrite_ms = 0\nbytes_per_second = {:e}\n",
        rate_mb_s * MIB as f64
    );
    brick(DriveModel::parse("constant", &text).unwrap_or_else(|error| panic!("{error}")))
}

/// A server as the paper has it: nothing is cached or acknowledged before the disk has it, and requests are served as they come.
fn brick(drive: DriveModel) -> BrickSpec {
    BrickSpec {
        writes_through: true,
        policy: Policy::Fcfs,
        options: DriveOptions::UNCACHED,
        ..BrickSpec::new(Arc::new(drive))
    }
}

/// For so long what was called off may go on: the slowest disk does all that it works on, and has a block to spare.
fn until_quiet(places: usize, block_bytes: u64) -> Duration {
    Duration::from_secs_f64((places as f64 + 1.0) * block_bytes as f64 / MIB as f64 / SLOWEST_MB_S)
}

/// How long the runs on a disk are that has this rate. The slowest disk has a movement for each 4 KiB, and the fastest none.
fn run_bytes(rate_mb_s: f64) -> u64 {
    const LEAST: f64 = 4096.0;
    let movement_s = LEAST / MIB as f64 * (1.0 / SLOWEST_MB_S - 1.0 / FASTEST_MB_S);
    let transfer = 1.0 - rate_mb_s / FASTEST_MB_S;
    // A run of the whole disk has no end to move at.
    let run = if transfer > 0.0 { movement_s * rate_mb_s * MIB as f64 / transfer } else { f64::INFINITY };
    run.min(1e15) as u64
}

/// Accesses to objects that are stored in one way.
pub(super) struct Accesses {
    writer: &'static str,
    /// In the order of the strategies.
    readers: Vec<&'static str>,
    drives: String,
    cluster: Cluster,
    objects: Objects,
    /// What the paper's client adds to a write, and to a read.
    put_extra_s: f64,
    get_extra_s: f64,
    /// What the least that a read could take is called, where that is wanted as well.
    planned: Option<&'static str>,
    server_rates_mb_s: Vec<f64>,
}

impl Accesses {
    /// Symbols are also read by claims; and beside what is read stands what no read can beat.
    pub(super) fn beside_claimed(mut self) -> Accesses {
        self.planned = Some(PLANNED_COPIES);
        if self.objects.code != ObjectCode::Copies {
            self.planned = Some(PLANNED);
            self.readers.push(CLAIMED);
            self.objects.strategies.push(AccessStrategy::Claimed { window: self.objects.window as usize });
        }
        self
    }

    /// The least that a read of this object could take.
    fn least(&self, object: &ObjectMeasured) -> Transferred {
        let Objects { blocks, block_bytes, code, .. } = self.objects;
        let rates = (code != ObjectCode::Copies, &self.server_rates_mb_s[..]);
        let trip = Duration::from_nanos(2 * self.cluster.network.client_one_way_ns);
        let took = trip + planned::least(&object.places, blocks, rates);
        Transferred { took, sent_bytes: u64::from(blocks) * block_bytes }
    }
}

impl Bed<'_> {
    /// Sequences of accesses to what is stored in this way, of which that part is writes: a job for each scheme that reads so.
    pub(super) fn sequences(
        self,
        stored: (Stored, Striping),
        redundancy: f64,
        writes: f64,
    ) -> Vec<Sequences> {
        let written = || self.accesses(stored, redundancy, Measures::Writes);
        let window = written().objects.window as usize;
        let of_reader = |(scheme, strategy)| {
            let mut accesses = written();
            // Any part of a quarter is whole.
            let objects = accesses.objects.objects.next_multiple_of(4);
            accesses.objects = Objects { objects, strategies: vec![strategy], ..accesses.objects };
            let length = self.parameters.count("sequence_accesses") as u32;
            let writes = libm::round(f64::from(objects) * writes) as u32;
            Sequences { scheme, accesses, writes, length }
        };
        stored.0.readers(redundancy, window).into_iter().map(of_reader).collect()
    }
}

/// Reads and writes by one scheme, one after another, of each of several clients.
pub(super) struct Sequences {
    scheme: &'static str,
    accesses: Accesses,
    /// So many of all accesses are writes.
    writes: u32,
    /// Accesses of a client until all become quiet.
    length: u32,
}

impl Job for Sequences {
    fn describe(&self) -> serde_json::Value {
        let mut all = self.accesses.describe();
        all["job"] = json!("robustore sequences");
        all["sequences"] = json!([self.scheme, self.writes, self.length]);
        all
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let Accesses { cluster, objects, put_extra_s, get_extra_s, .. } = &self.accesses;
        let measured = objects::run_sequences(cluster, objects, (self.writes, self.length), seed)
            .map_err(|error| error.to_string())?;
        let SequencesMeasured { puts, gets, simulated, events } = measured;
        let bytes = u64::from(objects.blocks) * objects.block_bytes;
        let mut values = BTreeMap::new();
        for (is_write, took, extra_s) in [(true, puts, *put_extra_s), (false, gets, *get_extra_s)] {
            if !took.is_empty() {
                let named = latencies(&took, bytes, extra_s);
                values.extend(named.map(|(name, figure)| (key(self.scheme, is_write, name), figure)));
            }
        }
        Ok(Sample { values, simulated_ns: simulated.as_nanos() as u64, events, ..Sample::default() })
    }
}

impl Job for Accesses {
    fn describe(&self) -> serde_json::Value {
        let Accesses { writer, readers, drives, cluster, objects, put_extra_s, get_extra_s, .. } = self;
        json!({
            "job": "robustore accesses", "writer": writer, "readers": readers,
            "cluster": System::describe_cluster(cluster, drives), "objects": format!("{objects:?}"),
            "put_extra_s": put_extra_s, "get_extra_s": get_extra_s, "planned": self.planned,
        })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let measured = objects::run(&self.cluster, &self.objects, seed).map_err(|error| error.to_string())?;
        let ObjectsMeasured { objects, simulated, events } = measured;
        let bytes = u64::from(self.objects.blocks) * self.objects.block_bytes;
        let puts: Vec<Transferred> = objects.iter().map(|object| object.put).collect();
        let mut values = BTreeMap::new();
        let mut add = |scheme: &str, is_write: bool, figures: Vec<(&str, f64)>| {
            values.extend(figures.iter().map(|(name, figure)| (key(scheme, is_write, name), *figure)));
        };
        if self.objects.writing == Writing::Put {
            add(self.writer, true, figures(&puts, bytes, self.put_extra_s));
        }
        for (at, reader) in self.readers.iter().enumerate() {
            let gets: Vec<Transferred> = objects.iter().map(|object| object.gets[at]).collect();
            add(reader, false, figures(&gets, bytes, self.get_extra_s));
        }
        if let Some(planned) = self.planned {
            let least: Vec<Transferred> = objects.iter().map(|object| self.least(object)).collect();
            add(planned, false, figures(&least, bytes, self.get_extra_s));
        }
        Ok(Sample { values, simulated_ns: simulated.as_nanos() as u64, events, ..Sample::default() })
    }
}

pub(super) const MB_NOTE: &str =
    "MB are 2^20 bytes. RRAID-S and RRAID-A write alike, and RAID-0 is where they have no redundancy.";

/// The paper's metrics: the mean of sizes over latencies, the mean and the standard deviation of latencies, and what was sent beyond the
/// size. And the mean latency without what is added to it: metadata, and decoding.
pub(super) const FIGURES: [&str; 5] =
    ["bandwidth_mb_s", "latency_s", "latency_sd_s", "io_overhead", "transfer_s"];

fn figures(transferred: &[Transferred], bytes: u64, extra_s: f64) -> Vec<(&'static str, f64)> {
    let took: Vec<Duration> = transferred.iter().map(|of| of.took).collect();
    let overhead = |of: &Transferred| of.sent_bytes as f64 / bytes as f64 - 1.0;
    let sum: f64 = transferred.iter().map(overhead).sum();
    let mut figures = latencies(&took, bytes, extra_s).to_vec();
    figures.push((FIGURES[3], sum / transferred.len() as f64));
    figures
}

/// Those of the figures that follow from how long accesses took.
fn latencies(took: &[Duration], bytes: u64, extra_s: f64) -> [(&'static str, f64); 4] {
    let count = took.len() as f64;
    let mean = |of: &dyn Fn(f64) -> f64| took.iter().map(|took| of(took.as_secs_f64())).sum::<f64>() / count;
    let mean_s = mean(&|s| s + extra_s);
    let squares = count * mean(&|s| (s + extra_s - mean_s) * (s + extra_s - mean_s));
    [
        (FIGURES[0], mean(&|s| bytes as f64 / MIB as f64 / (s + extra_s))),
        (FIGURES[1], mean_s),
        (FIGURES[2], libm::sqrt(squares / (count - 1.0).max(1.0))),
        (FIGURES[4], mean(&|s| s)),
    ]
}

fn key(scheme: &str, is_write: bool, figure: &str) -> String {
    format!("{scheme} {} {figure}", if is_write { "write" } else { "read" })
}

/// A row for each scheme of each point: of writes, or of reads. It has what was measured of the figures.
pub(super) fn rows(runs: &Runs, are_writes: bool) -> Vec<Row> {
    let of_copies = [RAID0, RRAID, RRAID_S, RRAID_A, PLANNED_COPIES];
    let schemes = of_copies.into_iter().chain([ROBUSTORE, PRECODED, PACED, CLAIMED, PLANNED]);
    let mut rows = Vec::new();
    for scheme in schemes {
        for (labels, sample) in &runs.runs {
            if !sample.values.contains_key(&key(scheme, are_writes, FIGURES[0])) {
                continue;
            }
            let row = labels
                .cells()
                .fold(Row::new().with("scheme", scheme), |row, (name, cell)| row.with(name, cell.clone()));
            let with = |row: Row, figure: &&str| match sample.values.get(&key(scheme, are_writes, figure)) {
                Some(value) => row.with(*figure, *value),
                None => row,
            };
            rows.push(FIGURES.iter().fold(row, with));
        }
    }
    rows
}

/// A figure of a scheme at a redundancy.
pub(super) fn at(table: &Table, scheme: &str, redundancy: f64, figure: &str) -> f64 {
    table.number(&[("scheme", Cell::from(scheme)), (REDUNDANCY, Cell::from(redundancy))], figure)
}

/// The column of the redundancy.
pub(super) const REDUNDANCY: &str = "redundancy_percent";

/// A figure of a scheme over the redundancy.
pub(super) fn curve(table: &Table, scheme: &str, figure: &str) -> Vec<[f64; 2]> {
    let over_redundancy = series(table, scheme, &[], (REDUNDANCY, figure));
    over_redundancy.spots.iter().map(|spot| [spot.x, spot.y]).collect()
}

/// A figure of a scheme over another one, of the rows that have these cells.
pub(super) fn series(table: &Table, scheme: &str, cells: &[(&str, Cell)], (x, y): (&str, &str)) -> Series {
    let spot = |row: &Row| {
        let Cell::Number(y, ci95) = row.get(y)? else { return None };
        Some(Spot { x: row.get(x)?.number()?, y: *y, ci95: *ci95 })
    };
    let cells = [&[("scheme", Cell::from(scheme))], cells].concat();
    Series { name: scheme.to_owned(), spots: table.select(&cells).filter_map(spot).collect() }
}

/// The three pictures of a figure: bandwidth, variation of latency, I/O overhead. As in the paper RAID-0 is where others have no redundancy.
pub(super) fn charts(table: &Table, figure: &str, what: &str, schemes: &[&str]) -> [Chart; 3] {
    let panels = [
        ("a", "bandwidth", FIGURES[0], Axis::new("bandwidth", "MB/s")),
        (
            "b",
            "variation of latency",
            FIGURES[2],
            Axis::new("standard deviation of latency", "s").logarithmic(),
        ),
        ("c", "I/O overhead", FIGURES[3], Axis::new("bytes sent beyond the object, over its size", "")),
    ];
    panels.map(|(panel, title, y, axis)| {
        let of = |scheme: &&str| series(table, scheme, &[], (REDUNDANCY, y));
        let x = Axis::new("data redundancy", "%");
        let title = format!("{what}: {title}");
        Chart::lines(&format!("{figure}.{panel}"), &title, x, axis, schemes.iter().map(of).collect())
    })
}
