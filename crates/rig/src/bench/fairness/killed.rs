//! Three greedy streams, 1:2:4, on three copies, while a brick dies and its blocks are rebuilt onto another.
//!
//! What is shared is service: while blocks are rebuilt, a write costs a stream more than before, and not all streams alike. So shares are of the cost
//! that bricks charged, which they tell once a second.

use super::Times;
use super::bed::{Bed, Disk};
use super::load::{Client, Load, Seen, share_error};
use anyhow::{Result, ensure};
use rig::cluster::{Metrics, is_redundant};
use rig::load::steady::Arrivals;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use wire::ClusterStatus;

const BRICKS: usize = 3;
const STREAMS: [&str; 3] = ["small", "medium", "large"];
const WEIGHTS: [u32; 3] = [100, 200, 400];
/// Requests that each stream has under way.
const DEPTH: usize = 32;
const READ_PERCENT: u64 = 70;
/// So long a stretch is looked at. Bricks tell what they served once a second.
const WINDOW: Duration = Duration::from_secs(5);
/// So long after the view change shares are to be right again.
const SETTLED: Duration = Duration::from_secs(1);
/// A brick that is dead is left out within this time, and rebuilt within that.
const LEFT_WITHIN: Duration = Duration::from_secs(60);
const REBUILT_WITHIN: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A stretch of time.
pub(super) struct Stretch {
    /// What the cluster is like, or nothing where it is only one of many windows.
    pub(super) name: &'static str,
    pub(super) from_s: f64,
    pub(super) until_s: f64,
    /// Requests a second that clients were answered, by stream.
    pub(super) rates: Vec<f64>,
    /// Units of cost a second that bricks charged, by stream.
    pub(super) units: Vec<f64>,
}

impl Stretch {
    /// Of the service; see [`share_error`].
    pub(super) fn error(&self) -> f64 {
        share_error(&self.units, &WEIGHTS.map(f64::from))
    }

    fn json(&self) -> Value {
        json!({
            "phase": self.name, "from_s": self.from_s, "until_s": self.until_s, "requests_per_second": self.rates,
            "units_per_second": self.units, "error": self.error(),
        })
    }
}

pub(super) struct Killed {
    pub(super) phases: Vec<Stretch>,
    /// From the settled view change to the end.
    pub(super) windows: Vec<Stretch>,
}

impl Killed {
    /// Of the windows: the worst and the mean error.
    pub(super) fn errors(&self) -> (f64, f64) {
        let errors = || self.windows.iter().map(Stretch::error);
        (errors().fold(0.0, f64::max), errors().sum::<f64>() / self.windows.len().max(1) as f64)
    }

    pub(super) fn json(&self) -> Value {
        let (worst, mean) = self.errors();
        let all = |stretches: &[Stretch]| stretches.iter().map(Stretch::json).collect::<Vec<_>>();
        json!({ "worst_error": worst, "mean_error": mean, "phases": all(&self.phases), "windows": all(&self.windows) })
    }
}

pub(super) fn measure(binary: &Path, places: u32, times: &Times) -> Result<Killed> {
    let mut bed = Bed::start(binary, Disk::Emulated, BRICKS)?;
    for (name, weight) in STREAMS.into_iter().zip(WEIGHTS) {
        bed.mirror(name)?;
        bed.stream(name, weight, &[])?;
        bed.give(name, name)?;
    }
    bed.ready()?;
    bed.add_brick()?;
    bed.places(places)?;
    let (lost, empty) = (bed.cluster.brick_id(1)?, bed.cluster.brick_id(BRICKS + 1)?);
    let client = |(gateway, name)| Client {
        read_percent: READ_PERCENT,
        ..Client::reads(name, gateway % 2, Arrivals::Closed(DEPTH))
    };
    let clients: Vec<Client> = STREAMS.into_iter().enumerate().map(client).collect();
    let epoch = Instant::now();
    let mut watch = Watch { load: bed.load(&clients, epoch)?, epoch, looks: Vec::new() };
    watch.load.run(times.warm_up);
    watch.phase("all bricks", &bed);
    watch.run(&bed, times.measure);
    watch.phase("until it is left out", &bed);
    bed.cluster.bricks[0].kill()?;
    watch.until(&bed, LEFT_WITHIN, |status| status.volumes.iter().all(|volume| volume.degraded > 0))?;
    watch.phase("settling", &bed);
    watch.load.run(SETTLED);
    watch.phase("left out", &bed);
    watch.run(&bed, times.measure);
    watch.phase("rebuilding", &bed);
    bed.cluster.admin(&["brick", "replace", &lost, "--by", &empty])?;
    watch.until(&bed, REBUILT_WITHIN, |status| status.volumes.iter().all(is_redundant))?;
    watch.phase("rebuilt", &bed);
    watch.run(&bed, times.measure);
    watch.phase("", &bed);
    watch.finish()
}

