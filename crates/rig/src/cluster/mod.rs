//! A real cluster on this machine for the demo, tests and measurements: each daemon a process of its own, made by the commands
//! that operators use (init, join, start), disks as files. All of it ends when the value is dropped.
//!
//! Reading order: `spec` ([`Spec`]: what a cluster is to be), [`Cluster::start`], the verbs on a running cluster, then `daemon` (one process), `disks`, `home` (logs and
//! pids), `metrics`, `network` (namespaces between which packets may be dropped), `late_link` (or held back).

mod daemon;
mod disks;
mod home;
mod late_link;
mod metrics;
mod network;
mod ports;
mod spec;

pub use daemon::{Daemon, Wrapper, set_behind};
pub use home::{GRACE, end_on_signal, stop};
pub use metrics::{Metrics, Page, page, told};
pub use network::{Link, Network};
pub use ports::free_port;
pub use spec::{Emulation, Spec, Storage, Ways};

use crate::nbd::Nbd;
use anyhow::{Context, Result, bail, ensure};
use base::ClusterId;
use daemon::Start;
use home::Home;
use host::{AdminOptions, NodeOptions, Security, TlsFiles};
pub use job::process::processor_us;
use job::process::{self, Finished, Job};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use wire::directory::{BrickEntry, VolumeStatus};
use wire::{AdminReply, AdminRequest, ClusterStatus, VolumeInfo};

/// How long a command waits for the directory.
const DIRECTORY_LIMIT: Duration = Duration::from_secs(20);
/// How long bricks may take until the directory knows them.
const KNOWN_WITHIN: Duration = Duration::from_secs(30);
/// How long bricks may take until they go by what they are told.
const HEARD_WITHIN: Duration = Duration::from_secs(20);
/// How long a command of an operator may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// How many volumes are made at most until one lies on the brick that is wanted.
const PLACED_WITHIN: u32 = 200;
/// How often it is asked whether all is in its place, at most.
const DESTAGED_ROUNDS: u32 = 30;
/// Daemons renew their metrics once a second, and some more.
pub const METRICS_RENEWED: Duration = Duration::from_millis(1200);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A gateway and its NBD port.
pub struct Gateway {
    pub daemon: Daemon,
    /// Where NBD clients reach it; 0 in a namespace.
    pub nbd_port: u16,
    /// Where they reach it in a namespace.
    socket: Option<PathBuf>,
    /// Where `attach` reaches it.
    pub port: u16,
}

pub struct Cluster {
    /// Where its files are.
    pub dir: PathBuf,
    /// Where its bricks' disks are, if not there.
    disks: Option<PathBuf>,
    binary: PathBuf,
    home: Option<Home>,
    pub directory: Daemon,
    /// Where the directory listens.
    pub directory_port: u16,
    /// Where machines join.
    pub join_port: u16,
    pub bricks: Vec<Daemon>,
    /// Where each brick listens.
    pub brick_ports: Vec<u16>,
    pub gateways: Vec<Gateway>,
    /// Further processes, such as `attach`.
    others: Vec<Daemon>,
    /// Where the directory tells its metrics, if it does.
    directory_metrics_port: Option<u16>,
    /// Where each brick, and then each gateway, tells its metrics, if they do.
    metrics_ports: Vec<u16>,
    /// Those of them at which bricks tell, in the order of bricks: one may come after the gateways.
    brick_metrics_ports: Vec<u16>,
    network: Option<Network>,
    keeps_files: bool,
}

