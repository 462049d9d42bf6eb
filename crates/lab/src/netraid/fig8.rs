//! Figure 8: one client reads at rising rates, from RAM disks.

use super::driven::{self, BRICKS, Driven, FIGURES, RAID1, RAID4};
use super::setup::{self, Bed, DIRECT_NONE, find};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use rules::layout::Layout;

pub(super) struct Fig8;

const LAYOUTS: [(&str, Layout); 2] = [("RAID 1", RAID1), ("RAID 4", RAID4)];
/// Reads a second, up to more than a link carries.
const RATES: [f64; 9] = [2e3, 4e3, 6e3, 8e3, 10e3, 12e3, 14e3, 15e3, 18e3];

impl Experiment for Fig8 {
    fn id(&self) -> &str {
        "netraid.fig8"
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        "One client reads from 8 bricks with RAM disks: response time by rate"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::ASSUMED, driven::ASSUMED, &["extents"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters };
        let mut points = Vec::new();
        for (name, layout) in LAYOUTS {
            for protocol in setup::papers() {
                for rate in RATES {
                    let driven = Driven::one_client(bed, protocol, layout, (rate, 1.0));
                    let point = Point::new(driven.system(bed, scale)).with("layout", name);
                    points.push(point.with("protocol", protocol).with("asked_per_second", rate));
                }
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(FIGURES)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let of = |layout: &str, protocol: &str, y: &str| {
            let cells = [("layout", Cell::from(layout)), ("protocol", Cell::from(protocol))];
            driven::curve(table, &cells, "asked_per_second", y)
        };
        let mut claims = Vec::new();
        for (layout, _) in LAYOUTS {
            let most = |protocol: &str| driven::most(&of(layout, protocol, "requests_per_second"));
            let first = find(DIRECT_NONE).expect("the lower bound is one of them");
            // A unit after the other on a link of 1 Gb/s.
            claims.push(claim(
                format!("{layout}, {first}: saturation (reads/s)"),
                15_000.0,
                most(first),
                [14_000.0, 15_500.0],
            ));
            for protocol in setup::papers().filter(|protocol| *protocol != first) {
                let what = format!("{layout}: saturation, {protocol} over {first}");
                claims.push(claim(what, 1.0, most(protocol) / most(first), [0.95, 1.05]));
            }
            for protocol in setup::offloading() {
                let at_first = |protocol: &str| of(layout, protocol, "response_ms")[0][1];
                let what =
                    format!("{layout}, 2000 reads/s: response, {first} over {protocol}: direct is faster");
                claims.push(shape(what, at_first(first) / at_first(protocol), [0.0, 1.0]));
            }
        }
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let chart = |(letter, (layout, _)): (char, (&str, Layout))| {
            let drawn = setup::DRAWN.into_iter().filter(|protocol| setup::is_papers(protocol));
            let series = drawn.map(|protocol| {
                let cells = [("layout", Cell::from(layout)), ("protocol", Cell::from(protocol))];
                driven::series(protocol, table, &cells, "requests_per_second", "response_ms")
            });
            let title = format!("{layout} reads of one client, {BRICKS} bricks with RAM disks");
            let (x, y) = (Axis::new("reads answered", "1/s"), Axis::new("response time", "ms").logarithmic());
            Chart::lines(&format!("netraid.fig8.{letter}"), &title, x, y, series.collect())
        };
        ('a'..).zip(LAYOUTS).map(chart).collect()
    }
}
