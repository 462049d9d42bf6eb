//! Figure 13: a third stream comes and goes on the brick that g has to itself, and f follows g.

use super::setup::{self, Bed, F, Files, G, H, Streams, Volume};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use core::time::Duration;
use rules::fair::Share;
use sim::timed::Threads;

pub(super) struct Fig13;

/// For so long h is on, and then for so long it is off.
const HALF_S: u64 = 10;
const PERIOD_S: u64 = 2 * HALF_S;
/// Short against the second after which f follows, and long against a request.
const WINDOW: Duration = Duration::from_millis(250);

impl Experiment for Fig13 {
    fn id(&self) -> &str {
        "dsfq.fig13"
    }

    fn paper(&self) -> &str {
        "dsfq"
    }

    fn title(&self) -> &str {
        "Total service 1:1:1 while h is on and off for 10 s each"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::BRICKS, &["fluctuating_seconds"]].concat()
    }

    fn points(&self, parameters: &Parameters, _: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, files: Files::Random };
        // Some periods, at any scale.
        let periods = parameters.count("fluctuating_seconds").div_ceil(PERIOD_S);
        let end = Duration::from_secs((periods + 1) * PERIOD_S);
        let point = |on_a: u32| {
            let constant = |count| Threads::constant(bed.mix(), count);
            let on_off = Threads::on_off(bed.mix(), 10, Duration::from_secs(HALF_S), end);
            let volumes = vec![
                Volume::on("f", 0, F, constant(on_a)),
                Volume::on("g_a", 0, G, constant(on_a)),
                Volume::on("g_b", 1, G, constant(10)),
                Volume::on("h", 1, H, on_off),
            ];
            let shares = setup::shares(&[F, G, H].map(|stream| (stream, Share::total(1))));
            let streams = Streams::new(&bed, (2, 1), volumes, shares, periods * PERIOD_S);
            Point::new(Folded(Streams { warm_up_s: PERIOD_S, window: WINDOW, ..streams }))
                .with("threads_on_a", on_a)
        };
        Ok([20, 30].map(point).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["f_on_mb_s", "g_on_mb_s", "f_off_mb_s", "g_off_mb_s", "lag_s", "g_drop", "apart_mb"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let of = |threads: u32, figure: &str| table.number(&[("threads_on_a", Cell::from(threads))], figure);
        let mut claims = Vec::new();
        for threads in [20, 30] {
            let is = |what: &str| format!("{threads} threads: {what}");
            let apart = |on: &str| {
                let [f, g] = ["f", "g"].map(|stream| of(threads, &format!("{stream}_{on}_mb_s")));
                (g / f - 1.0).abs()
            };
            claims.push(claim(is("f follows g so long after (s)"), 1.0, of(threads, "lag_s"), [0.3, 2.0]));
            claims.push(claim(
                is("g over f when h has been on for 5 s, less one"),
                0.0,
                apart("on"),
                [0.0, 0.05],
            ));
            claims.push(claim(
                is("g over f when h has been off for 5 s, less one"),
                0.0,
                apart("off"),
                [0.0, 0.05],
            ));
            let falls = of(threads, "f_on_mb_s") / of(threads, "f_off_mb_s");
            claims.push(shape(is("f with h on over f with h off: it falls"), falls, [0.5, 0.97]));
        }
        let sharper = of(30, "g_drop") / of(20, "g_drop");
        claims.push(shape("g's drop when h comes, 30 threads over 20: sharper", sharper, [1.0, 10.0]));
        let apart = of(30, "apart_mb") / of(20, "apart_mb");
        claims.push(shape(
            "what g misses against f when h comes, 30 threads over 20: more",
            apart,
            [1.0, 10.0],
        ));
        claims
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        let one = |(point, threads): (usize, u32)| {
            let names = ["f", "g", "h"];
            let series =
                names.map(|name| setup::line(name, setup::over_time(runs, point, &format!("{name}_folded"))));
            let title = format!("h is on until 10 s and off until 20 s; f and g have {threads} threads on A");
            let (x, y) = (Axis::new("time in the period", "s"), Axis::new("throughput in all", "MB/s"));
            Chart::lines(&format!("dsfq.fig13.{threads}"), &title, x, y, series.into())
        };
        [(0, 20), (1, 30)].map(one).into()
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Figures are of the mean period, in windows of 0.25 s. f follows g when it has gone half of its way; of both edges the mean. \
             A drop is how far below its level g is at the least in the first 3 s, as a part of that level."
                .to_owned(),
        ]
    }
}

/// A run of which all periods are laid on each other.
struct Folded(Streams);

impl Job for Folded {
    fn describe(&self) -> serde_json::Value {
        serde_json::json!({ "job": "folded", "streams": self.0.describe() })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let (served, effort) = self.0.served(seed)?;
        let mut sample = self.0.sample(&served, effort);
        let folded = |sample: &Sample, name: &str| fold(&sample.series[name]);
        let [f, g, h] = ["f", "g", "h"].map(|name| folded(&sample, name));
        let level = |curve: &[[f64; 2]], from: f64| {
            let within = |at: f64| (from..from + 5.0).contains(&at);
            setup::mean(&curve.iter().copied().filter(|spot| within(spot[0])).collect::<Vec<_>>())
        };
        let half = HALF_S as f64;
        for (name, curve) in [("f", &f), ("g", &g)] {
            sample.values.insert(format!("{name}_on_mb_s"), level(curve, 5.0));
            sample.values.insert(format!("{name}_off_mb_s"), level(curve, half + 5.0));
        }
        let middle = |curve: &[[f64; 2]]| (level(curve, 5.0) + level(curve, half + 5.0)) / 2.0;
        // The edges where h comes, and where it goes: when a curve has gone half of its way.
        let edge = |curve: &[[f64; 2]], from: f64, falls: bool| {
            let middle = middle(curve);
            let is_past = |spot: &&[f64; 2]| spot[0] >= from && (spot[1] < middle) == falls;
            curve.iter().find(is_past).map_or(f64::NAN, |spot| spot[0] - from)
        };
        let lag = |from, falls| edge(&f, from, falls) - edge(&g, from, falls);
        let early =
            |curve: &[[f64; 2]]| curve.iter().filter(|spot| spot[0] < 3.0).map(|spot| spot[1]).collect();
        let (f_early, g_early): (Vec<f64>, Vec<f64>) = (early(&f), early(&g));
        let least = g_early.iter().copied().fold(f64::MAX, f64::min);
        let apart = f_early.iter().zip(&g_early).map(|(f, g)| (f - g) * WINDOW.as_secs_f64()).sum();
        let figures = [
            ("lag_s", (lag(0.0, true) + lag(half, false)) / 2.0),
            ("g_drop", 1.0 - least / level(&g, 5.0)),
            ("apart_mb", apart),
        ];
        sample.values.extend(figures.map(|(name, value)| (name.to_owned(), value)));
        for (name, curve) in [("f_folded", f), ("g_folded", g), ("h_folded", h)] {
            sample.series.insert(name.to_owned(), curve);
        }
        Ok(sample)
    }
}

/// The mean period of a curve that begins with one.
fn fold(curve: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let bins = (PERIOD_S as f64 / WINDOW.as_secs_f64()) as usize;
    let bin = |at: usize| {
        let of = curve.iter().skip(at).step_by(bins).copied().collect::<Vec<_>>();
        [(at as f64 + 0.5) * WINDOW.as_secs_f64(), setup::mean(&of)]
    };
    (0..bins).map(bin).collect()
}
