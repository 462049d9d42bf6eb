//! Figure 14: the TPC-E trace, interval by interval.

use super::statistics::{self, Whole, column};
use super::workload::Workload;
use crate::cell::Row;
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::Chart;

pub(super) struct Fig14;

impl Experiment for Fig14 {
    fn id(&self) -> &str {
        "retrieval.fig14"
    }

    fn paper(&self) -> &str {
        "continuous-retrieval"
    }

    fn title(&self) -> &str {
        "The TPC-E trace in 6 intervals"
    }

    fn assumptions(&self) -> Vec<&str> {
        statistics::assumptions()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        statistics::points(Workload::TpcE, parameters, scale)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        statistics::rows(runs)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let text = Whole { intervals: 6, minutes: 84.0, millions: 101.0, millions_band: [97.0, 105.0] };
        let mut claims = statistics::whole(table, text);
        let minutes = column(table, "minutes").into_iter();
        let shortest = minutes.clone().fold(f64::INFINITY, f64::min);
        let longest = minutes.fold(0.0, f64::max);
        let largest = column(table, "size_max").into_iter().fold(f64::NAN, f64::max);
        claims.extend([
            claim("minutes of the shortest interval", 10.0, shortest, [9.5, 10.5]),
            claim("minutes of the longest interval", 16.0, longest, [15.5, 16.5]),
            shape(
                "buckets of the largest request, for which the text has 1000 disks",
                largest,
                [1.0, 1000.0],
            ),
        ]);
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        statistics::charts(self.id(), Workload::TpcE, table, &[])
    }

    fn notes(&self) -> Vec<String> {
        statistics::notes()
    }
}
