//! Table 6: how often more than one brick claims the same request.

use super::setup;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

pub(super) struct Table6;

/// The paper's table: replicas, conflicts a request.
const PAPER: [(u32, f64); 4] = [(2, 0.0015), (4, 0.0067), (6, 0.0144), (8, 0.0244)];

impl Experiment for Table6 {
    fn id(&self) -> &str {
        "dsptf.table6"
    }

    fn paper(&self) -> &str {
        "d-sptf"
    }

    fn title(&self) -> &str {
        "Requests claimed by more than one brick, by replicas"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::CLAIMING, &["message_read_share"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let point = |replicas: u32| {
            let cluster =
                setup::cluster(parameters, replicas, replicas, setup::scheme(parameters, "D-SPTF", &[]));
            let mut system =
                setup::closed(parameters, scale, cluster, 16, parameters.number("message_read_share"));
            // Conflicts are rare: a hundred of them among two replicas need more requests.
            system.length = setup::length(parameters, scale, 4);
            Point::new(system).with("replicas", replicas)
        };
        Ok(PAPER.iter().map(|(replicas, _)| point(*replicas)).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["conflicts_per_request", "messages_per_request"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims: Vec<Claim> = PAPER
            .iter()
            .map(|(replicas, paper)| {
                let what = format!("conflicts with {replicas} replicas");
                claim(what, *paper, conflicts(table, *replicas), [paper * 0.5, paper * 1.5])
            })
            .collect();
        // The paper's figures lie on 0.04% x N^2: the exponent is what its table claims.
        let growth =
            |to: u32| libm::log(conflicts(table, to) / conflicts(table, 2)) / libm::log(f64::from(to) / 2.0);
        claims.push(claim("exponent of growth with replicas, from 2 to 8", 2.01, growth(8), [1.6, 2.4]));
        let step = |pair: &[(u32, f64)]| conflicts(table, pair[1].0) / conflicts(table, pair[0].0);
        let least = PAPER.windows(2).map(step).fold(f64::INFINITY, f64::min);
        claims.push(shape("least growth from a line of the table to the next", least, [1.0, 100.0]));
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let (x, y) = (Axis::new("replicas", "").not_from_zero(), Axis::new("conflicts for each request", ""));
        let spot = |row: &Row| {
            let x = row.get("replicas")?.number()?;
            let Cell::Number(y, ci95) = *row.get("conflicts_per_request")? else { return None };
            Some(crate::plot::Spot { x, y, ci95 })
        };
        let spots = table.0.iter().filter_map(spot).collect();
        let series = vec![crate::plot::Series { name: "D-SPTF".to_owned(), spots }];
        let chart = Chart::lines("dsptf.table6", self.title(), x, y, series);
        vec![
            PAPER
                .iter()
                .fold(chart, |chart, (replicas, paper)| chart.marked("D-SPTF", f64::from(*replicas), *paper)),
        ]
    }
}

fn conflicts(table: &Table, replicas: u32) -> f64 {
    table.number(&[("replicas", Cell::from(replicas))], "conflicts_per_request")
}
