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
use wire::ReadPolicy;

/// Requests before measuring, and measured.
const LENGTH: Length = Length { warmup: 5_000, requests: 100_000 };

/// What a live run with this policy should measure.
pub(super) fn predict(plan: &Plan, policy: ReadPolicy) -> Result<Figures> {
    let brick = BrickSpec {
        options: plan.options(),
        journal_bytes: plan.nvram_bytes,
        ..BrickSpec::new(plan.drive.clone())
    };
    let cluster = Cluster {
        network: Network { one_way_ns: plan.one_way_ns, ..Network::default() },
        // The cluster acknowledges a write when it is in all journals, and its client goes on then.
        write_release: WriteRelease::Nvram,
        // All drives of a machine turn by the same clock.
        synchronised: true,
        ..Cluster::uniform(brick, plan::BRICKS, plan::BRICKS, scheme(plan, policy)?)
    };
    let sizes = Sizes::Fixed((plan::REQUEST_BYTES / SECTOR_BYTES) as u32);
    let mix = Mix { reads: plan::READS, sizes, locality: Locality::Uniform };
    let workload = Workload::Closed { outstanding: plan::OUTSTANDING as u32, mix };
    let measured = perf::run(&cluster, workload, LENGTH, plan.seed)?;
    Ok(Figures {
        throughput_iops: measured.throughput_iops(),
        idle: measured.idle(),
        service_ms: measured.service_ms(),
        queue_seen: measured.queue_seen(),
        requests_per_second: measured.requests_per_second(),
        read_response_ms: measured.read_response.mean_ms,
        write_response_ms: measured.write_response.mean_ms,
        late_p99_ms: 0.0,
        device_reads_per_read: measured.device_reads_per_read(),
        nvram_full: 0.0,
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
