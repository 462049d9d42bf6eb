//! Reads beside a slow brick, under each policy.

use super::super::mean::Mean;
use super::awake::Awake;
use super::load::{Kind, Load, Percentiles, Sample};
use super::state::{BRICK, State};
use super::{DEPTH, DEPTH_MORE, JOBS, Plan, cluster, load, table};
use anyhow::{Context, Result};
use rig::cluster::{Cluster, METRICS_RENEWED, Metrics, of_brick};
use serde_json::{Value, json};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// One policy in one state.
pub(super) struct Reads {
    pub(super) layout: String,
    pub(super) policy: String,
    pub(super) state: State,
    /// Of paced jobs, all turns together.
    pub(super) paced: Percentiles,
    /// The median over the turns of the 99th percentile: what disturbed the machine in one of them has no say.
    pub(super) p99_of_turns_ms: f64,
    /// Requests a second at [`DEPTH`].
    pub(super) iops: Mean,
    /// The same at [`DEPTH_MORE`].
    pub(super) iops_more: Mean,
    pub(super) cost: Cost,
}

/// What paced reads cost: all that daemons send each other meanwhile, and what bricks read from their disks.
#[derive(Clone, Copy, Default)]
pub(super) struct Cost {
    pub(super) reads: f64,
    pub(super) packets: f64,
    pub(super) bytes: f64,
    pub(super) device_blocks: f64,
}

impl Reads {
    pub(super) fn json(&self) -> Value {
        json!({
            "layout": self.layout, "policy": self.policy, "state": self.state.name(), "requests": self.paced.samples,
            "p50_ms": self.paced.p50_ms, "p99_ms": self.paced.p99_ms, "p99_of_turns_ms": self.p99_of_turns_ms,
            "p999_ms": self.paced.p999_ms,
            "most_ms": self.paced.most_ms, "load_late_p99_ms": self.paced.overslept_ms, "iops": self.iops.mean, "iops_error": self.iops.error, "iops_runs": self.iops.runs,
            "iops_more": self.iops_more.mean, "iops_more_error": self.iops_more.error, "packets_per_read": self.cost.packets,
            "bytes_per_read": self.cost.bytes, "device_blocks_per_read": self.cost.device_blocks,
        })
    }
}

/// Measures a layout under all policies that matter to it, in all states, on one cluster.
pub(super) fn measure(binary: &Path, layout: &str, plan: &Plan) -> Result<Vec<Reads>> {
    eprintln!("reads of {layout}");
    let mut cluster = cluster(binary, layout, plan)?;
    let load = load(&cluster, Kind::Read, plan.read_bytes);
    let mut all = Vec::new();
    for policy in plan.policies_of(layout) {
        cluster.admin(&["volume", "set", "v", "--read-policy", policy])?;
        let of_policy = of_policy(&mut cluster, &load, layout, policy, plan)
            .with_context(|| format!("{layout} read by {policy}"))?;
        of_policy.iter().for_each(|reads| eprintln!("{}", table::reads_line(reads)));
        all.extend(of_policy);
    }
    Ok(all)
}

/// All states in turns, several times: the machine itself is faster now and slower then.
fn of_policy(
    cluster: &mut Cluster,
    load: &Load,
    layout: &str,
    policy: &str,
    plan: &Plan,
) -> Result<Vec<Reads>> {
    let mut seen: Vec<Seen> = plan.states.iter().map(|_| Seen::default()).collect();
    for _ in 0..plan.turns_of(policy) {
        for (state, seen) in plan.states.iter().zip(&mut seen) {
            during(cluster, load, *state, plan, |cluster| seen.look(cluster, load, plan))?;
        }
    }
    let reads = plan.states.iter().zip(seen).map(|(state, seen)| Reads {
        layout: layout.to_owned(),
        policy: policy.to_owned(),
        state: *state,
        p99_of_turns_ms: median(
            seen.samples.iter().map(|turn| Percentiles::of(turn, Duration::ZERO, plan.read_span).p99_ms),
        ),
        paced: Percentiles::of(&seen.samples.concat(), Duration::ZERO, plan.read_span),
        iops: Mean::of(&seen.rates),
        iops_more: Mean::of(&seen.rates_more),
        cost: seen.cost.of_a_read(),
    });
    Ok(reads.collect())
}

/// What was seen in one state, of all turns.
#[derive(Default)]
struct Seen {
    samples: Vec<Vec<Sample>>,
    cost: Cost,
    rates: Vec<f64>,
    rates_more: Vec<f64>,
}

impl Seen {
    fn look(&mut self, cluster: &Cluster, load: &Load, plan: &Plan) -> Result<()> {
        sleep(METRICS_RENEWED);
        let before = cluster.metrics();
        let awake = Awake::begin()?;
        self.samples.push(load.start(JOBS, plan.read_rate, plan.read_span)?.finish()?);
        awake.end()?;
        sleep(METRICS_RENEWED);
        self.cost.add(&before, &cluster.metrics());
        self.rates.push(load.closed(DEPTH, plan.closed_span)?);
        self.rates_more.push(load.closed(DEPTH_MORE, plan.closed_span)?);
        Ok(())
    }
}

fn median(all: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = all.collect();
    all.sort_unstable_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Does `work` while the brick ails.
fn during<R>(
    cluster: &mut Cluster,
    load: &Load,
    state: State,
    plan: &Plan,
    work: impl FnOnce(&Cluster) -> Result<R>,
) -> Result<R> {
    // The caches and what the gateway knows of its bricks are those of a cluster in use.
    load.paced(JOBS, plan.read_rate, plan.closed_span / 2)?;
    let trouble = state.begin(cluster)?;
    if matches!(state, State::Dead | State::Silent) {
        wait_until_out(cluster)?;
    }
    // What a gateway has to learn of the brick it learns in a second.
    load.paced(JOBS, plan.read_rate, Duration::from_secs(1))?;
    let result = work(cluster).with_context(|| format!("one brick {}", state.name()))?;
    trouble.end(cluster)?;
    cluster.wait_until_redundant(Duration::from_secs(120))?;
    cluster.all_alive()?;
    Ok(result)
}

fn wait_until_out(cluster: &Cluster) -> Result<()> {
    let id = cluster.brick_id(BRICK)?;
    let is_out = |status: &Value| of_brick(status, &id)["stale_groups"] == of_brick(status, &id)["groups"];
    cluster.wait_for("the dead brick is left out", Duration::from_secs(60), is_out).map(drop)
}

impl Cost {
    /// What bricks tell each other of claims counts as well.
    fn add(&mut self, before: &Metrics, after: &Metrics) {
        let grown = |name: &str| after.grown(before, name);
        self.reads += grown("brickwork_nbd_reads_total");
        self.packets += grown("brickwork_peer_packets_sent_total");
        self.bytes += grown("brickwork_peer_bytes_sent_total");
        self.device_blocks += grown("brickwork_store_cache_misses_total");
    }

    fn of_a_read(self) -> Cost {
        let share = |all: f64| all / self.reads.max(1.0);
        Cost {
            reads: 1.0,
            packets: share(self.packets),
            bytes: share(self.bytes),
            device_blocks: share(self.device_blocks),
        }
    }
}
