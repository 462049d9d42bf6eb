//! Figure 14: numbers of threads that rise and fall, under four ways to share.

use super::fig12::{MINIMUM, WEIGHT};
use super::setup::{self, Bed, F, Files, G, PAPER, Streams, Volume};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use core::time::Duration;
use rules::fair::{Order, Share};
use sim::timed::Threads;

pub(super) struct Fig14;

/// The panels from (b) to (e), and the last with history.
const NONE: &str = "none";
const SINGLE: &str = "single brick";
const TOTAL: &str = "TOTAL";
const HYBRID: &str = "HYBRID";
const HISTORY: &str = "HYBRID with history";
const WAYS: [&str; 5] = [NONE, SINGLE, TOTAL, HYBRID, HISTORY];

/// Threads on the shared brick, and on each other one.
const SHARED: [u32; 2] = [15, 35];
const OWN: [u32; 2] = [0, 10];
/// Windows of a second that make one in which streams are compared.
const SMOOTH: usize = 5;
/// With so many threads on the shared brick a stream always has some that wait there.
const ENOUGH: u32 = 20;

impl Experiment for Fig14 {
    fn id(&self) -> &str {
        "dsfq.fig14"
    }

    fn paper(&self) -> &str {
        "dsfq"
    }

    fn title(&self) -> &str {
        "Four ways to share a brick while threads come and go"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::BRICKS, &["fluctuating_seconds", "sine_periods_s"]].concat()
    }

    fn points(&self, parameters: &Parameters, _: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, files: Files::Random };
        let periods: Vec<u64> =
            parameters.text("sine_periods_s").split(' ').map(|period| period.parse().unwrap_or(1)).collect();
        // Whole sines, at any scale.
        let seconds = parameters.count("fluctuating_seconds");
        let point = |way: &str| {
            let end = Duration::from_secs(seconds);
            let sine =
                |counts, at: usize| Threads::sine(bed.mix(), counts, Duration::from_secs(periods[at]), end);
            let volumes = vec![
                Volume::on("f_a", 0, F, sine(SHARED, 0)),
                Volume::on("g_a", 0, G, sine(SHARED, 1)),
                Volume::on("f_b", 1, F, sine(OWN, 2)),
                Volume::on("f_c", 2, F, sine(OWN, 3)),
                Volume::on("g_d", 3, G, sine(OWN, 4)),
                Volume::on("g_e", 4, G, sine(OWN, 5)),
            ];
            let (order, share) = match way {
                NONE => (Order::Arrival, Share::total(WEIGHT)),
                SINGLE => (PAPER, Share::single(WEIGHT)),
                TOTAL => (PAPER, Share::total(WEIGHT)),
                HYBRID => (PAPER, Share::total(WEIGHT).with_minimum(MINIMUM)),
                _ => (Order::FAIR, Share::total(WEIGHT).with_minimum(MINIMUM)),
            };
            let shares = setup::shares(&[(F, share), (G, share)]);
            let streams = Streams::new(&bed, (5, 1), volumes, shares, seconds).in_order(order);
            Point::new(Sines(Streams { warm_up_s: 0, ..streams })).with("sharing", way)
        };
        Ok(WAYS.map(point).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&[
            "f_mb_s",
            "g_mb_s",
            "apart",
            "apart_on_a",
            "least_part_of_a",
            "follows_threads_on_a",
            "follows_threads",
            "excused",
            "excused_or_paying",
        ])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let of = |way: &str, figure: &str| table.number(&[("sharing", Cell::from(way))], figure);
        vec![
            shape(
                "none: f's part of A follows its part of the threads there (correlation)",
                of(NONE, "follows_threads_on_a"),
                [0.9, 1.0],
            ),
            shape(
                "none: f's part of all follows its part of all threads (correlation)",
                of(NONE, "follows_threads"),
                [0.9, 1.0],
            ),
            shape(
                "single brick: f and g apart on A, where both have 20 threads there",
                of(SINGLE, "apart_on_a"),
                [0.0, 0.03],
            ),
            shape(
                "single brick: f and g apart in all, over TOTAL",
                of(SINGLE, "apart") / of(TOTAL, "apart"),
                [1.2, 100.0],
            ),
            shape(
                "none: f and g apart in all, over TOTAL",
                of(NONE, "apart") / of(TOTAL, "apart"),
                [1.2, 100.0],
            ),
            shape(
                "TOTAL: where they are apart, one has next to nothing on A or too few threads there (part of such times)",
                of(TOTAL, "excused"),
                [0.95, 1.0],
            ),
            shape(
                "TOTAL: the same, or the other one has next to nothing on A, as it still pays for such a time",
                of(TOTAL, "excused_or_paying"),
                [0.95, 1.0],
            ),
            shape(
                "TOTAL: the least part of A of a stream with 20 threads there: close to zero",
                of(TOTAL, "least_part_of_a"),
                [0.0, 0.03],
            ),
            shape(
                "HYBRID: the least part of A of a stream with 20 threads there: a twelfth is kept",
                of(HYBRID, "least_part_of_a"),
                [1.0 / 12.0 * 0.9, 0.5],
            ),
            shape(
                "HYBRID: f and g apart in all, over TOTAL: slightly more",
                of(HYBRID, "apart") / of(TOTAL, "apart"),
                [1.0, 2.0],
            ),
            shape(
                "HYBRID: f and g apart in all, over single brick: less",
                of(HYBRID, "apart") / of(SINGLE, "apart"),
                [0.0, 0.9],
            ),
            shape(
                "HYBRID with history: the least part of A of a stream with 20 threads there",
                of(HISTORY, "least_part_of_a"),
                [1.0 / 12.0 * 0.9, 0.5],
            ),
            shape(
                "HYBRID with history: f and g apart in all, over HYBRID",
                of(HISTORY, "apart") / of(HYBRID, "apart"),
                [0.0, 1.0],
            ),
        ]
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        let time = || Axis::new("time", "s");
        let threads =
            ["f", "g"].map(|name| setup::line(name, setup::over_time(runs, 0, &format!("{name}_threads"))));
        let panel_a = Chart::lines(
            "dsfq.fig14a",
            "Threads on the shared brick A",
            time(),
            Axis::new("threads", ""),
            threads.into(),
        );
        let panel = |(point, way): (usize, &&str)| {
            let lines =
                [("f", "f_smooth"), ("g", "g_smooth"), ("f on A", "f_a_smooth"), ("g on A", "g_a_smooth")];
            let series = lines.map(|(name, curve)| setup::line(name, setup::over_time(runs, point, curve)));
            let name = format!("dsfq.fig14{}", ["b", "c", "d", "e", "e.history"][point]);
            let title = format!("Throughput in all and on the shared brick A; sharing: {way}");
            Chart::lines(&name, &title, time(), Axis::new("throughput", "MB/s"), series.into())
        };
        std::iter::once(panel_a).chain(WAYS.iter().enumerate().map(panel)).collect()
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Streams are compared in windows of 5 s. Apart is |f - g| / (f + g), in the mean over windows; where a single window is \
             called apart, it is more than 0.1."
                .to_owned(),
        ]
    }
}

