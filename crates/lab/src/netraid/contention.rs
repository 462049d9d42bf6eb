//! Beyond the paper: Figure 12's clients under the orders and atomicities that it names and did not measure.

use super::driven::{self, Driven, RAID1, RAID4, Request};
use super::setup::{self, Bed, Disks};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use rules::layout::Layout;

pub(super) struct Contention;

const TS_WAIT: &str = "direct,ts-wait,2pcw";
const DLOCK: &str = "direct,dlock,2pcw";
const VERSION: &str = "direct,version,log";
const SLOCK_LOG: &str = "direct,slock,log";
const SLOCK: &str = "direct,slock,2pcw";
const PROTOCOLS: [&str; 5] = [TS_WAIT, DLOCK, VERSION, SLOCK_LOG, SLOCK];
const CLIENTS: u32 = 4;
/// Requests a second of all.
const PER_SECOND: f64 = 2000.0;
const MIB: f64 = (1u32 << 20) as f64;
/// Data that are shared, in MiB.
const SHARED: [f64; 4] = [0.25, 1.0, 4.0, 16.0];
/// Where contention is highest, and where there is hardly any.
const SMALL: f64 = 0.25;
const LARGE: f64 = 16.0;
const LAYOUTS: [Layout; 2] = [RAID4, RAID1];

impl Experiment for Contention {
    fn id(&self) -> &str {
        "netraid.contention"
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        "Four clients read and write shared data: who waits for whom"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::ASSUMED, setup::ROTATING, driven::ASSUMED].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters };
        let extent = parameters.number("extent_bytes");
        let point = |layout: Layout, protocol: &'static str, mib: f64| {
            let driven = Driven {
                disks: Disks::Rotating,
                clients: CLIENTS,
                request: Request::Block,
                is_cached: true,
                extents: ((mib * MIB / extent).round() as u64).max(1),
                ..Driven::one_client(bed, protocol, layout, (PER_SECOND, 0.5))
            };
            let point = Point::new(driven.system(bed, scale));
            point.with("layout", layout.to_string()).with("protocol", protocol).with("shared_mib", mib)
        };
        let of_layout = |layout| {
            PROTOCOLS.into_iter().flat_map(move |protocol| SHARED.map(|mib| point(layout, protocol, mib)))
        };
        Ok(LAYOUTS.into_iter().flat_map(of_layout).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&[
            "response_ms",
            "read_response_ms",
            "read_response_p99_ms",
            "write_response_ms",
            "write_response_p99_ms",
        ])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let ratio = |layout: Layout, mib: f64, [one, other]: [&str; 2], figure: &str, band: [f64; 2]| {
            let at = |protocol: &str| {
                let cells = [
                    ("layout", Cell::from(layout.to_string())),
                    ("protocol", Cell::from(protocol)),
                    ("shared_mib", Cell::from(mib)),
                ];
                table.number(&cells, figure)
            };
            let name = figure.trim_end_matches("_ms").replace('_', " ");
            shape(format!("{layout}, {mib} MiB: {name}, {one} over {other}"), at(one) / at(other), band)
        };
        let (read, write) = ("read_response_ms", "write_response_ms");
        let of_layout = |layout: Layout| {
            [
                // Reads that go back wait for no writer.
                ratio(layout, SMALL, [SLOCK_LOG, SLOCK], read, [0.0, 1.0]),
                ratio(layout, SMALL, [VERSION, TS_WAIT], read, [0.0, 1.0]),
                // Each write asks for the time, which is a round of the network and no access of a disk.
                ratio(layout, LARGE, [VERSION, TS_WAIT], write, [1.0, 1.05]),
            ]
        };
        LAYOUTS.into_iter().flat_map(of_layout).collect()
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let series = |figure: &'static str| {
            let curve = |protocol: &str| {
                driven::series(
                    protocol,
                    table,
                    &[("layout", Cell::from(RAID4.to_string())), ("protocol", Cell::from(protocol))],
                    "shared_mib",
                    figure,
                )
            };
            PROTOCOLS.into_iter().map(curve).collect()
        };
        let chart = |name: &str, figure: &'static str, what: &str| {
            let x = Axis::new("data that are shared", "MiB").logarithmic();
            let y = Axis::new(&format!("response time of {what}"), "ms").logarithmic();
            Chart::lines(&format!("{}.{name}", self.id()), self.title(), x, y, series(figure))
        };
        vec![chart("reads", "read_response_ms", "reads"), chart("writes", "write_response_ms", "writes")]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "On RAID 4 dlock and ts-wait are one curve: a small write begins at its data brick in any case. On copies dlock waits for the first \
             brick's disk before the others hear of the write. Pictures are of RAID 4."
                .to_owned(),
        ]
    }
}
