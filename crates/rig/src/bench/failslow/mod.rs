//! `cargo xtask bench failslow`: one slow brick of several, and what clients see of it.
//!
//! Reading order: [`verb`] (what is run, in which order), `state` (what ails a brick), `load` (what clients do), `awake`, `reads`
//! (under each read policy; the slow brick stays, as nothing is written), `writes` (the slow brick leaves: when, and before
//! and after), `ceph` (the same beside an ailing OSD of a peer), `objects` (puts, gets and ranges, by the load of `transfers`), `claims` (what must hold), `table`; `grid` instead of all these with `--grid`. Clusters are real daemons on this machine, with disks whose lateness is
//! emulated; so figures of states are to be compared with each other, not with other machines.

mod awake;
mod ceph;
mod claims;
mod grid;
mod load;
mod objects;
mod reads;
mod state;
mod table;
mod transfers;
mod writes;

use super::demand::Demand;
use crate::{clients, place};
use anyhow::Result;
use awake::Awake;
use clap::Args;
use load::{Kind, Load};
use objects::Objects;
use reads::Reads;
use rig::cluster::{Cluster, Emulation, Spec, Storage};
use serde_json::json;
use state::State;
use std::path::{Path, PathBuf};
use std::time::Duration;
use writes::Writes;

/// Paced jobs, and what they ask for a second together.
const JOBS: u64 = 16;
const READ_RATE: f64 = 320.0;
/// As many bytes of reads are asked for a second at the most, whatever their size.
const READ_BYTES_RATE: f64 = 20e6;
const WRITE_RATE: f64 = 80.0;
/// Of a write.
const WRITE_BYTES: u32 = 4096;
/// Requests under way when throughput is measured, of reads and of writes,
const DEPTH: u64 = 4;
/// and of reads once more.
const DEPTH_MORE: u64 = 16;
/// Small enough that nearly all reads go to the disks.
const CACHE_BYTES: u64 = 4 << 20;
/// How often reads of a new cluster are tried, at most, until they became no faster twice.
const STEADY_ROUNDS: u32 = 12;
const MIRROR: &str = "raid1x3";
/// The policy of which something is demanded: to dodge a slow brick,
const JUDGED: &str = "usual";
/// and while none is slow to cost no more than this one.
const PLAIN: &str = "shortest-queue";
/// All read policies.
pub(crate) const POLICIES: [&str; 13] = [
    JUDGED,
    "quickest",
    "claim",
    PLAIN,
    "hash",
    "weighted-hash",
    "lard",
    "hedged",
    "tied",
    "probing",
    "online",
    "max-flow-conservative",
    "max-flow-adaptive",
];

/// How to measure.
#[derive(Args)]
#[command(after_help = "\
Examples:
  cargo xtask bench failslow --quick
  cargo xtask bench failslow --json > failslow.json
  cargo xtask bench failslow --only objects --transfers 100
  cargo xtask bench failslow --grid --quick
  cargo xtask bench failslow --grid --place disk --delay-ms 100 --only writes
  cargo xtask bench failslow --policy usual --policy shortest-queue --layout raid1x3")]
pub(crate) struct Options {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Some five minutes instead of an hour: few states and policies, or few cells of the grid (three minutes), to see that it works, not to quote
    #[arg(long)]
    quick: bool,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only this read policy; may be repeated
    #[arg(long = "policy", value_parser = POLICIES)]
    policies: Vec<String>,
    /// How much a read asks for, in KiB; of large reads fewer are asked for a second
    #[arg(long, value_name = "KIB", default_value_t = 4, value_parser = clap::value_parser!(u32).range(4..=4096))]
    read_kib: u32,
    /// Only this layout; may be repeated
    #[arg(long = "layout")]
    layouts: Vec<String>,
    /// Only this state of the brick; may be repeated
    #[arg(long = "state", value_parser = State::NAMES)]
    states: Vec<String>,
    /// Only reads or writes of volumes, or only objects
    #[arg(long, value_parser = ["reads", "writes", "objects"])]
    only: Option<String>,
    /// How many puts, gets and ranges of objects begin at a time; may be repeated. However many that are, there are 200 a second
    #[arg(long, value_name = "COUNT", default_values_t = [1, 100], value_parser = clap::value_parser!(u32).range(1..=200))]
    transfers: Vec<u32>,
    /// How often all states are looked at in turn (reads under `usual` and `shortest-queue`), runs of the closed loop (writes), and faults (objects) [default: 5]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    turns: Option<u32>,
    #[command(flatten)]
    grid: grid::Choice,
}

