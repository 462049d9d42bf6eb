//! A whole cluster as child processes on loopback, for `demo` and `soak`: made by the same steps as a real one
//! (init, join, format, start), in one directory, without TLS.
//!
//! Reading order: this file, [`process`] (a child and its end), [`ports`].

pub mod ports;
pub mod process;

use crate::config::{Bytes, ClientFile, Configuration};
use crate::security::{Token, files};
use crate::verb::daemon::Joining;
use crate::verb::{brick, client, cluster, gateway};
use crate::view;
use anyhow::{Context, Result, bail};
use process::{Process, Spawner};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wire::{AdminReply, AdminRequest, ClusterStatus, VolumeInfo};

/// How long the cluster may take to become what it should be.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the cluster consists of.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Bricks, each with one disk.
    pub bricks: u32,
    /// Gateways.
    pub gateways: u32,
    /// A brick's disk: a file.
    pub disk: Bytes,
    /// The journal on it.
    pub journal: Bytes,
    /// A brick's cache.
    pub cache: Bytes,
    /// Whether the processes live on when this one ends.
    pub keep: bool,
    /// What experiments want of bricks.
    pub instruments: Option<Instruments>,
}

/// What experiments want of bricks: metrics, emulated disks, and content brought home early.
#[derive(Clone, Debug)]
pub struct Instruments {
    /// The file that says what disks look like; there when the bricks start.
    pub emulation: PathBuf,
    /// Journalled content at which a disk brings it home.
    pub destage: Bytes,
}

/// The running cluster. Its processes end with it, unless it is left running.
pub struct Cluster {
    dir: PathBuf,
    client: ClientFile,
    processes: BTreeMap<String, Process>,
    spawner: Spawner,
    nbd: Vec<String>,
    metrics: Vec<String>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        process::wait_if_interrupted();
    }
}

impl Cluster {
    /// Makes and starts a cluster in `dir`, and waits until all of it serves.
    pub fn start(dir: &Path, shape: &Shape) -> Result<Cluster> {
        Cluster::start_with(None, dir, shape)
    }

    /// The same, with the processes of another program than this one.
    pub fn start_with(program: Option<&Path>, dir: &Path, shape: &Shape) -> Result<Cluster> {
        let ports = ports::free(2 + 2 * shape.bricks + 2 * shape.gateways)?;
        let mut addresses = ports.iter().map(|port| format!("127.0.0.1:{port}"));
        let mut next = || addresses.next().expect("as many ports as addresses");
        files::make_dir(dir)?;
        let token = init(dir, next(), next())?;
        let mut client: ClientFile =
            crate::config::load(Some(&dir.join("admin/client.toml")), toml::Table::new())?;
        client.resolve(&dir.join("admin"));
        let spawner = Spawner::new(program, dir, shape.keep)?;
        let mut cluster = Cluster {
            dir: dir.to_owned(),
            client,
            processes: BTreeMap::new(),
            spawner,
            nbd: Vec::new(),
            metrics: Vec::new(),
        };
        cluster.spawn("directory", &["directory", "--config", &text(&dir.join("directory.toml"))])?;
        cluster.wait_ready()?;
        for index in 0..shape.bricks {
            cluster.add_brick(index, next(), next(), shape, &token)?;
        }
        for index in 0..shape.gateways {
            cluster.add_gateway(index, next(), next(), &token)?;
        }
        cluster.wait_ready()?;
        cluster.wait_until("every brick is known to the directory", |status| {
            status.bricks.iter().filter(|brick| brick.alive).count() >= shape.bricks as usize
        })?;
        Ok(cluster)
    }

    /// Where it keeps its files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The names of its processes.
    pub fn names(&self) -> Vec<String> {
        self.processes.keys().cloned().collect()
    }

    /// The NBD endpoint of each gateway.
    pub fn nbd(&self) -> &[String] {
        &self.nbd
    }

    /// Where each brick says how it is, if it has instruments.
    pub fn metrics(&self) -> &[String] {
        &self.metrics
    }

    /// Asks its directory.
    pub fn call(&self, request: AdminRequest) -> Result<AdminReply> {
        client::call_with(&self.client, request)
    }

    /// How it is.
    pub fn status(&self) -> Result<ClusterStatus> {
        match self.call(AdminRequest::Status)? {
            AdminReply::Status(status) => Ok(status),
            other => bail!("the directory answered a question about its status with {other:?}"),
        }
    }

    /// Makes a volume.
    pub fn create_volume(&self, name: &str, size: Bytes, layout: &str) -> Result<VolumeInfo> {
        let nonce = u64::from_le_bytes(crate::security::random());
        let request = AdminRequest::CreateVolume {
            name: name.to_owned(),
            size_bytes: size.0,
            layout: layout.to_owned(),
            stripe_unit_blocks: 0,
            groups: 0,
            read_policy: wire::ReadPolicy::default(),
            nonce,
        };
        match self.call(request).with_context(|| format!("cannot make the volume '{name}'"))? {
            AdminReply::Volume(volume) => Ok(volume),
            other => bail!("the directory answered the creation of '{name}' with {other:?}"),
        }
    }

