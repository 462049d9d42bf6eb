//! The tenants of `shares` on Ceph: what each of them gets where clients have no weights. One monitor and three OSDs of Debian's packages run on
//! loopback; an OSD keeps its data with BlueStore in a file on the disk of this machine, as bricks do in `files`.
//!
//! All that the daemons write lies in one folder, also their configuration, so that a Ceph that is set up on this machine is not touched. Caches are as
//! small as those of bricks; all else is as Ceph has it for flash when nobody changes it. There is no manager: nothing here needs one. Known to work with 16.2.

use super::Times;
use super::bed::{CACHE_BYTES, Disk, VOLUME_BYTES};
use super::shares::{BRICKS, OfClient, Server, Shares, TENANTS, Tenant, by_tenant};
use crate::bench::workload::{fio_command, fio_report, measured};
use anyhow::{Context, Result, bail, ensure};
use job::process::{Finished, Job, Place, capture, installed, tail};
use rig::cluster::{free_port, text};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const PROGRAMS: [&str; 5] = ["ceph-mon", "ceph-osd", "ceph", "rbd", "fio"];
const INSTALL: &str = "apt-get install --no-install-recommends ceph-mon ceph-osd fio";
/// What asks the monitor.
const CLIENT: &str = "ceph";
const MONITOR: &str = "a";
/// Of an OSD's disk, which is a sparse file: enough for two volumes, BlueStore's own data and what Ceph keeps free.
const DISK_BYTES: u64 = 4 << 30;
/// BlueStore gives a tenth of its cache to data, and the rest to what describes them.
const CACHE_PARTS: u64 = 10;
/// Placement groups of an OSD's pool: several for each of the queues that an OSD has, eight at most.
const GROUPS: &str = "32";
/// How long a command may take that asks the cluster or makes a disk.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// How long daemons may take until they serve.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long a volume may take to be filled.
const FILL_LIMIT: Duration = Duration::from_secs(120);
/// What fio may take for a run beyond the time for which it reads.
const FIO_EXTRA: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What must be installed before Ceph can be measured, if anything must.
pub(super) fn missing() -> Result<Option<String>> {
    let mut absent: Vec<&str> = PROGRAMS.into_iter().filter(|program| !installed(program)).collect();
    if installed("fio") {
        let engines = capture("fio", Command::new("fio").arg("--enghelp"), COMMAND_LIMIT)?.stdout;
        let has_rbd = engines.lines().any(|line| line.trim() == "rbd");
        absent.extend((!has_rbd).then_some("fio's engine rbd"));
    }
    let what = absent.join(", ");
    Ok((!absent.is_empty())
        .then(|| format!("Ceph is not measured, for want of {what}; on Debian: {INSTALL}")))
}

/// All tenants' clients at the same time.
pub(super) fn measure(times: &Times) -> Result<Shares> {
    let ceph = Ceph::start()?;
    let images: Vec<Image> = TENANTS.iter().flat_map(Image::of).collect();
    images.iter().try_for_each(|image| ceph.create_filled(image))?;
    let running: Vec<Job> =
        images.iter().map(|image| ceph.start_reads(image, times)).collect::<Result<_>>()?;
    let limit = times.warm_up + times.measure + FIO_EXTRA;
    let got: Vec<OfClient> =
        running.into_iter().map(|job| of_client(&fio_report(job.wait(limit)?)?)).collect::<Result<_>>()?;
    Ok(Shares { disk: Disk::File, server: Server::Ceph { version: version()? }, got: by_tenant(&got) })
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
}

/// What fio says of a client that reads.
fn of_client(report: &Value) -> Result<OfClient> {
    let reads = measured(&report["jobs"][0]["read"])?;
    Ok(OfClient { rate: reads.iops, p50_ms: reads.p50_us / 1e3 })
}

fn version() -> Result<String> {
    let said = capture("ceph", Command::new("ceph").arg("--version"), COMMAND_LIMIT)?.stdout;
    let version = said.strip_prefix("ceph version ").and_then(|rest| rest.split_whitespace().next());
    version.map(str::to_owned).with_context(|| format!("`ceph --version` says {said:?}"))
}

