//! Figures 8, 9(a) and 12 on daemons, beside a simulation of the same: the same streams, threads and weights, on bricks as a small machine can be.
//!
//! A brick has one emulated disk that is four times as fast, in the place of four disks. Requests are for two whole blocks of 4 KiB, and a request costs
//! what it costs bricks unless they are told otherwise. Streams owe what their minimum kept from being applied. The simulation assumes the same.

use super::fig8::{self, Fig8};
use super::fig9::{self, Fig9a};
use super::fig12;
use super::setup::{self, Bed, F, Files, G, Streams};
use crate::cell::Row;
use crate::claim::{Claim, shape};
use crate::experiment::{Experiment, Runs, Sample, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use model::drive::DriveModel;
use rules::fair::{Cost, Order, Share};
use sim::timed::{BrickSpec, Mix, Served, Sizes};
use std::sync::Arc;

/// Blocks of a request: 8 KiB, the mean of 1 to 16 KB.
pub const BLOCKS: u32 = 2;
/// Bytes of each volume.
pub const VOLUME_BYTES: u64 = 64 << 20;
/// Weights are many times the paper's, so that a minimum can be a small part of one.
const UNIT: u32 = 1_100;
/// By how much of the live figure a predicted one may be off.
const ERROR_MAX: f64 = 0.05;
/// Threads of g, of which each figure has one point in a quick run: the first, the middle and the last.
const QUICK: usize = 3;

/// A figure that runs on daemons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    Fig8,
    Fig9a,
    Fig12,
}

/// How long each point is measured, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub warm_up_s: u64,
    pub seconds: u64,
    /// Whether three points suffice.
    pub is_quick: bool,
}

/// A volume, its stream and the threads that ask it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Volume {
    pub name: &'static str,
    /// Counted from 0.
    pub brick: usize,
    pub threads: usize,
}

impl Volume {
    /// Its stream's name.
    pub fn stream(&self) -> &'static str {
        &self.name[..1]
    }
}

/// A point of a figure.
pub struct Point {
    labels: Row,
    streams: Streams,
}

impl Figure {
    pub const ALL: [Figure; 3] = [Figure::Fig8, Figure::Fig9a, Figure::Fig12];

    /// As the laboratory names it.
    pub fn id(self) -> &'static str {
        match self {
            Figure::Fig8 => "dsfq.fig8",
            Figure::Fig9a => "dsfq.fig9a",
            Figure::Fig12 => "dsfq.fig12",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Figure::Fig8 => "Two streams on one brick, weights 1:2; f has 30 threads",
            Figure::Fig9a => "Total service 1:1: f on brick A, g on A and B, random",
            Figure::Fig12 => "Total service, and g keeps a twelfth of the shared brick",
        }
    }

    /// Its points, by rising threads of g.
    pub fn points(self, parameters: &Parameters, times: Times) -> Vec<Point> {
        let bed = Bed { parameters, files: Files::Random };
        let seconds = times.seconds;
        let point = |label: &str, threads: u32, streams: Streams| Point {
            labels: Row::new().with(label, threads),
            streams: on_daemons(streams, &bed, times),
        };
        let mut points: Vec<Point> = match self {
            Figure::Fig8 => fig8::THREADS
                .map(|threads| point("threads", threads, fig8::streams(&bed, UNIT, threads, seconds)))
                .collect(),
            Figure::Fig9a => fig9::ON_B
                .map(|on_b| {
                    let shares = [Share::total(UNIT); 2];
                    let streams = fig9::two_bricks(&bed, [fig9::SHARED, on_b], shares, 1, seconds);
                    point("threads_on_b", on_b, streams)
                })
                .into(),
            Figure::Fig12 => fig12::ON_B
                .map(|on_b| point("threads_on_b", on_b, fig12::streams(&bed, on_b, 1, seconds)))
                .into(),
        };
        if times.is_quick {
            let step = points.len().div_ceil(2).max(1) - 1;
            points = points.into_iter().step_by(step.max(1)).take(QUICK).collect();
        }
        points
    }

    fn figures(self) -> &'static [&'static str] {
        match self {
            Figure::Fig8 => &["f_mb_s", "g_mb_s", "f_ms", "g_ms"],
            Figure::Fig9a | Figure::Fig12 => &["f_mb_s", "g_mb_s", "g_a_mb_s", "g_b_mb_s", "spread_mb_s"],
        }
    }

    /// The rows of one world.
    pub fn rows(self, points: &[Point], samples: Vec<Sample>) -> Vec<Row> {
        let labels = points.iter().map(|point| point.labels.clone());
        Runs { runs: labels.zip(samples).collect() }.rows(self.figures())
    }

    /// What the live rows show of the paper's claims, where all points are there, and how far the prediction was off.
    pub fn claims(self, live: &[Row], predicted: &[Row], is_quick: bool) -> Vec<Claim> {
        let table = Table(live);
        let mut claims = match self {
            _ if is_quick => Vec::new(),
            Figure::Fig8 => Fig8.claims(&table),
            Figure::Fig9a => Fig9a.claims(&table),
            Figure::Fig12 => {
                let curve = |y: &str| setup::curve(&table, &[], "g_b_mb_s", y);
                fig12::of_history(&curve, &str::to_owned).into()
            }
        };
        for (stream, figure) in [("f", "f_mb_s"), ("g", "g_mb_s")] {
            let pairs = live.iter().zip(predicted);
            let figures = pairs.filter_map(|(live, predicted)| {
                Some([live.get(figure)?.number()?, predicted.get(figure)?.number()?])
            });
            let error =
                figures.filter(|[live, _]| *live > 0.0).map(|[live, predicted]| predicted / live - 1.0);
            let worst =
                error.fold(0.0, |worst: f64, error| if error.abs() > worst.abs() { error } else { worst });
            let what = format!("prediction error of {stream}'s throughput: the worst point");
            claims.push(shape(what, worst, [-ERROR_MAX, ERROR_MAX]));
        }
        claims
    }

    /// Both worlds in one picture.
    pub fn chart(self, live: &[Row], predicted: &[Row]) -> Chart {
        let (x, label) = match self {
            Figure::Fig8 => ("threads", "threads of g"),
            Figure::Fig9a | Figure::Fig12 => ("threads_on_b", "threads of g on B"),
        };
        let mut series = Vec::new();
        for (world, rows) in [("live", live), ("simulated", predicted)] {
            for (stream, y) in [("f", "f_mb_s"), ("g", "g_mb_s")] {
                let curve = setup::curve(&Table(rows), &[], x, y);
                series.push(setup::line(&format!("{stream}, {world}"), &curve));
            }
        }
        let name = format!("{}.live", self.id());
        Chart::lines(&name, self.title(), Axis::new(label, ""), Axis::new("throughput", "MB/s"), series)
    }
}

