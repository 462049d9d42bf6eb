//! From what a user's file says to what the simulator runs. Every mistake names its field.

use super::Source;
use super::form::{self, Form};
use super::source::number;
use super::workload::{Room, load};
use crate::error::LabError;
use crate::experiment::Scale;
use crate::system::{DRIVES_BETWEEN, Load, System};
use base::BLOCK_U64;
use base::Time;
use core::time::Duration;
use model::drive::{DriveModel, DriveOptions};
use model::host::Machine;
use rules::heads::Policy;
use rules::layout::Layout;
use sim::timed::{
    BrickSpec, Buses, Cluster, Conditions, Groups, Hosts, Incident, Length, Network, Scheme, Victim,
    WriteRelease,
};
use std::path::Path;
use std::sync::Arc;

const POLICIES: &str = "claim, central, hash, weighted-hash, lard, shortest-queue, hedged, tied, probing, random, two-choices, \
     quickest, usual, online, max-flow-conservative, max-flow-adaptive";

/// Requests measured when the file names no number; a trace is run to its end.
const REQUESTS: u64 = 40_000;

/// What `form` asks for. `folder` is where its files are looked for.
pub(super) fn system(source: &Source, folder: &Path, form: &Form, scale: Scale) -> Result<System, LabError> {
    let names = names(form);
    let (usual, name) = drive((source, names.disk), folder, &form.brick.disk)?;
    let mut cluster = cluster(source, form, brick((source, &names), &form.brick, usual)?)?;
    let drives = others(source, folder, form, &mut cluster, name)?;
    cluster.hosts = form.processors.as_ref().map(|said| hosts(source, folder, said)).transpose()?;
    cluster.validate().map_err(|error| source.wrong("cluster", error))?;
    let layout = conditions(source, form)?.layout;
    if let Some(layout) = layout.filter(|layout| u32::from(layout.width()) != form.cluster.replicas) {
        let (width, replicas) = (layout.width(), form.cluster.replicas);
        let why = format!(
            "{layout} needs groups of {width} bricks, and there are {replicas} in each: say replicas = {width}"
        );
        return Err(source.wrong("cluster.replicas", why));
    }
    let least = cluster.bricks.iter().map(BrickSpec::data_sectors).min().unwrap_or(0);
    let room = Room {
        sectors: least * layout.map_or(1, |layout| u64::from(layout.data())),
        seconds: form.length.seconds,
    };
    let load = load(source, folder, &form.workload, room)?;
    let groups = cluster.groups.0.len() as u64;
    if form.drive.is_some() {
        check_alone(source, form, &load)?;
    }
    let is_cut = layout.is_some_and(|layout| layout.data() > 1);
    if is_cut && form.show.figures.iter().any(|figure| figure == "disk_read_response_ms") {
        let why =
            "disk_read_response_ms is not known where a read is several accesses: layouts of copies have it";
        return Err(source.wrong("show.figures", why));
    }
    if form.length.seconds.is_some() && form.length.requests.is_some() {
        return Err(source.wrong("length.seconds", "stands beside length.requests: give one of them"));
    }
    let length = length(form, &load, scale, groups);
    let conditions = conditions(source, form)?;
    Ok(System { cluster, load, length, drives, conditions })
}

/// A drive alone runs until its requests are answered, and nobody looks at it meanwhile.
fn check_alone(source: &Source, form: &Form, load: &Load) -> Result<(), LabError> {
    if form.length.seconds.is_some() {
        return Err(source.wrong("length.seconds", "is for clusters: a drive alone takes length.requests"));
    }
    if form.show.window_s.is_some() {
        return Err(source.wrong(
            "show.window_s",
            "is for clusters: a drive alone has no intervals; --requests-out has each request",
        ));
    }
    if matches!(load, Load::Threads(_)) {
        return Err(source.wrong(
            "workload.kind",
            "threads ask clusters: a drive alone takes closed, open, trace or generate",
        ));
    }
    Ok(())
}