/// A run of which f and g are compared in each window.
struct Sines(Streams);

impl Job for Sines {
    fn describe(&self) -> serde_json::Value {
        serde_json::json!({ "job": "sines", "streams": self.0.describe() })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let (served, effort) = self.0.served(seed)?;
        let mut sample = self.0.sample(&served, effort);
        let names = ["f", "g", "f_a", "g_a"];
        let [f, g, f_a, g_a] = names.map(|name| smooth(&sample.series[name]));
        let threads = |letter: &str, where_: &str| self.threads(letter, where_);
        let [f_here, g_here] = ["f", "g"].map(|letter| threads(letter, "_a"));
        let [f_all, g_all] = ["f", "g"].map(|letter| threads(letter, ""));
        let windows = 0..f.len();
        let apart = |one: &[[f64; 2]], other: &[[f64; 2]], at: usize| {
            (one[at][1] - other[at][1]).abs() / f64::max(one[at][1] + other[at][1], 1e-9)
        };
        let has_enough = |here: &[[f64; 2]], at: usize| here[at][1] >= f64::from(ENOUGH);
        let both = |at: &usize| has_enough(&f_here, *at) && has_enough(&g_here, *at);
        let mean = |of: Vec<f64>| of.iter().sum::<f64>() / f64::max(of.len() as f64, 1.0);
        let part = |one: &[[f64; 2]], at: usize| one[at][1] / f64::max(f_a[at][1] + g_a[at][1], 1e-9);
        let parts = windows.clone().flat_map(|at| {
            [(&f_a, &f_here), (&g_a, &g_here)]
                .map(|(one, here)| if has_enough(here, at) { part(one, at) } else { 1.0 })
        });
        // Who has more of all has next to nothing on A, or who has less has nobody who waits there.
        let is_excused = |at: usize| {
            let (more, less_here) = if f[at][1] > g[at][1] { (&f_a, &g_here) } else { (&g_a, &f_here) };
            part(more, at) < 0.1 || !has_enough(less_here, at)
        };
        let far: Vec<usize> = windows.clone().filter(|at| apart(&f, &g, *at) > 0.1).collect();
        let is_paying = |at: usize| f64::min(part(&f_a, at), part(&g_a, at)) < 0.1;
        let of_far = |is_meant: &dyn Fn(usize) -> bool| match far.len() {
            0 => 1.0,
            count => far.iter().filter(|at| is_meant(**at)).count() as f64 / count as f64,
        };
        let of_all = |f: &[[f64; 2]], g: &[[f64; 2]]| -> Vec<f64> {
            f.iter().zip(g).map(|(f, g)| f[1] / f64::max(f[1] + g[1], 1e-9)).collect()
        };
        let figures = [
            ("apart", mean(windows.clone().map(|at| apart(&f, &g, at)).collect())),
            ("apart_on_a", mean(windows.clone().filter(both).map(|at| apart(&f_a, &g_a, at)).collect())),
            ("least_part_of_a", parts.fold(1.0, f64::min)),
            ("follows_threads", correlation(&of_all(&f, &g), &of_all(&f_all, &g_all))),
            ("follows_threads_on_a", correlation(&of_all(&f_a, &g_a), &of_all(&f_here, &g_here))),
            ("excused", of_far(&is_excused)),
            ("excused_or_paying", of_far(&|at| is_excused(at) || is_paying(at))),
        ];
        sample.values.extend(figures.map(|(name, value)| (name.to_owned(), value)));
        for (name, curve) in names.into_iter().zip([f, g, f_a, g_a]) {
            sample.series.insert(format!("{name}_smooth"), curve);
        }
        sample.series.insert("f_threads".to_owned(), f_here);
        sample.series.insert("g_threads".to_owned(), g_here);
        Ok(sample)
    }
}