/// The four disks of a brick as one.
fn disk(parameters: &Parameters) -> String {
    let disks = parameters.number("disks");
    let access_ms = parameters.number("random_access_ms") / disks;
    setup::drive(access_ms, parameters.number("disk_megabytes_per_second") * 1e6 * disks)
}

/// The same, as daemons can be.
fn on_daemons(mut streams: Streams, bed: &Bed<'_>, times: Times) -> Streams {
    let drive = DriveModel::parse("a brick's disk", &disk(bed.parameters));
    let brick = BrickSpec {
        data_bytes: Some(VOLUME_BYTES * streams.volumes.len() as u64),
        ..BrickSpec::new(Arc::new(drive.unwrap_or_else(|error| panic!("{error}"))))
    };
    streams.cluster.bricks.fill(brick);
    for volume in &mut streams.volumes {
        volume.threads.asks = Mix { sizes: Sizes::Blocks(BLOCKS), ..bed.mix() }.into();
    }
    streams.are_blocks = true;
    streams.turns.order = Order::FAIR;
    streams.turns.cost = Cost::default();
    streams.warm_up_s = times.warm_up_s;
    streams
}

impl Point {
    /// How it is called, for people.
    pub fn name(&self) -> String {
        let threads = self.streams.volumes.last().and_then(|volume| volume.threads.count.first());
        format!("g with {} threads", threads.map_or(0, |(_, count)| *count))
    }

    pub fn bricks(&self) -> usize {
        self.streams.cluster.bricks.len()
    }

    /// The file of each brick's disk.
    pub fn drive(parameters: &Parameters) -> String {
        disk(parameters)
    }

    /// How many requests a disk has at a time.
    pub fn places(&self) -> usize {
        self.streams.turns.places.0
    }

    /// The streams by name, and what they are entitled to.
    pub fn shares(&self) -> [(&'static str, Share); 2] {
        [("f", F), ("g", G)].map(|(name, stream)| (name, self.streams.shares.of(stream)))
    }

    pub fn volumes(&self) -> Vec<Volume> {
        let volume = |volume: &setup::Volume| Volume {
            name: volume.name,
            brick: volume.spec.bricks[0] as usize,
            threads: volume.threads.count.first().map_or(0, |(_, count)| *count as usize),
        };
        self.streams.volumes.iter().map(volume).collect()
    }

    /// What the simulator says of it.
    ///
    /// # Errors
    /// What is wrong with the setup, for people.
    pub fn simulate(&self, seed: u64) -> Result<Sample, String> {
        crate::experiment::Job::run(&self.streams, seed)
    }

    /// What daemons served of each volume, in each window after the warm-up.
    pub fn measured(&self, served: &[Vec<Served>]) -> Sample {
        self.streams.sample(served, setup::Effort::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { warm_up_s: 1, seconds: 2, is_quick: true };

    #[test]
    fn a_quick_run_has_the_ends_and_the_middle() {
        let parameters = crate::papers::parameters("dsfq");
        let threads = |figure: Figure| {
            let points = figure.points(&parameters, TIMES);
            points
                .iter()
                .map(|point| point.volumes().last().map_or(0, |last| last.threads))
                .collect::<Vec<_>>()
        };
        assert_eq!(threads(Figure::Fig8), [0, 10, 20]);
        assert_eq!(threads(Figure::Fig9a), [0, 6, 20]);
        assert_eq!(threads(Figure::Fig12), [0, 5, 20]);
    }

    /// With the disks, sizes and costs of daemons the figure still is what the paper shows.
    #[test]
    fn the_simulated_points_share_as_they_are_to() {
        let parameters = crate::papers::parameters("dsfq");
        let points = Figure::Fig8.points(&parameters, TIMES);
        let sample = points[2].simulate(1).expect("it runs");
        let [f, g] = ["f_mb_s", "g_mb_s"].map(|figure| sample.value(figure));
        assert!((g / f / 2.0 - 1.0).abs() < 0.05, "{f} {g}");
        assert!((5.5..6.5).contains(&(f + g)), "what a brick serves: {}", f + g);
    }
}
