//! Figure 12: four clients write to the same data, of which there is ever more.

use super::driven::{self, Driven, RAID4, Request};
use super::setup::{
    self, Bed, CONTENDED, COORD_SEQ, DIRECT_HYBRID, DIRECT_NONE, DIRECT_SLOCK, DIRECT_TS, Disks, find_in,
    is_papers,
};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

pub(super) struct Fig12;

const BRICKS: u32 = 27;
const CLIENTS: u32 = 4;
/// Requests a second of each client.
const PER_CLIENT: f64 = 125.0;
const MIB: f64 = (1u32 << 20) as f64;
/// Data that are shared, in MiB.
const SHARED: [f64; 9] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
/// From here on there is little difference (section 4.4).
const LARGE: f64 = 16.0;
/// Where contention is high.
const SMALL: f64 = 1.0;

impl Experiment for Fig12 {
    fn id(&self) -> &str {
        "netraid.fig12"
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        "Four clients write 4 KB to shared data: contention by its size"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::ASSUMED, setup::ROTATING, driven::ASSUMED, &["write_share", "shared_data_are_cached"]]
            .concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters };
        let extent = parameters.number("extent_bytes");
        let reads = 1.0 - parameters.number("write_share");
        let point = |protocol: &'static str, mib: f64| {
            let driven = Driven {
                disks: Disks::Rotating,
                bricks: BRICKS,
                clients: CLIENTS,
                request: Request::Block,
                is_cached: parameters.flag("shared_data_are_cached"),
                extents: ((mib * MIB / extent).round() as u64).max(1),
                ..Driven::one_client(bed, protocol, RAID4, (f64::from(CLIENTS) * PER_CLIENT, reads))
            };
            Point::new(driven.system(bed, scale)).with("protocol", protocol).with("shared_mib", mib)
        };
        Ok(CONTENDED.iter().flat_map(|protocol| SHARED.map(|mib| point(protocol, mib))).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["response_ms", "read_response_ms", "write_response_ms", "write_response_p99_ms"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let at = |protocol: &str, mib: f64| {
            table
                .number(&[("protocol", Cell::from(protocol)), ("shared_mib", Cell::from(mib))], "response_ms")
        };
        let mut claims = Vec::new();
        let [none, ts, slock, seq] =
            [DIRECT_NONE, DIRECT_TS, DIRECT_SLOCK, COORD_SEQ].map(|name| find_in(CONTENDED, name));
        for mib in SHARED.into_iter().filter(|mib| *mib >= LARGE) {
            let all =
                || CONTENDED.iter().filter(|protocol| is_papers(protocol)).map(|protocol| at(protocol, mib));
            let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
            claims.push(claim(
                format!("{mib} MiB: response, the slowest protocol over the fastest"),
                1.0,
                most / least,
                [1.0, 1.1],
            ));
        }
        for other in [slock, seq].into_iter().flatten() {
            if let Some(ts) = ts {
                let what = format!("{SMALL} MiB: response, {ts} over {other}");
                claims.push(shape(what, at(ts, SMALL) / at(other, SMALL), [1.05, 1e3]));
            }
        }
        if let Some(none) = none {
            let all = || SHARED.iter().map(|mib| at(none, *mib));
            let spread = all().fold(0.0, f64::max) / all().fold(f64::INFINITY, f64::min);
            claims.push(claim(
                format!("{none}: response, the slowest size over the fastest: flat"),
                1.0,
                spread,
                [1.0, 1.15],
            ));
        }
        if let Some(ts) = ts {
            let what = format!("{ts}: response, {SMALL} MiB over {LARGE} MiB: contention costs");
            claims.push(shape(what, at(ts, SMALL) / at(ts, LARGE), [1.05, 1e3]));
        }
        if let (Some(ts), Some(slock), Some(hybrid)) = (ts, slock, find_in(CONTENDED, DIRECT_HYBRID)) {
            let over = |mib: f64| at(hybrid, mib) / at(ts, mib).min(at(slock, mib));
            let worst = SHARED.iter().map(|mib| over(*mib)).fold(0.0, f64::max);
            let what =
                format!("{hybrid}: response over that of the faster one of its parents, at the worst size");
            claims.push(shape(what, worst, [0.0, 1.05]));
        }
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let series = CONTENDED.iter().map(|protocol| {
            driven::series(
                protocol,
                table,
                &[("protocol", Cell::from(*protocol))],
                "shared_mib",
                "response_ms",
            )
        });
        let x = Axis::new("data that are shared", "MiB").logarithmic();
        let y = Axis::new("response time", "ms");
        vec![Chart::lines(self.id(), self.title(), x, y, series.collect())]
    }
}
