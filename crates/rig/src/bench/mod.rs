//! `cargo xtask bench block`: block volumes beside what the machine can do, in one go.
//!
//! Reading order: [`verb`] (what is run, in which order), `workload` (what fio does), `target` (what it does it to, and what
//! that costs), `bounds` (nbdkit and the bare disk), `bricks` (Brickwork's clusters), `flushes`, `memory`, then `claims` (what
//! must hold, a `demand` each) and `table`; `ceph` is a peer beside which some of the rest measures. `rebuild`, `failslow`, `fairness`, `netraid`, `index`, `object`, `disk`, `many`, `overload` and `outage` are measurements of their own. Each
//! workload goes over all targets before the next begins, so that whatever else the machine does falls on all of them.

mod bounds;
mod bricks;
mod ceph;
mod claims;
mod demand;
pub(crate) mod disk;
pub(crate) mod failslow;
pub(crate) mod fairness;
mod flushes;
pub(crate) mod index;
pub(crate) mod many;
mod mean;
mod memory;
pub(crate) mod netraid;
pub(crate) mod object;
pub(crate) mod outage;
pub(crate) mod overload;
pub(crate) mod rebuild;
mod table;
mod target;
mod workload;

use crate::{clients, place};
use anyhow::Result;
use bricks::Bench;
use clap::Args;
use demand::Demand;
use rig::cluster;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use target::{Sample, Target};
use workload::Workload;

/// How to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// Print everything as one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Seconds for each measurement
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// A second for each, and small data sets: to see that it works, not to quote
    #[arg(long)]
    quick: bool,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only the bounds: nbdkit and the bare disk
    #[arg(long)]
    bounds_only: bool,
    /// Only these targets of Brickwork (`raid1x3`, ...), comma-separated
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Copies read by this policy as well, beside the policy that is usual; may be repeated
    #[arg(long = "read-policy", value_parser = failslow::POLICIES, conflicts_with = "bounds_only")]
    read_policies: Vec<String>,
}

/// All that was measured.
#[derive(Default)]
pub(crate) struct Results {
    /// fio's figures.
    pub(crate) samples: Vec<Sample>,
    /// 4 KiB write + fdatasync on the bare disk, by so many jobs.
    pub(crate) syncs: Vec<bounds::Sync>,
    /// With TLS between the daemons.
    pub(crate) tls: Vec<Sample>,
    /// Flushes per acknowledged write.
    pub(crate) flushes: Vec<flushes::Flushes>,
    /// Resident memory.
    pub(crate) memory: Option<memory::Memory>,
    /// After all daemons were killed at once: acknowledged writes and verified blocks, or what is wrong.
    pub(crate) durable: Option<Result<(u64, u64), String>>,
}

/// Data sets and times.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    /// Seconds of a measurement.
    pub(crate) seconds: u64,
    /// Bytes of each brick's cache.
    pub(crate) cache_bytes: u64,
}

/// Measures and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let scale = match options.quick {
        true => Scale { seconds: 1, cache_bytes: 16 << 20 },
        false => Scale { seconds: options.seconds, cache_bytes: 64 << 20 },
    };
    let binary = match (&options.binary, options.bounds_only) {
        (_, true) => PathBuf::new(),
        (given, _) => place::binary(given.as_deref())?,
    };
    let results = measure(options, scale, &binary)?;
    let claims = claims::all(&results);
    if options.json {
        println!("{}", as_json(scale, &results, &claims));
        return Ok(());
    }
    table::print(&results);
    demand::print(&claims);
    Ok(())
}

fn measure(options: &Options, scale: Scale, binary: &Path) -> Result<Results> {
    let mut results = Results { syncs: bounds::syncs(scale)?, ..Results::default() };
    let wanted = |layout: &str| options.only.is_empty() || options.only.iter().any(|name| name == layout);
    let layouts = ["raid0x1", "raid1x3", "raid5-4+1"];
    let layouts: Vec<&str> =
        layouts.into_iter().filter(|layout| !options.bounds_only && wanted(layout)).collect();
    let servers = bounds::Servers::start(scale)?;
    let mut clusters = layouts
        .iter()
        .map(|layout| Bench::start(binary, layout, scale, false))
        .collect::<Result<Vec<_>>>()?;
    for policy in &options.read_policies {
        clusters.push(Bench::start(binary, "raid1x3", scale, false)?.read_by(policy)?);
    }
    let targets: Vec<Target> =
        servers.targets().into_iter().chain(clusters.iter().map(Bench::target)).collect();
    results.samples = side_by_side(&targets, scale)?;
    drop((servers, clusters));
    if !options.bounds_only {
        on_their_own(&mut results, scale, binary)?;
    }
    Ok(results)
}

fn side_by_side(targets: &[Target], scale: Scale) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for target in targets {
        eprintln!("filling {} ({} MiB)", target.name, target.bytes >> 20);
        target.fill()?;
    }
    for workload in Workload::all() {
        for target in targets {
            let sample = target.measure(&workload, scale)?;
            eprintln!("{}", table::line(&sample, None, None));
            samples.push(sample);
        }
    }
    Ok(samples)
}

/// What needs clusters of its own: TLS, flushes, memory, and the death of all daemons at once.
fn on_their_own(results: &mut Results, scale: Scale, binary: &Path) -> Result<()> {
    eprintln!("with TLS between the daemons");
    let bench = Bench::start(binary, "raid1x3", scale, true)?;
    let target = bench.target();
    target.fill()?;
    for workload in Workload::for_tls() {
        results.tls.push(target.measure(&workload, scale)?);
    }
    drop((target, bench));
    eprintln!("flushes per acknowledged write");
    results.flushes = flushes::measure(binary, scale)?;
    eprintln!("resident memory");
    results.memory = Some(memory::measure(binary, scale)?);
    eprintln!("acknowledged writes after all daemons are killed at once");
    let mut cluster = cluster::Cluster::start(binary, &cluster::Spec::default())?;
    cluster.create("v", 64 << 20, "raid1x3")?;
    let survived = clients::survives_killing_all(&mut cluster, 20_000);
    results.durable = Some(survived.map_err(|error| format!("{error:#}")));
    Ok(())
}

fn as_json(scale: Scale, results: &Results, claims: &[Demand]) -> Value {
    let samples = |samples: &[Sample]| samples.iter().map(Sample::json).collect::<Vec<_>>();
    json!({
        "machine": {"processors": std::thread::available_parallelism().map_or(0, usize::from)},
        "seconds": scale.seconds,
        "cache_bytes_per_brick": scale.cache_bytes,
        "samples": samples(&results.samples),
        "tls": samples(&results.tls),
        "write_and_fdatasync": results.syncs.iter().map(bounds::Sync::json).collect::<Vec<_>>(),
        "flushes": results.flushes.iter().map(flushes::Flushes::json).collect::<Vec<_>>(),
        "memory": results.memory.as_ref().map(memory::Memory::json),
        "killed_all_at_once": match &results.durable {
            Some(Ok((acknowledged, verified))) => json!({"acknowledged_writes": acknowledged, "verified_blocks": verified}),
            Some(Err(why)) => json!({"error": why}),
            None => Value::Null,
        },
        "claims": claims.iter().map(Demand::json).collect::<Vec<_>>(),
    })
}
