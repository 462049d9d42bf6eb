//! Figure 11: the latency of the client's link.

use super::driven::{self, Driven, RAID4};
use super::setup::{self, Bed, COORD_SEQ, DIRECT_NONE, DIRECT_SLOCK, DIRECT_TS, Disks, PROTOCOLS, find};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

pub(super) struct Fig11;

/// One part of three.
const READS: f64 = 1.0 / 3.0;
/// Latencies, as parts of the greatest.
const PARTS: [f64; 7] = [0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 1.0];
const DISKS: [Disks; 2] = [Disks::Rotating, Disks::Ram];

impl Experiment for Fig11 {
    fn id(&self) -> &str {
        "netraid.fig11"
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        "The latency of a client's link: 2/3 RAID 4 small writes, 1/3 reads"
    }

    fn assumptions(&self) -> Vec<&str> {
        let own = ["extents", "client_link_ms_most", "fig11_requests_per_second"];
        [setup::ASSUMED, setup::ROTATING, driven::ASSUMED, &own].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters };
        let (rate, most) =
            (parameters.number("fig11_requests_per_second"), parameters.number("client_link_ms_most"));
        let mut points = Vec::new();
        for disks in DISKS {
            for protocol in PROTOCOLS {
                for latency_ms in PARTS.map(|part| part * most) {
                    let driven = Driven {
                        disks,
                        client_link_us: Some(latency_ms * 1e3),
                        ..Driven::one_client(bed, protocol, RAID4, (rate, READS))
                    };
                    let point = Point::new(driven.system(bed, scale)).with("disks", disks.name());
                    points.push(point.with("protocol", *protocol).with("link_ms", latency_ms));
                }
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["response_ms", "read_response_ms", "write_response_ms"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        DISKS.iter().flat_map(|disks| Panel { table, disks: disks.name() }.claims()).collect()
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let chart = |(letter, disks): (char, &Disks)| {
            let panel = Panel { table, disks: disks.name() };
            let series = setup::DRAWN.iter().map(|protocol| {
                driven::series(protocol, table, &panel.cells(protocol), "link_ms", "response_ms")
            });
            let title = format!("A client behind a slow link, {}", disks.name());
            let (x, y) = (Axis::new("latency of the client's link", "ms"), Axis::new("response time", "ms"));
            Chart::lines(&format!("netraid.fig11.{letter}"), &title, x, y, series.collect())
        };
        ('a'..).zip(&DISKS).map(chart).collect()
    }
}

/// The rows of some disks.
struct Panel<'a> {
    table: &'a Table<'a>,
    disks: &'static str,
}

impl Panel<'_> {
    fn cells(&self, protocol: &str) -> [(&'static str, Cell); 2] {
        [("disks", Cell::from(self.disks)), ("protocol", Cell::from(protocol))]
    }

    fn curve(&self, protocol: &str) -> Vec<[f64; 2]> {
        driven::curve(self.table, &self.cells(protocol), "link_ms", "response_ms")
    }

    /// With the slowest link.
    fn at_most(&self, protocol: &str) -> f64 {
        self.curve(protocol).last().map_or(f64::NAN, |spot| spot[1])
    }

    /// By how many ms the response grows for each ms of the link.
    fn slope(&self, protocol: &str) -> f64 {
        let curve = self.curve(protocol);
        let (first, last) = (curve[0], curve[curve.len() - 1]);
        (last[1] - first[1]) / (last[0] - first[0])
    }

    fn claims(&self) -> Vec<Claim> {
        let disks = self.disks;
        let mut claims = Vec::new();
        let others = |not: &'static str| setup::papers().filter(move |protocol| *protocol != not);
        if let Some(slock) = find(DIRECT_SLOCK) {
            let next = others(slock).map(|protocol| self.at_most(protocol)).fold(0.0, f64::max);
            claims.push(shape(
                format!("{disks}: response, {slock} over the next slowest"),
                self.at_most(slock) / next,
                [1.0, 10.0],
            ));
        }
        if let (Some(slock), Some(ts)) = (find(DIRECT_SLOCK), find(DIRECT_TS)) {
            // A round trip is two ways; two requests of three are writes.
            let trips = (self.slope(slock) - self.slope(ts)) / 2.0 / (1.0 - READS);
            claims.push(claim(
                format!("{disks}: round trips of a write, {slock} less {ts}"),
                1.0,
                trips,
                [0.9, 1.1],
            ));
        }
        if let (Some(ts), Some(none)) = (find(DIRECT_TS), find(DIRECT_NONE)) {
            let (ts_curve, none_curve) = (self.curve(ts), self.curve(none));
            let far = ts_curve.iter().zip(&none_curve).map(|(one, other)| (one[1] / other[1] - 1.0).abs());
            let what = format!("{disks}: response, {ts} over {none}, less one: the farthest point");
            claims.push(claim(what, 0.0, far.fold(0.0, f64::max), [0.0, 0.03]));
        }
        if let Some(coord) = find(COORD_SEQ) {
            let named = [DIRECT_NONE, DIRECT_SLOCK, DIRECT_TS].into_iter().filter_map(find);
            let best = named.map(|protocol| self.at_most(protocol)).fold(f64::INFINITY, f64::min);
            let what =
                format!("{disks}: response, {coord} over the fastest other one of which the text tells");
            claims.push(shape(what, self.at_most(coord) / best, [0.0, 1.0]));
        }
        if let Some(direct) = find(DIRECT_TS) {
            for other in setup::offloading() {
                let what = format!("{disks}, slowest link: response, {other} over {direct}");
                claims.push(shape(what, self.at_most(other) / self.at_most(direct), [0.0, 1.0]));
            }
        }
        claims
    }
}
