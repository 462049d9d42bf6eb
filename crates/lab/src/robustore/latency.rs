//! The network's latency, of which the paper says that it was varied and shows nothing.

use super::setup::{
    self, BASELINE, Bed, FIGURES, Measures, PACED, PRECODED, RAID0, ROBUSTORE, RRAID_A, RRAID_S, Stored,
    Striping,
};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart, Series, Spot};

pub(super) struct Latency;

/// There and back, over the paper's range.
const ROUND_TRIPS_MS: [f64; 4] = [1.0, 10.0, 30.0, 100.0];

impl Experiment for Latency {
    fn id(&self) -> &str {
        "robustore.latency"
    }

    fn paper(&self) -> &str {
        "robustore"
    }

    fn title(&self) -> &str {
        "1 GB read from 64 of 128 disks that differ a hundredfold, by the network's latency"
    }

    fn assumptions(&self) -> Vec<&str> {
        setup::ASSUMED.to_vec()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let stored = [
            (Stored::Copies, 0.0),
            (Stored::Copies, BASELINE),
            (Stored::Lt, BASELINE),
            (Stored::Precoded, BASELINE),
        ];
        let mut points = Vec::new();
        for (stored, redundancy) in stored {
            for round_trip_ms in ROUND_TRIPS_MS {
                let bed = Bed { round_trip_ms, ..Bed::new(parameters, scale) };
                let accesses = bed.accesses((stored, Striping::Unbalanced), redundancy, Measures::Reads);
                points.push(Point::new(accesses).with("round_trip_ms", round_trip_ms));
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        setup::rows(runs, false)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let transfer_s = |scheme: &str, round_trip_ms: f64| {
            let cells = [("scheme", Cell::from(scheme)), ("round_trip_ms", Cell::from(round_trip_ms))];
            table.number(&cells, "transfer_s")
        };
        let [near, .., far] = ROUND_TRIPS_MS;
        let trips = |scheme: &str| (transfer_s(scheme, far) - transfer_s(scheme, near)) / (far - near) * 1e3;
        vec![
            shape(
                "RobuSTore: round trips that a read waits for, beside those for metadata",
                trips(ROBUSTORE),
                [0.5, 2.0],
            ),
            shape("lt-precoded, paced: the same", trips(PACED), [0.5, 2.0]),
            shape(
                "latency at 100 ms without metadata, RRAID-A over RobuSTore",
                transfer_s(RRAID_A, far) / transfer_s(ROBUSTORE, far),
                [1.0, 1e3],
            ),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let schemes = [RAID0, RRAID_S, RRAID_A, ROBUSTORE, PRECODED, PACED];
        let series = schemes.map(|scheme| {
            let spot = |row: &Row| {
                let Cell::Number(y, ci95) = row.get(FIGURES[0])? else { return None };
                Some(Spot { x: row.get("round_trip_ms")?.number()?, y: *y, ci95: *ci95 })
            };
            let cells = [("scheme", Cell::from(scheme))];
            Series { name: scheme.to_owned(), spots: table.select(&cells).filter_map(spot).collect() }
        });
        let (x, y) = (Axis::new("network, there and back", "ms"), Axis::new("bandwidth", "MB/s"));
        vec![Chart::lines(self.id(), "Reads of 1 GB, 300% redundancy", x, y, series.into())]
    }

    fn notes(&self) -> Vec<String> {
        vec![setup::MB_NOTE.to_owned()]
    }
}
