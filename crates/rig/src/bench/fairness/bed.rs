//! A cluster whose disks are the bottleneck, and volumes on it that belong to streams.

use super::load::{Client, Load};
use anyhow::Result;
use base::BLOCK_U64;
use rig::cluster::{Cluster, Emulation, Spec, Storage};
use rig::load::steady;
use std::path::Path;
use std::time::Instant;

/// Gateways, over which streams are spread unevenly.
const GATEWAYS: usize = 2;
/// So that nearly all reads go to the disks.
pub(super) const CACHE_BYTES: u64 = 4 << 20;
const JOURNAL_BYTES: u64 = 32 << 20;
/// Of each volume. What is on a disk is spread over the whole drive.
pub(super) const VOLUME_BYTES: u64 = 64 << 20;
/// Volumes that lie on one brick, at most.
const VOLUMES: u64 = 4;

/// What bricks store on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Disk {
    /// A drive with an arm, four times as fast as the Quantum Atlas 10K: some 700 requests a second.
    Emulated,
    /// A file on the disk of this machine, past its caches. Where that is faster than the processors, it is these that are short.
    File,
    /// The same, and each access takes 2 ms more, so that it is the disk that is short.
    LateFile,
}

const LATE_MS: u64 = 2;

impl Disk {
    pub(super) fn name(self) -> &'static str {
        match self {
            Disk::Emulated => "emulated",
            Disk::File => "file",
            Disk::LateFile => "late file",
        }
    }
}

pub(super) struct Bed {
    pub(super) cluster: Cluster,
    disk: Disk,
    spec: Spec,
}

impl Bed {
    pub(super) fn start(binary: &Path, disk: Disk, bricks: usize) -> Result<Bed> {
        let spec = Spec {
            name: "fairness",
            bricks,
            gateways: GATEWAYS,
            metrics: true,
            storage: Storage {
                disk_bytes: VOLUMES * VOLUME_BYTES * 5 / 4 + JOURNAL_BYTES + (64 << 20),
                cache_bytes: CACHE_BYTES,
                journal_bytes: JOURNAL_BYTES,
                // What is written goes home at once, where the drive has it.
                destage_bytes: Some(BLOCK_U64),
                emulation: Emulation::Each,
                ..Storage::default()
            },
            ..Spec::default()
        };
        Ok(Bed { cluster: Cluster::start(binary, &spec)?, disk, spec })
    }

    /// A brick more, which has nothing yet.
    pub(super) fn add_brick(&mut self) -> Result<()> {
        let number = self.cluster.bricks.len() + 1;
        let spec = self.spec.clone();
        self.cluster.add_brick(number, &spec)?;
        self.emulate(number)?;
        self.cluster.wait_for_drives(self.disk == Disk::Emulated)
    }

    /// A volume on one brick, counted from 1, that is written all over.
    pub(super) fn volume_on(&self, name: &str, brick: usize) -> Result<()> {
        self.cluster.create_on(name, VOLUME_BYTES, brick)?;
        self.fill(name)
    }

    /// A volume with a copy on three bricks, that is written all over.
    pub(super) fn mirror(&self, name: &str) -> Result<()> {
        self.cluster.create(name, VOLUME_BYTES, "raid1x3")?;
        self.fill(name)
    }

    fn fill(&self, name: &str) -> Result<()> {
        steady::fill(self.cluster.connect_patiently(0, name)?, Load::tag(name))
    }

    /// All volumes are there: from now on disks are as slow as they are to be.
    pub(super) fn ready(&mut self) -> Result<()> {
        self.cluster.wait_until_destaged();
        (1..=self.spec.bricks).try_for_each(|number| self.emulate(number))?;
        self.cluster.wait_for_drives(self.disk == Disk::Emulated)
    }

    fn emulate(&self, number: usize) -> Result<()> {
        let drive = format!(
            "[drive]\nmodel = \"quantum-atlas-10k\"\nslow_percent = 25\ndata_bytes = {}\n",
            VOLUMES * VOLUME_BYTES
        );
        match self.disk {
            Disk::Emulated => self.cluster.emulate(number, &drive),
            Disk::File => Ok(()),
            Disk::LateFile => self.cluster.set_late(number, LATE_MS),
        }
    }

    /// Makes a stream, with further words of `brickwork stream create`.
    pub(super) fn stream(&self, name: &str, weight: u32, more: &[&str]) -> Result<()> {
        let weight = weight.to_string();
        self.cluster.admin(&[&["stream", "create", name, "--weight", &weight], more].concat()).map(drop)
    }

    /// Changes it.
    pub(super) fn set_stream(&self, name: &str, words: &[&str]) -> Result<()> {
        self.cluster.admin(&[&["stream", "set", name], words].concat())?;
        self.cluster.wait_for_streams()
    }

    /// A volume belongs to a stream from now on.
    pub(super) fn give(&self, volume: &str, stream: &str) -> Result<()> {
        self.cluster.admin(&["volume", "set", volume, "--stream", stream]).map(drop)
    }

    /// How many requests a disk has at a time, where streams share it.
    pub(super) fn places(&self, places: u32) -> Result<()> {
        self.cluster.admin(&["stream", "places", &places.to_string()])?;
        self.cluster.wait_for_streams()
    }

    /// Begins what clients ask; their answers count from `epoch`.
    pub(super) fn load(&self, clients: &[Client], epoch: Instant) -> Result<Load> {
        Load::start(&self.cluster, clients, epoch)
    }
}
