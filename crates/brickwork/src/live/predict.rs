//! The simulation of what the live run does.

use super::figures::Figures;
use super::plan::{self, Plan};
use anyhow::{Result, bail};
use model::drive::SECTOR_BYTES;
use proto::distribute::lard::LardConfig;
use sim::perf::cluster::ClaimOptions;
use sim::perf::{
    self, BrickSpec, Cluster, Length, Locality, Mix, Network, Scheme, Sizes, Workload, WriteRelease,
};
use std::time::Duration;
use wire::ReadPolicy;

/// A first look, which says how many requests the times of the plan are.
const LOOK: Length = Length { warmup: 5_000, requests: 20_000 };
/// Runs as long as the live one, over which figures are averaged.
const RUNS: u64 = 8;

/// What a live run with this policy should measure, the mean of several simulated ones of its length.
pub(super) fn predict(plan: &Plan, policy: ReadPolicy) -> Result<Figures> {
    let cluster = cluster(plan, policy)?;
    let per_second = run(&cluster, LOOK, plan.seed)?.requests_per_second;
    let requests = |time: Duration| (per_second * time.as_secs_f64()).round() as u64;
    let length = Length { warmup: requests(plan.warm_up), requests: requests(plan.measure) };
    let runs = (0..RUNS).map(|more| run(&cluster, length, plan.seed.wrapping_add(more)));
    let runs = runs.collect::<Result<Vec<_>>>()?;
    let mean = |figure: fn(&Figures) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
    Ok(Figures {
        throughput_iops: mean(|run| run.throughput_iops),
        idle: mean(|run| run.idle),
        service_ms: mean(|run| run.service_ms),
        queue_seen: mean(|run| run.queue_seen),
        requests_per_second: mean(|run| run.requests_per_second),
        read_response_ms: mean(|run| run.read_response_ms),
        device_reads_per_read: mean(|run| run.device_reads_per_read),
        ..Figures::default()
    })
}

fn cluster(plan: &Plan, policy: ReadPolicy) -> Result<Cluster> {
    let brick = BrickSpec {
        options: plan.options(),
        journal_bytes: plan.nvram_bytes,
        ..BrickSpec::new(plan.drive.clone())
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

fn run(cluster: &Cluster, length: Length, seed: u64) -> Result<Figures> {
    let sizes = Sizes::Fixed((plan::REQUEST_BYTES / SECTOR_BYTES) as u32);
    let mix = Mix { reads: plan::READS, sizes, locality: Locality::Uniform };
    let workload = Workload::Closed { outstanding: plan::OUTSTANDING as u32, mix };
    let measured = perf::run(cluster, workload, length, seed)?;
    Ok(Figures {
        throughput_iops: measured.throughput_iops(),
        idle: measured.idle(),
        service_ms: measured.service_ms(),
        queue_seen: measured.queue_seen(),
        requests_per_second: measured.requests_per_second(),
        read_response_ms: measured.read_response.mean_ms,
        device_reads_per_read: measured.device_reads_per_read(),
        ..Figures::default()
    })
}

fn scheme(plan: &Plan, policy: ReadPolicy) -> Result<Scheme> {
    Ok(match policy {
        ReadPolicy::Claim => Scheme::Claim(ClaimOptions::default()),
        ReadPolicy::Hash => Scheme::Hash,
        ReadPolicy::Lard => Scheme::Lard(LardConfig {
            scale: plan::LARD_SCALE,
            granule: plan.granule_on_drive(),
            ..LardConfig::default()
        }),
        other => bail!("there is no live row with the read policy '{other}'"),
    })
}
