//! Figure 8: response times while one replica, then the other, is slow for a quarter of the run.

use super::setup;
use super::traces::{self, Generated};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::{Parameters, Value};
use crate::plot::{Axis, Chart, Series, Spot};
use crate::system::System;
use base::Time;
use sim::timed::RequestRecord;

pub(super) struct Fig8;

const SCHEMES: [&str; 5] = ["Central SPTF", "D-SPTF", "Hashing", "LARD", "LARD, shorter window"];

/// Into which the run is cut for the picture: each quarter into ten.
const PARTS: usize = 40;

impl Experiment for Fig8 {
    fn id(&self) -> &str {
        "dsptf.fig8"
    }

    fn paper(&self) -> &str {
        "d-sptf"
    }

    fn title(&self) -> &str {
        "Response time while replicas are slow for a time, SAP"
    }

    fn assumptions(&self) -> Vec<&str> {
        [
            traces::assumptions_of_figures(),
            vec!["degraded_percent", "lard_short_window_ms", "lard_short_scale"],
        ]
        .concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let point = |name: &str| {
            let trace = Generated::new(parameters, scale, "sap")?;
            let (parameters, scheme) = (shorter(parameters, name), name.split(',').next().unwrap_or(name));
            let bricks = 2 * trace.groups(&parameters);
            let scheme_of = setup::scheme(&parameters, scheme, &[]);
            let cluster = traces::cluster(&parameters, scale, bricks, 2, scheme_of);
            let percent = parameters.count("degraded_percent") as u32;
            let system = traces::replay(&parameters, cluster, trace.clone());
            Ok(Point::new(Degraded { system, trace, percent, shown: traces::shown(&parameters) })
                .with("scheme", name))
        };
        SCHEMES.into_iter().map(point).collect()
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["healthy_ms", "degraded_ms", "rise", "response_ms", "moved_addresses", "hit_rate"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let get = |name: &str, figure: &str| table.number(&[("scheme", Cell::from(name))], figure);
        let below = |figure: &str| 1.0 - get("D-SPTF", figure) / get("Hashing", figure);
        let near = |paper: f64| [paper * 0.9, paper * 1.1];
        let mut claims = Vec::new();
        for (name, healthy, degraded) in
            [("Central SPTF", 7.8, 8.6), ("D-SPTF", 7.8, 8.6), ("Hashing", 9.0, 11.2), ("LARD", 9.0, 11.2)]
        {
            claims.push(claim(
                format!("{name}, healthy (ms)"),
                healthy,
                get(name, "healthy_ms"),
                near(healthy),
            ));
            claims.push(claim(
                format!("{name}, degraded (ms)"),
                degraded,
                get(name, "degraded_ms"),
                near(degraded),
            ));
        }
        claims.push(claim("D-SPTF below hashing, healthy", 0.133, below("healthy_ms"), [0.10, 0.18]));
        claims.push(claim("D-SPTF below hashing, degraded", 0.232, below("degraded_ms"), [0.18, 0.33]));
        claims.push(claim("D-SPTF, rise when degraded", 0.10, get("D-SPTF", "rise"), [0.05, 0.15]));
        claims.push(claim("hashing, rise when degraded", 0.244, get("Hashing", "rise"), [0.18, 0.32]));
        let rise = get("LARD", "rise") / get("Hashing", "rise");
        claims.push(shape("LARD's rise over hashing's: it does not rebalance", rise, [0.85, 1.15]));
        let short = get("LARD, shorter window", "rise") / get("LARD", "rise");
        claims.push(shape("LARD's rise with the shorter window over that without", short, [0.0, 0.95]));
        claims
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        let (x, y) = (Axis::new("part of the run", "%"), Axis::new("mean response time", "ms"));
        let one = |(at, name): (usize, &&str)| Series { name: (*name).to_owned(), spots: curve(runs, at) };
        let chart =
            Chart::lines("dsptf.fig8", self.title(), x, y, SCHEMES.iter().enumerate().map(one).collect());
        let mark = |chart: Chart, (series, x, y): (&str, f64, f64)| chart.marked(series, x, y);
        let marks =
            [("D-SPTF", 12.5, 7.8), ("D-SPTF", 37.5, 8.6), ("Hashing", 12.5, 9.0), ("Hashing", 37.5, 11.2)];
        vec![marks.into_iter().fold(chart, mark)]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "One replica of each pair is slow from 25% to 50% of the run, the other from 75% on. A rise is the mean response time of \
             the slow quarters over that of the others, less one."
                .to_owned(),
        ]
    }
}

