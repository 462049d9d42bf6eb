//! What an experiment is: points that can be run apart, a table made of them, claims about the table, pictures.

use crate::cell::{Cell, Row};
use crate::claim::Claim;
use crate::error::LabError;
use crate::parameters::Parameters;
use crate::plot::Chart;
use serde::{Deserialize, Serialize};
use sim::timed::RequestRecord;
use std::collections::BTreeMap;

/// A published table or figure, or a user's own question. Everything except [`Job::run`] is quick.
pub trait Experiment: Send + Sync {
    /// `paper.figure`, as the command line names it.
    fn id(&self) -> &str;
    /// The paper, as its text file is named.
    fn paper(&self) -> &str;
    /// What it shows, in a line.
    fn title(&self) -> &str;
    /// What the command line calls it.
    fn name(&self) -> &str {
        self.id()
    }
    /// The file that describes it, if it is a user's own.
    fn description(&self) -> Option<&str> {
        None
    }
    /// The assumptions that it depends on.
    fn assumptions(&self) -> Vec<&str>;
    /// The values of those assumptions, as the paper's file has them.
    fn parameters(&self) -> Parameters {
        crate::papers::parameters(self.paper())
    }
    /// What is to be run, each independent of the others.
    ///
    /// # Errors
    /// If the setup makes no sense, as a user's may.
    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError>;
    /// The table of one seed.
    fn rows(&self, runs: &Runs) -> Vec<Row>;
    /// What one seed's table says about the paper's claims, always the same claims in the same order.
    fn claims(&self, table: &Table) -> Vec<Claim>;
    /// Pictures of the table that all seeds make together.
    fn charts(&self, table: &Table, runs: &[Runs]) -> Vec<Chart>;
    /// What a reader must know to read the table.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// How long runs are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Scale {
    /// As the parameter file says.
    Full,
    /// A tenth of it: for a first look, and for sensitivities.
    Quick,
}

impl Scale {
    /// `count` at this scale.
    pub fn of(self, count: u64) -> u64 {
        match self {
            Scale::Full => count,
            Scale::Quick => (count / 10).max(1),
        }
    }
}

/// Something that can be run from a seed.
pub trait Job: Send + Sync {
    /// All that decides what comes out, apart from the seed and the program.
    fn describe(&self) -> serde_json::Value;
    /// Runs it. The same seed gives the same sample.
    ///
    /// # Errors
    /// What is wrong with the setup, for people.
    fn run(&self, seed: u64) -> Result<Sample, String>;
    /// The same with a record of each request, in the order of the answers.
    ///
    /// # Errors
    /// As [`Job::run`], and where a run is no series of requests.
    fn run_recorded(&self, _: u64) -> Result<(Sample, Vec<RequestRecord>), String> {
        Err("it has no requests one by one that could be recorded".to_owned())
    }
}

/// A run to be made, and what it is called in the table.
pub struct Point {
    /// Names and settings, the first columns of its row.
    pub labels: Row,
    pub job: Box<dyn Job>,
}

impl Point {
    /// A point with no labels yet.
    pub fn new(job: impl Job + 'static) -> Point {
        Point { labels: Row::new(), job: Box::new(job) }
    }

    /// With one more label.
    #[must_use]
    pub fn with(mut self, name: &str, cell: impl Into<Cell>) -> Point {
        self.labels = self.labels.with(name, cell);
        self
    }
}

/// What one run of one point measured.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Single figures by name; units stand last in the name.
    pub values: BTreeMap<String, f64>,
    /// Curves by name: x and y.
    pub series: BTreeMap<String, Vec<[f64; 2]>>,
    /// How long the simulated world ran.
    pub simulated_ns: u64,
    /// How many events it had.
    pub events: u64,
    /// What was odd about it, each in a sentence.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Sample {
    /// The figure of this name.
    ///
    /// # Panics
    /// If the job did not measure it: jobs and experiments are made together.
    pub fn value(&self, name: &str) -> f64 {
        *self
            .values
            .get(name)
            .unwrap_or_else(|| panic!("no figure is named {name}: {:?}", self.values.keys()))
    }
}

/// All runs of one seed, in the order of the points.
pub struct Runs {
    /// Each point's labels with what it measured.
    pub runs: Vec<(Row, Sample)>,
}

impl Runs {
    /// A row for each point: its labels, then these figures.
    pub fn rows(&self, figures: &[&str]) -> Vec<Row> {
        let row = |(labels, sample): &(Row, Sample)| {
            figures.iter().fold(labels.clone(), |row, name| row.with(*name, sample.value(name)))
        };
        self.runs.iter().map(row).collect()
    }
}

/// A finished table, to be asked by claims and charts.
pub struct Table<'a>(pub &'a [Row]);

impl Table<'_> {
    /// The figure in the first row in which these cells stand.
    ///
    /// # Panics
    /// If there is none: claims are made for the table beside them.
    pub fn number(&self, cells: &[(&str, Cell)], figure: &str) -> f64 {
        let found = self.select(cells).find_map(|row| row.get(figure)?.number());
        found.unwrap_or_else(|| panic!("the table has no {figure} where {cells:?}"))
    }

    /// All rows in which these cells stand.
    pub fn select<'b>(&'b self, cells: &'b [(&str, Cell)]) -> impl Iterator<Item = &'b Row> {
        self.0.iter().filter(move |row| cells.iter().all(|(name, cell)| row.says(name, cell)))
    }

    /// What stands under `name`, each once, in the order of the rows.
    pub fn distinct(&self, name: &str) -> Vec<Cell> {
        let mut found: Vec<Cell> = Vec::new();
        for cell in self.0.iter().filter_map(|row| row.get(name)) {
            if !found.contains(cell) {
                found.push(cell.clone());
            }
        }
        found
    }
}
