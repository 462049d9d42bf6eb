//! `cargo xtask bench rebuild`: a brick lost for good, rebuilt onto another under client load, beside a plain copy of as many
//! bytes on the same disk in the same run.
//!
//! Three copies on three bricks, and a fourth brick that is empty. Clients read and write at random at half of what the
//! cluster can do, before the brick is lost and while it is rebuilt.

use super::workload::{Measured, fio, fio_report, measured, start_fio};
use crate::place;
use anyhow::{Context, Result, ensure};
use clap::Args;
use job::process::{Job, run};
use rig::cluster::{Cluster, Spec, Storage, is_redundant};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const BRICKS: usize = 3;
/// Requests of the clients at a time.
const DEPTH: u32 = 16;
/// Of ten requests so many are reads.
const READS_OF_TEN: u64 = 7;
/// What the issue allows: p99 while rebuilding over p99 before.
const P99_RATIO: f64 = 2.0;

/// What to rebuild.
#[derive(Args)]
#[command(after_help = "\
Needs four to five times the size as room on the disk of the target folder.

Examples:
  cargo xtask bench rebuild --size 4GiB
  cargo xtask bench rebuild --size 256MiB --seconds 5 --json")]
pub(crate) struct Options {
    /// Bytes that the lost brick held: the size of the volume, of which each brick has a copy
    #[arg(long, default_value = "4GiB", value_parser = parse_size)]
    size: u64,
    /// Seconds of load before the brick is lost
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Bytes a second at most that a brick fetches, such as 256MiB; the cluster's default when absent
    #[arg(long)]
    rate: Option<String>,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Clients' reads and writes in one stretch of time.
#[derive(Clone, Copy)]
struct Load {
    reads: Measured,
    writes: Measured,
}

/// All that was measured.
struct Results {
    bytes: u64,
    rebuild_s: f64,
    copy_s: f64,
    capacity_iops: f64,
    before: Load,
    during: Load,
}

/// Measures and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let binary = place::binary(options.binary.as_deref())?;
    let results = measure(options, &binary)?;
    if options.json {
        println!("{}", results.json());
    } else {
        results.print();
    }
    Ok(())
}

fn measure(options: &Options, binary: &Path) -> Result<Results> {
    let disk_bytes = options.size + options.size / 8 + (512 << 20);
    let spec =
        Spec { bricks: BRICKS, storage: Storage { disk_bytes, ..Storage::default() }, ..Spec::default() };
    let mut cluster = Cluster::start(binary, &spec)?;
    cluster.create("v", options.size, "raid1x3")?;
    if let Some(rate) = &options.rate {
        // It ends with 1 when nothing is to be rebuilt in some states, and sets the rate in all.
        let _ = cluster.admin(&["rebuild", "--rate", rate]);
    }
    let clients = Clients { uri: cluster.uri(0, "v"), bytes: options.size };
    eprintln!("filling {} MiB", options.size >> 20);
    clients.fill()?;
    cluster.add_brick(BRICKS + 1, &spec)?;
    let capacity_iops = clients.run(options.seconds, None)?.iops();
    eprintln!("capacity {capacity_iops:.0} requests a second; now half of it");
    let half = Some(capacity_iops / 2.0);
    let before = clients.run(options.seconds, half)?;
    let (rebuild_s, during) = rebuild(&mut cluster, &clients, half)?;
    let copy_s = copy(&cluster, options.size)?;
    cluster.all_alive()?;
    Ok(Results { bytes: options.size, rebuild_s, copy_s, capacity_iops, before, during })
}

/// Loses a brick and has it rebuilt onto the empty one, under load; how long that took, and what clients saw.
fn rebuild(cluster: &mut Cluster, clients: &Clients, rate: Option<f64>) -> Result<(f64, Load)> {
    let (lost, empty) = (cluster.brick_id(1)?, cluster.brick_id(BRICKS + 1)?);
    cluster.bricks[0].kill()?;
    cluster.wait_for("the lost brick is left out", Duration::from_secs(60), |status| {
        status["volumes"][0]["degraded"] != 0
    })?;
    let load = clients.start(3600, rate)?;
    std::thread::sleep(Duration::from_secs(2));
    eprintln!("rebuilding brick-{lost} onto brick-{empty}");
    let started = Instant::now();
    cluster.admin(&["brick", "replace", &lost, "--by", &empty])?;
    let limit = Duration::from_secs(120 + clients.bytes / (1 << 20));
    cluster.wait_until("the rebuild is done", limit, |status| status.volumes.iter().all(is_redundant))?;
    let took = started.elapsed().as_secs_f64();
    load.signal(Signal::INT)?;
    let report = fio_report(load.wait(Duration::from_secs(60))?)?;
    Ok((took, Load::from(&report)?))
}

/// A plain copy of as many bytes of a brick's disk, past the caches; how long it took.
fn copy(cluster: &Cluster, bytes: u64) -> Result<f64> {
    let target = job::scratch("clusters")?.join(format!("{}-copy", std::process::id()));
    let mut command = Command::new("dd");
    command.arg(format!("if={}", cluster.disk(2).display())).arg(format!("of={}", target.display()));
    command.args(["bs=1M", "iflag=direct", "oflag=direct", "conv=fsync", &format!("count={}", bytes >> 20)]);
    // What lies at the disk's beginning is the journal.
    command.args(["skip=128"]);
    let finished = run("dd", &mut command, 3600);
    let _ = std::fs::remove_file(&target);
    Ok(finished?.took.as_secs_f64())
}