/// What bricks had charged at a moment.
struct Look {
    /// What begins then.
    phase: Option<&'static str>,
    at: Duration,
    metrics: Metrics,
}

/// The load, and what was seen of it until now.
struct Watch {
    load: Load,
    epoch: Instant,
    looks: Vec<Look>,
}

impl Watch {
    fn look(&mut self, phase: Option<&'static str>, bed: &Bed) {
        self.looks.push(Look { phase, at: self.epoch.elapsed(), metrics: bed.cluster.metrics() });
    }

    fn phase(&mut self, name: &'static str, bed: &Bed) {
        self.look(Some(name), bed);
    }

    /// Looks when a window is over.
    fn look_again(&mut self, bed: &Bed) {
        if self.looks.last().is_some_and(|last| self.epoch.elapsed() >= last.at + WINDOW) {
            self.look(None, bed);
        }
    }

    fn run(&mut self, bed: &Bed, span: Duration) {
        let end = Instant::now() + span;
        while Instant::now() < end {
            self.load.run(LOOK_EVERY);
            self.look_again(bed);
        }
    }

    /// Goes on until the cluster is in this state.
    fn until(&mut self, bed: &Bed, within: Duration, state: impl Fn(&ClusterStatus) -> bool) -> Result<()> {
        let started = Instant::now();
        while !state(&bed.cluster.health()?) {
            ensure!(
                started.elapsed() < within,
                "the cluster does not get on; files are in {}",
                bed.cluster.dir.display()
            );
            self.load.run(LOOK_EVERY);
            self.look_again(bed);
        }
        Ok(())
    }

    fn finish(self) -> Result<Killed> {
        let seen = self.load.finish()?;
        let is_mark = |look: &&Look| look.phase.is_some();
        let marks: Vec<&Look> = self.looks.iter().filter(is_mark).collect();
        let phases = marks.windows(2).map(|pair| stretch(&seen, pair[0], pair[1])).collect();
        let settled =
            marks.iter().find(|look| look.phase == Some("left out")).map_or(Duration::MAX, |look| look.at);
        let windows = self.looks.windows(2).map(|pair| (&pair[0], &pair[1]));
        // What is left at the end of a phase is too short to be told apart from the moments at which bricks tell.
        let are_meant = windows.filter(|(begin, end)| begin.at >= settled && end.at >= begin.at + WINDOW);
        Ok(Killed { phases, windows: are_meant.map(|(begin, end)| stretch(&seen, begin, end)).collect() })
    }
}

fn stretch(seen: &[Seen], begin: &Look, end: &Look) -> Stretch {
    let seconds = (end.at - begin.at).as_secs_f64();
    let units = |name| {
        let name = format!("brickwork_stream_served_units_total{{stream=\"{name}\"}}");
        end.metrics.grown_from_nothing(&begin.metrics, &name) / seconds
    };
    Stretch {
        name: begin.phase.unwrap_or(""),
        from_s: begin.at.as_secs_f64(),
        until_s: end.at.as_secs_f64(),
        rates: seen.iter().map(|seen| seen.rate(begin.at, end.at)).collect(),
        units: STREAMS.into_iter().map(units).collect(),
    }
}
