//! Figure 18: adaptive beside conservative planning in each interval of Exchange, two copies, disk_conf3.

use super::setup::{self, ADAPTIVE, Bed, CONSERVATIVE, Configuration, line};
use super::workload::Workload;
use crate::cell::Row;
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

pub(super) struct Fig18;

/// Exchange's disks (section IV.A), and the copies of this figure.
const DISKS: u32 = 100;
const COPIES: u32 = 2;
/// Intervals that count as rush hours: those with the highest rates.
const RUSH: f64 = 10.0;

impl Experiment for Fig18 {
    fn id(&self) -> &str {
        "retrieval.fig18"
    }

    fn paper(&self) -> &str {
        "continuous-retrieval"
    }

    fn title(&self) -> &str {
        "Exchange: adaptive beside conservative, interval by interval"
    }

    fn assumptions(&self) -> Vec<&str> {
        setup::assumptions(&[setup::ASSUMED, &["fairness", "moves_max"]])
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, scale };
        let point = |name: &'static str| {
            let disks = (Configuration::Mixed, DISKS);
            let job = bed.replayed(Workload::Exchange, disks, COPIES, bed.continuous(name))?;
            Ok(Point::new(job).with("scheme", name))
        };
        [CONSERVATIVE, ADAPTIVE].into_iter().map(point).collect()
    }

    /// A row for each interval: the points are schemes.
    fn rows(&self, runs: &Runs) -> Vec<Row> {
        let [conservative, adaptive] = [0, 1].map(|at| &runs.runs[at].1);
        let of = |sample: &Sample, name: &str, at: usize| sample.series[name][at][1];
        let row = |(at, [number, per_s]): (usize, &[f64; 2])| {
            let means = [conservative, adaptive].map(|sample| of(sample, "mean_ms", at));
            Row::new()
                .with("interval", *number)
                .with("per_s", *per_s)
                .with("cons_ms", means[0])
                .with("adp_ms", means[1])
                .with("difference_ms", means[0] - means[1])
                .with("cons_variation", of(conservative, "variation", at))
                .with("adp_variation", of(adaptive, "variation", at))
        };
        conservative.series["per_s"].iter().enumerate().map(row).collect()
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let [intervals, rates, differences, conservative, adaptive] =
            ["interval", "per_s", "difference_ms", "cons_variation", "adp_variation"]
                .map(|name| super::statistics::column(table, name));
        let count = intervals.len() as f64;
        let gains = differences.iter().filter(|difference| **difference >= 0.0).count() as f64;
        let peak =
            (0..intervals.len()).max_by(|one, other| differences[*one].total_cmp(&differences[*other]));
        let peak = peak.unwrap_or(0);
        let busier = rates.iter().filter(|rate| **rate > rates[peak]).count() as f64;
        let fairer =
            adaptive.iter().zip(&conservative).filter(|(adaptive, conservative)| adaptive <= conservative);
        vec![
            shape("intervals in which adaptive is no slower (share)", gains / count, [0.9, 1.0]),
            shape(
                "the greatest gain of adaptive (ms); the paper's is 9 to 10",
                differences[peak],
                [1e-3, 1e6],
            ),
            shape(
                format!(
                    "busier intervals than that of the greatest gain, {}: it is a rush hour",
                    intervals[peak]
                ),
                busier,
                [0.0, RUSH - 1.0],
            ),
            shape(
                "intervals in which the variation under adaptive is no greater (share)",
                fairer.count() as f64 / count,
                [0.5, 1.0],
            ),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let curve = |name: &str, figure: &str| {
            let spot = |row: &Row| Some([row.get("interval")?.number()?, row.get(figure)?.number()?]);
            line(name, table.0.iter().filter_map(spot))
        };
        let x = || Axis::new("interval", "");
        let gain = Axis::new("conservative - adaptive", "ms").not_from_zero();
        let variation = Axis::new("squared coefficient of variation", "");
        vec![
            Chart::lines(
                "retrieval.fig18.a",
                "Exchange, conf3, 2 copies: what adaptive planning gains",
                x(),
                gain,
                vec![curve("difference of means", "difference_ms")],
            ),
            Chart::lines(
                "retrieval.fig18.b",
                "Exchange, conf3, 2 copies: variation of response times",
                x(),
                variation,
                vec![curve(ADAPTIVE, "adp_variation"), curve(CONSERVATIVE, "cons_variation")],
            ),
        ]
    }

    fn notes(&self) -> Vec<String> {
        vec!["Each interval begins with an idle array and runs a slice of its requests at its own rate (all of them with --full).".to_owned()]
    }
}