/// The parameters for the scheme of this name: LARD with the shorter window has its own.
fn shorter(parameters: &Parameters, name: &str) -> Parameters {
    if name != "LARD, shorter window" {
        return parameters.clone();
    }
    let number = |name: &str| Value::Number(parameters.number(name));
    let windowed = parameters.with("lard_window_ms", number("lard_short_window_ms"));
    windowed.with("lard_scale", number("lard_short_scale"))
}

/// A run in which one brick of each pair is slow in its second quarter, the other in its last.
struct Degraded {
    system: System,
    trace: Generated,
    percent: u32,
    /// The figure, and the curves of times and counts, of the response times that are shown.
    shown: [&'static str; 3],
}

impl Job for Degraded {
    fn describe(&self) -> serde_json::Value {
        let Degraded { system, percent, shown, .. } = self;
        serde_json::json!({ "job": "degraded", "percent": percent, "shown": shown, "system": system.describe() })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let end = self.trace.end(seed);
        self.slowed(end).run(seed).map(|sample| self.by_parts(sample, end))
    }

    fn run_recorded(&self, seed: u64) -> Result<(Sample, Vec<RequestRecord>), String> {
        let end = self.trace.end(seed);
        let (sample, requests) = self.slowed(end).run_recorded(seed)?;
        Ok((self.by_parts(sample, end), requests))
    }
}

impl Degraded {
    /// The system of a run that ends then.
    fn slowed(&self, end: Time) -> System {
        let quarter = |number: u64| Time(end.0 / 4 * number);
        let mut system = self.system.clone();
        for pair in system.cluster.bricks.chunks_mut(2) {
            pair[0].speed = vec![(quarter(1), self.percent), (quarter(2), 100)];
            pair[1].speed = vec![(quarter(3), self.percent)];
        }
        system
    }

    /// What was measured, with the means of the parts of a run that ended then.
    fn by_parts(&self, mut sample: Sample, end: Time) -> Sample {
        let [_, times, counts] = self.shown;
        let (response, answered) = (&sample.series[times], &sample.series[counts]);
        let end_s = end.0 as f64 / 1e9;
        let mut parts = [(0.0, 0.0); PARTS];
        for ([at_s, response_ms], [_, count]) in response.iter().zip(answered) {
            let part = &mut parts[((at_s / end_s * PARTS as f64) as usize).min(PARTS - 1)];
            *part = (part.0 + response_ms * count, part.1 + count);
        }
        let mean = |is_slow: bool| {
            let of_kind = parts.iter().enumerate().filter(|(at, _)| (at * 4 / PARTS % 2 == 1) == is_slow);
            let (sum, count) = of_kind.fold((0.0, 0.0), |all, (_, part)| (all.0 + part.0, all.1 + part.1));
            sum / f64::max(count, 1.0)
        };
        let (healthy, degraded) = (mean(false), mean(true));
        let spot = |(at, (sum, count)): (usize, &(f64, f64))| {
            [(at as f64 + 0.5) / PARTS as f64 * 100.0, sum / f64::max(*count, 1.0)]
        };
        let curve = parts.iter().enumerate().map(spot).collect();
        sample.series = [("parts_ms".to_owned(), curve)].into();
        sample.values.insert("healthy_ms".to_owned(), healthy);
        sample.values.insert("degraded_ms".to_owned(), degraded);
        sample.values.insert("rise".to_owned(), degraded / healthy - 1.0);
        sample
    }
}

/// The mean over seeds of each part of the run.
fn curve(runs: &[Runs], at: usize) -> Vec<Spot> {
    let curves: Vec<&Vec<[f64; 2]>> = runs.iter().map(|runs| &runs.runs[at].1.series["parts_ms"]).collect();
    let spot = |part: usize| {
        let values: Vec<f64> = curves.iter().map(|curve| curve[part][1]).collect();
        Spot { x: curves[0][part][0], y: crate::statistics::estimate(&values).mean, ci95: None }
    };
    (0..PARTS).map(spot).collect()
}
