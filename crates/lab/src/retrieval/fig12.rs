//! Figure 12: the Exchange trace, interval by interval.

use super::statistics::{self, Whole, column};
use super::workload::Workload;
use crate::cell::Row;
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::Chart;

pub(super) struct Fig12;

/// The busiest and the quietest interval, with the requests that the text has for each.
const MOST: (f64, f64) = (52.0, 7e6);
const LEAST: (f64, f64) = (48.0, 15e3);
/// What the fastest disk takes for a bucket (Table I), which section IV.E.2 compares with the gaps of Figure 12(d).
const X25_E_MS: f64 = 0.2;

impl Experiment for Fig12 {
    fn id(&self) -> &str {
        "retrieval.fig12"
    }

    fn paper(&self) -> &str {
        "continuous-retrieval"
    }

    fn title(&self) -> &str {
        "The Exchange trace in 96 intervals"
    }

    fn assumptions(&self) -> Vec<&str> {
        statistics::assumptions()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        statistics::points(Workload::Exchange, parameters, scale)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        statistics::rows(runs)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let text = Whole { intervals: 96, minutes: 1440.0, millions: 40.0, millions_band: [38.0, 42.0] };
        let mut claims = statistics::whole(table, text);
        let counts: Vec<(f64, f64)> =
            column(table, "interval").into_iter().zip(column(table, "requests")).collect();
        let by_count = |one: &&(f64, f64), other: &&(f64, f64)| one.1.total_cmp(&other.1);
        let nothing = (f64::NAN, f64::NAN);
        let least = counts.iter().min_by(by_count).copied().unwrap_or(nothing);
        let most = counts.iter().max_by(by_count).copied().unwrap_or(nothing);
        let gaps = column(table, "gap_ms");
        let longer = gaps.iter().filter(|gap| **gap > X25_E_MS).count() as f64 / gaps.len() as f64;
        claims.extend([
            claim("the interval with the fewest requests", LEAST.0, least.0, [LEAST.0, LEAST.0]),
            claim("its requests", LEAST.1, least.1, [14e3, 16e3]),
            claim("the interval with the most requests", MOST.0, most.0, [MOST.0, MOST.0]),
            claim("its requests (millions)", MOST.1 / 1e6, most.1 / 1e6, [6.5, 7.5]),
            shape(
                "intervals whose mean gap exceeds what an X25-E takes for a bucket, 0.2 ms (share)",
                longer,
                [0.9, 1.0],
            ),
        ]);
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        statistics::charts(self.id(), Workload::Exchange, table, &[LEAST, MOST])
    }

    fn notes(&self) -> Vec<String> {
        statistics::notes()
    }
}
