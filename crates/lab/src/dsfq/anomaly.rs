//! Section 3.3.2: a stream that uses each of its bricks through a gateway of its own, so that no gateway knows of both.

use super::setup::{self, Bed, F, Files, G, Streams, Volume};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use rules::fair::Share;
use sim::timed::{Threads, VolumeSpec};

pub(super) struct Anomaly;

const IN_TURN: &str = "both in turn";
const APART: &str = "one a brick";

impl Experiment for Anomaly {
    fn id(&self) -> &str {
        "dsfq.anomaly"
    }

    fn paper(&self) -> &str {
        "dsfq"
    }

    fn title(&self) -> &str {
        "f on brick A, g on A and B, through two gateways"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::BRICKS, &["seconds"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, files: Files::Random };
        let point = |way: &str| {
            let on = |name, brick, stream, count| {
                let gateways = if way == APART { vec![brick] } else { Vec::new() };
                let spec = VolumeSpec { gateways, ..VolumeSpec::on(brick, stream) };
                Volume { name, spec, threads: Threads::constant(bed.mix(), count) }
            };
            let volumes = vec![on("f", 0, F, 30), on("g_a", 0, G, 30), on("g_b", 1, G, 4)];
            let shares = setup::shares(&[F, G].map(|stream| (stream, Share::total(1))));
            Point::new(Streams::new(&bed, (2, 2), volumes, shares, bed.seconds(scale))).with("gateways", way)
        };
        Ok([IN_TURN, APART].map(point).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["f_mb_s", "g_mb_s", "g_a_mb_s", "g_b_mb_s"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let over_f = |way: &str| {
            let of = |figure: &str| table.number(&[("gateways", Cell::from(way))], figure);
            of("g_mb_s") / of("f_mb_s")
        };
        vec![
            claim("both gateways in turn: g over f", 1.0, over_f(IN_TURN), [0.98, 1.02]),
            shape(
                "a gateway a brick: g over f, as gateways tell what they were not asked",
                over_f(APART),
                [0.9, 1.1],
            ),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let ways = [IN_TURN, APART];
        let bar = |name: &str, figure: &str| {
            let of = |(at, way): (usize, &&str)| {
                [at as f64, table.number(&[("gateways", Cell::from(*way))], figure)]
            };
            setup::line(name, &ways.iter().enumerate().map(of).collect::<Vec<_>>())
        };
        let series = vec![bar("f", "f_mb_s"), bar("g", "g_mb_s")];
        let groups = ways.map(|way| format!("gateways: {way}")).into();
        vec![Chart::bars(
            "dsfq.anomaly",
            self.title(),
            Axis::new("throughput in all", "MB/s"),
            groups,
            series,
        )]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "All volumes are open at both gateways. The paper knows that its streams are not served by their weights where each brick is used \
             through a gateway of its own; bricks are to be told of it here (docs/decisions/2026-11-24-proportional-sharing.md)."
                .to_owned(),
        ]
    }
}
