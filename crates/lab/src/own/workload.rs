//! `[workload]` of a user's file: closed and open loops, traces, generated traces.

use super::Source;
use super::records::{Generated, Recorded};
use super::source::number;
use crate::error::LabError;
use crate::system::Load;
use base::BLOCK_U64;
use serde::Deserialize;
use sim::timed::{Arrivals, Locality, Mix, Sizes};
use std::path::Path;
use std::sync::Arc;
use trace::Order;
use trace::WINDOW_RECORDS;

/// Which fields count depends on the kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Workload {
    /// closed, open, trace or generate.
    kind: String,
    /// closed: requests in each replica group.
    outstanding: Option<u32>,
    /// open: requests to all groups together.
    per_second: Option<f64>,
    /// open: poisson unless it says something else.
    arrivals: Option<ArrivalsForm>,
    mix: Option<MixForm>,
    file: Option<String>,
    /// trace: told by its beginning when absent.
    format: Option<String>,
    /// trace: s, ms, us or ns; the format's own when absent.
    time_unit: Option<String>,
    /// trace: what becomes of times that go backwards, sort, clamp or refuse; as suits the format when absent.
    order: Option<String>,
    /// trace: what becomes of addresses beyond the cluster's end, wrap or refuse.
    beyond: Option<String>,
    /// generate: one of the generator's descriptions, or a file.
    description: Option<String>,
    /// generate: as many as described when absent.
    requests: Option<u64>,
    speed_up: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct MixForm {
    reads: f64,
    mean_bytes: f64,
    bytes: Option<u64>,
    hot_share: f64,
    hot_space: f64,
}

/// How open requests follow one another: poisson, regular or bursts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArrivalsForm {
    kind: String,
    factor: Option<f64>,
    period_ms: Option<f64>,
}

impl Default for MixForm {
    fn default() -> MixForm {
        MixForm { reads: 1.0, mean_bytes: 4096.0, bytes: None, hot_share: 0.0, hot_space: 1.0 }
    }
}

/// The requests that the file asks for; `folder` is where its files are looked for.
pub(super) fn load(source: &Source, folder: &Path, form: &Workload) -> Result<Load, LabError> {
    check_fields(source, form)?;
    let mix = || mixed(source, &form.mix.clone().unwrap_or_default());
    Ok(match form.kind.as_str() {
        "closed" => {
            let outstanding = wanted(source, form, "outstanding", form.outstanding)?;
            number(source, "workload.outstanding", f64::from(outstanding), [1.0, 1e6])?;
            Load::Closed { outstanding, mix: mix()? }
        }
        "open" => {
            let per_second = wanted(source, form, "per_second", form.per_second)?;
            Load::Open {
                per_second: number(source, "workload.per_second", per_second, [1e-6, 1e9])?,
                arrivals: form
                    .arrivals
                    .as_ref()
                    .map_or(Ok(Arrivals::Poisson), |said| arriving(source, said))?,
                mix: mix()?,
            }
        }
        "trace" => Load::Stream(Arc::new(recorded(source, folder, form)?)),
        _ => {
            let name = wanted(source, form, "description", form.description.clone())?;
            let all = described(source, folder, &name)?;
            let description = form.requests.map_or(all.clone(), |requests| all.with_requests(requests));
            Load::Stream(Arc::new(Generated { description, speed_up: speed_up(source, form)? }))
        }
    })
}

/// A field that does not belong to the kind would be ignored: that is a mistake.
fn check_fields(source: &Source, form: &Workload) -> Result<(), LabError> {
    let fields: &[(&str, bool, &[&str])] = &[
        ("outstanding", form.outstanding.is_some(), &["closed"]),
        ("per_second", form.per_second.is_some(), &["open"]),
        ("arrivals", form.arrivals.is_some(), &["open"]),
        ("mix", form.mix.is_some(), &["closed", "open"]),
        ("file", form.file.is_some(), &["trace"]),
        ("format", form.format.is_some(), &["trace"]),
        ("time_unit", form.time_unit.is_some(), &["trace"]),
        ("order", form.order.is_some(), &["trace"]),
        ("beyond", form.beyond.is_some(), &["trace"]),
        ("description", form.description.is_some(), &["generate"]),
        ("requests", form.requests.is_some(), &["generate"]),
        ("speed_up", form.speed_up.is_some(), &["trace", "generate"]),
    ];
    let kind = form.kind.as_str();
    if !["closed", "open", "trace", "generate"].contains(&kind) {
        return Err(source.wrong("workload.kind", format!("'{kind}' is not closed, open, trace or generate")));
    }
    match fields.iter().find(|(_, is_said, kinds)| *is_said && !kinds.contains(&kind)) {
        Some((name, _, kinds)) => {
            let why = format!("belongs to kind = \"{}\", and kind is \"{kind}\"", kinds.join("\" or \""));
            Err(source.wrong(&format!("workload.{name}"), why))
        }
        None => Ok(()),
    }
}

