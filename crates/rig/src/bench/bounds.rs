//! What the machine can do without us: nbdkit in one hop and in two, and the bare disk's own flushes.

use super::Scale;
use super::target::Target;
use super::workload::fio;
use anyhow::{Context, Result, bail};
use job::process::{Job, tail};
use rig::cluster::{free_port, text};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// How the bounds are called in tables.
pub(crate) const ONE_HOP: &str = "nbdkit file";
pub(crate) const TWO_HOPS: &str = "two hops";
const MEMORY: &str = "nbdkit memory";

/// 4 KiB writes with O_DIRECT, each followed by fdatasync.
pub(crate) struct Sync {
    /// Jobs at once, each on a file of its own.
    pub(crate) jobs: u32,
    /// Writes a second of one job.
    pub(crate) writes_a_second_each: f64,
    /// Median of the flush alone, microseconds.
    pub(crate) flush_p50_us: f64,
    /// 99th percentile of the flush alone, microseconds.
    pub(crate) flush_p99_us: f64,
}

/// The bare disk by one job and by three at once.
pub(crate) fn syncs(scale: Scale) -> Result<Vec<Sync>> {
    [1, 3].into_iter().map(|jobs| sync(jobs, scale)).collect()
}

fn sync(jobs: u32, scale: Scale) -> Result<Sync> {
    let folder = job::scratch("sync")?;
    let (directory, number) = (format!("--directory={}", text(&folder)?), format!("--numjobs={jobs}"));
    let runtime = format!("--runtime={}", scale.seconds);
    let mut arguments = vec!["--ioengine=psync", "--direct=1", "--rw=randwrite", "--bs=4k", "--fdatasync=1"];
    arguments.extend(["--size=64m", "--overwrite=1", "--time_based", &directory, &number, &runtime]);
    let report = fio(&arguments, scale.seconds)?;
    fs::remove_dir_all(&folder)?;
    let job = &report["jobs"][0];
    let percentile = |name: &str| {
        job["sync"]["lat_ns"]["percentile"][name].as_f64().context("fio says nothing of flushes")
    };
    let all = job["write"]["iops"].as_f64().context("fio's report has no iops")?;
    Ok(Sync {
        jobs,
        writes_a_second_each: all / f64::from(jobs),
        flush_p50_us: percentile("50.000000")? / 1000.0,
        flush_p99_us: percentile("99.000000")? / 1000.0,
    })
}

impl Sync {
    pub(crate) fn json(&self) -> Value {
        json!({
            "jobs": self.jobs,
            "writes_a_second_each": self.writes_a_second_each,
            "flush_p50_us": self.flush_p50_us,
            "flush_p99_us": self.flush_p99_us,
        })
    }
}

pub(crate) struct Servers {
    memory: Server,
    file: Server,
    front: Server,
    disk: PathBuf,
    bytes: u64,
}

struct Server {
    job: Job,
    port: u16,
}

impl Servers {
    /// `nbdkit memory`, `nbdkit file`, and `nbdkit nbd` in front of a `nbdkit file` of its own process.
    pub(crate) fn start(scale: Scale) -> Result<Servers> {
        let bytes = scale.cache_bytes * 12;
        let disk = job::scratch("bounds")?.join("disk");
        fs::File::create(&disk)?.set_len(bytes)?;
        let memory = Server::start(&["memory", &bytes.to_string()])?;
        let file = Server::start(&["file", text(&disk)?])?;
        let front = Server::start(&["nbd", &format!("uri=nbd://127.0.0.1:{}/", file.port)])?;
        Ok(Servers { memory, file, front, disk, bytes })
    }

    /// Each as a target. The two hops are two processes, of which the second also serves the one hop.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let target = |name: &str, server: &Server, pids: &[u32]| Target {
            name: name.to_owned(),
            uri: format!("nbd://127.0.0.1:{}/", server.port),
            pids: pids.to_vec(),
            bytes: self.bytes,
        };
        let (memory, file, front) = (self.memory.job.pid(), self.file.job.pid(), self.front.job.pid());
        vec![
            target(MEMORY, &self.memory, &[memory]),
            target(ONE_HOP, &self.file, &[file]),
            target(TWO_HOPS, &self.front, &[file, front]),
        ]
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in [&self.front, &self.file, &self.memory] {
            let _ = server.job.signal(Signal::TERM);
        }
        let _ = fs::remove_file(&self.disk);
    }
}

impl Server {
    fn start(plugin: &[&str]) -> Result<Server> {
        let port = free_port()?;
        let mut command = Command::new("nbdkit");
        command.args(["-f", "--ipaddr", "127.0.0.1", "--port", &port.to_string()]).args(plugin);
        let mut job = Job::spawn(&format!("nbdkit-{}", plugin[0]), &mut command)?;
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if !job.running() || started.elapsed() > Duration::from_secs(20) {
                bail!("nbdkit {} does not serve: {}", plugin[0], tail(&job.stderr(), 5));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Server { job, port })
    }
}
