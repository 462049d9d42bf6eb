//! Figure 9: how slow a network claims can bear.

use super::setup;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::{Parameters, Value};
use crate::plot::{Axis, Chart};

pub(super) struct Fig9;

/// One-way latencies in microseconds.
const LATENCIES: [f64; 15] = [
    0.0, 10.0, 50.0, 100.0, 250.0, 500.0, 750.0, 1000.0, 1250.0, 1500.0, 1750.0, 2000.0, 2250.0, 2500.0,
    3000.0,
];

/// A second service of the same read is no throughput.
const ANSWERED: &str = "requests_per_second";

impl Experiment for Fig9 {
    fn id(&self) -> &str {
        "dsptf.fig9"
    }

    fn paper(&self) -> &str {
        "d-sptf"
    }

    fn title(&self) -> &str {
        "Throughput by network latency, eight replicas"
    }

    fn assumptions(&self) -> Vec<&str> {
        setup::CLAIMING.iter().copied().filter(|name| *name != "network_one_way_us").collect()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let point = |name: &str, latency: f64| {
            let parameters = parameters.with("network_one_way_us", Value::Number(latency));
            let cluster = setup::cluster(&parameters, 8, 8, setup::scheme(&parameters, name, &[]));
            let system = setup::closed(&parameters, scale, cluster, 16, 0.9);
            Point::new(system).with("scheme", name).with("one_way_ms", latency / 1e3)
        };
        Ok(["Central SPTF", "D-SPTF"]
            .into_iter()
            .flat_map(|name| LATENCIES.map(|latency| point(name, latency)))
            .collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&[
            "throughput_iops",
            "idle",
            "service_ms",
            "conflicts_per_request",
            "device_reads_per_read",
            ANSWERED,
        ])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let answered = |name: &str, latency: f64| answered(table, name, latency);
        let loss = |latency: f64| 1.0 - answered("D-SPTF", latency) / answered("D-SPTF", 0.0);
        let off = |latency: f64| 1.0 - answered("D-SPTF", latency) / answered("Central SPTF", latency);
        let worst = LATENCIES.into_iter().filter(|latency| *latency <= 1000.0).map(off).fold(0.0, f64::max);
        let (before, after) = (loss(1750.0) / 1.75, (loss(3000.0) - loss(1750.0)) / 1.25);
        vec![
            claim("D-SPTF under central SPTF, worst loss up to 1 ms", 0.0, worst, [-0.01, 0.02]),
            claim("D-SPTF, loss at 1.75 ms against no latency", 0.05, loss(1750.0), [0.0, 0.05]),
            claim("D-SPTF under central SPTF at 1.75 ms, loss", 0.05, off(1750.0), [0.0, 0.05]),
            shape("D-SPTF, loss a ms after 1.75 ms over that before", after / before, [1.5, 1000.0]),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let (x, y) = (Axis::new("one-way latency", "ms"), Axis::new("requests answered, all bricks", "1/s"));
        let series = setup::series(table, "scheme", "one_way_ms", ANSWERED);
        let bound = answered(table, "D-SPTF", 0.0) * 0.95;
        vec![Chart::lines("dsptf.fig9", self.title(), x, y, series).marked("D-SPTF", 1.75, bound)]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "The mark at 1.75 ms is the paper's bound: less than 5% below no latency. It does not say below what, so two \
             claims are made of it. Only messages between bricks become slower; clients stay where they are."
                .to_owned(),
        ]
    }
}

fn answered(table: &Table, name: &str, latency: f64) -> f64 {
    let cells = [("scheme", Cell::from(name)), ("one_way_ms", Cell::from(latency / 1e3))];
    table.number(&cells, ANSWERED)
}
