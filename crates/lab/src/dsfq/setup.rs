//! From assumptions to streams on bricks, and from what these were served to figures.

use crate::cell::Cell;
use crate::experiment::{Job, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Series, Spot};
use base::StreamId;
use core::time::Duration;
use model::drive::DriveModel;
use reads::seat::{Places, Turns};
use rules::fair::{Clock, Cost, History, Order, Share, Shares};
use serde_json::json;
use sim::timed::{
    self, BrickSpec, Cluster, Conditions, Length, Locality, Mix, Network, Scheme, Served, Sharing, Sizes,
    Threads, VolumeSpec, Workload,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What every experiment depends on.
pub(super) const BRICKS: &[&str] = &[
    "disks",
    "random_access_ms",
    "disk_megabytes_per_second",
    "stripe_bytes",
    "places",
    "read_share",
    "random_bytes_least",
    "random_bytes_most",
    "network_one_way_us",
    "warm_up_s",
];

/// The paper's streams.
pub(super) const F: StreamId = StreamId(1);
pub(super) const G: StreamId = StreamId(2);
pub(super) const H: StreamId = StreamId(3);

/// The paper's HYBRID forgets what it did not apply.
pub(super) const PAPER: Order = Order::Shares { clock: Clock::StartTime, history: History::Forget };

/// A megabyte, as the paper's figures have it.
const MB: f64 = 1e6;

/// Data of a brick: 256 MB for each of some threads. Its disks are as fast wherever that lies.
const DATA_BYTES: u64 = 4 << 30;

/// A disk's file: each access takes so long, and the transfer.
pub(super) fn drive(access_ms: f64, bytes_per_second: f64) -> String {
    format!(
        "name = \"15k SCSI disk\"\ncapacity_sectors = {}\n[access]\nread_ms = {access_ms}\nwrite_ms = {access_ms}\n\
         bytes_per_second = {bytes_per_second:e}\n",
        DATA_BYTES / base::SECTOR_BYTES
    )
}

/// What threads ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Files {
    /// Small ones, anywhere: each has the disk's arm move.
    Random,
    /// Large ones, one after another: the disk only transfers.
    Sequential,
}

/// Assumptions that streams meet.
pub(super) struct Bed<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) files: Files,
}

impl Bed<'_> {
    pub(super) fn mix(&self) -> Mix {
        let sectors = |name: &str| (self.parameters.count(name) / base::SECTOR_BYTES) as u32;
        let [least, most] = match self.files {
            Files::Random => ["random_bytes_least", "random_bytes_most"].map(sectors),
            Files::Sequential => [8, sectors("sequential_bytes_most")],
        };
        let sizes = Sizes::Uniform { least, most };
        Mix { reads: self.parameters.number("read_share"), sizes, locality: Locality::Uniform }
    }

    /// So many bricks and gateways.
    pub(super) fn cluster(&self, bricks: u32, gateways: u32) -> Cluster {
        let number = |name: &str| self.parameters.number(name);
        let access_ms = if self.files == Files::Random { number("random_access_ms") } else { 0.0 };
        let rate = number("disk_megabytes_per_second") * MB;
        let text = drive(access_ms, rate);
        let drive = DriveModel::parse("15k SCSI disk", &text).unwrap_or_else(|error| panic!("{error}"));
        let stripe = (self.files == Files::Random).then(|| self.parameters.count("stripe_bytes"));
        let brick = BrickSpec {
            depth: self.parameters.count("disks") as u32,
            stripe_bytes: stripe,
            ..BrickSpec::new(Arc::new(drive))
        };
        let one_way_ns = (number("network_one_way_us") * 1e3) as u64;
        Cluster {
            network: Network { one_way_ns, client_one_way_ns: one_way_ns, ..Network::default() },
            gateways,
            ..Cluster::uniform(brick, bricks, 1, Scheme::Hash)
        }
    }

    /// In this order, with the places that are assumed, by bytes.
    pub(super) fn turns(&self, order: Order) -> Turns {
        Turns { order, places: Places(self.parameters.count("places") as usize), cost: Cost::BYTES }
    }

    /// How long a point is measured whose load does not change.
    pub(super) fn seconds(&self, scale: Scale) -> u64 {
        scale.of(self.parameters.count("seconds"))
    }
}

