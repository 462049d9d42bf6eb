//! Section 3.4: a stream sends bursts to one brick after the other, and its minimum has the paper's HYBRID forget each of them.

use super::fig12::{MINIMUM, WEIGHT};
use super::setup::{self, Bed, F, Files, G, H, PAPER, Streams, Volume};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use core::time::Duration;
use rules::fair::{Order, Share};
use sim::timed::Threads;

pub(super) struct Bursts;

const WAYS: [&str; 3] = ["TOTAL", "HYBRID", "HYBRID with history"];
/// Threads of f and of h, and of g while it has a burst.
const THREADS: u32 = 30;

impl Experiment for Bursts {
    fn id(&self) -> &str {
        "dsfq.bursts"
    }

    fn paper(&self) -> &str {
        "dsfq"
    }

    fn title(&self) -> &str {
        "g alternates bursts between A, where f and h are, and B"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::BRICKS, &["seconds", "burst_s"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, files: Files::Random };
        let burst_s = parameters.count("burst_s");
        // Whole bursts at both bricks.
        let seconds = bed.seconds(scale).next_multiple_of(2 * burst_s);
        let end = Duration::from_secs(seconds + parameters.count("warm_up_s"));
        let point = |way: &str| {
            let constant = Threads::constant(bed.mix(), THREADS);
            let on_a = Threads::on_off(bed.mix(), THREADS, Duration::from_secs(burst_s), end);
            let other = |(at, count): &(Duration, u32)| (*at, THREADS - count);
            let on_b = Threads { count: on_a.count.iter().map(other).collect(), ..on_a.clone() };
            let volumes = vec![
                Volume::on("f", 0, F, constant.clone()),
                Volume::on("h", 0, H, constant),
                Volume::on("g_a", 0, G, on_a),
                Volume::on("g_b", 1, G, on_b),
            ];
            let minimum = if way == "TOTAL" { 0 } else { MINIMUM };
            let order = if way == "HYBRID with history" { Order::FAIR } else { PAPER };
            let share = Share::total(WEIGHT).with_minimum(minimum);
            let shares = setup::shares(&[F, G, H].map(|stream| (stream, share)));
            let streams = Streams::new(&bed, (2, 1), volumes, shares, seconds).in_order(order);
            Point::new(streams).with("sharing", way)
        };
        Ok(WAYS.map(point).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["f_mb_s", "h_mb_s", "g_mb_s", "g_a_mb_s", "g_b_mb_s"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let over_f = |way: &str| {
            let of = |figure: &str| table.number(&[("sharing", Cell::from(way))], figure);
            let measured = of("g_mb_s") / of("f_mb_s");
            // What it would be if each burst on A had no more than its minimum, as all of B's was remembered.
            let on_a = of("f_mb_s") + of("h_mb_s") + of("g_a_mb_s");
            let minimum = 0.5 * on_a * f64::from(MINIMUM) / f64::from(MINIMUM + 2 * WEIGHT);
            let entitled = (of("g_b_mb_s") + minimum) / ((on_a - minimum) / 2.0);
            (measured, measured / entitled - 1.0)
        };
        let [(total, _), (hybrid, gain), (history, gain_with_history)] = WAYS.map(over_f);
        vec![
            shape("TOTAL: g over f", total, [0.95, 1.05]),
            shape("HYBRID: g over f: it gains by its bursts", hybrid, [1.3, 1.8]),
            shape("HYBRID with history: g over f", history, [1.0, 1.2]),
            shape("HYBRID: the gain beyond what g's minimum on A entitles it to", gain, [0.3, 0.8]),
            shape("HYBRID with history: the same", gain_with_history, [-0.05, 0.05]),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let bar = |name: &str, figure: &str| {
            let of = |(at, way): (usize, &&str)| {
                [at as f64, table.number(&[("sharing", Cell::from(*way))], figure)]
            };
            setup::line(name, &WAYS.iter().enumerate().map(of).collect::<Vec<_>>())
        };
        let series = vec![bar("f", "f_mb_s"), bar("h", "h_mb_s"), bar("g", "g_mb_s")];
        let groups = WAYS.map(str::to_owned).into();
        vec![Chart::bars("dsfq.bursts", self.title(), Axis::new("throughput in all", "MB/s"), groups, series)]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "f and h are on A alone. While g has its burst on B, where nobody else is, it is served as much as both of them; all three are \
             served alike where the next burst pays for that. g keeps its minimum on A all the same: 1 of 23 parts of A during its bursts \
             there, and in all 1.1 times as much as f."
                .to_owned(),
        ]
    }
}
