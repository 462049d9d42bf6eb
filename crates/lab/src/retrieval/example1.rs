//! Example 1, with its Figures 8 and 9: a request that is complete before an earlier one is.

use super::setup::line;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use reads::distribute::retrieval::{Choice, Fairness};
use serde_json::json;
use sim::array::{Costs, Driver, Planning, examples, replay};

pub(super) struct Example1;

/// More buckets than there are: a batch waits for an idle array.
const NO_CAP: usize = usize::MAX;
const FIRST: &str = "first copies";
const CONSERVATIVE: &str = "maxflow-cons";
const BATCHED: &str = "maxflow-batched";
const ADAPTIVE: &str = "maxflow-adp";

/// Both requests under a driver, with all copies or the first ones alone. Planning takes no time, as in the text.
struct Retrieved {
    driver: Driver,
    with_both: bool,
}

impl Job for Retrieved {
    fn describe(&self) -> serde_json::Value {
        json!({ "job": "example 1", "driver": format!("{:?}", self.driver), "with_both": self.with_both })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let example = examples::example_1();
        let example = if self.with_both { example } else { example.first_copies() };
        let mut planning = Planning::Modelled(Costs { plan_ns: 0.0, look_ns: 0.0 });
        let done = replay(&example.access_ns, self.driver, &example.requests, &mut planning, seed);
        let done_ms: Vec<f64> = done.iter().map(|ns| *ns as f64 / 1e6).collect();
        let values = [("r1_done_ms", done_ms[0]), ("r2_done_ms", done_ms[1])];
        Ok(Sample {
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            simulated_ns: done.iter().copied().max().unwrap_or(0),
            events: example.requests.iter().map(|(_, request)| request.len() as u64).sum(),
            ..Sample::default()
        })
    }
}

impl Experiment for Example1 {
    fn id(&self) -> &str {
        "retrieval.example1"
    }

    fn paper(&self) -> &str {
        "continuous-retrieval"
    }

    fn title(&self) -> &str {
        "Example 1: when two requests are complete that come at 8 and at 10 ms"
    }

    fn assumptions(&self) -> Vec<&str> {
        Vec::new()
    }

    fn points(&self, _: &Parameters, _: Scale) -> Result<Vec<Point>, LabError> {
        let conservative = Driver::Conservative(Choice::MaxFlow);
        let schemes = [
            (FIRST, conservative, false),
            (CONSERVATIVE, conservative, true),
            (ADAPTIVE, Driver::Adaptive(Fairness::Promise), true),
            (BATCHED, Driver::Batched { choice: Choice::MaxFlow, cap: NO_CAP }, true),
        ];
        let point =
            |(name, driver, with_both)| Point::new(Retrieved { driver, with_both }).with("scheme", name);
        Ok(schemes.map(point).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["r1_done_ms", "r2_done_ms"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let done_ms = |scheme: &str, figure: &str| table.number(&[("scheme", Cell::from(scheme))], figure);
        let exactly = |what: &str, paper: f64, measured| {
            claim(what.to_owned(), paper, measured, [paper - 1e-6, paper + 1e-6])
        };
        let (first, second) = (done_ms(CONSERVATIVE, "r1_done_ms"), done_ms(CONSERVATIVE, "r2_done_ms"));
        vec![
            exactly("immediate-conservative: r1 is complete (ms)", 16.3, first),
            exactly("immediate-conservative: r2 is complete (ms)", 16.1, second),
            shape("r1 after r2, which came later: an apriori retrieval (ms)", first - second, [1e-6, 1e3]),
            exactly(
                "r2 with its bucket [0, 0] from disk 0, whose load is ignored (ms)",
                24.6,
                done_ms(FIRST, "r2_done_ms"),
            ),
            shape(
                "batched over conservative: r2 is complete later (ms)",
                done_ms(BATCHED, "r2_done_ms") - second,
                [1e-6, 1e3],
            ),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let schemes = table.distinct("scheme");
        let bars = |name: &str, figure: &str| {
            let spot = |(at, scheme): (usize, &Cell)| {
                [at as f64, table.number(&[("scheme", scheme.clone())], figure)]
            };
            line(name, schemes.iter().enumerate().map(spot))
        };
        let series = vec![bars("r1, from 8 ms on", "r1_done_ms"), bars("r2, from 10 ms on", "r2_done_ms")];
        let groups = schemes.iter().map(Cell::text).collect();
        vec![Chart::bars(self.id(), self.title(), Axis::new("complete at", "ms"), groups, series)]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "The paper's text does not have the allocation of Figure 8. This one is ours, with all that the text says of it: one disk of each kind of \
             Table I, r1 of 5 buckets, r2 of 4. \"First copies\" is what \"might have\" been chosen without loads: bucket [0, 0] waits at disk 0."
                .to_owned(),
        ]
    }
}
