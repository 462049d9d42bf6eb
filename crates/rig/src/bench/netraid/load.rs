//! What clients do to a volume, and what fio saw of it.

use super::super::workload::{fio, fio_report};
use anyhow::{Context, Result, ensure};
use job::process::Job;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

/// Of a request: the smallest that bricks store.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// What fio may take beyond the seconds that it is told.
const FIO_LIMIT: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Write,
    Read,
}

/// Requests of [`BLOCK_BYTES`] anywhere in the volume, by so many clients, each with one request outstanding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Workload {
    pub(super) work: Work,
    pub(super) clients: usize,
}

/// What all clients of a run saw.
#[derive(Clone, Default, Debug)]
pub(super) struct Seen {
    pub(super) requests: u64,
    /// Requests a second.
    pub(super) iops: f64,
    /// Of all requests, in microseconds.
    pub(super) mean_us: f64,
    pub(super) latencies: Latencies,
}

/// How many requests took how many nanoseconds.
#[derive(Clone, Default, Debug)]
pub(super) struct Latencies(BTreeMap<u64, u64>);

impl Work {
    pub(super) fn name(self) -> &'static str {
        match self {
            Work::Write => "write",
            Work::Read => "read",
        }
    }
}

impl Workload {
    pub(super) const ALL: [Workload; 4] = [
        Workload { work: Work::Write, clients: 1 },
        Workload { work: Work::Read, clients: 1 },
        Workload { work: Work::Write, clients: 8 },
        Workload { work: Work::Read, clients: 8 },
    ];

    /// For who watches.
    pub(super) fn name(self) -> String {
        format!("{} by {}", self.work.name(), self.clients)
    }

    /// Runs it, with a client at each of these NBD addresses. The seed tells which blocks are asked for.
    pub(super) fn run(self, uris: &[String], bytes: u64, seconds: u64, seed: u64) -> Result<Seen> {
        let mut command = Command::new("fio");
        command.args([
            "--output-format=json+",
            "--name=global",
            "--ioengine=nbd",
            "--iodepth=1",
            "--lat_percentiles=1",
        ]);
        command.args([
            format!("--rw=rand{}", self.work.name()),
            format!("--bs={BLOCK_BYTES}"),
            format!("--size={bytes}"),
        ]);
        command.args([
            "--time_based".to_owned(),
            format!("--runtime={seconds}"),
            format!("--randseed={seed}"),
        ]);
        for (number, uri) in uris.iter().enumerate() {
            command.args([format!("--name=client-{number}"), format!("--uri={uri}")]);
        }
        let fio = Job::spawn("fio", &mut command)?;
        let report = fio_report(fio.wait(Duration::from_secs(seconds) + FIO_LIMIT)?)?;
        self.seen(&report)
    }

    fn seen(self, report: &Value) -> Result<Seen> {
        let jobs = report["jobs"].as_array().context("fio's report has no jobs")?;
        ensure!(jobs.len() == self.clients, "fio tells of {} clients, not of {}", jobs.len(), self.clients);
        let (mut seen, mut all_us) = (Seen::default(), 0.0);
        for job in jobs {
            ensure!(job["error"] == 0, "fio: error {} of a client", job["error"]);
            let done = &job[self.work.name()];
            let requests = done["total_ios"].as_u64().context("fio's report has no total_ios")?;
            seen.requests += requests;
            seen.iops += done["iops"].as_f64().context("fio's report has no iops")?;
            let mean_ns = done["lat_ns"]["mean"].as_f64().context("fio's report has no mean latency")?;
            all_us += mean_ns / 1000.0 * requests as f64;
            let bins = done["lat_ns"]["bins"].as_object().context("fio's report has no bins of latencies")?;
            for (ns, count) in bins {
                let count = count.as_u64().context("a count in fio's bins of latencies")?;
                *seen.latencies.0.entry(ns.parse()?).or_default() += count;
            }
        }
        ensure!(seen.requests > 0, "no request was answered");
        seen.mean_us = all_us / seen.requests as f64;
        Ok(seen)
    }
}

impl Latencies {
    pub(super) fn add(&mut self, other: &Latencies) {
        for (ns, count) in &other.0 {
            *self.0.entry(*ns).or_default() += count;
        }
    }

    /// The time in microseconds that this share of all requests did not exceed, as exactly as fio's bins tell (1.6%); not a number of none.
    pub(super) fn percentile_us(&self, share: f64) -> f64 {
        let rank = (self.0.values().sum::<u64>() as f64 * share).ceil() as u64;
        let reached = |counted: &mut u64, (ns, count): (&u64, &u64)| {
            *counted += count;
            Some((*ns, *counted))
        };
        let mut bins = self.0.iter().scan(0, reached);
        bins.find(|(_, counted)| *counted >= rank).map_or(f64::NAN, |(ns, _)| ns as f64 / 1000.0)
    }
}

/// Writes all of a volume once.
pub(super) fn fill(uri: &str, bytes: u64) -> Result<()> {
    once(uri, bytes, "write")
}

/// Reads all of a volume once: bricks have it in their caches then.
pub(super) fn read_once(uri: &str, bytes: u64) -> Result<()> {
    once(uri, bytes, "read")
}

fn once(uri: &str, bytes: u64, direction: &str) -> Result<()> {
    let (uri, size, direction) =
        (format!("--uri={uri}"), format!("--size={bytes}"), format!("--rw={direction}"));
    fio(&["--ioengine=nbd", &uri, &size, &direction, "--bs=1M", "--iodepth=8"], 300).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(iops: f64, mean: f64, bins: Value) -> Value {
        let requests: u64 =
            bins.as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum();
        json!({"error": 0, "read": {"total_ios": requests, "iops": iops, "lat_ns": {"mean": mean, "bins": bins}}})
    }

    #[test]
    fn clients_are_told_together() {
        let report = json!({"jobs": [job(90.0, 1000.0, json!({"1000": 90})), job(10.0, 5000.0, json!({"1000": 8, "9000": 2}))]});
        let seen = Workload { work: Work::Read, clients: 2 }.seen(&report).expect("a report");
        assert_eq!((seen.requests, seen.iops), (100, 100.0));
        assert!((seen.mean_us - 1.4).abs() < 1e-9, "{}", seen.mean_us);
        assert_eq!(
            [0.5, 0.98, 0.99, 1.0].map(|share| seen.latencies.percentile_us(share)),
            [1.0, 1.0, 9.0, 9.0]
        );
        assert!(Workload { work: Work::Read, clients: 8 }.seen(&report).is_err(), "six clients are missing");
    }

    #[test]
    fn of_no_request_no_latency_is_told() {
        assert!(Latencies::default().percentile_us(0.99).is_nan());
    }
}
