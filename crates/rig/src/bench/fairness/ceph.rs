//! The tenants of `shares` on Ceph: what each of them gets where clients have no weights.

use super::Times;
use super::bed::{CACHE_BYTES, Disk, VOLUME_BYTES};
use super::shares::{BRICKS, OfClient, Server, Shares, TENANTS, Tenant, by_tenant};
use crate::bench::ceph::{self, COMMAND_LIMIT, Ceph};
use crate::bench::workload::{fio_command, fio_report, measured};
use anyhow::Result;
use job::process::{Job, capture, installed};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// How long a volume may take to be filled.
const FILL_LIMIT: Duration = Duration::from_secs(120);
/// What fio may take for a run beyond the time for which it reads.
const FIO_EXTRA: Duration = Duration::from_secs(60);

/// What must be installed before Ceph can be measured, if anything must.
pub(super) fn missing() -> Result<Option<String>> {
    let mut absent = Vec::new();
    if installed("fio") {
        let engines = capture("fio", Command::new("fio").arg("--enghelp"), COMMAND_LIMIT)?.stdout;
        let has_rbd = engines.lines().any(|line| line.trim() == "rbd");
        absent.extend((!has_rbd).then_some("fio's engine rbd"));
    }
    Ok(ceph::missing(&["fio"], &absent, "fio"))
}

/// All tenants' clients at the same time.
pub(super) fn measure(times: &Times) -> Result<Shares> {
    let ceph = Ceph::start(BRICKS, CACHE_BYTES)?;
    (1..=BRICKS).try_for_each(|brick| ceph.create_pool_on(brick, &pool(brick)))?;
    let images: Vec<Image> = TENANTS.iter().flat_map(Image::of).collect();
    images.iter().try_for_each(|image| image.create_filled(&ceph))?;
    let running: Vec<Job> =
        images.iter().map(|image| image.start_reads(&ceph, times)).collect::<Result<_>>()?;
    let limit = times.warm_up + times.measure + FIO_EXTRA;
    let got: Vec<OfClient> =
        running.into_iter().map(|job| of_client(&fio_report(job.wait(limit)?)?)).collect::<Result<_>>()?;
    let server = Server::Ceph { version: ceph::version()? };
    Ok(Shares { disk: Disk::File, server, got: by_tenant(&got) })
}

/// What a client reads, and how many reads it has outstanding.
struct Image {
    /// Counted from 1.
    brick: usize,
    name: String,
    depth: usize,
}

impl Image {
    /// An image for each of the tenant's clients.
    fn of(tenant: &Tenant) -> impl Iterator<Item = Image> {
        let image = |(brick, _): &(usize, usize)| Image {
            brick: *brick,
            name: tenant.volume(*brick),
            depth: tenant.depth,
        };
        tenant.clients.iter().map(image)
    }

    fn create_filled(&self, ceph: &Ceph) -> Result<()> {
        ceph.create_image(&pool(self.brick), &self.name, VOLUME_BYTES)?;
        let fill = self.start_fio(ceph, &["--rw=write", "--bs=1M", "--iodepth=8"])?;
        fio_report(fill.wait(FILL_LIMIT)?).map(drop)
    }

    /// A client that reads 4 KiB at a time, and tells what it saw after the warm-up.
    fn start_reads(&self, ceph: &Ceph, times: &Times) -> Result<Job> {
        let depth = format!("--iodepth={}", self.depth);
        let warm_up = format!("--ramp_time={}", times.warm_up.as_secs());
        let measure = format!("--runtime={}", times.measure.as_secs());
        self.start_fio(ceph, &["--rw=randread", "--bs=4k", &depth, "--time_based", &warm_up, &measure])
    }

    fn start_fio(&self, ceph: &Ceph, more: &[&str]) -> Result<Job> {
        let (pool, name) = (format!("--pool={}", pool(self.brick)), format!("--rbdname={}", self.name));
        let size = format!("--size={VOLUME_BYTES}");
        // fio's job is a thread: as a process it would be in a group of its own, and outlive fio if that is killed.
        let target = ["--ioengine=rbd", "--thread", "--clientname=admin", &pool, &name, &size];
        Job::spawn("fio", ceph.in_cluster(&mut fio_command(&[&target[..], more].concat())))
    }
}

/// What fio says of a client that reads.
fn of_client(report: &Value) -> Result<OfClient> {
    let reads = measured(&report["jobs"][0]["read"])?;
    Ok(OfClient { rate: reads.iops, p50_ms: reads.p50_us / 1e3 })
}

/// The pool whose data lie on one OSD.
fn pool(brick: usize) -> String {
    format!("brick-{brick}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_client_has_what_fio_says_of_its_reads() -> Result<()> {
        let percentile = json!({ "50.000000": 1_500_000, "99.000000": 9_000_000 });
        let read = json!({ "total_ios": 800, "iops": 100.5, "lat_ns": { "percentile": percentile } });
        let got = of_client(&json!({ "jobs": [{ "error": 0, "read": read }] }))?;
        assert!((got.rate - 100.5).abs() < 1e-9 && (got.p50_ms - 1.5).abs() < 1e-9);
        assert!(of_client(&json!({ "jobs": [] })).is_err());
        Ok(())
    }
}