/// Gives those bricks other disks that are to have them: the names of all disks, one where they are alike.
fn others(
    source: &Source,
    folder: &Path,
    form: &Form,
    cluster: &mut Cluster,
    usual: String,
) -> Result<String, LabError> {
    if form.other.is_empty() {
        return Ok(usual);
    }
    let mut drives = vec![usual; cluster.bricks.len()];
    for (at, other) in form.other.iter().enumerate() {
        let Some(spec) = cluster.bricks.get_mut(other.brick as usize) else {
            let why = format!("there is no brick {}; the first is 0", other.brick);
            return Err(source.wrong(&format!("other.{at}.brick"), why));
        };
        let (drive, name) = drive((source, &format!("other.{at}.disk")), folder, &other.disk)?;
        let speed = core::mem::take(&mut spec.speed);
        *spec = BrickSpec { speed, ..brick((source, &names(form)), &form.brick, drive)? };
        drives[other.brick as usize] = name;
    }
    Ok(drives.join(DRIVES_BETWEEN))
}

/// The processors of a file of costs.
fn hosts(source: &Source, folder: &Path, said: &form::Processors) -> Result<Hosts, LabError> {
    let refuse = |why: String| source.wrong("processors.costs", why);
    let text = std::fs::read_to_string(folder.join(&said.costs)).map_err(|error| {
        refuse(format!("cannot read {}: {error}; `brickwork lab calibrate` makes such a file", said.costs))
    })?;
    let machine = Machine::parse(&text).map_err(|error| refuse(format!("{}: {error}", said.costs)))?;
    let processors = said.count.unwrap_or(machine.processors);
    Ok(Hosts { costs: machine.costs, processors, is_shared: said.shared })
}

/// The layout, and what happens to bricks.
fn conditions(source: &Source, form: &Form) -> Result<Conditions, LabError> {
    let layout = form
        .cluster
        .layout
        .as_deref()
        .map(|name| name.parse::<Layout>().map_err(|error| source.wrong("cluster.layout", error)));
    let incident = |(at, said): (usize, &form::Incident)| {
        let what = match said.what.as_str() {
            "killed" => Incident::Killed,
            "started" => Incident::Started,
            "stopped" => Incident::Stopped,
            "continued" => Incident::Continued,
            other => {
                let why = format!("'{other}' is not killed, started, stopped or continued");
                return Err(source.wrong(&format!("incident.{at}.what"), why));
            }
        };
        let at_s = number(source, &format!("incident.{at}.at_s"), said.at_s, [0.0, 1e9])?;
        if said.brick >= form.cluster.bricks {
            let why = format!("there is no brick {}; the first is 0", said.brick);
            return Err(source.wrong(&format!("incident.{at}.brick"), why));
        }
        Ok((Duration::from_secs_f64(at_s), Victim::Brick(said.brick, what)))
    };
    let seconds = |field: &str, value: Option<f64>, least: f64| {
        let checked = value.map(|seconds| number(source, field, seconds, [least, 1e9]));
        checked.transpose().map(|seconds| seconds.map(Duration::from_secs_f64))
    };
    Ok(Conditions {
        layout: layout.transpose()?,
        incidents: form.incident.iter().enumerate().map(incident).collect::<Result<_, _>>()?,
        window: seconds("show.window_s", form.show.window_s, 1e-3)?.unwrap_or_default(),
        end: seconds("length.seconds", form.length.seconds, 1e-3)?,
        ..Conditions::default()
    })
}

/// The model of a drive of the repository, or of a file.
fn drive(
    (source, field): (&Source, &str),
    folder: &Path,
    name: &str,
) -> Result<(Arc<DriveModel>, String), LabError> {
    let refuse = |why: String| source.wrong(field, why);
    let text = match model::drive::find(name) {
        Some(entry) => entry.text.to_owned(),
        None if name.ends_with(".toml") => std::fs::read_to_string(folder.join(name))
            .map_err(|error| refuse(format!("cannot read {name}: {error}")))?,
        None => {
            let known: Vec<&str> = model::drive::library().iter().map(|entry| entry.id).collect();
            return Err(refuse(format!(
                "no drive is named '{name}'; there are {}, or a file (.toml)",
                known.join(", ")
            )));
        }
    };
    let model = DriveModel::parse(name, &text).map_err(|error| refuse(error.to_string()))?;
    Ok((Arc::new(model), format!("{name} {:08x}", crc32c::crc32c(text.as_bytes()))))
}

