//! Users' own experiments: a TOML file names workload, cluster and brick, and what to vary.
//!
//! Reading order: `form` (the fields of a file), `workload` (its first table), `build` (the system to run), this file (an experiment
//! like any other), `source` and `place` (where in the file a mistake is), `records` (traces from files).

mod build;
mod form;
mod place;
mod records;
mod source;
mod workload;

use crate::cell::{Cell, Row};
use crate::claim::Claim;
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart, Series, Spot};
use crate::system::{DISTRIBUTION, FIGURES, P99_OVER_TIME, RATE_OVER_TIME, System};
use form::Form;
use source::Source;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Reads the experiment in the file at `path`.
///
/// # Errors
/// If the file cannot be read or makes no sense: file, line and field are named.
pub fn read(path: &Path) -> Result<Box<dyn Experiment>, LabError> {
    let text = std::fs::read_to_string(path).map_err(LabError::reading(path))?;
    Ok(Box::new(parse(path, &text)?))
}

/// The systems that the file at `path` describes, each with the settings that are varied: what `--live` runs on real daemons.
///
/// # Errors
/// As [`read`].
pub fn systems(path: &Path, scale: Scale) -> Result<Vec<(Row, System)>, LabError> {
    let text = std::fs::read_to_string(path).map_err(LabError::reading(path))?;
    parse(path, &text)?.systems(scale)
}

