//! What the paper says of disks that are all alike: there coding must not help.

use super::setup::{self, BASELINE, Bed, Disks, Measures, PRECODED, RAID0, ROBUSTORE, Stored, Striping, at};
use crate::cell::Row;
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::Chart;

pub(super) struct Homogeneous;

impl Experiment for Homogeneous {
    fn id(&self) -> &str {
        "robustore.homogeneous"
    }

    fn paper(&self) -> &str {
        "robustore"
    }

    fn title(&self) -> &str {
        "1 GB read from 64 disks that are all alike"
    }

    fn assumptions(&self) -> Vec<&str> {
        setup::ASSUMED.to_vec()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { disks: Disks::Equal, ..Bed::new(parameters, scale) };
        let stored = [(Stored::Copies, 0.0), (Stored::Lt, BASELINE), (Stored::Precoded, BASELINE)];
        let point = |(stored, redundancy)| {
            let accesses = bed.accesses((stored, Striping::Balanced), redundancy, Measures::Reads);
            Point::new(accesses).with("redundancy_percent", redundancy)
        };
        Ok(stored.map(point).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        setup::rows(runs, false)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let bandwidth = |scheme: &str, redundancy| at(table, scheme, redundancy, "bandwidth_mb_s");
        let over = |scheme: &str| bandwidth(scheme, BASELINE) / bandwidth(RAID0, 0.0);
        vec![
            claim("bandwidth, RobuSTore over RAID-0: at most 30% less", 0.7, over(ROBUSTORE), [0.7, 1.0]),
            shape("bandwidth, lt-precoded over RAID-0: no more", over(PRECODED), [0.8, 1.0]),
        ]
    }

    fn charts(&self, _: &Table, _: &[Runs]) -> Vec<Chart> {
        Vec::new()
    }

    fn notes(&self) -> Vec<String> {
        vec![setup::MB_NOTE.to_owned()]
    }
}
