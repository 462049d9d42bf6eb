//! The simulation of what the live run does.

use super::figures::Figures;
use super::plan::{self, Plan};
use anyhow::{Result, bail};
use base::BLOCK_U64;
use reads::distribute::LARD_SCALE;
use reads::distribute::lard::LardConfig;
use sim::timed::{
    BrickSpec, Cluster, Length, Locality, Measured, Mix, Network, Scheme, Sizes, Workload, WriteRelease,
};
use std::time::Duration;
use wire::ReadPolicy;

/// A first look, which says how many requests the times of the plan are.
const LOOK: Length = Length { warmup: 5_000, requests: 20_000 };
/// Runs as long as the live one, over which figures are averaged.
const RUNS: u64 = 8;

/// What a live run should measure, and what it took to say so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prediction {
    pub(super) figures: Figures,
    pub(super) simulated_s: f64,
    pub(super) events: u64,
}

/// What a live run with this policy should measure, the mean of several simulated ones of its length.
pub(super) fn predict(plan: &Plan, policy: ReadPolicy) -> Result<Prediction> {
    let cluster = cluster(plan, policy)?;
    let look = run(&cluster, LOOK, plan.seed)?;
    let per_second = look.requests_per_second();
    let requests = |time: Duration| (per_second * time.as_secs_f64()).round() as u64;
    let length = Length { warmup: requests(plan.warm_up), requests: requests(plan.measure) };
    let runs = (0..RUNS).map(|more| run(&cluster, length, plan.seed.wrapping_add(more)));
    let runs = runs.collect::<Result<Vec<_>>>()?;
    let mean = |figure: fn(&Measured) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
    let figures = Figures {
        throughput_iops: mean(Measured::throughput_iops),
        idle: mean(Measured::idle),
        service_ms: mean(Measured::service_ms),
        queue_seen: mean(Measured::queue_seen),
        read_response_ms: mean(|run| run.answered.read_response.mean_ms),
        device_reads_per_read: mean(Measured::device_reads_per_read),
        ..Figures::default()
    };
    let all = || std::iter::once(&look).chain(&runs);
    Ok(Prediction {
        figures,
        simulated_s: all().map(|run| run.simulated_s).sum(),
        events: all().map(|run| run.events).sum(),
    })
}

fn cluster(plan: &Plan, policy: ReadPolicy) -> Result<Cluster> {
    let brick = BrickSpec {
        options: plan.drive.options(),
        journal_bytes: plan.drive.nvram_bytes,
        ..BrickSpec::new(plan.drive.model.clone())
    };
    Ok(Cluster {
        network: Network { one_way_ns: plan.one_way_ns, ..Network::default() },
        // The cluster acknowledges a write when it is in all journals, and its client goes on then.
        write_release: WriteRelease::Nvram,
        // All drives of a machine turn by the same clock.
        synchronised: true,
        ..Cluster::uniform(brick, plan::BRICKS, plan::BRICKS, scheme(plan, policy)?)
    })
}

fn run(cluster: &Cluster, length: Length, seed: u64) -> Result<Measured> {
    let sizes = Sizes::Blocks((plan::REQUEST_BYTES / BLOCK_U64) as u32);
    let mix = Mix { reads: plan::READS, sizes, locality: Locality::Uniform };
    let workload = Workload::Closed { outstanding: plan::OUTSTANDING, mix };
    Ok(sim::timed::run(cluster, workload, length, seed)?)
}

fn scheme(plan: &Plan, policy: ReadPolicy) -> Result<Scheme> {
    Ok(match policy {
        ReadPolicy::Claim | ReadPolicy::Hash => Scheme::Policy(policy),
        ReadPolicy::Lard => Scheme::Lard(LardConfig {
            scale: LARD_SCALE,
            granule: plan.granule_on_drive(),
            ..LardConfig::default()
        }),
        other => bail!("there is no live row with the read policy '{other}'"),
    })
}
