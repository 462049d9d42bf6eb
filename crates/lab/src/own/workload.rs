//! `[workload]` of a user's file: closed and open loops, traces, generated traces, threads that come and go, Postmark.

use super::Source;
use super::records::{Devices, Generated, Recorded, Timing};
use super::source::number;
use crate::error::LabError;
use crate::system::Load;
use base::{BLOCK_U64, SECTOR_BYTES};
use core::time::Duration;
use serde::Deserialize;
use sim::timed::{Arrivals, Asks, Locality, Mix, Postmark, Sizes, Threads};
use std::path::Path;
use std::sync::Arc;
use trace::Order;
use trace::WINDOW_RECORDS;

/// Which fields count depends on the kind.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Workload {
    /// closed, open, threads, postmark, trace or generate.
    kind: String,
    /// closed: requests in each replica group; trace without its times: so many times the number of groups, wherever they lie.
    outstanding: Option<u32>,
    /// open: requests to all groups together.
    per_second: Option<f64>,
    /// open: poisson unless it says something else.
    arrivals: Option<ArrivalsForm>,
    mix: Option<MixForm>,
    /// threads, postmark: how many there are in each replica group.
    threads: Option<ThreadsForm>,
    /// postmark: as DSFQ has it when absent.
    postmark: Option<PostmarkForm>,
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
    /// trace: requests a second, evenly, in place of its times.
    rate: Option<f64>,
    /// trace: which of its devices are taken; all when absent.
    devices: Option<Vec<u32>>,
    /// trace: from the beginning of one device to that of the next; a tebibyte when absent.
    device_bytes: Option<u64>,
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

/// How many threads there are: always as many, all or none in turn, or along a sine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadsForm {
    /// At the most.
    count: u32,
    /// constant unless it says on-off or sine.
    form: Option<String>,
    /// sine: at the least, 0 when absent.
    least: Option<u32>,
    /// on-off: all threads and none; sine: from one middle to the next but one.
    period_s: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PostmarkForm {
    files: u32,
    bytes_least: u32,
    bytes_most: u32,
    reads: f64,
    creates: f64,
    request_bytes_most: u32,
}

impl Default for PostmarkForm {
    fn default() -> PostmarkForm {
        let Postmark { files, bytes_least, bytes_most, reads, creates, request_bytes_most } = Postmark::DSFQ;
        PostmarkForm { files, bytes_least, bytes_most, reads, creates, request_bytes_most }
    }
}

/// What bounds a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Of each group's volume, at the least.
    pub(super) sectors: u64,
    /// How long the load lasts, where the file says so.
    pub(super) seconds: Option<f64>,
}

impl Default for MixForm {
    fn default() -> MixForm {
        MixForm { reads: 1.0, mean_bytes: 4096.0, bytes: None, hot_share: 0.0, hot_space: 1.0 }
    }
}

/// The requests that the file asks for; `folder` is where its files are looked for.
pub(super) fn load(source: &Source, folder: &Path, form: &Workload, room: Room) -> Result<Load, LabError> {
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
        "threads" => Load::Threads(threads(source, form, Asks::Mix(mix()?), room)?),
        "postmark" => {
            let postmark = postmark(source, &form.postmark.clone().unwrap_or_default(), room)?;
            Load::Threads(threads(source, form, Asks::Postmark(postmark), room)?)
        }
        "trace" => trace_load(source, form, Arc::new(recorded(source, folder, form)?))?,
        _ => {
            let name = wanted(source, form, "description", form.description.clone())?;
            let all = described(source, folder, &name)?;
            if let Some(requests) = form.requests {
                number(source, "workload.requests", requests as f64, [1.0, 1e12])?;
            }
            let description = form.requests.map_or(all.clone(), |requests| all.with_requests(requests));
            Load::Stream(Arc::new(Generated { description, speed_up: speed_up(source, form)? }))
        }
    })
}

