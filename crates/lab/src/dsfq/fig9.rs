//! Figures 9 and 11: f on one brick, g on the same and on another with ever more threads; through one gateway or several.

use super::setup::{self, Bed, F, Files, G, Streams, Volume};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use rules::fair::Share;
use sim::timed::Threads;

/// Threads of f and of g on the brick that they share.
pub(super) const SHARED: u32 = 30;
/// Threads of g on the other brick.
pub(super) const ON_B: [u32; 11] = [0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 20];

/// Two streams of which one has a second brick, with so many threads there.
pub(super) fn two_bricks(
    bed: &Bed<'_>,
    [on_a, on_b]: [u32; 2],
    shares: [Share; 2],
    gateways: u32,
    seconds: u64,
) -> Streams {
    let threads = |count| Threads::constant(bed.mix(), count);
    let volumes = vec![
        Volume::on("f", 0, F, threads(on_a)),
        Volume::on("g_a", 0, G, threads(on_a)),
        Volume::on("g_b", 1, G, threads(on_b)),
    ];
    let shares = setup::shares(&[(F, shares[0]), (G, shares[1])]);
    Streams::new(bed, (2, gateways), volumes, shares, seconds)
}

const FIGURES: &[&str] = &["f_mb_s", "g_mb_s", "g_a_mb_s", "g_b_mb_s", "spread_mb_s"];

/// Over all points: the greatest distance of g's service by weight from f's, as a part of f's.
fn worst_ratio(f: &[[f64; 2]], g: &[[f64; 2]], ratio: f64) -> f64 {
    let error = |(f, g): (&[f64; 2], &[f64; 2])| (g[1] / ratio / f[1] - 1.0).abs();
    f.iter().zip(g).map(error).fold(0.0, f64::max)
}

fn charts(name: &str, title: &str, table: &Table) -> Chart {
    let curve = |y: &str| setup::curve(table, &[], "threads_on_b", y);
    let lines = [("f", "f_mb_s"), ("g", "g_mb_s"), ("g on A", "g_a_mb_s"), ("g on B", "g_b_mb_s")];
    let series = lines.map(|(name, y)| setup::line(name, &curve(y))).into();
    Chart::lines(name, title, Axis::new("threads of g on B", ""), Axis::new("throughput", "MB/s"), series)
}

pub(super) struct Fig9a;

impl Experiment for Fig9a {
    fn id(&self) -> &str {
        "dsfq.fig9a"
    }

    fn paper(&self) -> &str {
        "dsfq"
    }

    fn title(&self) -> &str {
        "Total service 1:1: f on brick A, g on A and B, random"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::BRICKS, &["seconds"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, files: Files::Random };
        let point = |on_b: u32| {
            let streams = two_bricks(&bed, [SHARED, on_b], [Share::total(1); 2], 1, bed.seconds(scale));
            Point::new(streams).with("threads_on_b", on_b)
        };
        Ok(ON_B.map(point).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(FIGURES)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let curve = |y: &str| setup::curve(table, &[], "threads_on_b", y);
        let (f, g, g_a, g_b) = (curve("f_mb_s"), curve("g_mb_s"), curve("g_a_mb_s"), curve("g_b_mb_s"));
        let spread = curve("spread_mb_s");
        let last = f.len() - 1;
        let capacity = f[0][1] + g_a[0][1];
        let fluid = f.iter().zip(&g_b).map(|(f, g_b)| (f[1] / ((capacity + g_b[1]) / 2.0) - 1.0).abs());
        vec![
            claim("g over f, in all, less one: the worst point", 0.0, worst_ratio(&f, &g, 1.0), [0.0, 0.02]),
            shape(
                "f over half of all that is served, less one: the worst point",
                fluid.fold(0.0, f64::max),
                [0.0, 0.03],
            ),
            shape(
                "g on A with most threads on B over that with none: it falls",
                g_a[last][1] / g_a[0][1],
                [0.0, 0.5],
            ),
            shape(
                "spread of f - g from second to second, with most threads on B over that with none: it grows",
                spread[last][1] / spread[0][1],
                [1.0, 100.0],
            ),
        ]
    }

    fn charts(&self, table: &Table, runs: &[Runs]) -> Vec<Chart> {
        let over_time = ["f", "g"].map(|name| setup::line(name, setup::over_time(runs, 7, name))).into();
        vec![
            charts("dsfq.fig9a", self.title(), table),
            Chart::lines(
                "dsfq.fig9a.time",
                "The same with 10 threads of g on B, from second to second",
                Axis::new("time", "s"),
                Axis::new("throughput", "MB/s"),
                over_time,
            ),
        ]
    }
}

pub(super) struct Fig9b;

impl Experiment for Fig9b {
    fn id(&self) -> &str {
        "dsfq.fig9b"
    }

    fn paper(&self) -> &str {
        "dsfq"
    }

    fn title(&self) -> &str {
        "Total service 1:4: f on A, g on A and B, sequential"
    }

