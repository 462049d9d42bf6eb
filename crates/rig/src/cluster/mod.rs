//! A real cluster on loopback for tests and measurements: each daemon a process of its own, disks as files on the disk of
//! the target folder. All of it ends when the value is dropped.
//!
//! Reading order: [`Spec`], [`Cluster::start`], the verbs on a running cluster, then `daemon` (one process), `metrics`, `network`
//! (namespaces between which packets may be dropped).

mod daemon;
mod metrics;
mod network;

pub use daemon::{Daemon, Wrapper};
pub use metrics::Metrics;
pub use network::Network;

use crate::nbd::Nbd;
use anyhow::{Context, Result, ensure};
use job::process::{self, Finished, Job};
use serde_json::Value;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What a cluster consists of.
#[derive(Clone)]
pub struct Spec {
    /// Number of bricks, each on a host of its own.
    pub bricks: usize,
    /// Bytes of each brick's disk.
    pub disk_bytes: u64,
    /// Bytes of each brick's cache.
    pub cache_bytes: u64,
    /// Bytes of the journal on each brick's disk.
    pub journal_bytes: u64,
    /// `auto`, `io_uring` or `plain`.
    pub io: &'static str,
    /// Number of gateways.
    pub gateways: usize,
    /// Whether daemons speak TLS to each other.
    pub tls: bool,
    /// Whether the gateways' NBD clients must show a certificate.
    pub nbd_tls: bool,
    /// What runs around each brick.
    pub brick_wrapper: Option<Wrapper>,
    /// Whether each brick's disks can be made late while it runs ([`Cluster::set_late`]).
    pub emulation: bool,
    /// Whether bricks and gateways answer with their metrics ([`Cluster::metrics`]).
    pub metrics: bool,
    /// Whether each daemon has a network namespace of its own. Then they speak TLS, and NBD is on unix sockets.
    pub namespaces: bool,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            bricks: 3,
            disk_bytes: 512 << 20,
            cache_bytes: 64 << 20,
            journal_bytes: 64 << 20,
            io: "auto",
            gateways: 1,
            tls: false,
            nbd_tls: false,
            brick_wrapper: None,
            emulation: false,
            metrics: false,
            namespaces: false,
        }
    }
}

/// A gateway and its NBD port.
pub struct Gateway {
    /// The process.
    pub daemon: Daemon,
    /// Where NBD clients reach it; 0 in a namespace.
    pub nbd_port: u16,
    /// Where they reach it in a namespace.
    socket: Option<PathBuf>,
    /// Where `attach` reaches it.
    pub port: u16,
}

/// A running cluster.
pub struct Cluster {
    /// Where its files are.
    pub dir: PathBuf,
    binary: PathBuf,
    /// The directory.
    pub directory: Daemon,
    /// Where the directory listens.
    pub directory_port: u16,
    /// Where machines join.
    pub join_port: u16,
    /// The bricks.
    pub bricks: Vec<Daemon>,
    /// Where each brick listens.
    pub brick_ports: Vec<u16>,
    /// The gateways.
    pub gateways: Vec<Gateway>,
    /// Where each brick, and then each gateway, tells its metrics, if they do.
    metrics_ports: Vec<u16>,
    network: Option<Network>,
    keeps_files: bool,
}

impl Cluster {
    /// Makes a cluster from nothing and waits until every daemon serves.
    pub fn start(binary: &Path, spec: &Spec) -> Result<Cluster> {
        let dir = fresh_folder()?;
        let mut network = if spec.namespaces { Some(Network::new(&dir)?) } else { None };
        let (host, wrapper) = place(&mut network, "directory")?;
        let (directory_port, join_port) = (free_port()?, free_port()?);
        let tls = spec.tls || spec.namespaces;
        init_cluster(binary, &dir, (&host, directory_port), (&host, join_port), tls)?;
        let config = dir.join("cluster/directory.toml");
        let arguments = ["directory", "--config", text(&config)?];
        let directory = Daemon::start("directory", binary, &arguments, wrapper)?;
        let (binary, bricks, gateways) = (binary.to_owned(), Vec::new(), Vec::new());
        let brick_ports = Vec::new();
        let mut cluster = Cluster {
            dir,
            binary,
            directory,
            directory_port,
            join_port,
            bricks,
            brick_ports,
            gateways,
            metrics_ports: Vec::new(),
            network,
            keeps_files: false,
        };
        for number in 1..=spec.bricks {
            cluster.add_brick(number, spec)?;
        }
        for number in 1..=spec.gateways {
            cluster.add_gateway(number, spec)?;
        }
        cluster.wait_for_bricks(spec.bricks)?;
        Ok(cluster)
    }

