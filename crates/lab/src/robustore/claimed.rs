//! Brickwork's own reading of coded objects, which claims no more fragments than suffice, beside the ways to read that are known.

use super::reads::ends;
use super::setup::{
    self, Bed, CLAIMED, FIGURES, Measures, PACED, PLANNED, PLANNED_COPIES, PRECODED, RRAID_A, Stored,
    Striping,
};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

pub(super) struct Claimed;

const REDUNDANCIES: [f64; 3] = [100.0, 300.0, 900.0];
/// There and back: within a house, and across an ocean.
const ROUND_TRIPS_MS: [f64; 2] = [1.0, 100.0];
/// How coded blocks were written. Copies always lie evenly.
const STRIPINGS: [(&str, Striping); 2] = [("by pace", Striping::Unbalanced), ("evenly", Striping::Balanced)];

impl Experiment for Claimed {
    fn id(&self) -> &str {
        "robustore.claimed"
    }

    fn paper(&self) -> &str {
        "robustore"
    }

    fn title(&self) -> &str {
        "1 GB read from 64 of 128 disks that differ a hundredfold, claimed, beside other ways to read"
    }

    fn assumptions(&self) -> Vec<&str> {
        setup::ASSUMED.to_vec()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let mut points = Vec::new();
        for round_trip_ms in ROUND_TRIPS_MS {
            let bed = Bed { round_trip_ms, ..Bed::new(parameters, scale) };
            for (written, striping) in STRIPINGS {
                let of_copies = (striping == Striping::Balanced).then_some(Stored::Copies);
                for stored in of_copies.into_iter().chain([Stored::Precoded]) {
                    for redundancy in REDUNDANCIES {
                        let accesses = bed.accesses((stored, striping), redundancy, Measures::Reads);
                        let point = Point::new(accesses.beside_claimed())
                            .with("redundancy_percent", redundancy)
                            .with("round_trip_ms", round_trip_ms)
                            .with("written", written);
                        points.push(point);
                    }
                }
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        setup::rows(runs, false)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims = Vec::new();
        for round_trip_ms in ROUND_TRIPS_MS {
            for (written, _) in STRIPINGS {
                let figures = |scheme: &str, written: &str, figure: &str| {
                    REDUNDANCIES.map(|redundancy| {
                        let cells = [
                            ("scheme", Cell::from(scheme)),
                            ("redundancy_percent", Cell::from(redundancy)),
                            ("round_trip_ms", Cell::from(round_trip_ms)),
                            ("written", Cell::from(written)),
                        ];
                        table.number(&cells, figure)
                    })
                };
                let [speculative, claimed, planned] =
                    [PRECODED, CLAIMED, PLANNED].map(|scheme| figures(scheme, written, "latency_s"));
                let adaptive = figures(RRAID_A, "evenly", "latency_s");
                let over = |one: [f64; 3], other: [f64; 3]| ends(&[0, 1, 2].map(|at| one[at] / other[at]));
                let (_, overhead) = ends(&figures(CLAIMED, written, "io_overhead"));
                let bounded = [
                    (
                        "latency, claimed over speculation, the most by redundancy",
                        over(claimed, speculative).1,
                        [0.0, 1.05],
                    ),
                    ("I/O overhead of claimed reads, the most by redundancy", overhead, [0.0, 0.05]),
                    (
                        "latency, claimed over planned, the least by redundancy: no less",
                        over(claimed, planned).0,
                        [1.0, 1e3],
                    ),
                    (
                        "latency, copies read adaptively over claimed, the least by redundancy: no less",
                        over(adaptive, claimed).0,
                        [1.0, 1e3],
                    ),
                ];
                let named = bounded.map(|(what, measured, band)| {
                    shape(format!("{round_trip_ms} ms, written {written}: {what}"), measured, band)
                });
                claims.extend(named);
            }
        }
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let schemes = [RRAID_A, PLANNED_COPIES, PRECODED, PACED, CLAIMED, PLANNED];
        let panel = |(panel, round_trip_ms): (&str, f64)| {
            let cells = [("round_trip_ms", Cell::from(round_trip_ms)), ("written", Cell::from("evenly"))];
            let over = (setup::REDUNDANCY, FIGURES[1]);
            let series = schemes.map(|scheme| setup::series(table, scheme, &cells, over));
            let (x, y) = (Axis::new("data redundancy", "%"), Axis::new("latency", "s").logarithmic());
            let title = format!("Reads of 1 GB, evenly striped, {round_trip_ms} ms there and back");
            Chart::lines(&format!("{}.{panel}", self.id()), &title, x, y, series.into())
        };
        [("a", ROUND_TRIPS_MS[0]), ("b", ROUND_TRIPS_MS[1])].map(panel).into()
    }

    fn notes(&self) -> Vec<String> {
        let planned = "planned: a bound, and no read. The least time for known rates of disks and one round trip, of copies by max flow, and of any 1,024 symbols. Coded and copied objects lie on other disks.";
        vec![setup::MB_NOTE.to_owned(), planned.to_owned()]
    }
}
