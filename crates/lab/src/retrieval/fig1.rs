//! Figure 1: a request that takes one access with both copies of its buckets, and two with the first ones.

use super::setup::line;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use reads::distribute::retrieval::{Disk, Solver};
use serde_json::json;
use sim::array::examples;

pub(super) struct Fig1;

/// An access takes one unit of time: the figure counts accesses.
const ACCESS_NS: u64 = 1;
const FIRST: &str = "first copies";
const BOTH: &str = "both copies";

/// The request with all copies, or with the first ones alone.
struct Retrieved {
    with_both: bool,
}

impl Job for Retrieved {
    fn describe(&self) -> serde_json::Value {
        json!({ "job": "figure 1", "with_both": self.with_both })
    }

    fn run(&self, _: u64) -> Result<Sample, String> {
        let example = examples::figure_1(ACCESS_NS);
        let example = if self.with_both { example } else { example.first_copies() };
        let (_, request) = &example.requests[0];
        let disks = vec![Disk { access_ns: ACCESS_NS, ..Disk::default() }; example.access_ns.len()];
        let mut chosen = Vec::new();
        let accesses = Solver::default().solve(&disks, request, &mut chosen);
        let count = |disk: usize| chosen.iter().filter(|other| **other as usize == disk).count() as f64;
        let values = [("accesses", accesses as f64), ("buckets", request.len() as f64)];
        Ok(Sample {
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            series: [(
                "buckets".to_owned(),
                (0..disks.len()).map(|disk| [disk as f64, count(disk)]).collect(),
            )]
            .into(),
            events: request.len() as u64,
            ..Sample::default()
        })
    }
}

impl Experiment for Fig1 {
    fn id(&self) -> &str {
        "retrieval.fig1"
    }

    fn paper(&self) -> &str {
        "continuous-retrieval"
    }

    fn title(&self) -> &str {
        "Request R1 on seven disks: buckets read from each"
    }

    fn assumptions(&self) -> Vec<&str> {
        Vec::new()
    }

    fn points(&self, _: &Parameters, _: Scale) -> Result<Vec<Point>, LabError> {
        let point = |(name, with_both)| Point::new(Retrieved { with_both }).with("choice", name);
        Ok([(FIRST, false), (BOTH, true)].map(point).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["buckets", "accesses"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let accesses = |choice: &str| table.number(&[("choice", Cell::from(choice))], "accesses");
        vec![
            claim("accesses with the first copies", 2.0, accesses(FIRST), [2.0, 2.0]),
            claim("accesses with both copies, by maximum flow", 1.0, accesses(BOTH), [1.0, 1.0]),
        ]
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        let groups = (0..7).map(|disk| format!("disk {disk}")).collect();
        let series = runs.first().map_or(&[][..], |runs| &runs.runs).iter().zip([FIRST, BOTH]);
        let series = series.map(|((_, sample), name)| line(name, sample.series["buckets"].iter().copied()));
        vec![Chart::bars(self.id(), self.title(), Axis::new("buckets", ""), groups, series.collect())]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "The paper's grids: the first copy of bucket [i, j] is on disk (3i + j) mod 7, the second on (2i + j) mod 7. R1 has rows 0 to 2 and columns \
             0 and 1."
                .to_owned(),
        ]
    }
}
