//! Section 4.5: what two-phase commits cost.

use super::driven::{self, Driven, FIGURES, RAID4};
use super::setup::{self, Bed};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

pub(super) struct Atomicity;

/// Protocols without and with two-phase commits that are otherwise the same.
const PAIRS: &[[&str; 2]] = &[
    ["direct,ts,none,rmw", "direct,ts,2pcw,rmw"],
    ["direct,slock,none,rmw", "direct,slock,2pcw,rmw"],
    ["gw,ts,none,rmw", "gw,ts,2pcw,rmw"],
    ["coord,seq,none,rmw", "coord,seq,2pcw,rmw"],
];
/// Requests a second, the last more than any protocol answers.
const RATES: [f64; 4] = [2e3, 4e3, 6e3, 24e3];
/// As in Figure 11.
const READS: f64 = 1.0 / 3.0;
/// Equal but for chance.
const EQUAL: [f64; 2] = [0.97, 1.03];

impl Experiment for Atomicity {
    fn id(&self) -> &str {
        "netraid.atomicity"
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        "Two-phase commits on writes, or no particular atomicity"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::ASSUMED, driven::ASSUMED, &["extents"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters };
        let point = |protocol: &'static str, rate: f64| {
            let driven = Driven::one_client(bed, protocol, RAID4, (rate, READS));
            Point::new(driven.system(bed, scale)).with("protocol", protocol).with("asked_per_second", rate)
        };
        Ok(PAIRS.iter().flatten().flat_map(|protocol| RATES.map(|rate| point(protocol, rate))).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(FIGURES)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims = Vec::new();
        for [none, two_phase] in PAIRS {
            let ratio = |rate: f64, figure: &str| {
                let at = |protocol: &str| {
                    let cells = [("protocol", Cell::from(protocol)), ("asked_per_second", Cell::from(rate))];
                    table.number(&cells, figure)
                };
                at(two_phase) / at(none)
            };
            let [rates @ .., last] = RATES;
            for rate in rates {
                let what = format!("response at {rate}/s, {two_phase} over {none}");
                claims.push(claim(what, 1.0, ratio(rate, "response_ms"), EQUAL));
            }
            let what = format!("saturation, {two_phase} over {none}");
            claims.push(claim(what, 1.0, ratio(last, "requests_per_second"), EQUAL));
        }
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        // A picture has no more than seven curves.
        let series = PAIRS[..3].iter().flatten().map(|protocol| {
            let cells = [("protocol", Cell::from(*protocol))];
            driven::series(protocol, table, &cells, "requests_per_second", "response_ms")
        });
        let (x, y) = (Axis::new("requests answered", "1/s"), Axis::new("response time", "ms").logarithmic());
        vec![Chart::lines(self.id(), self.title(), x, y, series.collect())]
    }
}