/// Who reads and writes.
struct Clients {
    uri: String,
    bytes: u64,
}

impl Clients {
    fn fill(&self) -> Result<()> {
        let (uri, size) = (format!("--uri={}", self.uri), format!("--size={}", self.bytes));
        fio(&["--ioengine=nbd", &uri, &size, "--rw=write", "--bs=1M", "--iodepth=8"], 1800).map(drop)
    }

    fn run(&self, seconds: u64, rate: Option<f64>) -> Result<Load> {
        let job = self.start(seconds, rate)?;
        Load::from(&fio_report(job.wait(Duration::from_secs(seconds + 120))?)?)
    }

    /// Random reads and writes of 4 KiB, at most so many a second.
    fn start(&self, seconds: u64, rate: Option<f64>) -> Result<Job> {
        let mut arguments = vec![
            "--ioengine=nbd".to_owned(),
            format!("--uri={}", self.uri),
            format!("--size={}", self.bytes),
            "--rw=randrw".to_owned(),
            format!("--rwmixread={}", READS_OF_TEN * 10),
            "--bs=4k".to_owned(),
            format!("--iodepth={DEPTH}"),
            "--time_based".to_owned(),
            format!("--runtime={seconds}"),
        ];
        if let Some(rate) = rate {
            let reads = rate * READS_OF_TEN as f64 / 10.0;
            arguments.push(format!("--rate_iops={:.0},{:.0}", reads, rate - reads));
        }
        start_fio(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

impl Load {
    fn from(report: &Value) -> Result<Load> {
        let job = &report["jobs"][0];
        Ok(Load { reads: measured(&job["read"])?, writes: measured(&job["write"])? })
    }

    fn iops(&self) -> f64 {
        self.reads.iops + self.writes.iops
    }

    fn json(&self) -> Value {
        let one = |measured: &Measured| json!({ "iops": measured.iops, "p50_us": measured.p50_us, "p99_us": measured.p99_us, "requests": measured.requests });
        json!({ "reads": one(&self.reads), "writes": one(&self.writes) })
    }
}

impl Results {
    fn rebuild_mb_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.rebuild_s
    }

    fn copy_mb_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.copy_s
    }

    /// p99 while rebuilding over p99 before, of reads and of writes.
    fn p99_ratios(&self) -> [f64; 2] {
        [(&self.during.reads, &self.before.reads), (&self.during.writes, &self.before.writes)]
            .map(|(during, before)| during.p99_us / before.p99_us)
    }

    fn holds(&self) -> bool {
        self.p99_ratios().iter().all(|ratio| *ratio <= P99_RATIO)
    }

    fn print(&self) {
        let (rebuild, copy) = (self.rebuild_mb_s(), self.copy_mb_s());
        println!(
            "rebuilt {} MiB in {:.1} s: {rebuild:.0} MB/s; a plain copy: {copy:.0} MB/s; ratio {:.2}",
            self.bytes >> 20,
            self.rebuild_s,
            rebuild / copy
        );
        println!("clients: capacity {:.0} requests a second, load at half of it", self.capacity_iops);
        println!("{:<8} {:>22} {:>22}", "", "reads p50 / p99 us", "writes p50 / p99 us");
        for (when, load) in [("before", &self.before), ("during", &self.during)] {
            let both = |one: &Measured| format!("{:.0} / {:.0}", one.p50_us, one.p99_us);
            println!("{when:<8} {:>22} {:>22}", both(&load.reads), both(&load.writes));
        }
        let [reads, writes] = self.p99_ratios();
        let verdict = if self.holds() { "holds" } else { "DOES NOT HOLD" };
        println!(
            "p99 during over before: reads {reads:.2}, writes {writes:.2}; at most {P99_RATIO:.0}: {verdict}"
        );
    }

    fn json(&self) -> Value {
        let [reads, writes] = self.p99_ratios();
        json!({
            "bytes": self.bytes, "rebuild_s": self.rebuild_s, "rebuild_mb_s": self.rebuild_mb_s(),
            "copy_s": self.copy_s, "copy_mb_s": self.copy_mb_s(), "ratio": self.rebuild_mb_s() / self.copy_mb_s(),
            "capacity_iops": self.capacity_iops, "before": self.before.json(), "during": self.during.json(),
            "p99_ratio_reads": reads, "p99_ratio_writes": writes, "p99_ratio_max": P99_RATIO, "holds": self.holds(),
        })
    }
}

/// A size in bytes, or with a unit: `4GiB`.
pub(super) fn parse_size(text: &str) -> Result<u64> {
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        other => anyhow::bail!("'{other}' is no unit; write KiB, MiB, GiB or TiB"),
    };
    let number: u64 = digits.parse().with_context(|| format!("'{text}' is no size; write 4GiB"))?;
    let bytes = number.checked_shl(shift).filter(|bytes| bytes >> shift == number);
    let bytes = bytes.with_context(|| format!("'{text}' is too large"))?;
    ensure!(bytes >= 64 << 20, "'{text}' is too little to measure; 64MiB is the least");
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_size("4GiB").ok(), Some(4 << 30));
        assert_eq!(parse_size("268435456").ok(), Some(256 << 20));
        for text in ["4GB", "GiB", "", "1KiB", "99999999999GiB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
