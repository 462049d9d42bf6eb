//! What a user's file says. Every field but the title and the workload's kind has a default.

use super::workload::Workload;
use super::{Combination, Source};
use crate::error::LabError;
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    pub(super) title: String,
    pub(super) workload: Workload,
    /// One drive with its scheduler, in place of a cluster of bricks.
    pub(super) drive: Option<Drive>,
    #[serde(default)]
    pub(super) cluster: Cluster,
    #[serde(default)]
    pub(super) brick: Brick,
    #[serde(default)]
    pub(super) other: Vec<Other>,
    #[serde(default)]
    pub(super) slow: Vec<Slow>,
    #[serde(default)]
    pub(super) incident: Vec<Incident>,
    pub(super) processors: Option<Processors>,
    #[serde(default)]
    pub(super) length: Length,
    #[serde(default)]
    pub(super) show: Show,
    /// Fields by their paths, each with a list of values.
    #[serde(default, rename = "vary")]
    said: Option<toml::Value>,
    /// The same in the order of the file.
    #[serde(skip)]
    pub(super) vary: Vec<(String, Vec<toml::Value>)>,
    /// The file without what is varied.
    #[serde(skip)]
    base: toml::Table,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Cluster {
    pub(super) bricks: u32,
    pub(super) replicas: u32,
    pub(super) placement: String,
    /// As many copies as there are replicas, when absent.
    pub(super) layout: Option<String>,
    pub(super) gateways: u32,
    pub(super) policy: String,
    pub(super) weights: Vec<f64>,
    pub(super) write_release: String,
    pub(super) one_way_us: f64,
    pub(super) megabytes_per_second: Option<f64>,
    /// Whether what is sent to one node waits at the switch's port to it.
    pub(super) ports: bool,
    pub(super) memory_megabytes_per_second: Option<f64>,
    pub(super) io_megabytes_per_second: Option<f64>,
    pub(super) xor_megabytes_per_second: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Brick {
    pub(super) disk: String,
    pub(super) parts: String,
    /// fcfs for a device that does not turn, and sptf for a disk, when absent.
    pub(super) scheduler: Option<String>,
    pub(super) depth: u32,
    pub(super) cache_bytes: u64,
    pub(super) journal_bytes: u64,
    /// Spread over the disk; as many as it has when absent.
    pub(super) data_bytes: Option<u64>,
}

/// A drive alone: requests come to its scheduler at once, and are answered when it has served them.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Drive {
    pub(super) model: String,
    pub(super) parts: String,
    /// fcfs for a device that does not turn, and sptf for a disk, when absent.
    pub(super) scheduler: Option<String>,
    pub(super) depth: u32,
}

/// A brick with another disk than the others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Other {
    pub(super) brick: u32,
    pub(super) disk: String,
}

/// A brick whose disk is slow for a time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slow {
    pub(super) brick: u32,
    pub(super) percent: u32,
    #[serde(default)]
    pub(super) from_s: f64,
    pub(super) until_s: Option<f64>,
}

/// What happens to a brick's process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Incident {
    pub(super) brick: u32,
    #[serde(default)]
    pub(super) at_s: f64,
    /// killed, started, stopped or continued.
    pub(super) what: String,
}

