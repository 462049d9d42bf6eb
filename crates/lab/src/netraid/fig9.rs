//! Figure 9: one client makes RAID 4 small writes at rising rates, to RAM disks.

use super::driven::{self, BRICKS, Driven, FIGURES, RAID4};
use super::setup::{self, Bed, COORD_SEQ, DIRECT_TS, GW_TS, PROTOCOLS, find};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

pub(super) struct Fig9;

/// Writes a second, up to more than a link carries.
const RATES: [f64; 11] = [1e3, 2e3, 3e3, 4e3, 5e3, 6e3, 7e3, 8e3, 10e3, 14e3, 18e3];

impl Experiment for Fig9 {
    fn id(&self) -> &str {
        "netraid.fig9"
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        "One client makes RAID 4 small writes to 8 bricks with RAM disks"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::ASSUMED, driven::ASSUMED, &["extents"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters };
        let point = |protocol: &'static str, rate: f64| {
            let driven = Driven::one_client(bed, protocol, RAID4, (rate, 0.0));
            Point::new(driven.system(bed, scale)).with("protocol", protocol).with("asked_per_second", rate)
        };
        Ok(PROTOCOLS.iter().flat_map(|protocol| RATES.map(|rate| point(protocol, rate))).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(FIGURES)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let most = |protocol: &str| {
            let cells = [("protocol", Cell::from(protocol))];
            driven::most(&driven::curve(table, &cells, "asked_per_second", "requests_per_second"))
        };
        let mut claims = Vec::new();
        if let Some(direct) = find(DIRECT_TS) {
            for other in setup::offloading() {
                let what = format!("saturation, {direct} over {other}: the client's link is full first");
                claims.push(shape(what, most(direct) / most(other), [0.0, 0.95]));
            }
        }
        if let (Some(coord), Some(gw)) = (find(COORD_SEQ), find(GW_TS)) {
            let what = format!("saturation, {coord} over {gw}: the curves overlap");
            claims.push(claim(what, 1.0, most(coord) / most(gw), [0.95, 1.05]));
        }
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let series = setup::DRAWN.iter().map(|protocol| {
            let cells = [("protocol", Cell::from(*protocol))];
            driven::series(protocol, table, &cells, "requests_per_second", "response_ms")
        });
        let title = format!("RAID 4 small writes of one client, {BRICKS} bricks with RAM disks");
        let (x, y) = (Axis::new("writes answered", "1/s"), Axis::new("response time", "ms").logarithmic());
        vec![Chart::lines(self.id(), &title, x, y, series.collect())]
    }
}
