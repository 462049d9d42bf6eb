//! Brickwork's own clusters to measure: just as many bricks as the layout needs.

use super::Scale;
use super::target::Target;
use crate::clients;
use anyhow::Result;
use rig::cluster::{Cluster, Spec, Storage};
use std::path::Path;

/// A cluster with one volume.
pub(crate) struct Bench {
    name: String,
    bytes: u64,
    cluster: Cluster,
}

impl Bench {
    /// The volume read by a policy of its own.
    pub(crate) fn read_by(mut self, policy: &str) -> Result<Bench> {
        self.cluster.admin(&["volume", "set", "v", "--read-policy", policy])?;
        self.name = format!("{} {policy}", self.name);
        Ok(self)
    }

    /// A volume of four times all the bricks' cache.
    pub(crate) fn start(binary: &Path, layout: &str, scale: Scale, tls: bool) -> Result<Bench> {
        let bricks = clients::width(layout);
        let bytes = scale.cache_bytes * 4 * bricks as u64;
        // Disks are no larger than they need be: a file system that discards takes long to delete large files.
        let disk_bytes = bytes / clients::data(layout) * 5 / 4 + (512 << 20);
        let cluster = Cluster::start(
            binary,
            &Spec {
                bricks,
                tls,
                storage: Storage { disk_bytes, cache_bytes: scale.cache_bytes, ..Storage::default() },
                ..Spec::default()
            },
        )?;
        cluster.create("v", bytes, layout)?;
        let name = if tls { format!("{layout} TLS") } else { layout.to_owned() };
        Ok(Bench { name, bytes, cluster })
    }

    /// As something to measure; the directory counts too.
    pub(crate) fn target(&self) -> Target {
        let pids = self.cluster.daemons().iter().map(|daemon| daemon.pid()).collect();
        Target { name: self.name.clone(), uri: self.cluster.uri(0, "v"), pids, bytes: self.bytes }
    }
}
