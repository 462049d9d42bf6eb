//! An experiment run from start to end: points, table, claims, sensitivity of the claims to what was assumed.

use crate::cell::{Cell, Row, merge as merge_rows};
use crate::claim::{Claim, merge as merge_claims};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Sample, Scale, Table};
use crate::papers::source;
use crate::parameters::{Parameters, Value};
use crate::plot::Chart;
use crate::runner::Runner;
use serde::Serialize;

/// How an experiment is to be run.
#[derive(Clone, Debug)]
pub struct Options {
    pub seed: u64,
    /// How many seeds, each one more than the last; at least one.
    pub seeds: u64,
    /// How long runs are.
    pub scale: Scale,
    /// Whether claims are also made under the other values of each assumption (always at quick scale, first seed only).
    pub sensitivity: bool,
}

/// An assumption as it was made.
#[derive(Clone, Debug, Serialize)]
pub struct Assumed {
    pub name: String,
    /// Its value in this run.
    pub value: Value,
    pub why: String,
}

impl Assumed {
    /// What an experiment assumes under this name.
    ///
    /// # Panics
    /// If the paper's file does not have it: experiments and their file are made together.
    pub fn of(parameters: &Parameters, name: &str) -> Assumed {
        let assumption = parameters.get(name).clone();
        Assumed { name: assumption.name, value: assumption.value, why: assumption.why }
    }
}

/// What the claims would be under another assumption, all at quick scale.
#[derive(Clone, Debug, Serialize)]
pub struct Sensitivity {
    /// The assumption; empty in the first entry, where nothing is changed: what the others are to be compared with.
    pub assumption: String,
    pub value: Value,
    /// The claims then, in the usual order.
    pub claims: Vec<Claim>,
}

/// What an outcome is about.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
    pub id: String,
    pub paper: String,
    pub title: String,
}

/// How it came to be, so that it can be made again.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Provenance {
    /// The program's version and a checksum of it.
    pub program: String,
    pub command: String,
    /// Who wrote the paper, what it is called, where and when it was published.
    pub source: String,
    /// The file of an experiment of one's own.
    pub description: Option<String>,
    /// All that decided what came out, of each point: what is not in the assumptions, too.
    pub points: Vec<Configured>,
}

/// A point, and all that decides its result apart from the seed.
#[derive(Clone, Debug, Serialize)]
pub struct Configured {
    pub labels: Row,
    pub configuration: serde_json::Value,
}

/// What it took, over all points and seeds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Effort {
    pub seed: u64,
    /// The only figure that differs between two runs of the same seeds.
    pub wall_s: f64,
    pub simulated_s: f64,
    pub events: u64,
}

/// How much was run, of what could be.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Extent {
    /// How many seeds, each one more than the last.
    pub seeds: u64,
    /// Whether runs were a tenth of their length.
    pub quick: bool,
}

/// Everything that came out. Serialised, it is what `--json` prints: the parts' fields stand beside each other there.
#[derive(Serialize)]
pub struct Outcome {
    #[serde(flatten)]
    pub subject: Subject,
    #[serde(flatten)]
    pub effort: Effort,
    pub assumptions: Vec<Assumed>,
    /// The table.
    pub rows: Vec<Row>,
    pub claims: Vec<Claim>,
    #[serde(flatten)]
    pub extent: Extent,
    /// How claims depend on assumptions.
    pub sensitivity: Vec<Sensitivity>,
    /// What a reader must know to read the table right.
    pub notes: Vec<String>,
    pub provenance: Provenance,
    #[serde(skip)]
    pub charts: Vec<Chart>,
}

/// How many points a run has, for a progress bar.
///
/// # Errors
/// If the experiment makes no sense.
pub fn point_count(
    experiment: &dyn Experiment,
    parameters: &Parameters,
    options: &Options,
) -> Result<u64, LabError> {
    let mut count = experiment.points(parameters, options.scale)?.len() as u64 * options.seeds;
    for (_, _, changed) in variants(experiment, parameters, options) {
        count += experiment.points(&changed, Scale::Quick)?.len() as u64;
    }
    Ok(count)
}

