//! Clients of a soak: which ways lead to a volume, and a client's life on one of them.

use super::VOLUMES;
use anyhow::{Context, Result, ensure};
use rig::cluster::Cluster;
use rig::load::{self, shared::Arena, shared::Client, shared::Failures};
use rig::nbd::{Command, Nbd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So few blocks of each volume that clients meet on them.
const HOT_BLOCKS: u64 = 48;
/// Blocks in all, most of them written once: what a brick that comes back has to compare and fetch.
const BLOCKS: u64 = 4096;

/// A way to a volume: through one of the gateways, whichever lives, or through its `attach`.
#[derive(Clone)]
pub(super) struct Way {
    endpoints: Vec<String>,
    /// Whether it is one on which no request may fail.
    pub(super) attach: bool,
    volume: usize,
}

/// All ways to all volumes.
pub(super) fn ways(cluster: &Cluster) -> Vec<Way> {
    let socket = |name: &str| format!("unix:{}", cluster.dir.join(format!("{name}.sock")).display());
    let of_volume = |(volume, (name, _)): (usize, &(&str, &str))| {
        let mut ways = vec![Way { endpoints: vec![socket(name)], attach: true, volume }];
        // Each client prefers another gateway, and takes the other one when that is dead.
        let gateways: Vec<String> = (0..cluster.gateways.len()).map(|one| cluster.endpoint(one)).collect();
        for first in 0..gateways.len() {
            let mut endpoints = gateways.clone();
            endpoints.rotate_left(first);
            ways.push(Way { endpoints, attach: false, volume });
        }
        ways
    };
    VOLUMES.iter().enumerate().flat_map(of_volume).collect()
}

/// A client's life: when its connection breaks it goes on, under another id, through the next way. Returns what went wrong
/// with its requests.
pub(super) fn live(arena: &Arc<Arena>, way: &Way, seed: u64, think: Duration) -> Failures {
    let mut client = Client::new(arena, way.volume, HOT_BLOCKS, seed).thinking(think);
    let name = VOLUMES[way.volume].0;
    for endpoint in way.endpoints.iter().cycle() {
        if arena.is_stopped() {
            break;
        }
        let Ok((sender, receiver)) = Nbd::open(endpoint, name).and_then(Nbd::split) else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        // A broken connection is what this is about; the workload has counted what it lost.
        let _ = load::drive(sender, receiver, 1, &mut client);
    }
    client.failures
}

/// Writes every block once.
pub(super) fn fill(arena: &Arc<Arena>, ways: &[Way]) -> Result<()> {
    ways.iter().filter(|way| way.attach).try_for_each(|way| {
        let mut sweep = Client::sweeping(arena, way.volume, Command::Write, 0..BLOCKS);
        let name = VOLUMES[way.volume].0;
        drive(way, &mut sweep).with_context(|| format!("'{name}' cannot be filled"))?;
        ensure!(sweep.failures == Failures::default(), "'{name}' cannot be filled: writes fail");
        Ok(())
    })
}

/// Reads every block once through every way. Nobody else is there, so a read that fails is asked again for a while.
pub(super) fn read_all(arena: &Arc<Arena>, ways: &[Way]) -> Result<()> {
    ways.iter().try_for_each(|way| {
        let name = VOLUMES[way.volume].0;
        sweep_patiently(arena, way).with_context(|| format!("'{name}' cannot be read after the restart"))
    })
}

fn drive(way: &Way, client: &mut Client) -> Result<()> {
    let (sender, receiver) = Nbd::open(&way.endpoints[0], VOLUMES[way.volume].0)?.split()?;
    load::drive(sender, receiver, 1, client)
}

fn sweep_patiently(arena: &Arc<Arena>, way: &Way) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let mut sweep = Client::sweeping(arena, way.volume, Command::Read, 0..BLOCKS);
        let result = drive(way, &mut sweep);
        if result.is_ok() && sweep.failures == Failures::default() {
            return Ok(());
        }
        if Instant::now() > end {
            return result.and_then(|()| anyhow::bail!("reads still fail"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
