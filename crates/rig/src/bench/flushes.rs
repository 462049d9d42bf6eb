//! Flushes for each acknowledged write, counted from outside: system calls by strace when disks are driven by plain system
//! calls, and the block device's own count when they are driven by io_uring (which strace does not see).

use super::Scale;
use super::workload::Workload;
use anyhow::{Context, Result};
use job::process::installed;
use rig::cluster::{Cluster, Spec, Storage, Wrapper};
use serde_json::{Value, json};
use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::Path;

pub(crate) struct Flushes {
    pub(crate) how: &'static str,
    pub(crate) depth: u32,
    pub(crate) writes: u64,
    /// Flushes for each write and brick.
    pub(crate) per_write_and_brick: f64,
}

const BRICKS: usize = 3;
const BYTES: u64 = 256 << 20;

impl Flushes {
    pub(crate) fn json(&self) -> Value {
        let (how, depth) = (self.how, self.depth);
        json!({"how": how, "depth": depth, "writes": self.writes, "per_write_and_brick": self.per_write_and_brick})
    }
}

/// Random writes of 4 KiB on three copies at depth 1 and 64.
pub(crate) fn measure(binary: &Path, scale: Scale) -> Result<Vec<Flushes>> {
    let mut all = Vec::new();
    let writes = Workload::all().into_iter().filter(|workload| workload.pattern == "randwrite");
    for workload in writes.filter(|workload| workload.depth != 16) {
        if installed("strace") {
            all.push(by_strace(binary, &workload, scale)?);
        }
        all.extend(by_device(binary, &workload, scale)?);
    }
    Ok(all)
}

fn by_strace(binary: &Path, workload: &Workload, scale: Scale) -> Result<Flushes> {
    let spec = Spec {
        bricks: BRICKS,
        brick_wrapper: Some(Wrapper::CountFlushes),
        storage: Storage { io: "plain", ..Storage::default() },
        ..Spec::default()
    };
    let mut cluster = Cluster::start(binary, &spec)?;
    cluster.create("v", BYTES, "raid1x3")?;
    let writes = workload.run(&cluster.uri(0, "v"), BYTES, scale.seconds)?.requests;
    let mut calls = 0;
    for brick in &mut cluster.bricks {
        calls += flush_calls(&brick.stop()?.stderr);
    }
    Ok(flushes("strace, plain", workload.depth, writes, calls))
}

/// Counts flushes, and writes that are to be durable by themselves. A call that is interrupted takes two lines, of which
/// only the first has the name with its bracket and the flags.
fn flush_calls(trace: &str) -> u64 {
    let flushes = |line: &&str| ["fdatasync(", "fsync(", "RWF_DSYNC"].iter().any(|word| line.contains(word));
    trace.lines().filter(flushes).count() as u64
}

fn by_device(binary: &Path, workload: &Workload, scale: Scale) -> Result<Option<Flushes>> {
    if device_flushes().is_err() {
        return Ok(None);
    }
    let cluster = Cluster::start(binary, &Spec { bricks: BRICKS, ..Spec::default() })?;
    cluster.create("v", BYTES, "raid1x3")?;
    let before = device_flushes()?;
    let writes = workload.run(&cluster.uri(0, "v"), BYTES, scale.seconds)?.requests;
    Ok(Some(flushes("device, io auto", workload.depth, writes, device_flushes()? - before)))
}

fn flushes(how: &'static str, depth: u32, writes: u64, count: u64) -> Flushes {
    let per_write_and_brick = count as f64 / (writes.max(1) * BRICKS as u64) as f64;
    Flushes { how, depth, writes, per_write_and_brick }
}

/// Flushes that the device under the target folder has done so far: the 16th field of its `stat`.
fn device_flushes() -> Result<u64> {
    let device = fs::metadata(job::scratch("clusters")?)?.st_dev();
    let (major, minor) = (device >> 8 & 0xfff, (device & 0xff) | (device >> 12 & 0xfff00));
    let path = format!("/sys/dev/block/{major}:{minor}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let field = text.split_whitespace().nth(15).with_context(|| format!("{path} counts no flushes"))?;
    Ok(field.parse()?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts_durable_writes_and_flushes_once() {
        let trace = "[pid 7] pwritev2(9, [...], 1, 0, 0) = 4096\n\
                     [pid 7] pwritev2(9, [...], 1, 0, RWF_DSYNC) = 4096\n\
                     [pid 8] pwritev2(9, [...], 1, 512, RWF_DSYNC <unfinished ...>\n\
                     [pid 8] <... pwritev2 resumed>) = 512\n\
                     [pid 8] fdatasync(9 <unfinished ...>\n\
                     [pid 8] <... fdatasync resumed>) = 0\n";
        assert_eq!(super::flush_calls(trace), 3);
    }
}
