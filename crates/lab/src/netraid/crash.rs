//! Beyond the paper, which measured no failures: a brick dies under load, and comes back.

use super::driven::{self, Driven};
use super::setup::{self, Bed};
use crate::cell::Row;
use crate::claim::Claim;
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::killing::{self, Killed, Killing, NOTE};
use crate::parameters::Parameters;
use crate::plot::Chart;

pub(super) struct Crash;

/// One for each path and order that waits for a brick in its own way.
const PROTOCOLS: &[&str] = &[
    "gw,ts-wait,2pcw+read",
    "direct,ts,2pcw",
    "direct,slock,none",
    "direct,version,log+read",
    "coord,seq,none",
    "amongst,ts,2pcw",
];

impl Experiment for Crash {
    fn id(&self) -> &str {
        "netraid.crash"
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        "A brick is killed at 10 s and comes back at 30 s"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::ASSUMED, setup::ROTATING, driven::ASSUMED, &["extents", "crash_per_second"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters };
        let point = |protocol: &'static str| {
            let system = Driven::failing(bed, protocol, scale).system(bed, scale);
            Point::new(Killing { system, killed: Killed::Brick(0) }).with("protocol", protocol)
        };
        Ok(PROTOCOLS.iter().map(|protocol| point(protocol)).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(killing::FIGURES)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        killing::claims("protocol", PROTOCOLS, table)
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        killing::charts((self.id(), killing::BRICK_AWAY), "protocol", runs)
    }

    fn notes(&self) -> Vec<String> {
        vec![
            format!(
                "The brick is the first member of one group in eight, and so their lock server and their coordinator. {}",
                driven::JUDGED
            ),
            NOTE.to_owned(),
        ]
    }
}
