//! Something that serves NBD, and what it costs to serve.

use super::Scale;
use super::workload::{Measured, Region, Workload, fio};
use anyhow::Result;
use job::process;
use serde_json::{Value, json};

/// A server, or several processes that serve together.
pub(crate) struct Target {
    /// How it is called in tables.
    pub(crate) name: String,
    /// Where it serves.
    pub(crate) uri: String,
    pub(crate) pids: Vec<u32>,
    /// Bytes of its data set.
    pub(crate) bytes: u64,
}

/// One workload on one target.
pub(crate) struct Sample {
    pub(crate) target: String,
    pub(crate) workload: Workload,
    pub(crate) measured: Measured,
    /// Processor microseconds for each request, over all processes of the target.
    pub(crate) processor_us: f64,
}

impl Target {
    /// Writes all of its data set once.
    pub(crate) fn fill(&self) -> Result<()> {
        let (uri, size) = (format!("--uri={}", self.uri), format!("--size={}", self.bytes));
        fio(&["--ioengine=nbd", &uri, &size, "--rw=write", "--bs=1M", "--iodepth=8"], 300).map(drop)
    }

    /// Measures a workload, after the part of the data set that it reads has been read once if that fits the cache.
    pub(crate) fn measure(&self, workload: &Workload, scale: Scale) -> Result<Sample> {
        let bytes = match workload.region {
            Region::All => self.bytes,
            Region::Cached => scale.cache_bytes / 2,
        };
        if workload.pattern == "randread" {
            self.warm(workload, bytes)?;
        }
        let before = self.processor_us()?;
        let measured = workload.run(&self.uri, bytes, scale.seconds)?;
        let spent = self.processor_us()? - before;
        let processor_us = spent as f64 / measured.requests.max(1) as f64;
        Ok(Sample { target: self.name.clone(), workload: workload.clone(), measured, processor_us })
    }

    fn warm(&self, workload: &Workload, bytes: u64) -> Result<()> {
        if workload.region == Region::Cached {
            let (uri, size) = (format!("--uri={}", self.uri), format!("--size={bytes}"));
            fio(&["--ioengine=nbd", &uri, &size, "--rw=read", "--bs=64k", "--iodepth=4"], 60)?;
        }
        workload.run(&self.uri, bytes, 1).map(drop)
    }

    fn processor_us(&self) -> Result<u64> {
        self.pids.iter().map(|pid| process::processor_us(*pid)).sum()
    }
}

impl Sample {
    /// Bytes a second, in millions.
    pub(crate) fn megabytes_a_second(&self) -> f64 {
        self.measured.iops * self.workload.block_bytes as f64 / 1e6
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "target": self.target,
            "workload": self.workload.name,
            "block_bytes": self.workload.block_bytes,
            "depth": self.workload.depth,
            "requests": self.measured.requests,
            "iops": self.measured.iops,
            "mb_s": self.megabytes_a_second(),
            "p50_us": self.measured.p50_us,
            "p99_us": self.measured.p99_us,
            "processor_us": self.processor_us,
        })
    }
}