impl Cluster {
    /// Makes a cluster from nothing and waits until every daemon serves.
    pub fn start(binary: &Path, spec: &Spec) -> Result<Cluster> {
        let dir = match &spec.folder {
            Some(dir) => std::path::absolute(dir)?,
            None => scratch_folder()?,
        };
        let home = match &spec.folder {
            Some(_) => Some(Home::make(&dir, spec.outlives)?),
            None => None,
        };
        let mut network = if spec.ways.are_namespaces() { Some(Network::new(&dir)?) } else { None };
        let (host, wrapper) = place(&mut network, "directory", Link::Prompt)?;
        let (directory_port, join_port) = (free_port()?, free_port()?);
        init_cluster(binary, &dir, spec, (&host, directory_port), (&host, join_port))?;
        let config = dir.join("directory.toml");
        let directory_metrics_port = spec.metrics.then(free_port).transpose()?;
        let mut arguments = words(&["directory", "--config", text(&config)?]);
        arguments.extend(directory_metrics_port.iter().flat_map(|port| metrics_at(*port)));
        let directory = Daemon::start(Start {
            name: "directory".to_owned(),
            binary: binary.to_owned(),
            arguments,
            wrapper,
            home: home.clone(),
        })?;
        let disks = spec.storage.folder.as_ref().map(|folder| make_own_folder(folder)).transpose()?;
        let mut cluster = Cluster {
            dir,
            disks,
            binary: binary.to_owned(),
            home,
            directory,
            directory_port,
            join_port,
            bricks: Vec::new(),
            brick_ports: Vec::new(),
            gateways: Vec::new(),
            others: Vec::new(),
            directory_metrics_port,
            metrics_ports: Vec::new(),
            brick_metrics_ports: Vec::new(),
            network,
            keeps_files: spec.folder.is_some(),
        };
        cluster.wait_ready()?;
        for number in 1..=spec.bricks {
            cluster.add_brick(number, spec)?;
        }
        for number in 1..=spec.gateways {
            cluster.add_gateway(number, spec)?;
        }
        cluster.wait_ready()?;
        // A brick is known once the directory has heard from it, a moment after it is ready.
        cluster.wait_until("the directory knows every brick", KNOWN_WITHIN, |status| {
            status.bricks.iter().filter(|brick| brick.alive).count() >= spec.bricks
        })?;
        Ok(cluster)
    }

    /// Makes one more brick, counted from 1, and starts it.
    pub fn add_brick(&mut self, number: usize, spec: &Spec) -> Result<()> {
        let (folder, port) = (self.dir.join(format!("brick-{number}")), free_port()?);
        let disk = format!("{}:{}", self.disk(number).display(), spec.storage.disk_bytes);
        let is_late = spec.ways == Ways::Namespaces { late: Some(number) };
        let link = if is_late { Link::Late } else { Link::Prompt };
        let (host, wrapper) = place(&mut self.network, &format!("brick-{number}"), link)?;
        let (listen, label) = (format!("{host}:{port}"), format!("host=host-{number}"));
        let (cache, journal) = (spec.storage.cache_bytes.to_string(), spec.storage.journal_bytes.to_string());
        let token = self.token()?;
        let mut arguments = vec!["brick", "init", "--dir", text(&folder)?, "--join", &token, "--disk", &disk];
        arguments.extend(["--listen", &listen, "--label", &label]);
        arguments.extend(["--cache-bytes", &cache, "--journal-bytes", &journal]);
        run(&self.binary, &arguments)?;
        let config = folder.join("brick.toml");
        let mut arguments = words(&["brick", "--config", text(&config)?, "--io", spec.storage.io]);
        arguments.extend(self.emulation_words(number, &spec.storage.emulation)?);
        if let Some(bytes) = spec.storage.destage_bytes {
            arguments.extend(["--destage-bytes".to_owned(), bytes.to_string()]);
        }
        arguments.extend(self.metrics_words(spec)?);
        self.brick_metrics_ports.extend(self.metrics_ports.last().filter(|_| spec.metrics));
        // The directory chooses ids; a process is called like its brick.
        let name = format!("brick-{}", self.brick_id(number)?);
        let behind = spec.behind.clone().filter(|_| number == 1).map(Wrapper::Behind);
        let wrapper = wrapper.or_else(|| spec.brick_wrapper.clone()).or(behind);
        let daemon = self.launch(name, arguments, wrapper)?;
        self.bricks.push(daemon);
        self.brick_ports.push(port);
        Ok(())
    }