/// A daemon that serves until this value is gone.
struct Daemon {
    name: String,
    job: Job,
}

/// A cluster; its daemons end and its folder goes with this value.
struct Ceph {
    dir: PathBuf,
    daemons: Vec<Daemon>,
}

impl Ceph {
    fn start() -> Result<Ceph> {
        let dir = job::scratch("clusters")?.join(format!("{}-ceph", std::process::id()));
        fs::create_dir(&dir).with_context(|| format!("making {}", dir.display()))?;
        let mut ceph = Ceph { dir, daemons: Vec::new() };
        fs::write(ceph.dir.join("ceph.conf"), configuration(text(&ceph.dir)?, &new_uuid()?, free_port()?))?;
        ceph.run("ceph-mon", &["--mkfs", "--id", MONITOR])?;
        ceph.start_daemon("ceph-mon", MONITOR)?;
        ceph.wait_until("the monitor answers", |ceph| {
            ceph.run(CLIENT, &["fsid", "--connect-timeout", "5"]).is_ok()
        })?;
        for brick in 1..=BRICKS {
            ceph.add_osd(brick)?;
        }
        ceph.wait_until("all OSDs are up", |ceph| ceph.osds_up().is_ok_and(|up| up == BRICKS as u64))?;
        for brick in 1..=BRICKS {
            let (pool, rule) = (pool(brick), rule(brick));
            let create = ["osd", "pool", "create", &pool, GROUPS, GROUPS, "replicated", &rule];
            ceph.run(CLIENT, &[&create[..], &["--size", "1", "--autoscale-mode", "off"]].concat())?;
        }
        Ok(ceph)
    }

    /// An OSD, and a rule that keeps all data of a pool on it.
    fn add_osd(&mut self, brick: usize) -> Result<()> {
        // Ceph counts OSDs from 0.
        let (id, uuid) = ((brick - 1).to_string(), new_uuid()?);
        let (osd, host, place) = (format!("osd.{id}"), format!("host-{brick}"), format!("host=host-{brick}"));
        fs::create_dir(self.dir.join(format!("osd-{id}")))?;
        self.run(CLIENT, &["osd", "create", &uuid, &id])?;
        self.run("ceph-osd", &["--mkfs", "--id", &id, "--osd-uuid", &uuid])?;
        self.run(CLIENT, &["osd", "crush", "add", &osd, "1.0", &place])?;
        self.run(CLIENT, &["osd", "crush", "rule", "create-replicated", &rule(brick), &host, "osd"])?;
        self.start_daemon("ceph-osd", &id)
    }

    fn osds_up(&self) -> Result<u64> {
        let said = self.run(CLIENT, &["osd", "stat", "--format", "json"])?.stdout;
        serde_json::from_str::<Value>(&said)?["num_up_osds"].as_u64().context("ceph tells no num_up_osds")
    }

    fn create_filled(&self, image: &Image) -> Result<()> {
        let (place, size) = (format!("{}/{}", pool(image.brick), image.name), format!("{VOLUME_BYTES}B"));
        self.run("rbd", &["create", &place, "--size", &size])?;
        let fill = self.start_fio(image, &["--rw=write", "--bs=1M", "--iodepth=8"])?;
        fio_report(fill.wait(FILL_LIMIT)?).map(drop)
    }

    /// A client that reads 4 KiB at a time, and tells what it saw after the warm-up.
    fn start_reads(&self, image: &Image, times: &Times) -> Result<Job> {
        let depth = format!("--iodepth={}", image.depth);
        let warm_up = format!("--ramp_time={}", times.warm_up.as_secs());
        let measure = format!("--runtime={}", times.measure.as_secs());
        self.start_fio(image, &["--rw=randread", "--bs=4k", &depth, "--time_based", &warm_up, &measure])
    }