fn parse(path: &Path, text: &str) -> Result<Own, LabError> {
    let file = path.display().to_string();
    let form = Form::parse(&file, text)?;
    let stem = path.file_stem().map_or("own".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let own = Own { id: stem, folder, source: Source { file, text: text.to_owned() }, form };
    own.check_figures()?;
    // Every combination is built once before any is run, so that a mistake in the last one costs no time.
    own.points(&own.parameters(), Scale::Full)?;
    Ok(own)
}

struct Own {
    id: String,
    /// Of the file: traces and disks are looked for from here.
    folder: PathBuf,
    source: Source,
    form: Form,
}

/// A value for each varied field, by its path.
type Combination = Vec<(String, toml::Value)>;

impl Own {
    fn check_figures(&self) -> Result<(), LabError> {
        let known: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        let unknown = self.form.show.figures.iter().find(|name| !known.contains(&name.as_str()));
        let refuse = |name: &String| {
            let why = format!("'{name}' is no figure; there are {}", known.join(", "));
            Err(self.source.wrong("show.figures", why))
        };
        unknown.map_or(Ok(()), refuse)
    }

    /// What is to be run, with its settings of what is varied.
    fn systems(&self, scale: Scale) -> Result<Vec<(Row, System)>, LabError> {
        let system = |combination: Combination| {
            let form = self.form.with(&self.source, &combination)?;
            let system = build::system(&self.source, &self.folder, &form, scale)?;
            let label = |row: Row, (field, value): &(String, toml::Value)| row.with(field, cell(value));
            Ok((combination.iter().fold(Row::new(), label), system))
        };
        self.combinations().into_iter().map(system).collect()
    }

    /// All combinations of what is varied, the last field fastest; a single empty one when nothing is.
    fn combinations(&self) -> Vec<Combination> {
        let mut all: Vec<Combination> = vec![Vec::new()];
        for (field, values) in &self.form.vary {
            let longer = |known: &Combination, value: &toml::Value| {
                let mut longer = known.clone();
                longer.push((field.clone(), value.clone()));
                longer
            };
            all = all.iter().flat_map(|known| values.iter().map(move |value| longer(known, value))).collect();
        }
        all
    }

    /// The field whose numbers are the horizontal axis: the last varied one that has only numbers.
    fn x(&self) -> Option<&str> {
        let is_numeric =
            |values: &Vec<toml::Value>| values.iter().all(|value| value.is_integer() || value.is_float());
        let found = self.form.vary.iter().rev().find(|(_, values)| is_numeric(values));
        found.map(|(field, _)| field.as_str())
    }
}

impl Experiment for Own {
    fn id(&self) -> &str {
        &self.id
    }

    fn paper(&self) -> &str {
        "own"
    }

    fn title(&self) -> &str {
        &self.form.title
    }

    fn name(&self) -> &str {
        &self.source.file
    }

    fn description(&self) -> Option<&str> {
        Some(&self.source.text)
    }

    fn assumptions(&self) -> Vec<&str> {
        Vec::new()
    }

    fn parameters(&self) -> Parameters {
        Parameters::none(&self.source.file)
    }

    fn points(&self, _: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let point = |(labels, system)| Point { labels, ..Point::new(system) };
        Ok(self.systems(scale)?.into_iter().map(point).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        let figures: Vec<&str> = self.form.show.figures.iter().map(String::as_str).collect();
        let rows = runs.rows(&figures);
        // Without a write there is none that could have taken long or short.
        let is_none = |row: &Row, figure: &str| row.get(figure).and_then(Cell::number) == Some(0.0);
        let of_writes =
            |figure: &&str| figure.starts_with("write_response") || figure.starts_with("read_response");
        let none: Vec<&str> = figures
            .into_iter()
            .filter(of_writes)
            .filter(|figure| rows.iter().all(|row| is_none(row, figure)))
            .collect();
        rows.into_iter()
            .map(|row| none.iter().fold(row, |row, figure| row.replaced(figure, "none")))
            .collect()
    }

    fn notes(&self) -> Vec<String> {
        let free = self.form.drive.is_none().then(|| {
            let processors = self.form.processors.is_none().then_some(
                "Processors take no time: [processors] gives them the costs that `brickwork lab calibrate` measures.",
            );
            let journals = (self.form.brick.journal_bytes > 0).then_some(
                "Journals take no time, as if they were in non-volatile memory: with brick.journal_bytes = 0 a disk has each \
                 write before it is acknowledged.",
            );
            [processors, journals]
        });
        free.into_iter().flatten().flatten().map(str::to_owned).collect()
    }

    fn claims(&self, _: &Table) -> Vec<Claim> {
        Vec::new()
    }

    fn charts(&self, table: &Table, runs: &[Runs]) -> Vec<Chart> {
        let charts = self.form.show.figures.iter().map(|figure| self.chart(table, figure));
        let of_first_seed = runs.first().map_or(&[][..], |runs| &runs.runs);
        let named = |(labels, sample): &(Row, Sample)| (series_name(labels), sample.series.clone());
        let seed = if runs.len() > 1 { ", first seed" } else { "" };
        let cdf = self.form.show.cdf.then(|| self.cdf(of_first_seed, seed));
        let over_time = self
            .form
            .show
            .window_s
            .map(|_| charts_over_time(&self.id, &of_first_seed.iter().map(named).collect::<Vec<_>>()));
        charts.chain(cdf).chain(over_time.into_iter().flatten()).collect()
    }
}

impl Own {
    /// How response times of each point are distributed.
    fn cdf(&self, runs: &[(Row, Sample)], of: &str) -> Chart {
        let one = |(labels, sample): &(Row, Sample)| {
            let spots = sample.series[DISTRIBUTION].iter().map(|[x, y]| Spot { x: *x, y: *y, ci95: None });
            Series { name: series_name(labels), spots: spots.collect() }
        };
        let (x, y) =
            (Axis::new("response time", "ms").logarithmic(), Axis::new("share of requests not longer", ""));
        let title = format!("{}: distribution of response times{of}", self.form.title);
        Chart::lines(&format!("{}.cdf", self.id), &title, x, y, runs.iter().map(one).collect())
    }

    fn chart(&self, table: &Table, figure: &str) -> Chart {
        let (name, title) =
            (format!("{}.{figure}", self.id), format!("{}: {}", self.form.title, meaning(figure)));
        let y = axis(figure);
        let x_field = self.x();
        let of_series = |row: &Row| {
            let others = self.form.vary.iter().filter(|(field, _)| Some(field.as_str()) != x_field);
            let texts: Vec<String> = others.filter_map(|(field, _)| row.get(field).map(Cell::text)).collect();
            if texts.is_empty() { short(figure).to_owned() } else { texts.join(", ") }
        };
        let mut series: Vec<Series> = Vec::new();
        for row in table.0 {
            let Some(Cell::Number(y, ci95)) = row.get(figure) else { continue };
            let x = x_field.and_then(|field| row.get(field)?.number()).unwrap_or(0.0);
            let (name, spot) = (of_series(row), Spot { x, y: *y, ci95: *ci95 });
            match series.iter_mut().find(|known| known.name == name) {
                Some(known) => known.spots.push(spot),
                None => series.push(Series { name, spots: vec![spot] }),
            }
        }
        series.iter_mut().for_each(|series| series.spots.sort_by(|one, other| one.x.total_cmp(&other.x)));
        match x_field {
            Some(field) => Chart::lines(&name, &title, axis_of_field(field), y, series),
            None => Chart::bars(&name, &title, y, vec![String::new()], series),
        }
    }
}

/// What is varied, as the name of a curve.
pub fn series_name(labels: &Row) -> String {
    let texts: Vec<String> = labels.cells().map(|(_, cell)| cell.text()).collect();
    if texts.is_empty() { "all".to_owned() } else { texts.join(", ") }
}

/// A chart of requests a second and one of the 99th percentile over time, with a curve for each of these runs.
pub fn charts_over_time(id: &str, runs: &[(String, Curves)]) -> Vec<Chart> {
    let chart = |(curve, what, unit): (&str, &str, &str)| {
        let series = |(name, curves): &(String, Curves)| {
            let spots = curves.get(curve).map_or(&[][..], Vec::as_slice);
            let spots = spots.iter().map(|[x, y]| Spot { x: *x, y: *y, ci95: None });
            Series { name: name.clone(), spots: spots.collect() }
        };
        let series = runs.iter().map(series).collect();
        let (x, y) = (Axis::new("time", "s"), Axis::new(what, unit));
        // Milliseconds while all is well, and seconds while a brick is missed.
        let y = if curve == P99_OVER_TIME { y.logarithmic() } else { y };
        Chart::lines(&format!("{id}.{curve}"), &format!("{id}: {what} over time"), x, y, series)
    };
    let all = [(RATE_OVER_TIME, "requests answered", "1/s"), (P99_OVER_TIME, "99th percentile", "ms")];
    all.into_iter().map(chart).collect()
}

/// Curves by their names.
pub type Curves = BTreeMap<String, Vec<[f64; 2]>>;

fn cell(value: &toml::Value) -> Cell {
    match value {
        toml::Value::Integer(number) => Cell::from(*number as f64),
        toml::Value::Float(number) => Cell::from(*number),
        toml::Value::String(text) => Cell::from(text.as_str()),
        other => Cell::from(other.to_string()),
    }
}

fn meaning(figure: &str) -> &'static str {
    FIGURES.iter().find(|(name, _)| *name == figure).map_or("", |(_, meaning)| meaning)
}

/// What a field that is varied means, and its unit.
fn axis_of_field(field: &str) -> Axis {
    let known = [
        ("workload.per_second", "requests", "1/s"),
        ("workload.rate", "requests", "1/s"),
        ("workload.outstanding", "requests outstanding for each group", ""),
        ("workload.speed_up", "speed of the trace, times its own", ""),
        ("workload.threads.count", "threads in each group", ""),
        ("workload.mix.reads", "share of reads", ""),
        ("cluster.replicas", "copies", ""),
        ("cluster.one_way_us", "one-way network latency", "µs"),
        ("cluster.megabytes_per_second", "network bandwidth of a node", "MB/s"),
        ("brick.cache_bytes", "cache of a brick", "bytes"),
        ("brick.journal_bytes", "journal of a brick", "bytes"),
        ("brick.depth", "accesses at a time of a disk", ""),
        ("drive.depth", "accesses at a time", ""),
    ];
    match known.iter().find(|(name, ..)| *name == field) {
        Some((_, label, unit)) => Axis::new(label, unit),
        // Fields end in their unit, and come without their table.
        None => axis(field.rsplit('.').find(|part| part.parse::<u32>().is_err()).unwrap_or(field)),
    }
}

/// The figure's name without its unit, and the unit.
fn axis(figure: &str) -> Axis {
    let units = [
        ("_iops", "IO/s"),
        ("_ms", "ms"),
        ("_s", "s"),
        ("_bytes", "bytes"),
        ("_percent", "%"),
        ("_per_second", "requests/s"),
    ];
    let found = units.iter().find(|(ending, _)| figure.ends_with(ending));
    Axis::new(
        &short(figure).replace('_', " ").replace("response", "response time"),
        found.map_or("", |(_, unit)| unit),
    )
}

fn short(figure: &str) -> &str {
    ["_iops", "_ms", "_s", "_bytes", "_percent"]
        .iter()
        .find_map(|ending| figure.strip_suffix(ending))
        .unwrap_or(figure)
}

#[cfg(test)]
mod tests;