/// A field that does not belong to the kind would be ignored: that is a mistake.
fn check_fields(source: &Source, form: &Workload) -> Result<(), LabError> {
    let fields: &[(&str, bool, &[&str])] = &[
        ("outstanding", form.outstanding.is_some(), &["closed", "trace"]),
        ("per_second", form.per_second.is_some(), &["open"]),
        ("arrivals", form.arrivals.is_some(), &["open"]),
        ("mix", form.mix.is_some(), &["closed", "open", "threads"]),
        ("threads", form.threads.is_some(), &["threads", "postmark"]),
        ("postmark", form.postmark.is_some(), &["postmark"]),
        ("file", form.file.is_some(), &["trace"]),
        ("format", form.format.is_some(), &["trace"]),
        ("time_unit", form.time_unit.is_some(), &["trace"]),
        ("order", form.order.is_some(), &["trace"]),
        ("beyond", form.beyond.is_some(), &["trace"]),
        ("rate", form.rate.is_some(), &["trace"]),
        ("devices", form.devices.is_some(), &["trace"]),
        ("device_bytes", form.device_bytes.is_some(), &["trace"]),
        ("description", form.description.is_some(), &["generate"]),
        ("requests", form.requests.is_some(), &["generate"]),
        ("speed_up", form.speed_up.is_some(), &["trace", "generate"]),
    ];
    let kind = form.kind.as_str();
    if !["closed", "open", "threads", "postmark", "trace", "generate"].contains(&kind) {
        let why = format!("'{kind}' is not closed, open, threads, postmark, trace or generate");
        return Err(source.wrong("workload.kind", why));
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

/// A trace by its own times, by a rate, or as a closed loop. A trace without times needs one of the latter two.
fn trace_load(source: &Source, form: &Workload, trace: Arc<Recorded>) -> Result<Load, LabError> {
    let beside = |field: &str, other: &str| {
        let why = format!("stands beside workload.{other}, which says when requests come: give one of them");
        Err(source.wrong(&format!("workload.{field}"), why))
    };
    match (form.outstanding, form.rate, form.speed_up) {
        (Some(_), Some(_), _) => beside("outstanding", "rate"),
        (Some(_), _, Some(_)) => beside("speed_up", "outstanding"),
        (_, Some(_), Some(_)) => beside("speed_up", "rate"),
        (Some(outstanding), None, None) => {
            number(source, "workload.outstanding", f64::from(outstanding), [1.0, 1e6])?;
            Ok(Load::Replayed { outstanding, stream: trace })
        }
        (None, None, _) if !trace.has_times().map_err(|why| source.wrong("workload.file", why))? => {
            let why = format!(
                "{} has no times: say with workload.rate how many requests come a second, or with workload.outstanding how \
                 many there are at a time",
                trace.path.display()
            );
            Err(source.wrong("workload.file", why))
        }
        (None, _, _) => Ok(Load::Stream(trace)),
    }
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
    let rate = form.rate.map(|rate| number(source, "workload.rate", rate, [1e-6, 1e9])).transpose()?;
    let timing = Timing { unit_ns, order, rate, speed_up: speed_up(source, form)? };
    if form.devices.as_ref().is_some_and(Vec::is_empty) {
        return Err(source.wrong("workload.devices", "names none: give the numbers of some, as in [0, 2]"));
    }
    if let Some(devices) = &form.devices
        && let Some((_, twice)) =
            devices.iter().enumerate().find(|(at, device)| devices[..*at].contains(device))
    {
        return Err(source.wrong("workload.devices", format!("names {twice} twice")));
    }
    let device_bytes = form.device_bytes.unwrap_or(1 << 40);
    if device_bytes < BLOCK_U64 || !device_bytes.is_multiple_of(BLOCK_U64) {
        return Err(source.wrong("workload.device_bytes", format!("give a multiple of {BLOCK_U64}")));
    }
    let devices = Devices { taken: form.devices.clone(), apart_sectors: device_bytes / SECTOR_BYTES };
    Ok(Recorded { path, format, timing, devices, may_wrap, stamp })
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

fn postmark(source: &Source, form: &PostmarkForm, room: Room) -> Result<Postmark, LabError> {
    let PostmarkForm { files, bytes_least, bytes_most, reads, creates, request_bytes_most } = *form;
    let postmark = Postmark { files, bytes_least, bytes_most, reads, creates, request_bytes_most };
    let wrong = |nonsense: sim::timed::Nonsense| {
        source.wrong(&format!("workload.postmark.{}", nonsense.field), nonsense.why)
    };
    postmark.check(room.sectors).map_err(wrong)?;
    Ok(postmark)
}

/// Threads that come and go do so until the load ends.
fn threads(source: &Source, form: &Workload, asks: Asks, room: Room) -> Result<Threads, LabError> {
    let said = wanted(source, form, "threads", form.threads.clone())?;
    let field = |name: &str| format!("workload.threads.{name}");
    number(source, &field("count"), f64::from(said.count), [1.0, 1e6])?;
    let kind = said.form.as_deref().unwrap_or("constant");
    let needs = |name: &str, is_said: bool, kinds: &[&str]| match is_said && !kinds.contains(&kind) {
        true => {
            let why = format!("belongs to form = \"{}\", and form is \"{kind}\"", kinds.join("\" or \""));
            Err(source.wrong(&field(name), why))
        }
        false => Ok(()),
    };
    needs("least", said.least.is_some(), &["sine"])?;
    needs("period_s", said.period_s.is_some(), &["on-off", "sine"])?;
    let changing = || {
        let missing = || source.wrong(&field("period_s"), format!("is missing: form \"{kind}\" needs it"));
        let period_s = number(source, &field("period_s"), said.period_s.ok_or_else(missing)?, [0.1, 1e6])?;
        let missing = || source.wrong("length.seconds", "is missing: threads that come and go need it");
        let end = Duration::from_secs_f64(room.seconds.ok_or_else(missing)?.min(1e9));
        Ok((Duration::from_secs_f64(period_s), end))
    };
    Ok(match kind {
        "constant" => Threads::constant(asks, said.count),
        "on-off" => {
            let (period, end) = changing()?;
            Threads::on_off(asks, said.count, period / 2, end)
        }
        "sine" => {
            let (period, end) = changing()?;
            let least = said.least.unwrap_or(0);
            number(source, &field("least"), f64::from(least), [0.0, f64::from(said.count)])?;
            Threads::sine(asks, [least, said.count], period, end)
        }
        other => {
            return Err(source.wrong(&field("form"), format!("'{other}' is not constant, on-off or sine")));
        }
    })
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