/// Processors that take time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Processors {
    /// A file of `brickwork lab calibrate`.
    pub(super) costs: String,
    /// Of each machine; as many as the file says when absent.
    pub(super) count: Option<u32>,
    /// Whether everything runs on one machine, as with --live, or each daemon on a machine of its own.
    #[serde(default = "yes")]
    pub(super) shared: bool,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Length {
    pub(super) warm_up: u64,
    pub(super) requests: Option<u64>,
    /// When the load ends, in place of a number of requests.
    pub(super) seconds: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Show {
    pub(super) figures: Vec<String>,
    /// Also what clients see from one interval of so many seconds to the next.
    pub(super) window_s: Option<f64>,
    /// Also how response times are distributed.
    pub(super) cdf: bool,
}

impl Default for Cluster {
    fn default() -> Cluster {
        Cluster {
            bricks: 3,
            replicas: 3,
            placement: "disjoint".to_owned(),
            layout: None,
            gateways: 1,
            policy: "claim".to_owned(),
            weights: Vec::new(),
            write_release: "nvram".to_owned(),
            one_way_us: 50.0,
            megabytes_per_second: None,
            ports: false,
            memory_megabytes_per_second: None,
            io_megabytes_per_second: None,
            xor_megabytes_per_second: None,
        }
    }
}

impl Default for Brick {
    fn default() -> Brick {
        Brick {
            disk: "quantum-atlas-10k".to_owned(),
            parts: "uncached".to_owned(),
            scheduler: None,
            depth: 1,
            cache_bytes: 0,
            journal_bytes: 64 << 20,
            data_bytes: None,
        }
    }
}

impl Default for Drive {
    fn default() -> Drive {
        let Brick { disk: model, depth, .. } = Brick::default();
        Drive { model, parts: "full".to_owned(), scheduler: None, depth }
    }
}

impl Default for Length {
    fn default() -> Length {
        Length { warm_up: 1000, requests: None, seconds: None }
    }
}

impl Default for Show {
    fn default() -> Show {
        let figures = ["throughput_iops", "response_ms", "response_p99_ms"];
        Show { figures: figures.map(str::to_owned).into(), window_s: None, cdf: false }
    }
}

impl Form {
    /// Reads a file's text.
    pub(super) fn parse(file: &str, text: &str) -> Result<Form, LabError> {
        let source = Source { file: file.to_owned(), text: text.to_owned() };
        let form: Form = toml::from_str(text).map_err(|error| syntax(&source, &error))?;
        let mut base: toml::Table = toml::from_str(text).map_err(|error| syntax(&source, &error))?;
        base.remove("vary");
        let vary = varied(&source, form.said.clone())?;
        Ok(Form { vary, base, ..form })
    }

    /// The same with the fields of `combination` set.
    pub(super) fn with(&self, source: &Source, combination: &Combination) -> Result<Form, LabError> {
        let mut table = self.base.clone();
        for (field, value) in combination {
            set(&mut table, field, value.clone())
                .map_err(|why| source.wrong(&format!("vary.{field}"), why))?;
        }
        if table.contains_key("drive")
            && let Some(other) = OF_CLUSTERS.into_iter().find(|other| table.contains_key(*other))
        {
            let why = format!("stands beside [{other}]: a drive alone has no bricks; give one of the two");
            return Err(source.wrong("drive", why));
        }
        let form: Result<Form, _> = table.try_into();
        form.map(Form::with_drive).map_err(|error| {
            let said: Vec<String> =
                combination.iter().map(|(field, value)| format!("{field} = {value}")).collect();
            let field = combination.last().map_or("vary", |(field, _)| field.as_str());
            source.wrong(field, format!("with {}: {}", said.join(", "), error.message()))
        })
    }
}

/// Tables that a drive alone has no use for.
const OF_CLUSTERS: [&str; 5] = ["cluster", "brick", "other", "incident", "processors"];

impl Form {
    /// A drive alone is a cluster of one brick that nothing lies before: no network, no journal, no cache but the drive's own.
    fn with_drive(self) -> Form {
        let Some(Drive { model, parts, scheduler, depth }) = self.drive.clone() else { return self };
        let brick = Brick {
            disk: model,
            parts,
            scheduler,
            depth,
            cache_bytes: 0,
            journal_bytes: 0,
            data_bytes: None,
        };
        let cluster = Cluster {
            bricks: 1,
            replicas: 1,
            policy: "central".to_owned(),
            one_way_us: 0.0,
            ..Cluster::default()
        };
        Form { cluster, brick, ..self }
    }
}

fn syntax(source: &Source, error: &toml::de::Error) -> LabError {
    let line =
        error.span().map(|span| source.text[..span.start.min(source.text.len())].matches('\n').count() + 1);
    LabError::Experiment { file: source.file.clone(), line, why: error.message().to_owned() }
}

/// `[vary]`: paths with lists of values.
fn varied(source: &Source, vary: Option<toml::Value>) -> Result<Vec<(String, Vec<toml::Value>)>, LabError> {
    let Some(vary) = vary else { return Ok(Vec::new()) };
    let toml::Value::Table(table) = vary else {
        return Err(source.wrong("vary", "give a table of fields with lists of values"));
    };
    let one = |(field, value): (String, toml::Value)| match value {
        toml::Value::Array(values) if !values.is_empty() => Ok((field, values)),
        _ => Err(source.wrong(&field, "give a list of values, as in [1, 2, 4]")),
    };
    let mut all: Vec<_> = table.into_iter().map(one).collect::<Result<_, _>>()?;
    // As they stand in the file: the table has them by name.
    all.sort_by_key(|(field, _)| super::place::line_of(&source.text, &format!("vary.{field}")));
    Ok(all)
}

/// Puts `value` where `path` leads; tables on the way are made.
fn set(table: &mut toml::Table, path: &str, value: toml::Value) -> Result<(), String> {
    let Some((first, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return Ok(());
    };
    let inner = table.entry(first).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    match inner {
        toml::Value::Table(inner) => set(inner, rest, value),
        toml::Value::Array(items) => {
            let (index, rest) =
                rest.split_once('.').ok_or(format!("{first} is a list: write {first}.0.{rest}"))?;
            let count = items.len();
            let item = index.parse().ok().and_then(|index: usize| items.get_mut(index)?.as_table_mut());
            set(item.ok_or(format!("{first} has {count} entries, and none is {index}"))?, rest, value)
        }
        _ => Err(format!("{first} has no fields")),
    }
}
