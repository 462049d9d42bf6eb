//! Figure 8: two streams on one brick; one has threads enough, the other ever more.

use super::setup::{self, Bed, F, Files, G, Streams, Volume};
use crate::cell::Row;
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use core::ops::RangeInclusive;
use rules::fair::Share;
use sim::timed::Threads;

pub(super) struct Fig8;

/// Those of g.
pub(super) const THREADS: RangeInclusive<u32> = 0..=20;

/// f has 30 threads and a weight of `unit`, g so many and twice the weight.
pub(super) fn streams(bed: &Bed<'_>, unit: u32, threads: u32, seconds: u64) -> Streams {
    let volumes = vec![
        Volume::on("f", 0, F, Threads::constant(bed.mix(), 30)),
        Volume::on("g", 0, G, Threads::constant(bed.mix(), threads)),
    ];
    let shares = setup::shares(&[(F, Share::total(unit)), (G, Share::total(2 * unit))]);
    Streams::new(bed, (1, 1), volumes, shares, seconds)
}

impl Experiment for Fig8 {
    fn id(&self) -> &str {
        "dsfq.fig8"
    }

    fn paper(&self) -> &str {
        "dsfq"
    }

    fn title(&self) -> &str {
        "Two streams on one brick, weights 1:2; f has 30 threads"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::BRICKS, &["seconds"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, files: Files::Random };
        let point =
            |threads: u32| Point::new(streams(&bed, 1, threads, bed.seconds(scale))).with("threads", threads);
        Ok(THREADS.map(point).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["f_mb_s", "g_mb_s", "f_ms", "g_ms"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let curve = |y: &str| setup::curve(table, &[], "threads", y);
        let (f, g, g_ms) = (curve("f_mb_s"), curve("g_mb_s"), curve("g_ms"));
        let [f_at, g_at, ms_at] =
            [&f, &g, &g_ms].map(|curve| move |threads: u32| setup::at(curve, f64::from(threads)));
        let plateau = setup::mean(&g[18..]);
        // Where the line through the beginning meets the plateau.
        let knee = plateau / (setup::mean(&g[1..=6]) / 3.5);
        let share = g_at(20) / (f_at(20) + g_at(20));
        vec![
            claim("g reaches its share (threads)", 13.0, knee, [12.0, 14.0]),
            claim("g's share of the brick with 20 threads", 2.0 / 3.0, share, [0.65, 0.68]),
            shape("g's latency with 10 threads over that with 2: flat", ms_at(10) / ms_at(2), [0.9, 1.1]),
            shape(
                "g's latency with 20 threads over that with 13: it rises",
                ms_at(20) / ms_at(13),
                [1.3, 1.7],
            ),
            shape(
                "f's throughput with 20 threads of g over that with 15: flat",
                f_at(20) / f_at(15),
                [0.97, 1.03],
            ),
            shape("f's throughput with 13 threads of g over that with none", f_at(13) / f_at(0), [0.3, 0.37]),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let series = |figures: [&str; 2]| {
            let [f, g] = figures.map(|y| setup::curve(table, &[], "threads", y));
            vec![setup::line("f", &f), setup::line("g", &g[1..])]
        };
        let x = || Axis::new("threads of g", "");
        let throughput = Axis::new("throughput", "MB/s");
        let latency = Axis::new("mean latency", "ms");
        vec![
            Chart::lines("dsfq.fig8a", self.title(), x(), throughput, series(["f_mb_s", "g_mb_s"])),
            Chart::lines("dsfq.fig8b", self.title(), x(), latency, series(["f_ms", "g_ms"])),
        ]
    }
}