    /// A brick is known once the directory has heard from it, a moment after it is ready.
    fn wait_for_bricks(&self, count: usize) -> Result<()> {
        let started = Instant::now();
        loop {
            let status = self.status()?;
            let bricks = status["bricks"].as_array().map(Vec::as_slice).unwrap_or_default();
            if bricks.iter().filter(|brick| brick["alive"] == true).count() >= count {
                return Ok(());
            }
            ensure!(
                started.elapsed() < Duration::from_secs(30),
                "the directory does not know all bricks: {status}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Makes one more brick, counted from 1, and starts it.
    pub fn add_brick(&mut self, number: usize, spec: &Spec) -> Result<()> {
        let (folder, port) = (self.dir.join(format!("brick-{number}")), free_port()?);
        let disk = format!("{}:{}", self.disk(number).display(), spec.disk_bytes);
        let name = format!("brick-{number}");
        let (host, wrapper) = place(&mut self.network, &name)?;
        let (listen, label) = (format!("{host}:{port}"), format!("host=h{number}"));
        let (cache, journal) = (spec.cache_bytes.to_string(), spec.journal_bytes.to_string());
        let token = self.token()?;
        let mut arguments = vec!["brick", "init", "--dir", text(&folder)?, "--join", &token, "--disk", &disk];
        arguments.extend(["--listen", &listen, "--label", &label]);
        arguments.extend(["--cache-bytes", &cache, "--journal-bytes", &journal]);
        run(&self.binary, &arguments)?;
        let config = folder.join("brick.toml");
        let mut arguments = vec!["brick", "--config", text(&config)?, "--io", spec.io];
        let emulation = self.emulation(number);
        if spec.emulation {
            self.set_late(number, 0)?;
            arguments.extend(["--emulation", text(&emulation)?]);
        }
        let metrics = self.place_of_metrics(spec)?;
        arguments.extend(metrics.iter().flat_map(|address| ["--metrics", address]));
        let wrapper = wrapper.or_else(|| spec.brick_wrapper.clone());
        self.bricks.push(Daemon::start(&name, &self.binary, &arguments, wrapper)?);
        self.brick_ports.push(port);
        Ok(())
    }

    fn add_gateway(&mut self, number: usize, spec: &Spec) -> Result<()> {
        let name = format!("gateway-{number}");
        let (host, wrapper) = place(&mut self.network, &name)?;
        let folder = self.dir.join(&name);
        let (port, nbd_port) = (free_port()?, free_port()?);
        let socket = spec.namespaces.then(|| self.dir.join(format!("{name}.sock")));
        let nbd = match &socket {
            Some(path) => format!("unix:{}", path.display()),
            None => format!("tcp:127.0.0.1:{nbd_port}"),
        };
        let listen = format!("{host}:{port}");
        let token = self.token()?;
        let mut arguments = vec!["gateway", "init", "--dir", text(&folder)?, "--join", &token];
        arguments.extend(["--listen", &listen, "--nbd", &nbd]);
        run(&self.binary, &arguments)?;
        let config = folder.join("gateway.toml");
        if spec.nbd_tls {
            demand_nbd_certificates(&config)?;
        }
        let mut arguments = vec!["gateway", "--config", text(&config)?];
        let metrics = self.place_of_metrics(spec)?;
        arguments.extend(metrics.iter().flat_map(|address| ["--metrics", address]));
        let daemon = Daemon::start(&name, &self.binary, &arguments, wrapper)?;
        self.gateways.push(Gateway { daemon, nbd_port, socket, port });
        Ok(())
    }

    fn place_of_metrics(&mut self, spec: &Spec) -> Result<Option<String>> {
        if !spec.metrics {
            return Ok(None);
        }
        let port = free_port()?;
        self.metrics_ports.push(port);
        Ok(Some(format!("127.0.0.1:{port}")))
    }

    /// What bricks and gateways measure of themselves; they renew it once a second.
    pub fn metrics(&self) -> Metrics {
        Metrics(self.metrics_ports.iter().map(|port| metrics::fetch(*port)).collect())
    }

    fn emulation(&self, number: usize) -> PathBuf {
        self.dir.join(format!("brick-{number}.emulation.toml"))
    }

    /// From now on each access to the disks of a brick, counted from 1, is answered so much later.
    pub fn set_late(&self, number: usize, late_ms: u64) -> Result<()> {
        let (path, next) = (self.emulation(number), self.dir.join("emulation.next"));
        std::fs::write(&next, format!("late_ms = {late_ms}\n"))?;
        Ok(std::fs::rename(next, path)?)
    }

    /// A token with which one more machine may join.
    pub fn token(&self) -> Result<String> {
        let folder = self.dir.join("cluster");
        let output = run(&self.binary, &["cluster", "token", "--dir", text(&folder)?])?;
        let token = output.stdout.split_whitespace().last().context("`cluster token` printed nothing")?;
        Ok(token.to_owned())
    }

    /// Where a brick's disk lies; bricks are counted from 1.
    pub fn disk(&self, number: usize) -> PathBuf {
        self.dir.join(format!("brick-{number}.disk"))
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
        self.dir.join("cluster/admin/client.toml")
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

    /// Makes a volume.
    pub fn create(&self, name: &str, bytes: u64, layout: &str) -> Result<()> {
        self.admin(&["volume", "create", name, "--size", &bytes.to_string(), "--layout", layout]).map(drop)
    }

    /// The cluster's status as JSON.
    pub fn status(&self) -> Result<Value> {
        serde_json::from_str(&self.admin(&["--json", "status"])?).context("reading `status --json`")
    }

    /// Waits until every brick is there and every volume has its full redundancy; says how long it took.
    pub fn wait_until_redundant(&self, within: Duration) -> Result<Duration> {
        self.wait_for("all data are redundant", within, |status| {
            let all = |list: &str, good: fn(&Value) -> bool| {
                status[list].as_array().is_some_and(|entries| entries.iter().all(good))
            };
            all("bricks", |brick| brick["alive"] == true) && all("volumes", is_whole)
        })
    }

    /// Waits until the status is as it should be; says how long it took.
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
            std::thread::sleep(Duration::from_millis(50));
        }
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

    /// Gives a brick, counted from 0, an empty disk in place of the one that it refuses, starts it, and waits until there
    /// is something on it: then the directory has seen that it is another disk, and does not take it for the old one.
    pub fn give_empty_disk(&mut self, brick: usize) -> Result<()> {
        let (disk, config, id) =
            (self.disk(brick + 1), self.brick_config(brick + 1), self.brick_id(brick + 1)?);
        let disks = |status: &Value| of_brick(status, &id)["disks"].clone();
        let before = disks(&self.status()?);
        std::fs::remove_file(&disk)?;
        run(&self.binary, &["brick", "format", "--config", text(&config)?])
            .with_context(|| format!("formatting {} anew", disk.display()))?;
        self.bricks[brick].restart()?;
        self.wait_for("the new disk is in use", Duration::from_secs(120), |status| {
            disks(status) != before && of_brick(status, &id)["used_bytes"].as_u64() > Some(0)
        })?;
        Ok(())
    }

    /// All processes.
    pub fn daemons(&self) -> Vec<&Daemon> {
        let gateways = self.gateways.iter().map(|gateway| &gateway.daemon);
        std::iter::once(&self.directory).chain(&self.bricks).chain(gateways).collect()
    }

    /// An error that names the first daemon that has ended by itself.
    pub fn all_alive(&mut self) -> Result<()> {
        let gateways = self.gateways.iter_mut().map(|gateway| &mut gateway.daemon);
        for daemon in std::iter::once(&mut self.directory).chain(&mut self.bricks).chain(gateways) {
            daemon.alive()?;
        }
        Ok(())
    }

    /// Kills every daemon at once.
    pub fn kill_all(&mut self) -> Result<()> {
        self.daemons().iter().try_for_each(|daemon| daemon.send_kill())?;
        let gateways = self.gateways.iter_mut().map(|gateway| &mut gateway.daemon);
        std::iter::once(&mut self.directory).chain(&mut self.bricks).chain(gateways).for_each(Daemon::reap);
        Ok(())
    }

    /// Starts every daemon again.
    pub fn restart_all(&mut self) -> Result<()> {
        let gateways = self.gateways.iter_mut().map(|gateway| &mut gateway.daemon);
        let all = std::iter::once(&mut self.directory).chain(&mut self.bricks).chain(gateways);
        all.into_iter().try_for_each(Daemon::restart)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.gateways.clear();
        self.bricks.clear();
        self.directory.end();
        if !self.keeps_files {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// What `status` says of a brick.
pub fn of_brick<'a>(status: &'a Value, id: &str) -> &'a Value {
    let bricks = status["bricks"].as_array().map(Vec::as_slice).unwrap_or_default();
    bricks.iter().find(|entry| entry["id"].as_u64() == id.parse().ok()).unwrap_or(&Value::Null)
}

/// Whether a volume of `status` has its full redundancy.
pub fn is_whole(volume: &Value) -> bool {
    ["degraded", "unavailable", "rebuilding"].iter().all(|what| volume[*what].as_u64().unwrap_or(0) == 0)
}

/// Runs the binary to its good end.
pub fn run(binary: &Path, arguments: &[&str]) -> Result<Finished> {
    let name = arguments.iter().filter(|word| word.chars().all(|c| c.is_ascii_lowercase())).take(2);
    let name = name.copied().collect::<Vec<_>>().join("-");
    process::run(&name, Command::new(binary).args(arguments), 60)
}

/// Starts `brickwork attach` for a volume and waits until its socket is there.
pub fn attach(cluster: &Cluster, volume: &str, socket: &Path) -> Result<Job> {
    let config = cluster.client_config();
    let mut command = Command::new(cluster.binary());
    command.args(["--config", text(&config)?, "attach", volume, "--socket", text(socket)?]);
    let mut job = Job::spawn("attach", &mut command)?;
    daemon::wait_ready(&mut job, "attach", Duration::from_secs(30))?;
    Ok(job)
}

/// A port that nobody listens on, below the range from which the kernel draws ports for clients.
pub fn free_port() -> Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = 11_000 + (std::process::id() * 61) % 8_000;
    for _ in 0..5_000 {
        let port = 11_000 + ((start - 11_000 + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000);
        if TcpListener::bind(("127.0.0.1", port as u16)).is_ok() {
            return Ok(port as u16);
        }
    }
    anyhow::bail!("no free port between 11000 and 31000")
}

/// A path as text.
pub fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}

/// Where a daemon lives: its host, and what puts it there.
fn place(network: &mut Option<Network>, name: &str) -> Result<(String, Option<Wrapper>)> {
    let Some(network) = network else { return Ok(("127.0.0.1".to_owned(), None)) };
    let (namespace, address) = network.add(name)?;
    Ok((address, Some(Wrapper::Namespace(namespace))))
}

fn init_cluster(binary: &Path, dir: &Path, listen: (&str, u16), join: (&str, u16), tls: bool) -> Result<()> {
    let folder = dir.join("cluster");
    let (listen, join) = (format!("{}:{}", listen.0, listen.1), format!("{}:{}", join.0, join.1));
    let mut arguments = vec!["cluster", "init", "--dir", text(&folder)?, "--name", "xtask"];
    arguments.extend(["--listen", &listen, "--join-listen", &join]);
    if !tls {
        arguments.push("--plaintext");
    }
    run(binary, &arguments)?;
    ensure!(
        folder.join("directory.toml").is_file(),
        "`cluster init` left no directory.toml in {}",
        folder.display()
    );
    Ok(())
}

/// On loopback NBD is plain unless the configuration says otherwise.
fn demand_nbd_certificates(config: &Path) -> Result<()> {
    let own = std::fs::read_to_string(config)?;
    let tls = "nbd_tls = { ca = \"ca.pem\", cert = \"gateway.pem\", key = \"gateway.key\" }\n";
    Ok(std::fs::write(config, format!("{tls}{own}"))?)
}

fn fresh_folder() -> Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let dir = job::scratch("clusters")?.join(format!("{}-{number}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}