impl Sines {
    /// The threads of a stream's volumes whose names go on like that, in each window.
    fn threads(&self, letter: &str, place: &str) -> Vec<[f64; 2]> {
        let start = format!("{letter}{place}");
        let meant = || self.0.volumes.iter().filter(|volume| volume.name.starts_with(&start));
        let all = |second: u64| -> f64 {
            meant().map(|volume| f64::from(volume.threads.count[second as usize].1)).sum()
        };
        smooth(&(0..self.0.seconds).map(|second| [second as f64 + 0.5, all(second)]).collect::<Vec<_>>())
    }
}

/// The same in longer windows.
fn smooth(curve: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let one = |few: &[[f64; 2]]| {
        let count = few.len() as f64;
        [few.iter().map(|spot| spot[0]).sum::<f64>() / count, setup::mean(few)]
    };
    curve.chunks(SMOOTH).map(one).collect()
}

fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let mean = |of: &[f64]| of.iter().sum::<f64>() / f64::max(of.len() as f64, 1.0);
    let (one_mean, other_mean) = (mean(one), mean(other));
    let product = |x: &[f64], x_mean: f64, y: &[f64], y_mean: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - x_mean) * (y - y_mean)).sum()
    };
    let both = product(one, one_mean, other, other_mean);
    both / libm::sqrt(product(one, one_mean, one, one_mean) * product(other, other_mean, other, other_mean))
}
