//! Theorems 1, 2 and 4: how near random systems come to the bounds of unfairness, and a run that exceeds the bound as it is printed.
//!
//! There are no machines here, but queues ([`sim::theorems`]): the same that prove the bounds as properties.

use super::setup;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use model::Draw;
use serde_json::json;
use sim::theorems::{self, Bounds};

pub(super) struct Theorems;

/// Random systems of each theorem.
const SYSTEMS: u64 = 2_000;
/// Requests that each of them serves.
const REQUESTS: u32 = 400;
/// Points of a distribution.
const PARTS: usize = 50;

/// A theorem: the most bricks and gateways of its systems, and its bound.
struct Bounded {
    name: &'static str,
    bricks_max: u64,
    gateways_max: u64,
    bound: fn(&Bounds) -> f64,
}

const THEOREMS: [Bounded; 3] = [
    Bounded { name: "theorem 1", bricks_max: 1, gateways_max: 1, bound: |bounds| bounds.one_brick },
    Bounded { name: "theorem 2", bricks_max: 4, gateways_max: 1, bound: |bounds| bounds.corrected },
    Bounded { name: "theorem 4", bricks_max: 4, gateways_max: 4, bound: |bounds| bounds.corrected },
];
/// The run that exceeds the printed bound.
const TOO_WEAK: &str = "large requests elsewhere";

/// Random systems under one theorem.
struct Systems {
    theorem: &'static Bounded,
    count: u64,
}

impl Job for Systems {
    fn describe(&self) -> serde_json::Value {
        let Bounded { name, bricks_max, gateways_max, .. } = self.theorem;
        json!({ "job": "theorems", "theorem": name, "most": [bricks_max, gateways_max], "systems": self.count, "requests": REQUESTS })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let mut draw = Draw::new(seed);
        let mut parts: Vec<[f64; 2]> = Vec::new();
        for _ in 0..self.count {
            let system = theorems::drawn(&mut draw, self.theorem.bricks_max, self.theorem.gateways_max);
            let (seen, bounds) = theorems::measured(system, draw.bits(), REQUESTS);
            parts.push([seen / (self.theorem.bound)(&bounds), seen / bounds.printed]);
        }
        let beyond = |at: usize| parts.iter().filter(|part| part[at] > 1.0 + 1e-9).count() as f64;
        let (beyond, beyond_printed) = (beyond(0), beyond(1));
        let mut sorted: Vec<f64> = parts.iter().map(|part| part[0]).collect();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
        let spot = |number: usize| {
            let share = number as f64 / PARTS as f64;
            [at(share), share]
        };
        let values = [
            ("systems", self.count as f64),
            ("median_part", at(0.5)),
            ("p99_part", at(0.99)),
            ("greatest_part", at(1.0)),
            ("beyond", beyond),
            ("beyond_printed", beyond_printed),
        ];
        Ok(Sample {
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            series: [("distribution".to_owned(), (0..=PARTS).map(spot).collect())].into(),
            events: self.count * u64::from(REQUESTS),
            ..Sample::default()
        })
    }
}

/// The run that exceeds the printed bound, which no seed changes.
struct TooWeak;

impl Job for TooWeak {
    fn describe(&self) -> serde_json::Value {
        json!({ "job": "theorems", "theorem": TOO_WEAK })
    }

    fn run(&self, _: u64) -> Result<Sample, String> {
        let (seen, bounds) = theorems::too_weak();
        let values = [
            ("systems", 1.0),
            ("median_part", seen / bounds.corrected),
            ("p99_part", seen / bounds.corrected),
            ("greatest_part", seen / bounds.corrected),
            ("beyond", f64::from(u8::from(seen > bounds.corrected))),
            ("beyond_printed", f64::from(u8::from(seen > bounds.printed))),
            ("over_printed", seen / bounds.printed),
        ];
        Ok(Sample {
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Sample::default()
        })
    }
}

impl Experiment for Theorems {
    fn id(&self) -> &str {
        "dsfq.theorems"
    }

    fn paper(&self) -> &str {
        "dsfq"
    }

    fn title(&self) -> &str {
        "Unfairness of random systems as a part of its bound"
    }

    fn assumptions(&self) -> Vec<&str> {
        Vec::new()
    }

    fn points(&self, _: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let point = |theorem: &'static Bounded| {
            Point::new(Systems { theorem, count: scale.of(SYSTEMS) }).with("run", theorem.name)
        };
        Ok(THEOREMS.iter().map(point).chain([Point::new(TooWeak).with("run", TOO_WEAK)]).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["systems", "median_part", "p99_part", "greatest_part", "beyond", "beyond_printed"])
            .into_iter()
            .zip(&runs.runs)
            .map(|(row, (_, sample))| match sample.values.get("over_printed") {
                Some(over) => row.with("over_printed", *over),
                None => row.with("over_printed", "-"),
            })
            .collect()
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let of = |run: &str, figure: &str| table.number(&[("run", Cell::from(run))], figure);
        let bounded = THEOREMS.iter().map(|theorem| {
            let what = format!("{}: the greatest unfairness over its bound", theorem.name);
            shape(what, of(theorem.name, "greatest_part"), [0.0, 1.0])
        });
        let too_weak = [
            shape(
                "large requests elsewhere: unfairness over the bound as printed: it is exceeded",
                of(TOO_WEAK, "over_printed"),
                [1.0, 1e9],
            ),
            shape(
                "large requests elsewhere: unfairness over the corrected bound",
                of(TOO_WEAK, "greatest_part"),
                [0.0, 1.0],
            ),
        ];
        bounded.chain(too_weak).collect()
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        let series = THEOREMS.iter().enumerate();
        let series =
            series.map(|(at, of)| setup::line(of.name, setup::over_time(runs, at, "distribution"))).collect();
        let (x, y) = (Axis::new("unfairness over its bound", ""), Axis::new("share of systems below", ""));
        vec![Chart::lines("dsfq.theorems", self.title(), x, y, series)]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Each system has up to five streams that wait at one brick all the time, with up to four bricks and gateways. Unfairness is the greatest \
             difference of two streams' services by weight over any interval."
                .to_owned(),
            "beyond: systems that exceed the bound; beyond_printed: those that exceed formula 8 as it is printed. over_printed: by how much."
                .to_owned(),
        ]
    }
}