    /// Waits until `state` holds.
    pub fn wait_until(&self, what: &str, state: impl Fn(&ClusterStatus) -> bool) -> Result<()> {
        self.wait_for(PATIENCE, what, state).map(drop)
    }

    /// Waits until `state` holds, for so long at most; says how long it took.
    pub fn wait_for(
        &self,
        patience: Duration,
        what: &str,
        state: impl Fn(&ClusterStatus) -> bool,
    ) -> Result<Duration> {
        let start = Instant::now();
        loop {
            let status = self.status()?;
            if state(&status) {
                return Ok(start.elapsed());
            }
            if start.elapsed() > patience {
                bail!(
                    "waited {} s until {what}; look into {}; problems: {}; status: {}",
                    patience.as_secs(),
                    self.dir.join("logs").display(),
                    view::problems(&status).join(" "),
                    view::status_json(&status)
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Starts a further process of this cluster, such as an `attach`.
    pub fn spawn(&mut self, name: &str, arguments: &[&str]) -> Result<()> {
        let process = self.spawner.spawn(name, arguments)?;
        self.processes.insert(name.to_owned(), process);
        Ok(())
    }

    /// Waits until every process has said that it serves.
    pub fn wait_ready(&mut self) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        self.processes.values_mut().try_for_each(|process| process.wait_ready(end))
    }

    /// Kills a process with SIGKILL.
    pub fn kill(&mut self, name: &str) -> Result<()> {
        self.process(name)?.kill();
        Ok(())
    }

    /// Stops a process where it stands (SIGSTOP), or lets it go on (SIGCONT).
    pub fn pause(&mut self, name: &str, paused: bool) -> Result<()> {
        self.process(name)?.pause(paused);
        Ok(())
    }

    /// Asks a process to end (SIGTERM), and waits for that.
    pub fn end(&mut self, name: &str) -> Result<()> {
        self.process(name)?.end()
    }

    /// Starts a killed process again; does not wait until it serves.
    pub fn restart(&mut self, name: &str) -> Result<()> {
        let arguments = self.process(name)?.arguments().to_vec();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.spawn(name, &arguments)
    }

    /// Fails when a process ended by itself.
    pub fn check_alive(&mut self) -> Result<()> {
        self.processes.values_mut().try_for_each(Process::check_alive)
    }

    /// Leaves the processes running; `process::stop` ends them.
    pub fn leave_running(mut self) {
        self.processes.values_mut().for_each(Process::leave_running);
    }

    fn process(&mut self, name: &str) -> Result<&mut Process> {
        self.processes.get_mut(name).with_context(|| format!("the cluster has no process '{name}'"))
    }

    fn add_brick(
        &mut self,
        index: u32,
        listen: String,
        metrics: String,
        shape: &Shape,
        token: &Token,
    ) -> Result<()> {
        let name = format!("brick-{}", index + 1);
        let dir = self.dir.join(&name);
        let init = brick::Init {
            joining: Joining { dir: dir.clone(), join: token.clone() },
            disks: vec![crate::config::DiskFile {
                path: dir.join("disk"),
                size: Some(shape.disk),
                model: None,
            }],
            listen,
            advertise: None,
            labels: vec![("host".to_owned(), format!("host-{}", index + 1))],
            cache_bytes: shape.cache,
            journal_bytes: Some(shape.journal),
            force: false,
        };
        let (file, path) = brick::init(&init).with_context(|| format!("cannot make {name}"))?;
        // The directory chooses ids; a process is called like its brick.
        let mut arguments = vec!["brick".to_owned(), "--config".to_owned(), text(&path)];
        if let Some(Instruments { emulation, destage }) = &shape.instruments {
            let flags = [
                ("--emulation", text(emulation)),
                ("--destage-bytes", destage.to_string()),
                ("--metrics", metrics.clone()),
            ];
            arguments.extend(flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]));
            self.metrics.push(metrics);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.spawn(&format!("brick-{}", file.id), &arguments)
    }

    fn add_gateway(&mut self, index: u32, listen: String, nbd: String, token: &Token) -> Result<()> {
        let name = format!("gateway-{}", index + 1);
        let init = gateway::Init {
            joining: Joining { dir: self.dir.join(&name), join: token.clone() },
            listen,
            advertise: None,
            nbd: vec![format!("tcp:{nbd}")],
            nbd_group: None,
        };
        let (file, path) = gateway::init(&init).with_context(|| format!("cannot make {name}"))?;
        self.nbd.extend(file.nbd);
        self.spawn(&name, &["gateway", "--config", &text(&path)])
    }
}

/// The cluster's files, and a token for all its machines.
fn init(dir: &Path, listen: String, join_listen: String) -> Result<Token> {
    let init = cluster::Init {
        dir: dir.to_owned(),
        name: "demo".to_owned(),
        listen,
        join_listen,
        advertise: None,
        plaintext: true,
    };
    cluster::init(&init)?;
    Ok(cluster::new_token(dir, None, Duration::from_secs(3600))?.1)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
