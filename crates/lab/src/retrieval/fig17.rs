//! Figure 17: the TPC-C and TPC-E traces on 1000 disks, under every continuous scheme.

use super::setup::{
    self, ADAPTIVE, BASELINE, BATCHED, Bed, CONSERVATIVE, CONTINUOUS, COPIES, Configuration, ONLINE,
    by_copies, greatest, least, ratios,
};
use super::workload::Workload;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

pub(super) struct Fig17;

/// Disks of both traces (section IV.A).
const DISKS: u32 = 1000;
/// One homogeneous and one heterogeneous configuration for each trace; the paper's text does not say which.
const PANELS: [(Workload, Configuration); 4] = [
    (Workload::TpcC, Configuration::Slow),
    (Workload::TpcC, Configuration::Mixed),
    (Workload::TpcE, Configuration::Slow),
    (Workload::TpcE, Configuration::Mixed),
];
/// "Close" in the text: within a few percent.
const CLOSE: f64 = 1.05;

impl Experiment for Fig17 {
    fn id(&self) -> &str {
        "retrieval.fig17"
    }

    fn paper(&self) -> &str {
        "continuous-retrieval"
    }

    fn title(&self) -> &str {
        "TPC-C and TPC-E: response by copies, under continuous schemes"
    }

    fn assumptions(&self) -> Vec<&str> {
        setup::assumptions(&[setup::ASSUMED, setup::ASSUMED_CONTINUOUS])
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, scale };
        let mut points = Vec::new();
        for (workload, configuration) in PANELS {
            for name in CONTINUOUS {
                for copies in COPIES {
                    let scheme = bed.continuous(name);
                    let job = bed.replayed(workload, (configuration, DISKS), copies, scheme)?;
                    let point =
                        Point::new(job).with("trace", workload.title()).with("disks", configuration.name());
                    points.push(point.with("scheme", name).with("copies", copies));
                }
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["mean_ms", "planning_us"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        PANELS.iter().flat_map(|panel| claims(table, *panel)).collect()
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let chart = |(letter, panel): (char, (Workload, Configuration))| {
            let series = CONTINUOUS.iter().map(|name| setup::over_copies(name, &of(table, panel, name)));
            let title = format!("{}: {}", panel.0.title(), panel.1.title());
            let (x, y) = (Axis::new("copies of a bucket", "").not_from_zero(), Axis::new("response", "ms"));
            Chart::lines(&format!("retrieval.fig17.{letter}"), &title, x, y, series.collect())
        };
        ('a'..='d').zip(PANELS).map(chart).collect()
    }

    fn notes(&self) -> Vec<String> {
        vec![
            setup::note(),
            "TPC-C asks for 196,000 buckets a second. 1000 Barracudas serve 76,000: queues on disk_conf1 grow for as long as a slice lasts, under \
             every scheme."
                .to_owned(),
        ]
    }
}

/// A scheme's mean response in a panel, by copies.
fn of(table: &Table, (workload, configuration): (Workload, Configuration), scheme: &str) -> Vec<f64> {
    let cells = [("trace", Cell::from(workload.title())), ("disks", Cell::from(configuration.name()))];
    by_copies(table, &cells, scheme, "mean_ms")
}

fn claims(table: &Table, panel: (Workload, Configuration)) -> [Claim; 5] {
    let [adaptive, conservative, online, batched, baseline] =
        [ADAPTIVE, CONSERVATIVE, ONLINE, BATCHED, BASELINE].map(|scheme| of(table, panel, scheme));
    let what = |claim: &str| format!("{}, {}: {claim}", panel.0.title(), panel.1.name());
    let immediate: Vec<f64> =
        (0..COPIES.len()).map(|at| greatest(&[adaptive[at], conservative[at], online[at]])).collect();
    let others: Vec<f64> = immediate.iter().zip(&batched).map(|(one, other)| one.max(*other)).collect();
    [
        shape(
            what("maxflow-adp over maxflow-cons, greatest"),
            greatest(&ratios(&adaptive, &conservative)),
            [0.0, 1.0],
        ),
        shape(
            what("maxflow-cons over online, greatest"),
            greatest(&ratios(&conservative, &online)),
            [0.0, 1.0],
        ),
        shape(
            what("online over maxflow-cons, greatest: \"close\""),
            greatest(&ratios(&online, &conservative)),
            [0.95, CLOSE],
        ),
        shape(
            what("maxflow-batched over the slowest immediate scheme, least"),
            least(&ratios(&batched, &immediate)),
            [1.0, 1e6],
        ),
        shape(
            what("maxflow-baseline over all but shortest-queue, mean over copies"),
            setup::mean(&ratios(&baseline, &others)),
            [1.0, 1e6],
        ),
    ]
}
