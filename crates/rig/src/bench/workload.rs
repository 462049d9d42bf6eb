//! What fio does to a target.

use anyhow::{Context, Result, bail, ensure};
use job::process::{Finished, Job};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// Where in the data set a workload goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
    /// All of it: four times the bricks' cache.
    All,
    /// Half of one brick's cache.
    Cached,
}

/// A pattern of requests.
#[derive(Clone)]
pub(crate) struct Workload {
    /// How it is called in tables.
    pub(crate) name: String,
    /// fio's `rw`.
    pub(crate) pattern: &'static str,
    /// Bytes of a request.
    pub(crate) block_bytes: u64,
    /// Requests at a time.
    pub(crate) depth: u32,
    /// Where it goes.
    pub(crate) region: Region,
}

/// What fio says of a run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Measured {
    pub(crate) requests: u64,
    /// Requests a second.
    pub(crate) iops: f64,
    /// Median latency from submission to completion, microseconds.
    pub(crate) p50_us: f64,
    /// 99th percentile of latency, microseconds.
    pub(crate) p99_us: f64,
}

impl Workload {
    /// All that is measured side by side.
    pub(crate) fn all() -> Vec<Workload> {
        let mut all = Vec::new();
        for (pattern, region) in
            [("randread", Region::Cached), ("randread", Region::All), ("randwrite", Region::All)]
        {
            all.extend([1, 16, 64].map(|depth| Workload::new(pattern, region, 4096, depth)));
        }
        all.push(Workload::new("read", Region::Cached, 1 << 20, 8));
        all.extend(["read", "write"].map(|pattern| Workload::new(pattern, Region::All, 1 << 20, 8)));
        all
    }

    /// What is measured again with TLS.
    pub(crate) fn for_tls() -> Vec<Workload> {
        let keep = ["read cached q16", "read 4x q16", "write q1", "write q64", "1 MiB read", "1 MiB write"];
        Workload::all().into_iter().filter(|workload| keep.contains(&workload.name.as_str())).collect()
    }

    fn new(pattern: &'static str, region: Region, block_bytes: u64, depth: u32) -> Workload {
        let name = match (pattern, region) {
            ("randread", Region::Cached) => format!("read cached q{depth}"),
            ("randread", Region::All) => format!("read 4x q{depth}"),
            ("randwrite", _) => format!("write q{depth}"),
            (other, Region::Cached) => format!("1M {other} cached"),
            (other, Region::All) => format!("1 MiB {other}"),
        };
        Workload { name, pattern, block_bytes, depth, region }
    }

    /// Whether it is stated in bytes rather than requests a second.
    pub(crate) fn is_sequential(&self) -> bool {
        self.block_bytes >= 1 << 20
    }

    /// Runs it against an NBD address over the first `bytes`.
    pub(crate) fn run(&self, uri: &str, bytes: u64, seconds: u64) -> Result<Measured> {
        let (uri, block) = (format!("--uri={uri}"), format!("--bs={}", self.block_bytes));
        let (depth, size) = (format!("--iodepth={}", self.depth), format!("--size={bytes}"));
        let (pattern, runtime) = (format!("--rw={}", self.pattern), format!("--runtime={seconds}"));
        let arguments = ["--ioengine=nbd", &uri, &block, &depth, &size, &pattern, "--time_based", &runtime];
        let report = fio(&arguments, seconds)?;
        let direction = if self.pattern.ends_with("read") { "read" } else { "write" };
        measured(&report["jobs"][0][direction])
    }
}

/// Runs a fio job; its report.
pub(crate) fn fio(arguments: &[&str], seconds: u64) -> Result<Value> {
    fio_report(start_fio(arguments)?.wait(Duration::from_secs(seconds * 2 + 240))?)
}

/// Starts a fio job, which ends by itself or on SIGINT.
pub(crate) fn start_fio(arguments: &[&str]) -> Result<Job> {
    Job::spawn("fio", &mut fio_command(arguments))
}

/// A fio job to start.
pub(crate) fn fio_command(arguments: &[&str]) -> Command {
    let mut command = Command::new("fio");
    command
        .args([
            "--name=bench",
            "--output-format=json",
            "--randrepeat=0",
            "--group_reporting",
            "--lat_percentiles=1",
        ])
        .args(arguments);
    command
}

/// What a fio job says of itself.
pub(crate) fn fio_report(finished: Finished) -> Result<Value> {
    let start = finished.stdout.find('{');
    let Some(start) = start.filter(|_| finished.status.success() || finished.status.code() == Some(128))
    else {
        return finished.success().and_then(|_| bail!("fio printed no JSON"));
    };
    let report: Value = serde_json::from_str(&finished.stdout[start..]).context("reading fio's JSON")?;
    let error = &report["jobs"][0]["error"];
    // EINTR is what a job that was asked to end says.
    ensure!(*error == 0 || *error == 4, "fio: error {error}: {}", finished.stderr);
    Ok(report)
}

/// One direction of a job in fio's report.
pub(crate) fn measured(direction: &Value) -> Result<Measured> {
    let percentile = |name: &str| direction["lat_ns"]["percentile"][name].as_f64().map(|ns| ns / 1000.0);
    Ok(Measured {
        requests: direction["total_ios"].as_u64().context("fio's report has no total_ios")?,
        iops: direction["iops"].as_f64().context("fio's report has no iops")?,
        p50_us: percentile("50.000000").context("fio's report has no median")?,
        p99_us: percentile("99.000000").context("fio's report has no 99th percentile")?,
    })
}