/// What the fields of the disk are called in the file.
struct Names {
    disk: &'static str,
    parts: &'static str,
    scheduler: &'static str,
    depth: &'static str,
}

fn names(form: &Form) -> Names {
    match form.drive {
        None => Names {
            disk: "brick.disk",
            parts: "brick.parts",
            scheduler: "brick.scheduler",
            depth: "brick.depth",
        },
        Some(_) => Names {
            disk: "drive.model",
            parts: "drive.parts",
            scheduler: "drive.scheduler",
            depth: "drive.depth",
        },
    }
}

fn brick(
    (source, names): (&Source, &Names),
    form: &form::Brick,
    drive: Arc<DriveModel>,
) -> Result<BrickSpec, LabError> {
    let options = match form.parts.as_str() {
        "full" => DriveOptions::FULL,
        "uncached" => DriveOptions::UNCACHED,
        "mechanics" => DriveOptions::MECHANICS,
        other => {
            return Err(source.wrong(names.parts, format!("'{other}' is not full, uncached or mechanics")));
        }
    };
    let turns = drive.revolution_ns().is_some();
    let policy = match form.scheduler.as_deref() {
        None if turns => Policy::Sptf,
        None | Some("fcfs") => Policy::Fcfs,
        Some("sstf") => Policy::Sstf,
        Some("clook") => Policy::Clook,
        Some("sptf") => Policy::Sptf,
        Some(other) => {
            return Err(source.wrong(names.scheduler, format!("'{other}' is not fcfs, sstf, clook or sptf")));
        }
    };
    let depth_max = if turns { 1 } else { 4096 };
    if !(1..=depth_max).contains(&form.depth) {
        let why = if turns { "a disk that turns takes 1 access at a time" } else { "give 1 to 4096" };
        return Err(source.wrong(names.depth, why));
    }
    let (depth, cache_bytes) = (form.depth, form.cache_bytes);
    let usual = BrickSpec::new(Arc::clone(&drive));
    // Without a journal the disk has what is written before it is acknowledged. What was there is remembered beside it, in memory as large as usual.
    let writes_through = form.journal_bytes == 0;
    let journal_bytes = if writes_through { usual.journal_bytes } else { form.journal_bytes };
    let data_bytes = form.data_bytes;
    if data_bytes.is_some_and(|bytes| bytes < BLOCK_U64 || bytes % BLOCK_U64 != 0) {
        return Err(source.wrong("brick.data_bytes", format!("give a multiple of {BLOCK_U64}")));
    }
    Ok(BrickSpec { options, policy, depth, cache_bytes, journal_bytes, writes_through, data_bytes, ..usual })
}

