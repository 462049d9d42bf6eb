//! Figure 10: ever more clients make RAID 4 small writes, 200 a second each, to RAM disks.

use super::driven::{self, BRICKS, Driven, FIGURES, RAID4, Request};
use super::setup::{self, Bed, COORD_SEQ, DIRECT_TS, GW_TS, PROTOCOLS, find};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

pub(super) struct Fig10;

/// Writes a second of each client.
const PER_CLIENT: f64 = 200.0;
/// Up to more than eight links carry.
const CLIENTS: [u32; 10] = [20, 40, 80, 120, 160, 200, 240, 280, 320, 400];

impl Experiment for Fig10 {
    fn id(&self) -> &str {
        "netraid.fig10"
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        "Clients that make 200 RAID 4 small writes a second each"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::ASSUMED, driven::ASSUMED, &["extents", "clients_a_machine", "coordinator_holds_data"]]
            .concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters };
        let request =
            if parameters.flag("coordinator_holds_data") { Request::FirstUnit } else { Request::Unit };
        let a_machine = parameters.count("clients_a_machine") as u32;
        let point = |protocol: &'static str, clients: u32| {
            let driven = Driven {
                clients: clients.div_ceil(a_machine),
                request,
                ..Driven::one_client(bed, protocol, RAID4, (f64::from(clients) * PER_CLIENT, 0.0))
            };
            Point::new(driven.system(bed, scale)).with("protocol", protocol).with("clients", clients)
        };
        Ok(PROTOCOLS.iter().flat_map(|protocol| CLIENTS.map(|clients| point(protocol, clients))).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(FIGURES)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let most = |protocol: &str| {
            let cells = [("protocol", Cell::from(protocol))];
            driven::most(&driven::curve(table, &cells, "clients", "requests_per_second"))
        };
        let mut claims = Vec::new();
        if let Some(direct) = find(DIRECT_TS) {
            for other in setup::offloading() {
                let what = format!("writes/s in all, {direct} over {other}");
                claims.push(claim(what, 1.5, most(direct) / most(other), [1.35, 1.65]));
            }
        }
        if let (Some(coord), Some(gw)) = (find(COORD_SEQ), find(GW_TS)) {
            let what = format!("writes/s in all, {coord} over {gw}: the curves overlap");
            claims.push(claim(what, 1.0, most(coord) / most(gw), [0.95, 1.05]));
        }
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let chart = |(letter, x, axis): (&str, &str, Axis)| {
            let series = setup::DRAWN.iter().map(|protocol| {
                let cells = [("protocol", Cell::from(*protocol))];
                driven::series(protocol, table, &cells, x, "response_ms")
            });
            let title = format!("RAID 4 small writes of many clients, {BRICKS} bricks with RAM disks");
            let y = Axis::new("response time", "ms").logarithmic();
            Chart::lines(&format!("netraid.fig10.{letter}"), &title, axis, y, series.collect())
        };
        vec![
            chart(("a", "clients", Axis::new("clients of 200 writes a second", ""))),
            chart(("b", "requests_per_second", Axis::new("writes answered", "1/s"))),
        ]
    }
}