    fn assumptions(&self) -> Vec<&str> {
        let own = ["disks", "disk_megabytes_per_second", "places", "read_share", "sequential_bytes_most"];
        own.into_iter().chain(["network_one_way_us", "warm_up_s", "seconds"]).collect()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, files: Files::Sequential };
        let point = |on_b: u32| {
            let shares = [Share::total(1), Share::total(4)];
            let streams = two_bricks(&bed, [SHARED, on_b], shares, 1, bed.seconds(scale));
            Point::new(streams).with("threads_on_b", on_b)
        };
        Ok((0..=6).map(point).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(FIGURES)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let by_threads = |y: &str| setup::curve(table, &[], "threads_on_b", y);
        let by_g_b = |y: &str| setup::curve(table, &[], "g_b_mb_s", y);
        let (f, g_a) = (by_g_b("f_mb_s"), by_g_b("g_a_mb_s"));
        let worst = worst_ratio(&by_threads("f_mb_s"), &by_threads("g_mb_s"), 4.0);
        let near = |what: &str, paper: f64, curve: &[[f64; 2]], g_b: f64| {
            claim(what, paper, setup::at(curve, g_b), [paper * 0.95, paper * 1.05])
        };
        vec![
            near("f with nothing of g on B (MB/s)", 40.0, &f, 0.0),
            near("g on A with nothing on B (MB/s)", 160.0, &g_a, 0.0),
            near("f with 175 MB/s of g on B (MB/s)", 75.0, &f, 175.0),
            near("g on A with 175 MB/s on B (MB/s)", 125.0, &g_a, 175.0),
            claim("g over four times f, less one: the worst point", 0.0, worst, [0.0, 0.03]),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let curve = |y: &str| setup::curve(table, &[], "g_b_mb_s", y);
        let lines = [("f", "f_mb_s"), ("g on A", "g_a_mb_s"), ("g", "g_mb_s")];
        let series = lines.map(|(name, y)| setup::line(name, &curve(y))).into();
        let (x, y) = (Axis::new("throughput of g on B", "MB/s"), Axis::new("throughput", "MB/s"));
        let chart = Chart::lines("dsfq.fig9b", self.title(), x, y, series);
        let marks = [("f", 0.0, 40.0), ("f", 175.0, 75.0), ("g on A", 0.0, 160.0), ("g on A", 175.0, 125.0)];
        vec![marks.into_iter().fold(chart, |chart, (name, x, y)| chart.marked(name, x, y))]
    }
}

pub(super) struct Fig11;

impl Experiment for Fig11 {
    fn id(&self) -> &str {
        "dsfq.fig11"
    }

    fn paper(&self) -> &str {
        "dsfq"
    }

    fn title(&self) -> &str {
        "Figure 9(a) through one, two and four gateways in turn"
    }

    fn assumptions(&self) -> Vec<&str> {
        Fig9a.assumptions()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, files: Files::Random };
        let point = |gateways: u32, on_b: u32| {
            let streams =
                two_bricks(&bed, [SHARED, on_b], [Share::total(1); 2], gateways, bed.seconds(scale));
            Point::new(streams).with("gateways", gateways).with("threads_on_b", on_b)
        };
        let all =
            [1, 2, 4].into_iter().flat_map(|gateways| [0, 2, 4, 6, 10, 15, 20].map(|on_b| (gateways, on_b)));
        Ok(all.map(|(gateways, on_b)| point(gateways, on_b)).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(FIGURES)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let curve = |gateways: u32, y: &str| {
            setup::curve(table, &[("gateways", Cell::from(gateways))], "threads_on_b", y)
        };
        let spread = |gateways| setup::mean(&curve(gateways, "spread_mb_s")[1..]);
        let mut claims = vec![
            shape("spread of f - g, two gateways over one", spread(2) / spread(1), [0.0, 1.0]),
            shape("spread of f - g, four gateways over two", spread(4) / spread(2), [0.0, 1.0]),
        ];
        for gateways in [2, 4] {
            let worst = worst_ratio(&curve(gateways, "f_mb_s"), &curve(gateways, "g_mb_s"), 1.0);
            let what = format!("{gateways} gateways: g over f, in all, less one: the worst point");
            claims.push(claim(what, 0.0, worst, [0.0, 0.02]));
        }
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let series = [1u32, 2, 4].map(|gateways| {
            let wanted = [("gateways", Cell::from(gateways))];
            let name = if gateways == 1 { "1 gateway".to_owned() } else { format!("{gateways} gateways") };
            setup::line(&name, &setup::curve(table, &wanted, "threads_on_b", "spread_mb_s"))
        });
        let (x, y) = (Axis::new("threads of g on B", ""), Axis::new("spread of f - g over seconds", "MB/s"));
        vec![Chart::lines("dsfq.fig11", self.title(), x, y, series.into())]
    }

    fn notes(&self) -> Vec<String> {
        vec!["A spread is the standard deviation, over windows of a second, of what f and g were served in all.".to_owned()]
    }
}