/// A field that the kind cannot do without.
fn wanted<T>(source: &Source, form: &Workload, name: &str, value: Option<T>) -> Result<T, LabError> {
    let why = || format!("is missing: kind \"{}\" needs it", form.kind);
    value.ok_or_else(|| source.wrong(&format!("workload.{name}"), why()))
}

fn speed_up(source: &Source, form: &Workload) -> Result<f64, LabError> {
    number(source, "workload.speed_up", form.speed_up.unwrap_or(1.0), [1e-6, 1e6])
}

fn recorded(source: &Source, folder: &Path, form: &Workload) -> Result<Recorded, LabError> {
    let find = |name: &str| {
        let known: Vec<&str> = trace::Format::all().map(|format| format.name()).collect();
        let why = || format!("'{name}' is no format; there are {}", known.join(", "));
        trace::Format::find(name).ok_or_else(|| source.wrong("workload.format", why()))
    };
    let path = folder.join(wanted(source, form, "file", form.file.clone())?);
    let about = std::fs::metadata(&path)
        .map_err(|error| source.wrong("workload.file", format!("cannot read {}: {error}", path.display())))?;
    let stamp = format!("{} {:?}", about.len(), about.modified().ok());
    let format = form.format.as_deref().map(find).transpose()?;
    let unit_ns = form.time_unit.as_deref().map(|name| unit_ns(source, name)).transpose()?;
    let order = form.order.as_deref().map(|name| order(source, name)).transpose()?;
    let may_wrap = match form.beyond.as_deref() {
        None | Some("wrap") => true,
        Some("refuse") => false,
        Some(other) => {
            return Err(source.wrong("workload.beyond", format!("'{other}' is not wrap or refuse")));
        }
    };
    Ok(Recorded { path, format, unit_ns, order, speed_up: speed_up(source, form)?, may_wrap, stamp })
}

fn order(source: &Source, name: &str) -> Result<Order, LabError> {
    Ok(match name {
        "sort" => Order::Sort { window: WINDOW_RECORDS },
        "clamp" => Order::Clamp,
        "refuse" => Order::Refuse,
        other => {
            return Err(source.wrong("workload.order", format!("'{other}' is not sort, clamp or refuse")));
        }
    })
}

fn unit_ns(source: &Source, name: &str) -> Result<u64, LabError> {
    Ok(match name {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1_000,
        "ns" => 1,
        other => return Err(source.wrong("workload.time_unit", format!("'{other}' is not s, ms, us or ns"))),
    })
}

fn described(source: &Source, folder: &Path, name: &str) -> Result<trace::Description, LabError> {
    let refuse = |why: String| source.wrong("workload.description", why);
    if let Some(description) = trace::Description::find(name) {
        return Ok(description);
    }
    if !name.ends_with(".toml") {
        let known: Vec<&str> = trace::generate::description::LIBRARY.iter().map(|(name, _)| *name).collect();
        return Err(refuse(format!("'{name}' is not one of {}, nor a file (.toml)", known.join(", "))));
    }
    let text = std::fs::read_to_string(folder.join(name))
        .map_err(|error| refuse(format!("cannot read {name}: {error}")))?;
    trace::Description::parse(name, &text).map_err(|error| refuse(error.to_string()))
}

fn mixed(source: &Source, form: &MixForm) -> Result<Mix, LabError> {
    let share = |field: &str, value: f64| number(source, &format!("workload.mix.{field}"), value, [0.0, 1.0]);
    let sizes = match form.bytes {
        // Whole blocks lie as blocks do.
        Some(bytes) if bytes > 0 && bytes % BLOCK_U64 == 0 && bytes < 1 << 30 => {
            Sizes::Blocks((bytes / BLOCK_U64) as u32)
        }
        Some(bytes) => {
            Sizes::Fixed((number(source, "workload.mix.bytes", bytes as f64, [512.0, 1e9])? / 512.0) as u32)
        }
        None => Sizes::Exponential(number(source, "workload.mix.mean_bytes", form.mean_bytes, [1.0, 1e9])?),
    };
    let hot = Locality::Hot {
        share: share("hot_share", form.hot_share)?,
        space: share("hot_space", form.hot_space)?,
    };
    let locality = if form.hot_share == 0.0 { Locality::Uniform } else { hot };
    Ok(Mix { reads: share("reads", form.reads)?, sizes, locality })
}

fn arriving(source: &Source, form: &ArrivalsForm) -> Result<Arrivals, LabError> {
    Ok(match form.kind.as_str() {
        "poisson" => Arrivals::Poisson,
        "regular" => Arrivals::Regular,
        "bursts" => Arrivals::Bursts {
            factor: number(source, "workload.arrivals.factor", form.factor.unwrap_or(4.0), [1.0, 1e6])?,
            period_ns: {
                let period_ms = form.period_ms.unwrap_or(1000.0);
                (number(source, "workload.arrivals.period_ms", period_ms, [1e-3, 1e9])? * 1e6) as u64
            },
        },
        other => {
            return Err(source
                .wrong("workload.arrivals.kind", format!("'{other}' is not poisson, regular or bursts")));
        }
    })
}
