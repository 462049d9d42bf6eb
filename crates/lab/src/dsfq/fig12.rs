//! Figure 12: as Figure 9(a), and g keeps a twelfth of the brick that it shares.

use super::fig9::two_bricks;
use super::setup::{self, Bed, Files, PAPER, Streams};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use rules::fair::{Order, Share};

pub(super) struct Fig12;

/// A weight of which an eleventh keeps a twelfth: m = (1/12)(1/2) / (11/12) of all weights is an eleventh of a half.
pub(super) const WEIGHT: u32 = 1_100;
pub(super) const MINIMUM: u32 = WEIGHT / 11;

/// Threads of g on the brick that it has alone.
pub(super) const ON_B: [u32; 11] = [0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20];

/// f and g with 20 threads each on the brick that they share, and g with so many on the other.
pub(super) fn streams(bed: &Bed<'_>, on_b: u32, gateways: u32, seconds: u64) -> Streams {
    let shares = [Share::total(WEIGHT), Share::total(WEIGHT).with_minimum(MINIMUM)];
    two_bricks(bed, [20, on_b], shares, gateways, seconds)
}

const FORGET: &str = "HYBRID";
const KEEP: &str = "with history";

impl Experiment for Fig12 {
    fn id(&self) -> &str {
        "dsfq.fig12"
    }

    fn paper(&self) -> &str {
        "dsfq"
    }

    fn title(&self) -> &str {
        "Total service, and g keeps a twelfth of the shared brick"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::BRICKS, &["seconds"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, files: Files::Random };
        let mut points = Vec::new();
        for (history, order) in [(FORGET, PAPER), (KEEP, Order::FAIR)] {
            for gateways in [1, 2] {
                for on_b in ON_B {
                    let streams = streams(&bed, on_b, gateways, bed.seconds(scale));
                    let point = Point::new(streams.in_order(order)).with("delays", history);
                    points.push(point.with("gateways", gateways).with("threads_on_b", on_b));
                }
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["f_mb_s", "g_mb_s", "g_a_mb_s", "g_b_mb_s", "spread_mb_s"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims = Vec::new();
        for (history, gateways) in [(FORGET, 1), (FORGET, 2), (KEEP, 1), (KEEP, 2)] {
            let curve = |y: &str| wanted(table, history, gateways, y);
            let (f, g, g_a) = (curve("f_mb_s"), curve("g_mb_s"), curve("g_a_mb_s"));
            let is = |what: &str| {
                let through = if gateways == 1 { "one gateway" } else { "two gateways" };
                format!("{history}, {through}: {what}")
            };
            let (knee, part) = (knee(&f, &g), part(&f, &g_a));
            if history == FORGET {
                claims.push(claim(
                    is("g on B up to which g is within 5% of f (MB/s)"),
                    4.0,
                    knee,
                    [4.0, 5.0],
                ));
                claims.push(claim(is("g's part of A with most on B"), 1.0 / 12.0, part, [0.077, 0.09]));
                let even = (setup::at(&g, 3.0) / setup::at(&f, 3.0) - 1.0).abs();
                claims.push(claim(is("g over f with 3 MB/s on B, less one"), 0.0, even, [0.0, 0.05]));
            } else {
                claims.extend(of_history(&curve, &is));
            }
        }
        let capacity = wanted(table, FORGET, 1, "f_mb_s")[0][1] + wanted(table, FORGET, 1, "g_a_mb_s")[0][1];
        claims.push(claim("what brick A serves (MB/s)", 6.0, capacity, [5.5, 6.5]));
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let one = |history: &str, gateways: u32| {
            let curve = |y: &str| wanted(table, history, gateways, y);
            let lines = [("f", "f_mb_s"), ("g", "g_mb_s"), ("g on A", "g_a_mb_s")];
            let series = lines.map(|(name, y)| setup::line(name, &curve(y))).into();
            let (x, y) = (Axis::new("throughput of g on B", "MB/s"), Axis::new("throughput", "MB/s"));
            let name = format!("dsfq.fig12.{}-{gateways}", history.replace(' ', "-").to_lowercase());
            let title = format!("g keeps a twelfth of brick A; {history}, gateways: {gateways}");
            Chart::lines(&name, &title, x, y, series)
        };
        vec![one(FORGET, 1), one(FORGET, 2), one(KEEP, 1)]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "HYBRID is the paper's: what a request's minimum keeps from being applied is forgotten. With history, which is what bricks \
             do unless told otherwise, the stream owes it."
                .to_owned(),
        ]
    }
}

/// What is claimed where streams owe what a minimum kept from being applied.
pub(super) fn of_history(curve: &dyn Fn(&str) -> Vec<[f64; 2]>, is: &dyn Fn(&str) -> String) -> [Claim; 2] {
    let (f, g, g_a) = (curve("f_mb_s"), curve("g_mb_s"), curve("g_a_mb_s"));
    [
        shape(is("g on B up to which g is within 5% of f (MB/s)"), knee(&f, &g), [4.0, 5.5]),
        shape(is("g's part of A with most on B"), part(&f, &g_a), [0.077, 0.09]),
    ]
}

/// g's part of brick A with most on B.
fn part(f: &[[f64; 2]], g_a: &[[f64; 2]]) -> f64 {
    g_a.last().zip(f.last()).map_or(f64::NAN, |(g_a, f)| g_a[1] / (g_a[1] + f[1]))
}

fn wanted(table: &Table, history: &str, gateways: u32, y: &str) -> Vec<[f64; 2]> {
    let cells = [("delays", Cell::from(history)), ("gateways", Cell::from(gateways))];
    setup::curve(table, &cells, "g_b_mb_s", y)
}

/// Up to where g is not more than 5% above f, along straight lines between points.
fn knee(f: &[[f64; 2]], g: &[[f64; 2]]) -> f64 {
    let excess: Vec<[f64; 2]> = f.iter().zip(g).map(|(f, g)| [f[0], g[1] / f[1] - 1.0]).collect();
    let crossing = excess.windows(2).find(|pair| pair[0][1] <= 0.05 && pair[1][1] > 0.05);
    crossing.map_or(f64::NAN, |pair| {
        let ([from, low], [to, high]) = (pair[0], pair[1]);
        from + (to - from) * (0.05 - low) / (high - low)
    })
}