/// A volume of a stream, and the threads that ask it.
#[derive(Clone, Debug)]
pub(super) struct Volume {
    /// The stream's letter first, then where it is.
    pub(super) name: &'static str,
    pub(super) spec: VolumeSpec,
    pub(super) threads: Threads,
}

impl Volume {
    /// On one brick.
    pub(super) fn on(name: &'static str, brick: u32, stream: StreamId, threads: Threads) -> Volume {
        Volume { name, spec: VolumeSpec::on(brick, stream), threads }
    }
}

/// Shares by total service, or of each brick by itself, or between.
pub(super) fn shares(given: &[(StreamId, Share)]) -> Shares {
    given.iter().copied().collect()
}

/// What a simulation took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Effort {
    simulated_ns: u64,
    events: u64,
}

/// Streams on bricks, as a job: what each was served.
pub(super) struct Streams {
    pub(super) cluster: Cluster,
    pub(super) volumes: Vec<Volume>,
    pub(super) turns: Turns,
    pub(super) shares: Shares,
    /// Whether requests are for whole blocks of 4 KiB: large ones are then asked for in one piece.
    pub(super) are_blocks: bool,
    pub(super) warm_up_s: u64,
    pub(super) seconds: u64,
    pub(super) window: Duration,
}

impl Streams {
    /// With windows of a second.
    pub(super) fn new(
        bed: &Bed<'_>,
        (bricks, gateways): (u32, u32),
        volumes: Vec<Volume>,
        shares: Shares,
        seconds: u64,
    ) -> Streams {
        Streams {
            cluster: bed.cluster(bricks, gateways),
            volumes,
            turns: bed.turns(PAPER),
            shares,
            are_blocks: bed.files == Files::Sequential,
            warm_up_s: bed.parameters.count("warm_up_s"),
            seconds,
            window: Duration::from_secs(1),
        }
    }

    pub(super) fn in_order(mut self, order: Order) -> Streams {
        self.turns.order = order;
        self
    }

    /// What each volume was served in each window after the warm-up.
    pub(super) fn served(&self, seed: u64) -> Result<(Vec<Vec<Served>>, Effort), String> {
        let sharing = Sharing {
            volumes: self.volumes.iter().map(|volume| volume.spec.clone()).collect(),
            turns: self.turns,
            shares: self.shares.clone(),
        };
        let end = Duration::from_secs(self.warm_up_s + self.seconds);
        let conditions = Conditions {
            sharing: Some(sharing),
            are_blocks: self.are_blocks,
            window: self.window,
            end: Some(end),
            ..Conditions::default()
        };
        let workload = Workload::Threads(self.volumes.iter().map(|volume| volume.threads.clone()).collect());
        let length = Length { warmup: u64::MAX, requests: u64::MAX };
        let lived = timed::live_through(&self.cluster, workload, length, &conditions, seed);
        let lived = lived.map_err(|error| error.to_string())?;
        let skip = (self.warm_up_s as f64 / self.window.as_secs_f64()) as usize;
        let after = |served: &Vec<Served>| served[skip.min(served.len())..].to_vec();
        let timed::Measured { simulated_s, events, .. } = lived.measured;
        let effort = Effort { simulated_ns: (simulated_s * 1e9) as u64, events };
        Ok((lived.served.iter().map(after).collect(), effort))
    }

