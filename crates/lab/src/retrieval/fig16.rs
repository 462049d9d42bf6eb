//! Figure 16: the Exchange trace on each configuration, under every continuous scheme.

use super::setup::{
    self, ADAPTIVE, BASELINE, BATCHED, Bed, CONFIGURATIONS, CONSERVATIVE, CONTINUOUS, COPIES, Configuration,
    ONLINE, SHORTEST_QUEUE, by_copies, greatest, least, ratios,
};
use super::workload::Workload;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

pub(super) struct Fig16;

/// Exchange's disks (section IV.A).
const DISKS: u32 = 100;
/// Means over all intervals, and over all but the busiest one.
const FIGURES: [(&str, &str); 2] = [("mean_ms", "all intervals"), ("others_ms", "without interval 52")];

impl Experiment for Fig16 {
    fn id(&self) -> &str {
        "retrieval.fig16"
    }

    fn paper(&self) -> &str {
        "continuous-retrieval"
    }

    fn title(&self) -> &str {
        "Exchange: response by copies, under continuous schemes"
    }

    fn assumptions(&self) -> Vec<&str> {
        setup::assumptions(&[&["conf4_cache"], setup::ASSUMED, setup::ASSUMED_CONTINUOUS])
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, scale };
        let mut points = Vec::new();
        for configuration in CONFIGURATIONS {
            for name in CONTINUOUS {
                for copies in COPIES {
                    let scheme = bed.continuous(name);
                    let job = bed.replayed(Workload::Exchange, (configuration, DISKS), copies, scheme)?;
                    let point = Point::new(job).with("disks", configuration.name());
                    points.push(point.with("scheme", name).with("copies", copies));
                }
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["mean_ms", "busiest_ms", "others_ms", "planning_us"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        FIGURES.iter().flat_map(|(figure, what)| Panels { table, figure, what }.claims()).collect()
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let letters = ('a'..='d').zip(CONFIGURATIONS);
        let chart = |(letter, configuration): (char, Configuration),
                     (figure, what): (&str, &str),
                     suffix: &str| {
            let panels = Panels { table, figure, what };
            let series =
                CONTINUOUS.iter().map(|name| setup::over_copies(name, &panels.of(configuration, name)));
            let title = format!("Exchange, {what}: {}", configuration.title());
            let (x, y) = (Axis::new("copies of a bucket", "").not_from_zero(), Axis::new("response", "ms"));
            Chart::lines(&format!("retrieval.fig16.{letter}{suffix}"), &title, x, y, series.collect())
        };
        letters
            .flat_map(|panel| [chart(panel, FIGURES[0], ""), chart(panel, FIGURES[1], ".others")])
            .collect()
    }

    fn notes(&self) -> Vec<String> {
        vec![
            setup::note(),
            "Interval 52 has more requests than disks of conf1, conf3 (2 copies) and conf4 can serve: its response times grow for as long as its slice \
             lasts. busiest_ms is its mean, others_ms that of all other intervals."
                .to_owned(),
        ]
    }
}

/// The figure's panels, by one of the means.
struct Panels<'a> {
    table: &'a Table<'a>,
    figure: &'a str,
    what: &'a str,
}

impl Panels<'_> {
    /// A scheme's mean response, by copies.
    fn of(&self, configuration: Configuration, scheme: &str) -> Vec<f64> {
        by_copies(self.table, &[("disks", Cell::from(configuration.name()))], scheme, self.figure)
    }

    fn claims(&self) -> Vec<Claim> {
        let what = self.what;
        let loaded = [Configuration::Slow, Configuration::Mixed, Configuration::Cached];
        let mut claims: Vec<Claim> =
            loaded.into_iter().flat_map(|configuration| self.orders(configuration)).collect();
        let is_worst = |(configuration, at): (Configuration, usize)| {
            let others = CONTINUOUS.iter().filter(|name| ![BASELINE, SHORTEST_QUEUE].contains(*name));
            let others: Vec<f64> = others.map(|name| self.of(configuration, name)[at]).collect();
            self.of(configuration, BASELINE)[at] >= greatest(&others)
        };
        let cells: Vec<(Configuration, usize)> = loaded
            .iter()
            .flat_map(|configuration| (0..COPIES.len()).map(move |at| (*configuration, at)))
            .collect();
        let worst = cells.iter().filter(|cell| is_worst(**cell)).count() as f64 / cells.len() as f64;
        claims.push(shape(
            format!("{what}: maxflow-baseline above all but shortest-queue (share of conf1, conf3, conf4)"),
            worst,
            [0.5, 1.0],
        ));
        let queue = |configuration| {
            setup::mean(&ratios(&self.of(configuration, SHORTEST_QUEUE), &self.of(configuration, ONLINE)))
        };
        for configuration in [Configuration::Mixed, Configuration::Cached] {
            claims.push(shape(
                format!("{what}: shortest-queue over online, {} over disk_conf1", configuration.name()),
                queue(configuration) / queue(Configuration::Slow),
                [1.0, 1e6],
            ));
        }
        let fast: Vec<Vec<f64>> = CONTINUOUS.iter().map(|name| self.of(Configuration::Fast, name)).collect();
        let spread = (0..COPIES.len()).map(|at| {
            let here: Vec<f64> = fast.iter().map(|scheme| scheme[at]).collect();
            greatest(&here) / least(&here)
        });
        claims.push(shape(
            format!("{what}: disk_conf2, the slowest scheme over the fastest: \"very close\""),
            greatest(&spread.collect::<Vec<_>>()),
            [1.0, 1.05],
        ));
        claims
    }

    /// Adaptive <= conservative <= online, and batched above all three.
    fn orders(&self, configuration: Configuration) -> [Claim; 3] {
        let [adaptive, conservative, online, batched] =
            [ADAPTIVE, CONSERVATIVE, ONLINE, BATCHED].map(|scheme| self.of(configuration, scheme));
        let what = |claim: &str| format!("{}: {}, {claim}", self.what, configuration.name());
        let immediate: Vec<f64> =
            (0..COPIES.len()).map(|at| greatest(&[adaptive[at], conservative[at], online[at]])).collect();
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
                what("maxflow-batched over the slowest immediate scheme, least"),
                least(&ratios(&batched, &immediate)),
                [1.0, 1e6],
            ),
        ]
    }
}