/// How much of it.
struct Plan {
    bytes: u64,
    /// Of a read.
    read_bytes: u32,
    /// Paced reads a second.
    read_rate: f64,
    /// Of paced reads in each state, a turn.
    read_span: Duration,
    /// Of one run of the closed loop.
    closed_span: Duration,
    /// How often all states are looked at.
    turns: usize,
    /// Of paced writes before the brick begins to ail, and after it has left.
    write_span: Duration,
    policies: Vec<String>,
    layouts: Vec<String>,
    states: Vec<State>,
    /// Of objects before the brick begins to ail, and again from a second after that.
    object_span: Duration,
    /// Of objects, how many begin at a time.
    transfers: Vec<usize>,
    reads: bool,
    writes: bool,
    objects: bool,
}

impl Plan {
    fn new(options: &Options) -> Plan {
        let quick = options.quick;
        let given = |given: &[String], quick_default: &[&str], default: &[&str]| match given {
            [] => if quick { quick_default } else { default }.iter().map(|name| (*name).to_owned()).collect(),
            given => given.to_vec(),
        };
        let seconds = |full, few| Duration::from_secs(if quick { few } else { full });
        let states = given(&options.states, &["healthy", "late-20", "stopped", "dead"], &State::NAMES);
        let does = |what: &str| options.only.as_ref().is_none_or(|only| only == what);
        Plan {
            read_bytes: options.read_kib << 10,
            read_rate: READ_RATE.min(READ_BYTES_RATE / f64::from(options.read_kib << 10)),
            bytes: if quick { 128 << 20 } else { 256 << 20 },
            read_span: seconds(5, 3),
            closed_span: seconds(3, 1),
            turns: options.turns.map_or(if quick { 1 } else { 5 }, |turns| turns as usize),
            write_span: seconds(15, 5),
            policies: given(&options.policies, &[JUDGED, PLAIN], &POLICIES),
            layouts: given(&options.layouts, &[MIRROR], &[MIRROR, "raid5-4+1", "rs-4+2"]),
            states: State::ALL.into_iter().filter(|state| states.contains(&state.option())).collect(),
            object_span: seconds(4, 2),
            transfers: options.transfers.iter().map(|count| *count as usize).collect(),
            reads: does("reads"),
            writes: does("writes"),
            objects: does("objects"),
        }
    }

    /// How often all states are looked at under a read policy; less often where nothing is demanded of it.
    fn turns_of(&self, policy: &str) -> usize {
        if policy == JUDGED || policy == PLAIN { self.turns } else { self.turns.min(2) }
    }

    /// Read policies matter where there are several copies; elsewhere one is measured.
    fn policies_of(&self, layout: &str) -> Vec<&str> {
        let all = self.policies.iter().map(String::as_str);
        let count = if layout.starts_with("raid1") { self.policies.len() } else { 1 };
        all.take(count).collect()
    }
}

/// All that was measured.
#[derive(Default)]
struct Results {
    reads: Vec<Reads>,
    writes: Vec<Writes>,
    /// Of Ceph, where it is installed.
    ceph: Vec<Writes>,
    objects: Vec<Objects>,
}

/// Measures and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let binary = place::binary(options.binary.as_deref())?;
    let plan = Plan::new(options);
    if options.grid.is_wanted() {
        return grid::verb(options, &binary, &plan);
    }
    let mut results = Results::default();
    for layout in &plan.layouts {
        if plan.reads {
            results.reads.extend(reads::measure(&binary, layout, &plan)?);
        }
        if plan.writes {
            for state in &plan.states {
                let writes = writes::measure(&binary, layout, *state, &plan)?;
                eprintln!("{}", table::writes_line(&writes));
                results.writes.push(writes);
            }
        }
    }
    let is_asked_of_ceph = plan.writes && plan.states.iter().any(|state| !matches!(state, State::Late(_)));
    if is_asked_of_ceph && plan.layouts.iter().any(|layout| layout == MIRROR) {
        match ceph::missing()? {
            Some(what) => eprintln!("skipped: {what}"),
            None => {
                results.ceph = ceph::measure(&plan, |writes| eprintln!("{}", table::writes_line(writes)))?
            }
        }
    }
    for state in plan.states.iter().filter(|_| plan.objects) {
        let objects = objects::measure(&binary, *state, &plan)?;
        objects.iter().for_each(|objects| eprintln!("{}", table::objects_line(objects)));
        results.objects.extend(objects);
    }
    // What is demanded is demanded of reads of a block.
    let claims = if options.read_kib == 4 { claims::all(&results) } else { Vec::new() };
    if options.json {
        println!("{}", as_json(options, &results, &claims));
    } else {
        table::print(&results, &claims);
    }
    Ok(())
}

