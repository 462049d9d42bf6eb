//! Ceph beside us: one monitor and OSDs of Debian's packages run on loopback; an OSD keeps its data with BlueStore in a sparse file on
//! the disk of this machine.
//!
//! All that the daemons write lies in one folder, also their configuration, so that a Ceph that is set up on this machine is not touched. Caches are as
//! small as those of bricks; all else is as Ceph has it for flash when nobody changes it. There is no manager: nothing here needs one. Known to work with 16.2.

use anyhow::{Context, Result, bail, ensure};
use job::process::{Finished, Job, Place, capture, installed, tail};
use rig::cluster::{free_port, text};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Ceph's programs, and the packages of Debian that have them.
const PROGRAMS: [&str; 4] = ["ceph-mon", "ceph-osd", "ceph", "rbd"];
const PACKAGES: &str = "ceph-mon ceph-osd";
/// What asks the monitor.
const CLIENT: &str = "ceph";
const MONITOR: &str = "a";
/// Of an OSD's disk, which is a sparse file: enough for a few small volumes, BlueStore's own data and what Ceph keeps free.
const DISK_BYTES: u64 = 4 << 30;
/// BlueStore gives a tenth of its cache to data, and the rest to what describes them.
const CACHE_PARTS: u64 = 10;
/// Placement groups of a pool: several for each of the queues that an OSD has, eight at most.
const GROUPS: &str = "32";
/// How long a command may take that asks the cluster or makes a disk.
pub(super) const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// How long daemons may take until they serve.
const READY_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What must be installed before Ceph can be measured, if anything must: beside Ceph these programs, and what else is `absent`.
pub(super) fn missing(programs: &[&'static str], absent: &[&'static str], packages: &str) -> Option<String> {
    let lacks = |program: &&str| !installed(program);
    let all = PROGRAMS.iter().chain(programs).copied().filter(lacks).chain(absent.iter().copied());
    let what = all.collect::<Vec<_>>().join(", ");
    (!what.is_empty()).then(|| {
        format!(
            "Ceph is not measured, for want of {what}; on Debian: apt-get install --no-install-recommends {PACKAGES} {packages}"
        )
    })
}

