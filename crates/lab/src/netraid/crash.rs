//! Beyond the paper, which measured no failures: a brick dies under load, and comes back.

use super::driven::{self, Driven, RAID4, Request};
use super::setup::{self, Bed, Disks};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::killing::{self, Killing, NOTE};
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
        // A quick run asks for less.
        let share = if scale == Scale::Quick { 0.2 } else { 1.0 };
        let per_second = parameters.number("crash_per_second") * share;
        let point = |protocol: &'static str| {
            let driven = Driven {
                disks: Disks::Rotating,
                request: Request::Block,
                is_cached: true,
                ..Driven::one_client(bed, protocol, RAID4, (per_second, 0.5))
            };
            Point::new(Killing { system: driven.system(bed, scale), brick: 0 }).with("protocol", protocol)
        };
        Ok(PROTOCOLS.iter().map(|protocol| point(protocol)).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(killing::FIGURES)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims = Vec::new();
        for protocol in PROTOCOLS {
            let of = |figure: &str| table.number(&[("protocol", Cell::from(*protocol))], figure);
            claims.push(shape(format!("{protocol}: violations"), of("violations"), [0.0, 0.0]));
            let what = format!("{protocol}: seconds with less than half of what was asked for");
            claims.push(shape(what, of("short_s"), [0.0, 5.0]));
            let after = of("p99_after_ms") / of("p99_before_ms");
            claims.push(shape(format!("{protocol}: p99 in the last 5 s, over before"), after, [0.0, 1.5]));
        }
        claims
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        killing::charts(self.id(), "protocol", runs)
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "The brick is the first member of one group in eight, and so their lock server and their coordinator. Every message and step is checked, \
             and in the end each block's reads and writes are to be linearizable, which is more than none promises."
                .to_owned(),
            NOTE.to_owned(),
        ]
    }
}
