//! Table 5: messages for each request, by bricks and by replicas.

use super::setup;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

pub(super) struct Table5;

/// What tells holders that a write takes effect: the paper's bricks have no second phase.
const SECOND_PHASE: &str = "decide_per_request";

const BRICKS: [u32; 4] = [16, 32, 64, 128];
const REPLICAS: [u32; 4] = [2, 4, 6, 8];
/// The paper's table, a line for each number of bricks.
const PAPER: [[f64; 4]; 4] = [
    [4.003, 8.02, 12.07, 16.15],
    [4.005, 8.01, 12.09, 16.20],
    [4.007, 8.03, 12.05, 16.17],
    [4.001, 8.05, 12.08, 16.13],
];

impl Experiment for Table5 {
    fn id(&self) -> &str {
        "dsptf.table5"
    }

    fn paper(&self) -> &str {
        "d-sptf"
    }

    fn title(&self) -> &str {
        "Messages for each request by bricks and replicas"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::CLAIMING, &["message_read_share"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let point = |bricks: u32, replicas: u32| {
            let cluster =
                setup::cluster(parameters, bricks, replicas, setup::scheme(parameters, "D-SPTF", &[]));
            let mut system =
                setup::closed(parameters, scale, cluster, 16, parameters.number("message_read_share"));
            // As many requests whatever the number of groups: they differ in nothing.
            system.length = setup::length(parameters, scale, 4);
            Point::new(system).with("bricks", bricks).with("replicas", replicas)
        };
        Ok(BRICKS.into_iter().flat_map(|bricks| REPLICAS.map(|replicas| point(bricks, replicas))).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["messages_per_request", SECOND_PHASE, "conflicts_per_request"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims: Vec<Claim> = REPLICAS
            .iter()
            .enumerate()
            .map(|(at, replicas)| {
                let of = |bricks: &u32| messages(table, *bricks, *replicas);
                let mean = BRICKS.iter().map(of).sum::<f64>() / BRICKS.len() as f64;
                let paper = PAPER.iter().map(|line| line[at]).sum::<f64>() / PAPER.len() as f64;
                let least = f64::from(2 * replicas);
                claim(
                    format!("messages with {replicas} replicas, mean over bricks"),
                    paper,
                    mean,
                    [least, least * 1.02],
                )
            })
            .collect();
        claims.extend(REPLICAS.iter().map(|replicas| {
            let of =
                |bricks: &u32| messages(table, *bricks, *replicas) - second_phase(table, *bricks, *replicas);
            let mean = BRICKS.iter().map(of).sum::<f64>() / BRICKS.len() as f64;
            let least = f64::from(2 * replicas);
            let what =
                format!("messages without the writes' second phase, {replicas} replicas, mean over bricks");
            shape(what, mean, [least, least * 1.02])
        }));
        let spread = |replicas: u32| {
            let all = BRICKS.map(|bricks| messages(table, bricks, replicas));
            all.into_iter().fold(0.0, f64::max) / all.into_iter().fold(f64::INFINITY, f64::min) - 1.0
        };
        let worst = REPLICAS.map(spread).into_iter().fold(0.0, f64::max);
        claims.push(shape("most messages over least, by bricks, worst of any replicas", worst, [0.0, 0.005]));
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let (x, y) = (Axis::new("replicas", "").not_from_zero(), Axis::new("messages for each request", ""));
        let rename = |mut series: crate::plot::Series| {
            series.name += " bricks";
            series
        };
        let series = setup::series(table, "bricks", "replicas", "messages_per_request");
        let chart =
            Chart::lines("dsptf.table5", self.title(), x, y, series.into_iter().map(rename).collect());
        let mark = |chart: Chart, (at, replicas): (usize, &u32)| {
            chart.marked("16 bricks", f64::from(*replicas), PAPER[0][at])
        };
        vec![REPLICAS.iter().enumerate().fold(chart, mark)]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Whole machines tell every holder of a write that it takes effect, after all have it: a message a holder more \
             than the paper counts, where there are writes. Without these messages the counts are the paper's."
                .to_owned(),
            "Six replicas do not divide 16, 32, 64 or 128 bricks: the two or four that are left over are idle here."
                .to_owned(),
        ]
    }
}

fn messages(table: &Table, bricks: u32, replicas: u32) -> f64 {
    figure(table, bricks, replicas, "messages_per_request")
}

fn second_phase(table: &Table, bricks: u32, replicas: u32) -> f64 {
    figure(table, bricks, replicas, SECOND_PHASE)
}

fn figure(table: &Table, bricks: u32, replicas: u32, figure: &str) -> f64 {
    let cells = [("bricks", Cell::from(bricks)), ("replicas", Cell::from(replicas))];
    table.number(&cells, figure)
}