fn cluster(source: &Source, form: &Form, brick: BrickSpec) -> Result<Cluster, LabError> {
    let said = &form.cluster;
    let bricks = (1..=4096).contains(&said.bricks).then_some(said.bricks);
    let bricks = bricks.ok_or_else(|| source.wrong("cluster.bricks", "give 1 to 4096"))?;
    let replicas_max = bricks.min(64);
    if !(1..=replicas_max).contains(&said.replicas) {
        return Err(
            source.wrong("cluster.replicas", format!("give 1 to {replicas_max}, for {bricks} bricks"))
        );
    }
    let scheme = scheme(source, said)?;
    let groups = match said.placement.as_str() {
        "disjoint" => Groups::disjoint(bricks, said.replicas),
        other => {
            return Err(source.wrong(
                "cluster.placement",
                format!("'{other}' is not disjoint: whole machines place each group on bricks of its own"),
            ));
        }
    };
    let write_release = match said.write_release.as_str() {
        "nvram" => WriteRelease::Nvram,
        "half" => WriteRelease::Half,
        "all" => WriteRelease::All,
        other => {
            return Err(source.wrong("cluster.write_release", format!("'{other}' is not nvram, half or all")));
        }
    };
    let rate = |field: &str, said: Option<f64>| {
        let checked = said.map(|megabytes| number(source, field, megabytes, [1e-3, 1e6]));
        checked.transpose().map(|megabytes| megabytes.map(|number| (number * 1e6) as u64))
    };
    let one_way_ns = (number(source, "cluster.one_way_us", said.one_way_us, [0.0, 1e7])? * 1e3) as u64;
    let network = Network {
        one_way_ns,
        client_one_way_ns: one_way_ns,
        bytes_per_second: rate("cluster.megabytes_per_second", said.megabytes_per_second)?,
        has_ports: said.ports,
        ..Network::default()
    };
    if said.ports && network.bytes_per_second.is_none() {
        return Err(
            source.wrong("cluster.ports", "needs megabytes_per_second: a port is as fast as a node can send")
        );
    }
    let buses = Buses {
        memory: rate("cluster.memory_megabytes_per_second", said.memory_megabytes_per_second)?,
        io: rate("cluster.io_megabytes_per_second", said.io_megabytes_per_second)?,
        xor: rate("cluster.xor_megabytes_per_second", said.xor_megabytes_per_second)?,
        xor_in_memory: false,
    };
    let mut cluster = Cluster {
        groups,
        network,
        buses,
        write_release,
        gateways: said.gateways,
        ..Cluster::uniform(brick, bricks, said.replicas, scheme)
    };
    for (at, slow) in form.slow.iter().enumerate() {
        let spec = cluster.bricks.get_mut(slow.brick as usize);
        let why = || format!("there is no brick {}; the first is 0, and there are {bricks}", slow.brick);
        let spec = spec.ok_or_else(|| source.wrong(&format!("slow.{at}.brick"), why()))?;
        slowed(source, at, slow, &mut spec.speed)?;
    }
    Ok(cluster)
}

fn scheme(source: &Source, said: &form::Cluster) -> Result<Scheme, LabError> {
    match Scheme::named(&said.policy) {
        Some(Scheme::WeightedHash(_)) if said.weights.len() != said.bricks as usize => {
            let why = format!("weighted-hash needs a weight for each of the {} bricks", said.bricks);
            Err(source.wrong("cluster.weights", why))
        }
        Some(Scheme::WeightedHash(_)) => {
            let weigh = |weight: &f64| number(source, "cluster.weights", *weight, [1e-6, 1e6]);
            said.weights.iter().map(weigh).collect::<Result<_, _>>().map(Scheme::WeightedHash)
        }
        Some(scheme) => Ok(scheme),
        None => Err(source.wrong("cluster.policy", format!("'{}' is not one of {POLICIES}", said.policy))),
    }
}

/// Adds one time of being slow to those of its brick, which stand in the file one after the other.
fn slowed(
    source: &Source,
    at: usize,
    slow: &form::Slow,
    speed: &mut Vec<(Time, u32)>,
) -> Result<(), LabError> {
    let seconds = |field: &str, value: f64, least: f64| {
        number(source, &format!("slow.{at}.{field}"), value, [least, 1e9])
            .map(|seconds| Time((seconds * 1e9) as u64))
    };
    number(source, &format!("slow.{at}.percent"), f64::from(slow.percent), [1.0, 1e5])?;
    let from = seconds("from_s", slow.from_s, 0.0)?;
    if speed.last().is_some_and(|(last, _)| *last > from) {
        let why = format!("brick {} is already slow until later: give its times in their order", slow.brick);
        return Err(source.wrong(&format!("slow.{at}.from_s"), why));
    }
    speed.push((from, slow.percent));
    if let Some(until_s) = slow.until_s {
        speed.push((seconds("until_s", until_s, slow.from_s)?, 100));
    }
    Ok(())
}

fn length(form: &Form, load: &Load, scale: Scale, groups: u64) -> Length {
    let is_trace = matches!(load, Load::Stream(_) | Load::Replayed { .. }) || form.length.seconds.is_some();
    let all = if is_trace { u64::MAX } else { REQUESTS * groups };
    let requests = form.length.requests.unwrap_or(all);
    Length { warmup: scale.of(form.length.warm_up), requests: scale.of(requests) }
}
