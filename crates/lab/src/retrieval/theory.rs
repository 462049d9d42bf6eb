//! Proposition 1, Lemmas 1 and 2, Theorem 1, and the remark below Lemma 2, on drawn pairs of requests with exact choices.

use super::setup::{line, table_1};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use base::Rng;
use reads::distribute::retrieval::Solver;
use serde_json::json;
use sim::array::theory::{Pair, Removal, Times};

pub(super) struct Theory;

/// Pairs of requests on each kind of array.
const PAIRS: u64 = 20_000;
/// Points of a distribution.
const PARTS: usize = 100;
const EQUAL: &str = "equal disks";
const MIXED: &str = "mixed disks";
const ARRAYS: [&str; 2] = [EQUAL, MIXED];

/// Drawn pairs on disks that are drawn of these kinds.
struct Pairs {
    access_ns: Vec<u64>,
    count: u64,
}

impl Job for Pairs {
    fn describe(&self) -> serde_json::Value {
        json!({ "job": "theory", "access_ns": self.access_ns, "pairs": self.count })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let (mut random, mut solver) = (Rng::with_seed(seed), Solver::default());
        let (mut times, mut removals) = (Vec::new(), Vec::new());
        for _ in 0..self.count {
            let pair = Pair::drawn(&mut random, &self.access_ns);
            times.push(pair.times(&mut solver));
            removals.push(pair.removal(&mut random, &mut solver));
        }
        Ok(sample(&times, &removals))
    }
}

/// S_bat over S_ind.
fn batch(times: &Times) -> f64 {
    times.batch_ns as f64 / times.apart_ns as f64
}

/// Where S_ind lies between the greater of S1 and S2 (0) and their sum (1).
fn place(Times { alone_ns: [first, second], apart_ns, .. }: &Times) -> f64 {
    (*apart_ns as f64 - *first.max(second) as f64) / *first.min(second) as f64
}

fn sample(times: &[Times], removals: &[Removal]) -> Sample {
    let all = times.len() as f64;
    let share = |is: &dyn Fn(&Times) -> bool| times.iter().filter(|times| is(times)).count() as f64 / all;
    let violations = |holds: fn(&Times) -> bool| times.iter().filter(|times| !holds(times)).count() as f64;
    let (batches, places) = (sorted(times.iter().map(batch)), sorted(times.iter().map(place)));
    let of = |is: fn(&Removal) -> bool| removals.iter().filter(|removal| is(removal)).count() as f64;
    let shared = of(|removal| !removal.was_alone);
    let values = [
        ("pairs", all),
        ("beyond_proposition_1", violations(Times::holds_proposition_1)),
        ("beyond_lemma_1", violations(Times::holds_lemma_1)),
        ("beyond_lemma_2", violations(Times::holds_lemma_2)),
        ("beyond_theorem_1", violations(Times::holds_theorem_1)),
        ("batch_is_less", share(&|times| times.batch_ns < times.apart_ns)),
        ("batch_median", at(&batches, 0.5)),
        ("batch_least", at(&batches, 0.0)),
        ("apart_is_max", share(&|times| times.apart_ns == times.alone_ns[0].max(times.alone_ns[1]))),
        ("apart_is_sum", share(&|times| times.apart_ns == times.alone_ns.iter().sum::<u64>())),
        ("in_vain", of(|removal| !removal.is_sooner) / all),
        ("in_vain_alone", of(|removal| removal.was_alone && !removal.is_sooner)),
        ("in_vain_shared", of(|removal| !removal.was_alone && !removal.is_sooner) / f64::max(shared, 1.0)),
    ];
    Sample {
        values: values.map(|(name, value)| (name.to_owned(), value)).into(),
        series: [("batch".to_owned(), distribution(&batches)), ("place".to_owned(), distribution(&places))]
            .into(),
        events: times.len() as u64,
        ..Sample::default()
    }
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}

/// The figure below which this share of all lies.
fn at(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

fn distribution(sorted: &[f64]) -> Vec<[f64; 2]> {
    let spot = |number: usize| {
        let share = number as f64 / PARTS as f64;
        [at(sorted, share), share]
    };
    (0..=PARTS).map(spot).collect()
}

impl Experiment for Theory {
    fn id(&self) -> &str {
        "retrieval.theory"
    }

    fn paper(&self) -> &str {
        "continuous-retrieval"
    }

    fn title(&self) -> &str {
        "Service times of two requests, in a batch and apart"
    }

    fn assumptions(&self) -> Vec<&str> {
        Vec::new()
    }

    fn points(&self, _: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let point = |name: &'static str| {
            let access_ns = if name == EQUAL { vec![table_1()[0]] } else { table_1() };
            Point::new(Pairs { access_ns, count: scale.of(PAIRS) }).with("array", name)
        };
        Ok(ARRAYS.map(point).into())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&[
            "pairs",
            "beyond_proposition_1",
            "beyond_lemma_1",
            "beyond_lemma_2",
            "beyond_theorem_1",
            "batch_is_less",
            "batch_median",
            "batch_least",
            "apart_is_max",
            "apart_is_sum",
            "in_vain",
            "in_vain_alone",
            "in_vain_shared",
        ])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let of = |array: &str, figure: &str| table.number(&[("array", Cell::from(array))], figure);
        let both = |figure: &str| of(EQUAL, figure) + of(MIXED, figure);
        let none = |what: &str, figure: &str| shape(what, both(figure), [0.0, 0.0]);
        vec![
            none("pairs beyond Proposition 1", "beyond_proposition_1"),
            none("pairs beyond Lemma 1", "beyond_lemma_1"),
            none("pairs beyond Lemma 2", "beyond_lemma_2"),
            none("pairs beyond Theorem 1", "beyond_theorem_1"),
            none("buckets of the only last disk that were left out in vain", "in_vain_alone"),
            shape(
                "buckets of a last disk that were left out in vain, equal disks (share): the text has none",
                of(EQUAL, "in_vain"),
                [0.0, 0.0],
            ),
            shape("the same, mixed disks", of(MIXED, "in_vain"), [0.0, 0.0]),
        ]
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        let chart = |name: &str, title: &str, x: &str, series: &str| {
            let runs = runs.first().map_or(&[][..], |runs| &runs.runs).iter().zip(ARRAYS);
            let series = runs.map(|((_, sample), array)| line(array, sample.series[series].iter().copied()));
            let (x, y) = (Axis::new(x, "").not_from_zero(), Axis::new("share of pairs up to there", ""));
            Chart::lines(&format!("retrieval.theory.{name}"), title, x, y, series.collect())
        };
        vec![
            chart("a", "Two requests in a batch", "time in a batch over time apart", "batch"),
            chart("b", "Two requests retrieved apart", "from the longer one (0) to the sum (1)", "place"),
        ]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Each pair of requests comes at once to up to 20 idle disks; each has up to two buckets a disk, with up to four copies. beyond_: pairs that \
             violate what is proven. batch_: S_bat over S_ind. apart_is_max, apart_is_sum: pairs whose S_ind is at either end of Proposition 1."
                .to_owned(),
            "in_vain: shares of pairs in which leaving out a bucket of a disk that is done last does not end the request sooner. in_vain_alone counts those \
             in which no other disk was done as late; in_vain_shared is the share among those in which another one was."
                .to_owned(),
        ]
    }
}
