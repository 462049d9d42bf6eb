//! Table 4: two replicas, the disk of one at half the speed.

use super::setup;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart, Series, Spot};
use base::Time;
use sim::timed::Cluster;

pub(super) struct Table4;

/// The paper's columns: throughput of the fast and of the slow brick in IO/s.
const PAPER: [(&str, [f64; 2]); 5] = [
    ("Central SPTF", [195.0, 100.0]),
    ("D-SPTF", [194.0, 101.0]),
    ("Hashing", [137.0, 101.0]),
    ("LARD", [182.0, 101.0]),
    ("Weighted hash", [180.0, 100.0]),
];

impl Experiment for Table4 {
    fn id(&self) -> &str {
        "dsptf.table4"
    }

    fn paper(&self) -> &str {
        "d-sptf"
    }

    fn title(&self) -> &str {
        "Throughput of a fast and a slow replica"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::CLUSTER, &["half_speed_percent"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let point = |name: &str| {
            let system = setup::closed(parameters, scale, fast_and_slow(parameters, name), 16, 0.9);
            Point::new(system).with("scheme", name)
        };
        Ok(PAPER.iter().map(|(name, _)| point(name)).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        let row = |(labels, sample): &(Row, crate::experiment::Sample)| {
            labels
                .clone()
                .with("fast_iops", sample.value("brick0_throughput_iops"))
                .with("slow_iops", sample.value("brick1_throughput_iops"))
                .with("idle", sample.value("idle"))
        };
        runs.runs.iter().map(row).collect()
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let [fast, slow] =
            ["fast_iops", "slow_iops"].map(|column| move |name: &str| iops(table, name, column));
        let near = |paper: f64| [paper * 0.95, paper * 1.05];
        let mut claims = Vec::new();
        for (name, [paper_fast, paper_slow]) in PAPER {
            claims.push(claim(
                format!("{name}, fast brick (IO/s)"),
                paper_fast,
                fast(name),
                near(paper_fast),
            ));
            claims.push(claim(
                format!("{name}, slow brick (IO/s)"),
                paper_slow,
                slow(name),
                near(paper_slow),
            ));
        }
        let total = |name: &str| fast(name) + slow(name);
        let weighted = total("Weighted hash") / total("Central SPTF");
        claims.push(claim(
            "weighted hash over central SPTF, both bricks",
            280.0 / 295.0,
            weighted,
            near(280.0 / 295.0),
        ));
        let others = PAPER.iter().filter(|(name, _)| *name != "Hashing").map(|(name, _)| total(name));
        let least = others.fold(f64::INFINITY, f64::min);
        // An order: the table's figure for hashing is not what its prose says.
        let worst = total("Hashing") / least;
        claims.push(shape("hashing over the next worst, both bricks", worst, [0.0, 0.99]));
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let groups = vec!["fast replica".to_owned(), "slow replica".to_owned()];
        let columns = ["fast_iops", "slow_iops"];
        let one = |name: &str| {
            let spot = |(at, column): (usize, &&str)| {
                let row = table.select(&[("scheme", Cell::from(name))]).next()?.get(column)?.clone();
                let Cell::Number(y, ci95) = row else { return None };
                Some(Spot { x: at as f64, y, ci95 })
            };
            Series { name: name.to_owned(), spots: columns.iter().enumerate().filter_map(spot).collect() }
        };
        let series = PAPER.iter().map(|(name, _)| one(name)).collect();
        let chart = Chart::bars(
            "dsptf.table4",
            self.title(),
            Axis::new("throughput of the brick", "IO/s"),
            groups,
            series,
        );
        let mark = |chart: Chart, (name, [fast, slow]): &(&str, [f64; 2])| {
            chart.marked(name, 0.0, *fast).marked(name, 1.0, *slow)
        };
        vec![PAPER.iter().fold(chart, mark)]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "The paper's prose says that hashing paces the fast brick to match the slow one, which would be about 100; \
             its table says 137."
                .to_owned(),
        ]
    }
}

/// Two replicas, the second slow; the weighted hash knows by how much.
pub(super) fn fast_and_slow(parameters: &Parameters, name: &str) -> Cluster {
    let percent = parameters.count("half_speed_percent") as u32;
    let weights = [f64::from(percent), 100.0];
    let mut cluster = setup::cluster(parameters, 2, 2, setup::scheme(parameters, name, &weights));
    cluster.bricks[1].speed = vec![(Time::ZERO, percent)];
    cluster
}

fn iops(table: &Table, name: &str, column: &str) -> f64 {
    table.number(&[("scheme", Cell::from(name))], column)
}