/// A cluster just as wide as the layout, whose disks can be made late, with a volume that is written all over.
fn cluster(binary: &Path, layout: &str, plan: &Plan) -> Result<Cluster> {
    filled(Cluster::start(binary, &spec(layout, plan))?, layout, plan)
}

/// A cluster for objects.
fn cluster_of(binary: &Path, bricks: usize) -> Result<Cluster> {
    let emulation = Emulation::Each;
    Cluster::start(
        binary,
        &Spec {
            bricks,
            gateways: 0,
            storage: Storage {
                disk_bytes: 4 << 30,
                cache_bytes: CACHE_BYTES,
                emulation,
                ..Storage::default()
            },
            ..Spec::default()
        },
    )
}

fn spec(layout: &str, plan: &Plan) -> Spec {
    Spec {
        bricks: clients::width(layout),
        metrics: true,
        storage: Storage {
            disk_bytes: plan.bytes / clients::data(layout) * 5 / 4 + (512 << 20),
            cache_bytes: CACHE_BYTES,
            emulation: Emulation::Each,
            ..Storage::default()
        },
        ..Spec::default()
    }
}

fn filled(cluster: Cluster, layout: &str, plan: &Plan) -> Result<Cluster> {
    cluster.create("v", plan.bytes, layout)?;
    drop(cluster.connect_patiently(0, "v")?);
    load(&cluster, Kind::Write, WRITE_BYTES).fill(plan.bytes)?;
    cluster.wait_until_destaged();
    wait_until_steady(&load(&cluster, Kind::Read, plan.read_bytes), plan)?;
    Ok(cluster)
}

/// A new cluster's first reads take longer: the file system still gives back the blocks of the cluster before it, and writes
/// what was filled. What is measured first would seem slower than what comes after.
fn wait_until_steady(load: &Load, plan: &Plan) -> Result<()> {
    rustix::fs::sync();
    let (mut best_ms, mut worse) = (f64::INFINITY, 0);
    for _ in 0..STEADY_ROUNDS {
        let awake = Awake::begin()?;
        let p99_ms = load.paced(JOBS, plan.read_rate, plan.closed_span)?.p99_ms;
        awake.end()?;
        load.closed(DEPTH, plan.closed_span)?;
        worse += u32::from(p99_ms >= best_ms);
        if worse == 2 {
            return Ok(());
        }
        best_ms = best_ms.min(p99_ms);
    }
    Ok(())
}

fn load(cluster: &Cluster, kind: Kind, bytes: u32) -> Load {
    Load::new(cluster.endpoint(0), "v", kind, bytes)
}

fn as_json(options: &Options, results: &Results, claims: &[Demand]) -> serde_json::Value {
    json!({
        "machine": { "processors": std::thread::available_parallelism().map_or(0, usize::from) },
        "quick": options.quick,
        "paced_jobs": JOBS, "read_bytes": options.read_kib << 10, "reads_per_second_at_most": READ_RATE, "writes_per_second": WRITE_RATE, "depth": DEPTH, "depth_more": DEPTH_MORE,
        "cache_bytes_per_brick": CACHE_BYTES,
        "reads": results.reads.iter().map(Reads::json).collect::<Vec<_>>(),
        "writes": results.writes.iter().map(Writes::json).collect::<Vec<_>>(),
        "ceph": results.ceph.iter().map(Writes::json).collect::<Vec<_>>(),
        "objects_setting": objects::setting_json(),
        "objects": results.objects.iter().map(Objects::json).collect::<Vec<_>>(),
        "claims": claims.iter().map(Demand::json).collect::<Vec<_>>(),
    })
}