    /// Curves of each volume and of each stream, in MB/s, and their means; response times of each volume; how much streams f and g, if they are
    /// there, differ from window to window.
    pub(super) fn sample(&self, served: &[Vec<Served>], effort: Effort) -> Sample {
        let Effort { simulated_ns, events } = effort;
        let mut sample = Sample { simulated_ns, events, ..Sample::default() };
        let mut streams: BTreeMap<&str, Vec<[f64; 2]>> = BTreeMap::new();
        for (volume, served) in self.volumes.iter().zip(served) {
            let rate = |window: &Served| {
                [window.from_s + window.seconds / 2.0, window.bytes as f64 / window.seconds / MB]
            };
            let curve: Vec<[f64; 2]> = served.iter().map(rate).collect();
            let (requests, ms) = served
                .iter()
                .fold((0, 0.0), |(requests, ms), of| (requests + of.requests, ms + of.response_ms));
            sample.values.insert(format!("{}_ms", volume.name), ms / f64::max(requests as f64, 1.0));
            if volume.name.len() > 1 {
                sample.values.insert(format!("{}_mb_s", volume.name), mean(&curve));
                sample.series.insert(volume.name.to_owned(), curve.clone());
            }
            let stream = streams
                .entry(&volume.name[..1])
                .or_insert_with(|| curve.iter().map(|[x, _]| [*x, 0.0]).collect());
            stream.iter_mut().zip(&curve).for_each(|(all, [_, more])| all[1] += more);
        }
        for (stream, curve) in streams {
            sample.values.insert(format!("{stream}_mb_s"), mean(&curve));
            sample.series.insert(stream.to_owned(), curve);
        }
        if let (Some(f), Some(g)) = (sample.series.get("f"), sample.series.get("g")) {
            let weight = |stream| f64::from(self.shares.of(stream).weight());
            let ratio = weight(G) / weight(F);
            let difference: Vec<f64> = f.iter().zip(g).map(|([_, f], [_, g])| f - g / ratio).collect();
            sample.values.insert("spread_mb_s".to_owned(), deviation(&difference));
        }
        sample
    }
}

impl Job for Streams {
    fn describe(&self) -> serde_json::Value {
        let brick = &self.cluster.bricks[0];
        json!({
            "job": "streams", "bricks": self.cluster.bricks.len(), "gateways": self.cluster.gateways,
            "disks": [brick.depth, brick.stripe_bytes.unwrap_or(0) as u32],
            "drive": format!("{:?} {:?}", brick.drive, brick.options),
            "network": format!("{:?}", self.cluster.network), "volumes": format!("{:?}", self.volumes),
            "turns": format!("{:?}", self.turns), "shares": format!("{:?}", self.shares),
            "are_blocks": self.are_blocks, "length": [self.warm_up_s, self.seconds],
            "window": format!("{:?}", self.window),
        })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let (served, effort) = self.served(seed)?;
        Ok(self.sample(&served, effort))
    }
}

pub(super) fn mean(curve: &[[f64; 2]]) -> f64 {
    curve.iter().map(|[_, y]| y).sum::<f64>() / f64::max(curve.len() as f64, 1.0)
}

/// The standard deviation.
fn deviation(of: &[f64]) -> f64 {
    let count = f64::max(of.len() as f64, 1.0);
    let mean = of.iter().sum::<f64>() / count;
    libm::sqrt(of.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / count)
}

/// A figure of the rows in which these cells stand over another, by rising rows.
pub(super) fn curve(table: &Table, wanted: &[(&str, Cell)], x: &str, y: &str) -> Vec<[f64; 2]> {
    let spot = |row: &crate::cell::Row| Some([row.get(x)?.number()?, row.get(y)?.number()?]);
    table.select(wanted).filter_map(spot).collect()
}

/// A curve at x, along straight lines between its spots.
pub(super) fn at(curve: &[[f64; 2]], x: f64) -> f64 {
    let piece = curve.windows(2).find(|pair| pair[0][0] <= x && x <= pair[1][0]);
    piece.map_or(f64::NAN, |pair| {
        let ([from, low], [to, high]) = (pair[0], pair[1]);
        low + (high - low) * (x - from) / f64::max(to - from, 1e-9)
    })
}

/// A curve for a picture.
pub(super) fn line(name: &str, spots: &[[f64; 2]]) -> Series {
    let spot = |[x, y]: &[f64; 2]| Spot { x: *x, y: *y, ci95: None };
    Series { name: name.to_owned(), spots: spots.iter().map(spot).collect() }
}

/// What the first seed's run of this point has under this name.
pub(super) fn over_time<'a>(runs: &'a [Runs], point: usize, name: &str) -> &'a [[f64; 2]] {
    runs.first().map_or(&[], |runs| &runs.runs[point].1.series[name])
}
