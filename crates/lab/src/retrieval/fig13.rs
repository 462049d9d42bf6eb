//! Figure 13: the TPC-C trace, interval by interval.

use super::statistics::{self, Whole, column};
use super::workload::Workload;
use crate::cell::Row;
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::Chart;

pub(super) struct Fig13;

impl Experiment for Fig13 {
    fn id(&self) -> &str {
        "retrieval.fig13"
    }

    fn paper(&self) -> &str {
        "continuous-retrieval"
    }

    fn title(&self) -> &str {
        "The TPC-C trace in 6 intervals"
    }

    fn assumptions(&self) -> Vec<&str> {
        statistics::assumptions()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        statistics::points(Workload::TpcC, parameters, scale)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        statistics::rows(runs)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let text = Whole { intervals: 6, minutes: 36.0, millions: 210.0, millions_band: [200.0, 220.0] };
        let mut claims = statistics::whole(table, text);
        let largest = column(table, "size_max").into_iter().fold(f64::NAN, f64::max);
        claims.push(shape(
            "buckets of the largest request, for which the text has 1000 disks",
            largest,
            [1.0, 1000.0],
        ));
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        statistics::charts(self.id(), Workload::TpcC, table, &[])
    }

    fn notes(&self) -> Vec<String> {
        statistics::notes()
    }
}
