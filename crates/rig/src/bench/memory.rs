//! What daemons hold in memory: an idle brick, and a gateway with 64 busy connections.

use super::Scale;
use super::workload::fio;
use anyhow::Result;
use job::process;
use rig::cluster::{Cluster, Spec, Storage};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Resident bytes.
pub(crate) struct Memory {
    /// A brick to which nobody has talked yet.
    pub(crate) idle_brick_bytes: u64,
    /// The most that a gateway held while 64 connections wrote and read.
    pub(crate) busy_gateway_bytes: u64,
}

impl Memory {
    pub(crate) fn json(&self) -> Value {
        json!({"idle_brick_bytes": self.idle_brick_bytes, "busy_gateway_bytes": self.busy_gateway_bytes})
    }
}

/// Three copies on three bricks with the default cache.
pub(crate) fn measure(binary: &Path, scale: Scale) -> Result<Memory> {
    let cluster = Cluster::start(
        binary,
        &Spec { storage: Storage { disk_bytes: 1 << 30, ..Storage::default() }, ..Spec::default() },
    )?;
    cluster.create("v", 512 << 20, "raid1x3")?;
    std::thread::sleep(Duration::from_secs(3));
    let resident = cluster
        .bricks
        .iter()
        .map(|brick| process::resident_bytes(brick.pid()))
        .collect::<Result<Vec<_>>>()?;
    let idle_brick_bytes = resident.into_iter().max().unwrap_or(0);
    let busy_gateway_bytes = busy_gateway(&cluster, scale)?;
    Ok(Memory { idle_brick_bytes, busy_gateway_bytes })
}

fn busy_gateway(cluster: &Cluster, scale: Scale) -> Result<u64> {
    let (uri, runtime) = (format!("--uri={}", cluster.uri(0, "v")), format!("--runtime={}", scale.seconds));
    let mut arguments = vec!["--ioengine=nbd", &uri, &runtime, "--time_based", "--size=512m", "--numjobs=64"];
    arguments.extend(["--rw=randrw", "--bsrange=4k-64k", "--iodepth=8"]);
    let (gateway, done) = (cluster.gateways[0].daemon.pid(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let most = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::SeqCst) {
                most = process::resident_bytes(gateway).unwrap_or(0).max(most);
                std::thread::sleep(Duration::from_millis(20));
            }
            most
        });
        let outcome = fio(&arguments, scale.seconds);
        done.store(true, Ordering::SeqCst);
        let most = most.join().map_err(|_| anyhow::anyhow!("the watcher of the gateway panicked"));
        outcome.and(most)
    })
}
