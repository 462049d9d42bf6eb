//! The cluster in which protocols are compared, and its clients.
//!
//! There is one arrangement for all protocols, a gateway beside each brick: a client of the path `gw` takes any of them, one of `direct` takes
//! none. Clients live as long as one measurement, as each one that is attached costs its gateway an answer four times a second.

use super::load::{self, Seen, Work, Workload};
use super::outcome::{Spent, Turn};
use super::{Plan, SEEDS};
use crate::clients;
use anyhow::{Context, Result};
use job::process::{Job, processor_us};
use rig::cluster::{Cluster, Spec, Storage, attach, attach_direct};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wire::{DataPath, Protocol};

/// In this time each client opens what it needs, such as connections to gateways beside bricks.
const WARM_UP_S: u64 = 1;
/// A measurement at rest: long enough for ticks of 10 ms by each process.
const REST: Duration = Duration::from_secs(3);
/// How long an `attach` may take until it has ended.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

pub(super) struct Bed {
    cluster: Cluster,
    volumes: Vec<Volume>,
    /// Of each volume.
    bytes: u64,
}

struct Volume {
    name: String,
    protocol: Protocol,
}

/// Parts of a processor that daemons take while nobody asks them.
pub(super) struct Idle {
    pub(super) gateways: f64,
    pub(super) bricks: f64,
}

impl Idle {
    pub(super) fn json(&self) -> Value {
        json!({ "gateways_processors": self.gateways, "bricks_processors": self.bricks })
    }
}

impl Bed {
    /// A volume for each protocol, written all over.
    pub(super) fn start(binary: &Path, plan: &Plan) -> Result<Bed> {
        let bricks = clients::width(&plan.layout);
        let on_each_brick = plan.bytes / clients::data(&plan.layout) * plan.protocols.len() as u64;
        let spec = Spec {
            bricks,
            gateways: bricks,
            beside: true,
            metrics: true,
            storage: Storage {
                disk_bytes: on_each_brick * 5 / 4 + (512 << 20),
                // Groups are drawn, and some bricks have more of them than others.
                cache_bytes: on_each_brick * 3 / 2,
                folder: if plan.ram { Some(job::in_memory()?) } else { None },
                ..Storage::default()
            },
            ..Spec::default()
        };
        let cluster = Cluster::start(binary, &spec)?;
        let volume = |(number, protocol): (usize, &Protocol)| Volume {
            name: format!("volume-{number}"),
            protocol: *protocol,
        };
        let volumes: Vec<Volume> = plan.protocols.iter().enumerate().map(volume).collect();
        let bed = Bed { cluster, volumes, bytes: plan.bytes };
        for volume in &bed.volumes {
            eprintln!("filling a volume of {} MiB under {}", plan.bytes >> 20, volume.protocol);
            bed.cluster.create_under(&volume.name, plan.bytes, &plan.layout, volume.protocol)?;
            let client = Client::attach(&bed.cluster, volume, 0)?;
            load::fill(&client.uri, bed.bytes)?;
            client.end()?;
        }
        bed.cluster.wait_until_destaged();
        Ok(bed)
    }

    pub(super) fn at_rest(&self) -> Result<Idle> {
        let (before, began) = (self.spent(&[])?, Instant::now());
        std::thread::sleep(REST);
        let spent = self.spent(&[])?.since(&before);
        let of = |us: u64| us as f64 / 1e6 / began.elapsed().as_secs_f64();
        Ok(Idle { gateways: of(spent.gateways_us), bricks: of(spent.bricks_us) })
    }

    /// A workload on the volume of a protocol, by its number: for so many seconds, on blocks that the seed draws.
    pub(super) fn measure(
        &mut self,
        number: usize,
        workload: Workload,
        (seed, seconds): (u64, u64),
    ) -> Result<Turn> {
        let volume = &self.volumes[number];
        let turn = self.turn(volume, workload, (seed, seconds));
        let turn = turn.with_context(|| format!("{} under {}", workload.name(), volume.protocol))?;
        self.cluster.all_alive()?;
        Ok(turn)
    }

    fn turn(&self, volume: &Volume, workload: Workload, (seed, seconds): (u64, u64)) -> Result<Turn> {
        let attach = |number| Client::attach(&self.cluster, volume, number);
        let clients = (0..workload.clients).map(attach).collect::<Result<Vec<_>>>()?;
        let uris: Vec<String> = clients.iter().map(|client| client.uri.clone()).collect();
        if workload.work == Work::Read {
            load::read_once(&uris[0], self.bytes)?;
        }
        let run = |seconds, seed| -> Result<Seen> { workload.run(&uris, self.bytes, seconds, seed) };
        // No run is given this seed: what warms up asks for other blocks.
        run(WARM_UP_S, seed + SEEDS)?;
        let before = self.spent(&clients)?;
        let seen = run(seconds, seed)?;
        let spent = self.spent(&clients)?.since(&before);
        clients.into_iter().try_for_each(Client::end)?;
        Ok(Turn { seen, spent })
    }

    /// What all took so far.
    fn spent(&self, clients: &[Client]) -> Result<Spent> {
        let sum = |pids: &mut dyn Iterator<Item = u32>| pids.map(processor_us).sum::<Result<u64>>();
        Ok(Spent {
            clients_us: sum(&mut clients.iter().map(|client| client.job.pid()))?,
            gateways_us: sum(&mut self.cluster.gateways.iter().map(|gateway| gateway.daemon.pid()))?,
            bricks_us: sum(&mut self.cluster.bricks.iter().map(rig::cluster::Daemon::pid))?,
        })
    }

    /// Ends all daemons; an error if one has ended before.
    pub(super) fn end(mut self) -> Result<()> {
        self.cluster.all_alive()
    }
}

/// An `attach` of a volume, as the volume's data path has it.
struct Client {
    job: Job,
    uri: String,
    socket: PathBuf,
}

impl Client {
    fn attach(cluster: &Cluster, volume: &Volume, number: usize) -> Result<Client> {
        let socket =
            std::env::temp_dir().join(format!("brickwork-netraid-{}-{number}.sock", std::process::id()));
        let _ = std::fs::remove_file(&socket);
        let job = match volume.protocol.path {
            DataPath::Direct => attach_direct(cluster, &volume.name, &socket)?,
            DataPath::Gateway | DataPath::Coordinator | DataPath::Amongst => {
                attach(cluster, &volume.name, &socket)?
            }
        };
        Ok(Client { job, uri: format!("nbd+unix:///{}?socket={}", volume.name, socket.display()), socket })
    }

    /// Asks it to end (SIGTERM), so that an `attach --direct` leaves no write in doubt.
    fn end(self) -> Result<()> {
        self.job.signal(Signal::TERM)?;
        let ended = self.job.wait(ENDS_WITHIN)?.success();
        let _ = std::fs::remove_file(&self.socket);
        ended.map(drop)
    }
}