pub(super) fn version() -> Result<String> {
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
pub(super) struct Ceph {
    dir: PathBuf,
    daemons: Vec<Daemon>,
}

impl Ceph {
    /// A cluster of so many OSDs, each with so much cache for data, and no pool.
    pub(super) fn start(osds: usize, cache_bytes: u64) -> Result<Ceph> {
        let dir = job::scratch("clusters")?.join(format!("{}-ceph", std::process::id()));
        fs::create_dir(&dir).with_context(|| format!("making {}", dir.display()))?;
        let mut ceph = Ceph { dir, daemons: Vec::new() };
        let configuration = configuration(text(&ceph.dir)?, &new_uuid()?, free_port()?, cache_bytes);
        fs::write(ceph.dir.join("ceph.conf"), configuration)?;
        ceph.run("ceph-mon", &["--mkfs", "--id", MONITOR])?;
        ceph.start_daemon("ceph-mon", MONITOR)?;
        ceph.wait_until("the monitor answers", |ceph| {
            ceph.run(CLIENT, &["fsid", "--connect-timeout", "5"]).is_ok()
        })?;
        for number in 1..=osds {
            ceph.add_osd(number)?;
        }
        ceph.wait_until_all_up(osds)?;
        Ok(ceph)
    }

    /// OSDs are counted from 1 here, and from 0 in Ceph. Each is on a host of its own.
    fn add_osd(&mut self, number: usize) -> Result<()> {
        let (id, uuid) = (id_of(number), new_uuid()?);
        let (osd, host) = (format!("osd.{id}"), format!("host={}", host(number)));
        fs::create_dir(self.dir.join(format!("osd-{id}")))?;
        self.run(CLIENT, &["osd", "create", &uuid, &id])?;
        self.run("ceph-osd", &["--mkfs", "--id", &id, "--osd-uuid", &uuid])?;
        self.run(CLIENT, &["osd", "crush", "add", &osd, "1.0", "root=default", &host])?;
        self.start_daemon("ceph-osd", &id)
    }

    /// A pool whose data lie on one OSD.
    pub(super) fn create_pool_on(&self, number: usize, pool: &str) -> Result<()> {
        self.run(CLIENT, &["osd", "crush", "rule", "create-replicated", pool, &host(number), "osd"])?;
        self.create_pool(pool, pool, 1)
    }

    /// A pool of copies, each on a host of its own, by Ceph's usual rule.
    pub(super) fn create_pool_of_copies(&self, pool: &str, copies: usize) -> Result<()> {
        self.create_pool(pool, "replicated_rule", copies)
    }

    fn create_pool(&self, pool: &str, rule: &str, copies: usize) -> Result<()> {
        let create = ["osd", "pool", "create", pool, GROUPS, GROUPS, "replicated", rule];
        let size = copies.to_string();
        self.run(CLIENT, &[&create[..], &["--size", &size, "--autoscale-mode", "off"]].concat()).map(drop)
    }

    pub(super) fn create_image(&self, pool: &str, image: &str, bytes: u64) -> Result<()> {
        let (place, size) = (format!("{pool}/{image}"), format!("{bytes}B"));
        self.run("rbd", &["create", &place, "--size", &size]).map(drop)
    }

    /// Serves an image over NBD under its own name, and says where.
    pub(super) fn serve(&mut self, pool: &str, image: &str) -> Result<String> {
        let socket = self.dir.join(format!("{image}.nbd"));
        let source = format!("rbd:{pool}/{image}:conf={}:id=admin", text(&self.dir.join("ceph.conf"))?);
        let path = format!("--socket={}", text(&socket)?);
        let name = format!("--export-name={image}");
        let how = ["--persistent", "--shared=0", "--cache=none", "--format=raw"];
        self.spawn("qemu-nbd", Command::new("qemu-nbd").args(how).args([&path, &name, &source]))?;
        self.wait_until("qemu-nbd serves", |_| socket.exists())?;
        Ok(format!("unix:{}", text(&socket)?))
    }

    fn start_daemon(&mut self, program: &str, id: &str) -> Result<()> {
        self.spawn(&format!("{program}-{id}"), Command::new(program).args(["--foreground", "--id", id]))
    }

    fn spawn(&mut self, name: &str, command: &mut Command) -> Result<()> {
        let (stdout, stderr) = (self.dir.join(format!("{name}.out")), self.dir.join(format!("{name}.log")));
        let place = Place { stdout, stderr, outlives: false };
        let job = Job::spawn_at(name, self.in_cluster(command), place)?;
        self.daemons.push(Daemon { name: name.to_owned(), job });
        Ok(())
    }

    fn osd(&self, number: usize) -> Result<&Daemon> {
        let name = osd_name(number);
        self.daemons.iter().find(|one| one.name == name).with_context(|| format!("{name} does not run"))
    }

    pub(super) fn osd_pid(&self, number: usize) -> Result<u32> {
        Ok(self.osd(number)?.job.pid())
    }

    pub(super) fn kill_osd(&mut self, number: usize) -> Result<()> {
        let name = osd_name(number);
        let at = self.daemons.iter().position(|one| one.name == name);
        // Who is dropped is killed.
        drop(self.daemons.remove(at.with_context(|| format!("{name} does not run"))?));
        Ok(())
    }

    pub(super) fn restart_osd(&mut self, number: usize) -> Result<()> {
        self.start_daemon("ceph-osd", &id_of(number))
    }

    /// All that the monitor has said so far.
    pub(super) fn monitor_said(&self) -> String {
        self.daemons.first().map(|monitor| monitor.job.stderr()).unwrap_or_default()
    }

    pub(super) fn wait_until_all_up(&mut self, osds: usize) -> Result<()> {
        self.wait_until("all OSDs are up", |ceph| ceph.osds_up().is_ok_and(|up| up == osds as u64))
    }

    fn osds_up(&self) -> Result<u64> {
        let said = self.run(CLIENT, &["osd", "stat", "--format", "json"])?.stdout;
        serde_json::from_str::<Value>(&said)?["num_up_osds"].as_u64().context("ceph tells no num_up_osds")
    }

    /// Runs a command to its good end.
    fn run(&self, program: &str, words: &[&str]) -> Result<Finished> {
        capture(program, self.in_cluster(Command::new(program).args(words)), COMMAND_LIMIT)
    }

    /// The program talks to this cluster, whatever else is configured on this machine.
    pub(super) fn in_cluster<'a>(&self, command: &'a mut Command) -> &'a mut Command {
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
        // Whoever was started last uses what was started before.
        while self.daemons.pop().is_some() {}
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn id_of(number: usize) -> String {
    (number - 1).to_string()
}

fn osd_name(number: usize) -> String {
    format!("ceph-osd-{}", id_of(number))
}

fn host(number: usize) -> String {
    format!("host-{number}")
}

fn new_uuid() -> Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}

/// `ceph.conf` of a cluster in a folder. Queues are those for flash, whatever the disk says of itself. The monitor gets no `public addr`: with one it takes its address for that of a cluster that it is to join.
fn configuration(dir: &str, cluster: &str, port: u16, cache_bytes: u64) -> String {
    let cache_bytes = cache_bytes * CACHE_PARTS;
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
mon cluster log to stderr = true
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

    #[test]
    fn whatever_daemons_write_is_in_their_folder() {
        let text = configuration("/folder", "c1", 12_345, 4 << 20);
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{name} =")));
        for name in ["mon data", "osd data", "run dir", "crash dir"] {
            assert!(value(name).is_some_and(|value| value.trim().starts_with("/folder")), "{name}");
        }
        assert_eq!(["admin socket", "pid file"].map(value), [Some(""); 2]);
    }
}