    fn start_fio(&self, image: &Image, more: &[&str]) -> Result<Job> {
        let (pool, name) = (format!("--pool={}", pool(image.brick)), format!("--rbdname={}", image.name));
        let size = format!("--size={VOLUME_BYTES}");
        // fio's job is a thread: as a process it would be in a group of its own, and outlive fio if that is killed.
        let target = ["--ioengine=rbd", "--thread", "--clientname=admin", &pool, &name, &size];
        Job::spawn("fio", self.in_cluster(&mut fio_command(&[&target[..], more].concat())))
    }

    fn start_daemon(&mut self, program: &str, id: &str) -> Result<()> {
        let name = format!("{program}-{id}");
        let (stdout, stderr) = (self.dir.join(format!("{name}.out")), self.dir.join(format!("{name}.log")));
        let mut command = Command::new(program);
        self.in_cluster(command.args(["--foreground", "--id", id]));
        let job = Job::spawn_at(&name, &mut command, Place { stdout, stderr, outlives: false })?;
        self.daemons.push(Daemon { name, job });
        Ok(())
    }

    /// Runs a command to its good end.
    fn run(&self, program: &str, words: &[&str]) -> Result<Finished> {
        capture(program, self.in_cluster(Command::new(program).args(words)), COMMAND_LIMIT)
    }

    /// The program talks to this cluster, whatever else is configured on this machine.
    fn in_cluster<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("CEPH_CONF", self.dir.join("ceph.conf")).env_remove("CEPH_ARGS")
    }

    /// Waits for as long as all daemons run.
    fn wait_until(&mut self, what: &str, is_so: impl Fn(&Ceph) -> bool) -> Result<()> {
        let started = Instant::now();
        while !is_so(self) {
            if let Some(ended) = self.daemons.iter_mut().find_map(|one| (!one.job.running()).then_some(one)) {
                bail!("{} ended by itself: {}", ended.name, tail(&ended.job.stderr(), 5));
            }
            let (limit_s, last) = (READY_WITHIN.as_secs(), self.daemons.last());
            let said = || last.map(|daemon| tail(&daemon.job.stderr(), 5)).unwrap_or_default();
            ensure!(started.elapsed() < READY_WITHIN, "not within {limit_s} s: {what}; last: {}", said());
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Drop for Ceph {
    fn drop(&mut self) {
        self.daemons.clear();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The pool whose data lie on one OSD.
fn pool(brick: usize) -> String {
    format!("brick-{brick}")
}

/// The CRUSH rule of that pool.
fn rule(brick: usize) -> String {
    format!("only-{brick}")
}

fn new_uuid() -> Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}

/// `ceph.conf` of a cluster in a folder. Queues are those for flash, whatever the disk says of itself. The monitor gets no `public addr`: with one it takes its address for that of a cluster that it is to join.
fn configuration(dir: &str, cluster: &str, port: u16) -> String {
    let cache_bytes = CACHE_BYTES * CACHE_PARTS;
    format!(
        "\
[global]
fsid = {cluster}
auth cluster required = none
auth service required = none
auth client required = none
mon host = v2:127.0.0.1:{port}
mon initial members = {MONITOR}
mon data = {dir}/mon
osd data = {dir}/osd-$id
run dir = {dir}
crash dir = {dir}
admin socket =
pid file =
log to file = false
log to stderr = true
mon cluster log to file = false
debug rocksdb = 0
ms bind msgr1 = false
mon allow pool size one = true
osd crush update on start = false
osd objectstore = bluestore
bluestore block size = {DISK_BYTES}
bluestore cache autotune = false
bluestore cache size = {cache_bytes}
bluestore debug enforce settings = ssd
rbd cache = false
[mon.{MONITOR}]
mon addr = v2:127.0.0.1:{port}
[osd]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
"
    )
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

    #[test]
    fn whatever_daemons_write_is_in_their_folder() {
        let text = configuration("/folder", "c1", 12_345);
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{name} =")));
        for name in ["mon data", "osd data", "run dir", "crash dir"] {
            assert!(value(name).is_some_and(|value| value.trim().starts_with("/folder")), "{name}");
        }
        assert_eq!(["admin socket", "pid file"].map(value), [Some(""); 2]);
    }
}