    fn add_gateway(&mut self, number: usize, spec: &Spec) -> Result<()> {
        let name = format!("gateway-{number}");
        let (host, wrapper) = place(&mut self.network, &name, Link::Prompt)?;
        let folder = self.dir.join(&name);
        let (port, nbd_port) = (free_port()?, free_port()?);
        let socket = spec.ways.are_namespaces().then(|| self.dir.join(format!("{name}.sock")));
        let nbd = match &socket {
            Some(path) => format!("unix:{}", path.display()),
            None => format!("tcp:127.0.0.1:{nbd_port}"),
        };
        let listen = format!("{host}:{port}");
        let token = self.token()?;
        let mut arguments = vec!["gateway", "init", "--dir", text(&folder)?, "--join", &token];
        arguments.extend(["--listen", &listen, "--nbd", &nbd]);
        let brick = format!("brick-{number}");
        if spec.beside {
            arguments.extend(["--beside", &brick]);
        }
        run(&self.binary, &arguments)?;
        let config = folder.join("gateway.toml");
        if spec.nbd_tls {
            demand_nbd_certificates(&config)?;
        }
        let mut arguments = words(&["gateway", "--config", text(&config)?]);
        arguments.extend(self.metrics_words(spec)?);
        let clock = spec.gateway_clocks_s.get(number - 1).filter(|ahead_s| **ahead_s != 0);
        let wrapper = wrapper.or(clock.map(|ahead_s| Wrapper::Clock { ahead_s: *ahead_s }));
        let behind = spec.behind.clone().filter(|_| number == 1).map(Wrapper::Behind);
        let wrapper = wrapper.or(behind);
        let daemon = self.launch(name, arguments, wrapper)?;
        self.gateways.push(Gateway { daemon, nbd_port, socket, port });
        Ok(())
    }

    /// Starts a further process of this cluster, such as an `attach`; does not wait until it serves.
    pub fn spawn(&mut self, name: &str, arguments: &[&str]) -> Result<()> {
        let daemon = self.launch(name.to_owned(), words(arguments), None)?;
        self.others.push(daemon);
        Ok(())
    }

    fn launch(&self, name: String, arguments: Vec<String>, wrapper: Option<Wrapper>) -> Result<Daemon> {
        let (binary, home) = (self.binary.clone(), self.home.clone());
        Daemon::start(Start { name, binary, arguments, wrapper, home })
    }

    fn emulation_words(&self, number: usize, emulation: &Emulation) -> Result<Vec<String>> {
        let file = match emulation {
            Emulation::None => return Ok(Vec::new()),
            Emulation::File(file) => file.clone(),
            Emulation::Each => {
                self.emulate(number, "")?;
                self.emulation(number)
            }
        };
        Ok(words(&["--emulation", text(&file)?]))
    }

    fn metrics_words(&mut self, spec: &Spec) -> Result<Vec<String>> {
        if !spec.metrics {
            return Ok(Vec::new());
        }
        let port = free_port()?;
        self.metrics_ports.push(port);
        Ok(metrics_at(port).to_vec())
    }

    /// What bricks and gateways measure of themselves; they renew it once a second.
    pub fn metrics(&self) -> Metrics {
        Metrics(self.metrics_ports.iter().map(|port| metrics::fetch(*port)).collect())
    }

    /// Where bricks and gateways tell what they measure.
    pub fn metrics_ports(&self) -> Vec<u16> {
        self.metrics_ports.clone()
    }

    /// What the daemon says whose metrics are at this port.
    pub fn page_at(&self, port: u16) -> Result<Page> {
        metrics::ask(port)
    }

    /// Waits until bricks write nothing home any more from their journals, so that nobody takes it for work of what comes after. Daemons that keep
    /// some of it for later are not waited for long.
    pub fn wait_until_destaged(&self) {
        for _ in 0..DESTAGED_ROUNDS {
            let before = self.metrics();
            std::thread::sleep(METRICS_RENEWED);
            if self.metrics().grown(&before, "brickwork_store_destaged_blocks_total") == 0.0 {
                return;
            }
        }
    }

    /// What bricks measure of themselves, in their order. An error if one does not answer.
    pub fn brick_pages(&self) -> Result<Vec<Page>> {
        self.brick_metrics_ports.iter().map(|port| metrics::ask(*port)).collect()
    }

