//! `brickwork lab run mine.toml --live`: a user's own descriptions on real daemons, each beside its prediction.

use super::bed::{self, Folder};
use super::described::{Described, Figures, Predicted, Times};
use anyhow::{Context, Result, ensure};
use lab::cell::Row;
use lab::claim::{Claim, shape};
use lab::experiment::Scale;
use lab::outcome::{Effort, Extent, Outcome, Subject};
use lab::system::System;
use std::path::Path;
use std::time::{Duration, Instant};

/// A prediction must be as near as this.
const THROUGHPUT: f64 = 0.05;
const MEDIAN: f64 = 0.10;
const P99: f64 = 0.25;

/// A description, what it should do and what it did.
struct Compared {
    labels: Row,
    predicted: Predicted,
    live: Figures,
}

impl Compared {
    /// By how much of the live figure the predicted one is off.
    fn error(&self, figure: fn(&Figures) -> f64) -> f64 {
        figure(&self.predicted.figures) / figure(&self.live) - 1.0
    }

    fn row(&self, world: &str, figures: &Figures) -> Row {
        self.labels
            .clone()
            .with("world", world)
            .with("requests_per_second", figures.requests_per_second)
            .with("p50_ms", figures.p50_ms)
            .with("p99_ms", figures.p99_ms)
            .with("processor_us", figures.spent.all())
    }

    fn claims(&self, name: &str) -> [Claim; 3] {
        [
            ("requests a second", THROUGHPUT, self.error(|figures| figures.requests_per_second)),
            ("median", MEDIAN, self.error(|figures| figures.p50_ms)),
            ("99th percentile", P99, self.error(|figures| figures.p99_ms)),
        ]
        .map(|(what, most, error)| {
            shape(format!("{name}: prediction error of the {what}"), error, [-most, most])
        })
    }
}

/// Predicts all that the file at `path` describes, then runs it. `say` is told what happens.
///
/// # Errors
/// When the file describes what daemons on this machine cannot be, or a request fails.
pub fn run(path: &Path, seed: u64, is_quick: bool, say: &dyn Fn(&str)) -> Result<Outcome> {
    let begin = Instant::now();
    let scale = if is_quick { Scale::Quick } else { Scale::Full };
    let title = lab::own::read(path)?.title().to_owned();
    let times = times(is_quick);
    let described = |(labels, system): (Row, System)| {
        let described = Described::new(system).with_context(|| name(&labels, &title))?;
        ensure!(
            described.has_processors(),
            "--live needs to know what work costs on this machine: run `brickwork lab calibrate`, and name its file under \
             [processors] as costs"
        );
        Ok((labels, described))
    };
    let all = lab::own::systems(path, scale)?.into_iter().map(described).collect::<Result<Vec<_>>>()?;
    say("simulating");
    let predict = |(labels, described): (Row, Described)| {
        let predicted = described.predict(&times, seed).with_context(|| name(&labels, &title))?;
        Ok((labels, described, predicted))
    };
    let all = all.into_iter().map(predict).collect::<Result<Vec<_>>>()?;
    let mut compared = Vec::new();
    for (labels, described, predicted) in all {
        say(&format!("running {}", name(&labels, &title)));
        let folder = Folder::make(&bed::folder())?;
        let live = described.measure(&times, &folder).with_context(|| {
            format!(
                "{} failed on daemons; their logs stay in {}",
                name(&labels, &title),
                folder.logs().display()
            )
        })?;
        folder.remove()?;
        compared.push(Compared { labels, predicted, live });
    }
    Ok(outcome(path, &title, (seed, is_quick), &compared, begin.elapsed()))
}

/// How long runs are.
pub(super) fn times(is_quick: bool) -> Times {
    let part = if is_quick { 4 } else { 1 };
    Times { warm_up: Duration::from_secs(2) / part, measure: Duration::from_secs(10) / part }
}

/// A description by what is varied, for people.
fn name(labels: &Row, title: &str) -> String {
    let said: Vec<String> = labels.cells().map(|(_, cell)| cell.text()).collect();
    if said.is_empty() { title.to_owned() } else { said.join(", ") }
}

fn outcome(
    path: &Path,
    title: &str,
    (seed, quick): (u64, bool),
    all: &[Compared],
    wall: Duration,
) -> Outcome {
    let rows = all.iter().flat_map(|one| {
        [("live", one.live), ("predicted", one.predicted.figures)]
            .map(|(world, figures)| one.row(world, &figures))
    });
    let stem = path.file_stem().map_or_else(|| "own".to_owned(), |stem| stem.to_string_lossy().into_owned());
    Outcome {
        subject: Subject { id: format!("{stem}.live"), paper: "own".to_owned(), title: title.to_owned() },
        effort: Effort {
            seed,
            wall_s: wall.as_secs_f64(),
            simulated_s: all.iter().map(|one| one.predicted.simulated_s).sum(),
            events: all.iter().map(|one| one.predicted.events).sum(),
        },
        assumptions: Vec::new(),
        rows: rows.collect(),
        claims: all.iter().flat_map(|one| one.claims(&name(&one.labels, title))).collect(),
        extent: Extent { seeds: 1, quick },
        sensitivity: Vec::new(),
        notes: vec![
            "Bricks, gateways, a directory and the clients are processes of their own on this machine, with their files in memory; \
             every block that was read was checked. Predictions were made before the clusters were started."
                .to_owned(),
            "processor_us is what a request costs all processors together: those of clients, gateways and bricks.".to_owned(),
        ],
        charts: Vec::new(),
    }
}
