//! From assumptions to what the simulator runs, and from tables to curves.

use crate::cell::Cell;
use crate::experiment::{Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Series, Spot};
use crate::system::{Load, System};
use core::time::Duration;
use model::drive::{DriveModel, DriveOptions};
use reads::distribute::lard::LardConfig;
use sim::timed::{
    BrickSpec, ClaimOptions, Cluster, Conditions, Length, Locality, Mix, Network, Scheme, Sizes, WriteRelease,
};
use std::sync::Arc;

/// What every experiment with a cluster depends on; LARD's own stand last.
pub(super) const CLUSTER: &[&str] = &[
    "drive",
    "drive_parts",
    "request_mean_bytes",
    "requests",
    "warm_up_requests",
    "write_release",
    "journal_bytes",
    "network_one_way_us",
    "client_one_way_us",
    "claim_slack_us",
    "claim_hold_rotation_only",
    "platters_in_step",
    "lard_granule_bytes",
    "lard_low",
    "lard_high",
    "lard_scale",
    "lard_window_ms",
];

/// How many of them are LARD's.
const LARD: usize = 5;

/// What an experiment with D-SPTF alone depends on: all but LARD's.
pub(super) const CLAIMING: &[&str] = CLUSTER.split_at(CLUSTER.len() - LARD).0;

/// The paper's four schemes by their names in its tables.
pub(super) const SCHEMES: [&str; 4] = ["Central SPTF", "D-SPTF", "Hashing", "LARD"];

/// The scheme of this name. `weights` are those of the weighted hash.
pub(super) fn scheme(parameters: &Parameters, name: &str, weights: &[f64]) -> Scheme {
    match name {
        "Central SPTF" => Scheme::Central,
        "D-SPTF" => Scheme::Claim(ClaimOptions {
            slack_ns: (parameters.number("claim_slack_us") * 1e3) as u64,
            hold_rotation_only: parameters.flag("claim_hold_rotation_only"),
        }),
        "Hashing" => Scheme::Hash,
        "Weighted hash" => Scheme::WeightedHash(weights.to_vec()),
        "LARD" => Scheme::Lard(lard(parameters)),
        other => panic!("the paper has no scheme {other}"),
    }
}

/// LARD with the thresholds that are assumed.
pub(super) fn lard(parameters: &Parameters) -> LardConfig {
    LardConfig {
        low: parameters.count("lard_low") as u32,
        high: parameters.count("lard_high") as u32,
        scale: parameters.number("lard_scale"),
        window: Duration::from_millis(parameters.count("lard_window_ms")),
        granule: parameters.count("lard_granule_bytes"),
        ..LardConfig::default()
    }
}

/// The drive that is assumed.
pub(super) fn drive(parameters: &Parameters) -> Arc<DriveModel> {
    let id = parameters.text("drive");
    let entry =
        model::drive::find(id).unwrap_or_else(|| panic!("the parameter file names an unknown drive {id}"));
    Arc::new(DriveModel::parse(id, entry.text).unwrap_or_else(|error| panic!("{error}")))
}

/// Which parts of the drive are in force.
pub(super) fn drive_options(parameters: &Parameters) -> DriveOptions {
    match parameters.text("drive_parts") {
        "mechanics" => DriveOptions::MECHANICS,
        "uncached" => DriveOptions::UNCACHED,
        other => panic!("the parameter file allows unknown drive parts {other}"),
    }
}

/// Bricks as section 4 describes them, in disjoint groups of `replicas`.
pub(super) fn cluster(parameters: &Parameters, bricks: u32, replicas: u32, scheme: Scheme) -> Cluster {
    let brick = BrickSpec {
        options: drive_options(parameters),
        journal_bytes: parameters.count("journal_bytes"),
        ..BrickSpec::new(drive(parameters))
    };
    let [one_way_ns, client_one_way_ns] =
        ["network_one_way_us", "client_one_way_us"].map(|name| (parameters.number(name) * 1e3) as u64);
    Cluster {
        network: Network { one_way_ns, client_one_way_ns, ..Network::default() },
        write_release: write_release(parameters.text("write_release")),
        synchronised: parameters.flag("platters_in_step"),
        ..Cluster::uniform(brick, bricks, replicas, scheme)
    }
}

/// The setting of this name.
pub(super) fn write_release(name: &str) -> WriteRelease {
    match name {
        "nvram" => WriteRelease::Nvram,
        "half" => WriteRelease::Half,
        "all" => WriteRelease::All,
        other => panic!("the parameter file allows an unknown write_release {other}"),
    }
}

/// The closed random workload of section 5.1.1: so many requests outstanding in each group.
pub(super) fn closed(
    parameters: &Parameters,
    scale: Scale,
    cluster: Cluster,
    outstanding: u32,
    reads: f64,
) -> System {
    let groups = cluster.groups.0.len() as u64;
    let load = Load::Closed { outstanding, mix: mix(parameters, reads) };
    System {
        conditions: Conditions::default(),
        cluster,
        load,
        length: length(parameters, scale, groups),
        drives: parameters.text("drive").to_owned(),
    }
}

/// All addresses equally likely, sizes exponential.
pub(super) fn mix(parameters: &Parameters, reads: f64) -> Mix {
    let sizes = Sizes::Exponential(parameters.number("request_mean_bytes"));
    Mix { reads, sizes, locality: Locality::Uniform }
}

/// As long as assumed, in the mean over `groups`.
pub(super) fn length(parameters: &Parameters, scale: Scale, groups: u64) -> Length {
    let warmup = scale.of(parameters.count("warm_up_requests")) * groups;
    Length { warmup, requests: scale.of(parameters.count("requests")) * groups }
}

/// A curve for each different `name`: `y` over `x`.
pub(super) fn series(table: &Table, name: &str, x: &str, y: &str) -> Vec<Series> {
    curves(table, name, y, |row, _| row.get(x)?.number())
}

/// Bars for each different `name`, a group for each different `group`.
pub(super) fn bars(table: &Table, name: &str, group: &str, y: &str) -> (Vec<String>, Vec<Series>) {
    let groups = table.distinct(group);
    let place = |row: &crate::cell::Row, _| {
        let at = groups.iter().position(|known| row.says(group, known))?;
        Some(at as f64)
    };
    (groups.iter().map(Cell::text).collect(), curves(table, name, y, place))
}

fn curves(
    table: &Table,
    name: &str,
    y: &str,
    x: impl Fn(&crate::cell::Row, usize) -> Option<f64>,
) -> Vec<Series> {
    let one = |cell: Cell| {
        let wanted = [(name, cell.clone())];
        let spots = table.select(&wanted).enumerate().filter_map(|(at, row)| {
            let Cell::Number(y, ci95) = row.get(y)? else { return None };
            Some(Spot { x: x(row, at)?, y: *y, ci95: *ci95 })
        });
        Series { name: cell.text(), spots: spots.collect() }
    };
    table.distinct(name).into_iter().map(one).collect()
}