/// Runs an experiment.
///
/// # Errors
/// If a point cannot be run or its sample cannot be kept.
pub fn run(
    experiment: &dyn Experiment,
    parameters: &Parameters,
    options: &Options,
    runner: &Runner<'_>,
) -> Result<Outcome, LabError> {
    let begin = std::time::Instant::now();
    let seeds: Vec<u64> = (0..options.seeds).map(|more| options.seed.wrapping_add(more)).collect();
    let points = experiment.points(parameters, options.scale)?;
    let samples = runner.run(experiment.id(), &points, &seeds)?;
    let runs: Vec<Runs> = samples.into_iter().map(|samples| labelled(&points, samples)).collect();
    let tables: Vec<Vec<Row>> = runs.iter().map(|runs| experiment.rows(runs)).collect();
    let rows = transpose(&tables).iter().map(|rows| merge_rows(rows)).collect::<Vec<_>>();
    let claims = tables.iter().map(|rows| experiment.claims(&Table(rows))).collect::<Vec<_>>();
    let claims = transpose(&claims).iter().map(|claims| merge_claims(claims)).collect();
    let charts = experiment.charts(&Table(&rows), &runs);
    let sensitivity = sensitivities(experiment, parameters, options, &runner.without_recorder())?;
    let samples = || runs.iter().flat_map(|runs| runs.runs.iter().map(|(_, sample)| sample));
    Ok(Outcome {
        subject: Subject {
            id: experiment.id().to_owned(),
            paper: experiment.paper().to_owned(),
            title: experiment.title().to_owned(),
        },
        effort: Effort {
            seed: options.seed,
            wall_s: begin.elapsed().as_secs_f64(),
            simulated_s: samples().map(|sample| sample.simulated_ns as f64).sum::<f64>() / 1e9,
            events: samples().map(|sample| sample.events).sum(),
        },
        assumptions: assumed(experiment, parameters),
        rows,
        claims,
        extent: Extent { seeds: options.seeds, quick: options.scale == Scale::Quick },
        sensitivity,
        notes: experiment.notes().into_iter().chain(seen(&runs)).collect(),
        provenance: Provenance {
            program: runner.build.clone(),
            command: String::new(),
            source: source(experiment.paper()).to_owned(),
            description: experiment.description().map(str::to_owned),
            points: points.iter().map(configured).collect(),
        },
        charts,
    })
}

fn configured(point: &Point) -> Configured {
    Configured { labels: point.labels.clone(), configuration: point.job.describe() }
}

fn run_points(
    experiment: &dyn Experiment,
    parameters: &Parameters,
    scale: Scale,
    seeds: &[u64],
    runner: &Runner<'_>,
) -> Result<Vec<Runs>, LabError> {
    let points = experiment.points(parameters, scale)?;
    let samples = runner.run(experiment.id(), &points, seeds)?;
    Ok(samples.into_iter().map(|samples| labelled(&points, samples)).collect())
}

fn labelled(points: &[Point], samples: Vec<Sample>) -> Runs {
    Runs { runs: points.iter().map(|point| point.labels.clone()).zip(samples).collect() }
}

/// What was odd about points, each once, after the labels that all points have of which it is true.
fn seen(runs: &[Runs]) -> Vec<String> {
    let mut seen: Vec<(&String, Vec<(&str, &Cell)>)> = Vec::new();
    for (labels, sample) in runs.iter().flat_map(|runs| &runs.runs) {
        for note in &sample.notes {
            let labels: Vec<(&str, &Cell)> = labels.cells().collect();
            match seen.iter_mut().find(|(known, _)| *known == note) {
                Some((_, common)) => common.retain(|label| labels.contains(label)),
                None => seen.push((note, labels)),
            }
        }
    }
    let said = |(note, labels): (&String, Vec<(&str, &Cell)>)| {
        let labels: Vec<String> =
            labels.iter().map(|(name, cell)| format!("{name} {}", cell.text())).collect();
        if labels.is_empty() { note.clone() } else { format!("{}: {note}", labels.join(", ")) }
    };
    seen.into_iter().map(said).collect()
}

fn assumed(experiment: &dyn Experiment, parameters: &Parameters) -> Vec<Assumed> {
    experiment.assumptions().into_iter().map(|name| Assumed::of(parameters, name)).collect()
}

fn sensitivities(
    experiment: &dyn Experiment,
    parameters: &Parameters,
    options: &Options,
    runner: &Runner<'_>,
) -> Result<Vec<Sensitivity>, LabError> {
    let claims = |(assumption, value, changed)| {
        let runs = run_points(experiment, &changed, Scale::Quick, &[options.seed], runner)?;
        let claims = experiment.claims(&Table(&experiment.rows(&runs[0])));
        Ok(Sensitivity { assumption, value, claims })
    };
    variants(experiment, parameters, options).into_iter().map(claims).collect()
}

/// The parameters as they are, then with each other value of each assumption that the experiment depends on.
fn variants(
    experiment: &dyn Experiment,
    parameters: &Parameters,
    options: &Options,
) -> Vec<(String, Value, Parameters)> {
    if !options.sensitivity {
        return Vec::new();
    }
    let mut variants = vec![(String::new(), Value::Text(String::new()), parameters.clone())];
    for name in experiment.assumptions() {
        let assumption = parameters.get(name);
        for other in assumption.others.iter().filter(|other| **other != assumption.value) {
            variants.push((name.to_owned(), other.clone(), parameters.with(name, other.clone())));
        }
    }
    // Only the unchanged one: there is nothing to be sensitive to.
    if variants.len() == 1 { Vec::new() } else { variants }
}

/// Item by item across seeds.
///
/// # Panics
/// If the seeds differ in how many items they have.
fn transpose<T>(seeds: &[Vec<T>]) -> Vec<Vec<&T>> {
    let count = seeds.first().map_or(0, Vec::len);
    assert!(seeds.iter().all(|items| items.len() == count), "every seed makes the same table");
    (0..count).map(|at| seeds.iter().map(|items| &items[at]).collect()).collect()
}
