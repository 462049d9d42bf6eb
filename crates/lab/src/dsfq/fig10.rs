//! Figure 10: g is striped over three bricks, and f has one of them.

use super::setup::{self, Bed, F, Files, G, Streams, Volume};
use crate::cell::Row;
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use rules::fair::Share;
use sim::timed::{Threads, VolumeSpec};

pub(super) struct Fig10;

impl Experiment for Fig10 {
    fn id(&self) -> &str {
        "dsfq.fig10"
    }

    fn paper(&self) -> &str {
        "dsfq"
    }

    fn title(&self) -> &str {
        "Total service 1:1: g over three bricks, f on one of them"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::BRICKS, &["seconds"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, files: Files::Random };
        let point = |threads: u32| {
            let striped = VolumeSpec::striped(vec![0, 1, 2], G);
            let volumes = vec![
                Volume::on("f", 0, F, Threads::constant(bed.mix(), 30)),
                Volume { name: "g", spec: striped, threads: Threads::constant(bed.mix(), threads) },
            ];
            let shares = setup::shares(&[(F, Share::total(1)), (G, Share::total(1))]);
            let streams = Streams::new(&bed, (3, 1), volumes, shares, bed.seconds(scale));
            Point::new(streams).with("threads", threads)
        };
        Ok([1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 20].map(point).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["f_mb_s", "g_mb_s", "f_ms", "g_ms", "spread_mb_s"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let curve = |y: &str| setup::curve(table, &[], "threads", y);
        let (f, g) = (curve("f_mb_s"), curve("g_mb_s"));
        let is_even = |(f, g): &(&[f64; 2], &[f64; 2])| (g[1] / f[1] - 1.0).abs() <= 0.1;
        let from = f.iter().zip(&g).find(is_even).map_or(f64::NAN, |(f, _)| f[0]);
        let last = f.len() - 1;
        let shared = g[last][1] / 3.0 / (f[last][1] + g[last][1] / 3.0);
        vec![
            claim("f and g are within 10% of each other from so many threads of g on", 3.0, from, [2.0, 4.0]),
            shape("g over f with 20 threads", g[last][1] / f[last][1], [0.97, 1.03]),
            shape("g's part of the shared brick with 20 threads: a quarter", shared, [0.24, 0.26]),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let curve = |y: &str| setup::curve(table, &[], "threads", y);
        let series = vec![setup::line("f", &curve("f_mb_s")), setup::line("g", &curve("g_mb_s"))];
        let (x, y) = (Axis::new("threads of g", ""), Axis::new("throughput in all", "MB/s"));
        vec![Chart::lines("dsfq.fig10", self.title(), x, y, series)]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Nearly all threads of g are at the shared brick at any time, since the other two have nothing else to do. The \
             paper counts threads on the shared brick."
                .to_owned(),
        ]
    }
}