    /// The pages of all daemons that tell their metrics, as they send them.
    pub fn told_metrics(&self) -> Result<Vec<String>> {
        let ports = self.directory_metrics_port.iter().chain(&self.metrics_ports);
        ports.map(|port| metrics::told(*port)).collect()
    }

    fn emulation(&self, number: usize) -> PathBuf {
        self.dir.join(format!("brick-{number}.emulation.toml"))
    }

    /// From now on each access to the disks of a brick, counted from 1, is answered so much later.
    pub fn set_late(&self, number: usize, late_ms: u64) -> Result<()> {
        self.emulate(number, &format!("late_ms = {late_ms}\n"))
    }

    /// From now on the disks of a brick, counted from 1, behave as this text says.
    pub fn emulate(&self, number: usize, text: &str) -> Result<()> {
        let (path, next) = (self.emulation(number), self.dir.join("emulation.next"));
        std::fs::write(&next, text)?;
        Ok(std::fs::rename(next, path)?)
    }

    /// Waits until all bricks emulate their drives, or none does. They must tell their metrics.
    pub fn wait_for_drives(&mut self, are_emulated: bool) -> Result<()> {
        let what = if are_emulated { "emulate their drives" } else { "stop emulating their drives" };
        let is_so = |page: &Page| {
            let clock_s = page.get("brickwork_emulated_drive_clock_seconds").copied().unwrap_or(0.0);
            (clock_s > 0.0) == are_emulated
        };
        let started = Instant::now();
        // One that has just been started does not answer yet.
        while !self.brick_pages().is_ok_and(|pages| pages.iter().all(is_so)) {
            self.all_alive()?;
            ensure!(
                started.elapsed() < HEARD_WITHIN,
                "not all bricks {what}; look into {}",
                self.dir.join("logs").display()
            );
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Waits until every brick goes by the streams as they are.
    pub fn wait_for_streams(&self) -> Result<()> {
        let started = Instant::now();
        loop {
            let reply = self.call(AdminRequest::ListStreams)?;
            let AdminReply::Streams(streams) = reply else {
                bail!("the directory answered a question about streams with {reply:?}")
            };
            if streams.bricks_informed == streams.bricks {
                return Ok(());
            }
            ensure!(started.elapsed() < HEARD_WITHIN, "not all bricks have heard of the streams");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Kills all gateways, whatever state they are in: who waits for their answers learns that there will be none.
    pub fn kill_gateways(&mut self) -> Result<()> {
        self.gateways.iter_mut().try_for_each(|gateway| gateway.daemon.kill())
    }

    /// A token with which one more machine may join.
    pub fn token(&self) -> Result<String> {
        let output = run(&self.binary, &["cluster", "token", "--dir", text(&self.dir)?])?;
        let token = output.stdout.split_whitespace().last().context("`cluster token` printed nothing")?;
        Ok(token.to_owned())
    }

    /// Where a brick's disk lies; bricks are counted from 1.
    pub fn disk(&self, number: usize) -> PathBuf {
        match &self.disks {
            Some(folder) => folder.join(format!("disk-{number}")),
            None => self.dir.join(format!("brick-{number}/disk")),
        }
    }

    /// A brick's configuration; bricks are counted from 1.
    pub fn brick_config(&self, number: usize) -> PathBuf {
        self.dir.join(format!("brick-{number}/brick.toml"))
    }

    /// The id that the directory gave to a brick, counted from 1.
    pub fn brick_id(&self, number: usize) -> Result<String> {
        let config = std::fs::read_to_string(self.brick_config(number))?;
        let line = config.lines().find_map(|line| line.strip_prefix("id = "));
        Ok(line.with_context(|| format!("brick.toml of brick-{number} has no id"))?.trim().to_owned())
    }

    /// The configuration of those who administer the cluster.
    pub fn client_config(&self) -> PathBuf {
        self.dir.join("admin/client.toml")
    }

    /// The binary all daemons run.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Runs an administrator's command; its output.
    pub fn admin(&self, arguments: &[&str]) -> Result<String> {
        let config = self.client_config();
        let mut all = vec!["--config", text(&config)?];
        all.extend(arguments);
        Ok(run(&self.binary, &all)?.stdout)
    }

    /// Asks the directory, as an operator.
    pub fn call(&self, request: AdminRequest) -> Result<AdminReply> {
        Ok(host::admin_call(&self.admin_options()?, request)?)
    }

    /// How an operator reaches it.
    pub fn admin_options(&self) -> Result<AdminOptions> {
        admin_options(&self.client_config())
    }

    pub fn create(&self, name: &str, bytes: u64, layout: &str) -> Result<VolumeInfo> {
        self.create_in(name, bytes, layout, 0)
    }

    /// A volume under a protocol.
    pub fn create_under(
        &self,
        name: &str,
        bytes: u64,
        layout: &str,
        protocol: wire::Protocol,
    ) -> Result<VolumeInfo> {
        self.make(name, bytes, layout, (0, protocol))
    }

    /// A volume without copies on one brick, counted from 1. Who gets a group is drawn: volumes are made until one lies there, and the others are
    /// deleted.
    pub fn create_on(&self, name: &str, bytes: u64, number: usize) -> Result<()> {
        let wanted = self.brick_id(number)?;
        for _ in 0..PLACED_WITHIN {
            self.create_in(name, bytes, "raid0x1", 1)?;
            let reply = self.call(AdminRequest::VolumeMap { name: name.to_owned() })?;
            let AdminReply::Map(map) = reply else {
                bail!("the directory answered a question about '{name}' with {reply:?}")
            };
            let mut members = map.groups.iter().flat_map(|group| &group.members);
            if members.all(|member| member.0.to_string() == wanted) {
                return Ok(());
            }
            self.call(AdminRequest::DeleteVolume { name: name.to_owned(), nonce: nonce() })?;
        }
        bail!("of {PLACED_WITHIN} volumes none came to lie on brick-{wanted}")
    }

    /// A volume in so many groups; 0 for the usual number.
    pub fn create_in(&self, name: &str, bytes: u64, layout: &str, groups: u32) -> Result<VolumeInfo> {
        self.make(name, bytes, layout, (groups, wire::Protocol::default()))
    }

    fn make(
        &self,
        name: &str,
        bytes: u64,
        layout: &str,
        (groups, protocol): (u32, wire::Protocol),
    ) -> Result<VolumeInfo> {
        let request = AdminRequest::CreateVolume {
            name: name.to_owned(),
            size_bytes: bytes,
            layout: layout.to_owned(),
            stripe_unit_blocks: 0,
            groups,
            read_policy: wire::ReadPolicy::FOR_NEW_VOLUMES,
            io_timeout: wire::IoTimeout::default(),
            protocol,
            placement: wire::Placement::default(),
            stream: base::StreamId::default(),
            nonce: nonce(),
            reads: wire::Reads::default(),
        };
        match self.call(request).with_context(|| format!("cannot make the volume '{name}'"))? {
            AdminReply::Volume(volume) => Ok(volume),
            other => bail!("the directory answered the creation of '{name}' with {other:?}"),
        }
    }

    pub fn health(&self) -> Result<ClusterStatus> {
        match self.call(AdminRequest::STATUS)? {
            AdminReply::Status(status) => Ok(*status),
            other => bail!("the directory answered a question about its status with {other:?}"),
        }
    }

    /// How it is, as `brickwork status --json` says.
    pub fn status(&self) -> Result<Value> {
        serde_json::from_str(&self.admin(&["--json", "status"])?).context("reading `status --json`")
    }

    /// Waits until every brick is there and every volume has its full redundancy; says how long it took.
    pub fn wait_until_redundant(&self, within: Duration) -> Result<Duration> {
        self.wait_until("all data are redundant", within, is_whole)
    }

    /// Waits until it is as it should be; says how long it took.
    pub fn wait_until(
        &self,
        what: &str,
        within: Duration,
        state: impl Fn(&ClusterStatus) -> bool,
    ) -> Result<Duration> {
        let started = Instant::now();
        while !state(&self.health()?) {
            ensure!(
                started.elapsed() < within,
                "waited {} s until {what}; files are in {}; {}",
                within.as_secs(),
                self.dir.display(),
                self.status()?
            );
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(started.elapsed())
    }

    /// Waits until what `brickwork status --json` says is as it should be; says how long it took.
    pub fn wait_for(&self, what: &str, within: Duration, state: impl Fn(&Value) -> bool) -> Result<Duration> {
        let started = Instant::now();
        loop {
            let status = self.status()?;
            if state(&status) {
                return Ok(started.elapsed());
            }
            ensure!(
                started.elapsed() < within,
                "waited {} s until {what}: {}",
                within.as_secs(),
                status["problems"]
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Where a gateway, counted from 0, serves NBD: `tcp:HOST:PORT` or `unix:/PATH`.
    pub fn endpoint(&self, gateway: usize) -> String {
        let Gateway { nbd_port, socket, .. } = &self.gateways[gateway];
        socket
            .as_ref()
            .map_or_else(|| format!("tcp:127.0.0.1:{nbd_port}"), |path| format!("unix:{}", path.display()))
    }

    /// Where a gateway serves a volume.
    pub fn uri(&self, gateway: usize, volume: &str) -> String {
        format!("nbd://127.0.0.1:{}/{volume}", self.gateways[gateway].nbd_port)
    }

    /// An NBD connection to a volume through a gateway.
    pub fn connect(&self, gateway: usize, volume: &str) -> Result<Nbd> {
        match &self.gateways[gateway].socket {
            Some(path) => Nbd::unix(path, volume),
            None => Nbd::tcp(self.gateways[gateway].nbd_port, volume),
        }
    }

    /// The network of a cluster in namespaces.
    pub fn network(&self) -> Result<&Network> {
        self.network.as_ref().context("this cluster has no network of its own")
    }

    /// As [`Cluster::connect`], but patient: after a restart it takes a moment until groups are whole again.
    pub fn connect_patiently(&self, gateway: usize, volume: &str) -> Result<Nbd> {
        let started = Instant::now();
        loop {
            let mut nbd = self.connect(gateway, volume);
            if let Ok(open) = &mut nbd
                && open.read(0, 4096).is_ok()
            {
                return nbd;
            }
            ensure!(
                started.elapsed() < Duration::from_secs(60),
                "the volume {volume} cannot be read through gateway-{}: {:?}",
                gateway + 1,
                nbd.err()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Leaves the files there when it ends, for somebody to look at.
    pub fn keep_files(&mut self) {
        self.keeps_files = true;
    }

    pub fn daemons(&self) -> Vec<&Daemon> {
        let gateways = self.gateways.iter().map(|gateway| &gateway.daemon);
        std::iter::once(&self.directory).chain(&self.bricks).chain(gateways).chain(&self.others).collect()
    }

    fn daemons_mut(&mut self) -> impl Iterator<Item = &mut Daemon> {
        let gateways = self.gateways.iter_mut().map(|gateway| &mut gateway.daemon);
        std::iter::once(&mut self.directory).chain(&mut self.bricks).chain(gateways).chain(&mut self.others)
    }

    /// The names of all processes.
    pub fn names(&self) -> Vec<String> {
        self.daemons().iter().map(|daemon| daemon.name().to_owned()).collect()
    }

    /// A process by its name.
    pub fn daemon(&mut self, name: &str) -> Result<&mut Daemon> {
        let mut all = self.daemons_mut();
        all.find(|daemon| daemon.name() == name).with_context(|| format!("no process is called '{name}'"))
    }

    /// Kills a process (SIGKILL).
    pub fn kill(&mut self, name: &str) -> Result<()> {
        self.daemon(name)?.kill()
    }

    /// Starts a process again that was killed; does not wait until it serves.
    pub fn start_again(&mut self, name: &str) -> Result<()> {
        self.daemon(name)?.start_again()
    }

    /// Waits until every process that runs has said that it serves.
    pub fn wait_ready(&mut self) -> Result<()> {
        self.daemons_mut().try_for_each(Daemon::wait_ready)
    }

    /// An error that names the first daemon that has ended by itself.
    pub fn all_alive(&mut self) -> Result<()> {
        self.daemons_mut().try_for_each(Daemon::alive)
    }

    /// Kills every daemon at once, but not what is beside the cluster.
    pub fn kill_all(&mut self) -> Result<()> {
        let others = self.others.len();
        let count = self.daemons().len() - others;
        self.daemons().iter().take(count).try_for_each(|daemon| daemon.send_kill())?;
        self.daemons_mut().take(count).for_each(Daemon::reap);
        Ok(())
    }

    /// Starts every daemon again that does not run.
    pub fn restart_all(&mut self) -> Result<()> {
        self.daemons_mut().filter(|daemon| !daemon.was_started()).try_for_each(Daemon::start_again)?;
        self.wait_ready()
    }

    /// Lets the processes go on when this value is gone; [`stop`] ends them.
    pub fn leave_running(mut self) {
        self.daemons_mut().for_each(Daemon::leave);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        home::wait_if_interrupted();
        if self.keeps_files && self.home.is_some() {
            // Nobody needs what it holds any more; whoever does looks at its files.
            self.daemons_mut().for_each(|daemon| drop(daemon.kill()));
            return;
        }
        self.others.clear();
        self.gateways.clear();
        self.bricks.clear();
        self.directory.end();
        if !self.keeps_files {
            let folders = [Some(&self.dir), self.disks.as_ref()];
            folders.into_iter().flatten().for_each(|folder| drop(std::fs::remove_dir_all(folder)));
        }
    }
}

/// What `status` says of a brick.
pub fn of_brick<'a>(status: &'a Value, id: &str) -> &'a Value {
    let bricks = status["bricks"].as_array().map(Vec::as_slice).unwrap_or_default();
    bricks.iter().find(|entry| entry["id"].as_u64() == id.parse().ok()).unwrap_or(&Value::Null)
}

/// Whether every brick is there, and every volume has its full redundancy and keeps it.
pub fn is_whole(status: &ClusterStatus) -> bool {
    let stays = |brick: &BrickEntry| brick.alive && !(brick.evicted && brick.groups > 0);
    status.bricks.iter().all(stays) && status.volumes.iter().all(is_redundant)
}

/// Whether a volume has its full redundancy.
pub fn is_redundant(volume: &VolumeStatus) -> bool {
    volume.degraded + volume.unavailable + volume.rebuilding == 0
}

/// Runs the binary to its good end.
pub fn run(binary: &Path, arguments: &[&str]) -> Result<Finished> {
    let name = arguments.iter().filter(|word| word.chars().all(|c| c.is_ascii_lowercase())).take(2);
    let name = name.copied().collect::<Vec<_>>().join("-");
    let mut command = Command::new(binary);
    own_environment(command.args(arguments));
    // A command that ends says all in its result: it needs no log, and the product has no place for one.
    process::capture(&name, &mut command, COMMAND_LIMIT)
}

/// Starts `brickwork attach` for a volume and waits until its socket is there.
pub fn attach(cluster: &Cluster, volume: &str, socket: &Path) -> Result<Job> {
    attach_as(cluster, volume, socket, &cluster.client_config())
}

/// The same with a configuration of its own.
pub fn attach_as(cluster: &Cluster, volume: &str, socket: &Path, config: &Path) -> Result<Job> {
    attach_by(cluster, volume, socket, (config, &[]))
}

/// `brickwork attach --direct` of a volume: by the certificate of the first gateway.
pub fn attach_direct(cluster: &Cluster, volume: &str, socket: &Path) -> Result<Job> {
    let config = cluster.dir.join("gateway-1/gateway.toml");
    attach_by(cluster, volume, socket, (&config, &["--direct"]))
}

fn attach_by(
    cluster: &Cluster,
    volume: &str,
    socket: &Path,
    (config, further): (&Path, &[&str]),
) -> Result<Job> {
    let mut command = Command::new(cluster.binary());
    command.args(["--config", text(config)?, "attach", volume, "--socket", text(socket)?]);
    command.args(further);
    let mut job = Job::spawn("attach", &mut command)?;
    daemon::wait_ready(&mut job, "attach", Duration::from_secs(30))?;
    Ok(job)
}

/// A child's configuration is its file alone: what the environment says is meant for this process.
pub(crate) fn own_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BRICKWORK_") {
            command.env_remove(name);
        }
    }
}

/// A path as text.
pub fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

/// Where a daemon lives: its host, and what puts it there.
fn place(network: &mut Option<Network>, name: &str, link: Link) -> Result<(String, Option<Wrapper>)> {
    let Some(network) = network else { return Ok(("127.0.0.1".to_owned(), None)) };
    let (namespace, address) = network.add(name, link)?;
    Ok((address, Some(Wrapper::Namespace(namespace))))
}

/// Has a daemon tell its metrics at a port.
fn metrics_at(port: u16) -> [String; 2] {
    ["--metrics".to_owned(), format!("127.0.0.1:{port}")]
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn init_cluster(
    binary: &Path,
    dir: &Path,
    spec: &Spec,
    listen: (&str, u16),
    join: (&str, u16),
) -> Result<()> {
    let (listen, join) = (format!("{}:{}", listen.0, listen.1), format!("{}:{}", join.0, join.1));
    let mut arguments = vec!["cluster", "init", "--dir", text(dir)?, "--name", spec.name];
    arguments.extend(["--listen", &listen, "--join-listen", &join]);
    if !(spec.tls || spec.ways.are_namespaces()) {
        arguments.push("--plaintext");
    }
    run(binary, &arguments)?;
    let config = dir.join("directory.toml");
    ensure!(config.is_file(), "`cluster init` left no directory.toml in {}", dir.display());
    if let Some(lease_ms) = spec.lease_ms {
        let mut table: toml::Table = std::fs::read_to_string(&config)?.parse()?;
        table.insert("lease_ms".to_owned(), i64::from(lease_ms).into());
        std::fs::write(&config, toml::to_string(&table)?)?;
    }
    Ok(())
}

/// What tells a command that is repeated from a new one.
fn nonce() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 ^ u64::from(std::process::id()) << 48
}

/// How the directory is asked by whoever has this `client.toml`.
fn admin_options(config: &Path) -> Result<AdminOptions> {
    let table: toml::Table =
        std::fs::read_to_string(config).with_context(|| format!("reading {}", config.display()))?.parse()?;
    let named = |table: &toml::Table, key: &str| {
        let value = table.get(key).and_then(toml::Value::as_str).map(str::to_owned);
        value.with_context(|| format!("{} has no {key}", config.display()))
    };
    let folder = config.parent().unwrap_or(Path::new("."));
    let security = match table.get("tls").and_then(toml::Value::as_table) {
        None => Security::Plain,
        Some(tls) => {
            let file = |key| named(tls, key).map(|name| folder.join(name));
            Security::Tls(TlsFiles { ca: file("ca")?, cert: file("cert")?, key: file("key")? })
        }
    };
    let id = u128::from_str_radix(&named(&table, "cluster")?, 16).context("the cluster's id")?;
    let node = NodeOptions { cluster: ClusterId(id.to_be_bytes()), security, metrics: None };
    Ok(AdminOptions { node, directory: named(&table, "directory")?, timeout: DIRECTORY_LIMIT })
}

/// On loopback NBD is plain unless the configuration says otherwise.
fn demand_nbd_certificates(config: &Path) -> Result<()> {
    let own = std::fs::read_to_string(config)?;
    let tls = "nbd_tls = { ca = \"ca.pem\", cert = \"gateway.pem\", key = \"gateway.key\" }\n";
    Ok(std::fs::write(config, format!("{tls}{own}"))?)
}

fn scratch_folder() -> Result<PathBuf> {
    make_own_folder(&job::scratch("clusters")?)
}

/// A new folder, which no other cluster has.
fn make_own_folder(parent: &Path) -> Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let dir = parent.join(format!("{}-{number}", std::process::id()));
    std::fs::create_dir_all(&dir).with_context(|| format!("cannot make the folder {}", dir.display()))?;
    Ok(dir)
}
