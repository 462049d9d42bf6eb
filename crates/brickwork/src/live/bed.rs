//! The cluster that is measured: bricks and gateways, each a process, and one volume on all bricks.

use crate::config::Bytes;
use crate::security::files;
use anyhow::{Context, Result, bail, ensure};
use base::BLOCK_U64;
use rig::cluster::{self, Cluster, Daemon, Emulation, Page, Spec, Storage};
use rig::load::steady;
use rig::nbd::Nbd;
use sim::timed::Incident;
use std::fs;
use std::path::{Path, PathBuf};
use wire::{AdminReply, AdminRequest, ReadPolicy};

/// The volume, and what names it in its blocks.
pub(super) const VOLUME: &str = "live";
pub(super) const TAG: u64 = 1;
const JOURNAL: Bytes = Bytes(32 << 20);
/// Beside the volume: superblocks, metadata, slots that change places.
const SPARE: u64 = 64 << 20;

/// What the cluster consists of.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) bricks: u32,
    pub(super) gateways: u32,
    /// Of the volume, which lies on all bricks.
    pub(super) layout: String,
    pub(super) volume: Bytes,
    /// Of each brick.
    pub(super) cache: Bytes,
}

/// Microseconds of processors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) clients: f64,
    pub(super) gateways: f64,
    pub(super) bricks: f64,
}

impl Spent {
    /// What was spent since `before`, for each of so many requests.
    pub(super) fn since(self, before: Spent, requests: f64) -> Spent {
        Spent {
            clients: (self.clients - before.clients) / requests,
            gateways: (self.gateways - before.gateways) / requests,
            bricks: (self.bricks - before.bricks) / requests,
        }
    }

    pub(super) fn all(self) -> f64 {
        self.clients + self.gateways + self.bricks
    }
}

/// The cluster, which ends with it.
pub(super) struct Bed {
    cluster: Cluster,
    setting: Setting,
    /// What bricks had spent that were killed.
    past_us: f64,
}

/// Where the cluster keeps its files. When a run fails its logs stay, but not the disks: they are large, and in
/// memory.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes it. From now on a signal ends what runs there, and removes it.
    pub(super) fn make(path: &Path) -> Result<Folder> {
        files::make_dir(path)?;
        let folder = Folder(path.to_owned());
        cluster::end_on_signal(folder.cluster(), Some(path.to_owned()))?;
        Ok(folder)
    }

    /// Where the cluster is.
    pub(super) fn cluster(&self) -> PathBuf {
        self.0.join("cluster")
    }

    /// What the daemons said.
    pub(super) fn logs(&self) -> PathBuf {
        self.cluster().join("logs")
    }

    /// Nobody needs it any more.
    pub(super) fn remove(self) -> Result<()> {
        fs::remove_dir_all(&self.0).with_context(|| format!("cannot remove {}", self.0.display()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let logs = self.logs();
        let rest = fs::read_dir(self.cluster()).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in rest.filter(|path| *path != logs) {
            // Nobody is left to be told.
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

impl Bed {
    pub(super) fn start(setting: &Setting, folder: &Folder) -> Result<Bed> {
        let Setting { bricks, gateways, volume, cache, .. } = *setting;
        // Every applied block goes home at once, where the drive's scheduler has it: as in the paper.
        let spec = Spec {
            name: "live",
            folder: Some(folder.cluster()),
            bricks: bricks as usize,
            gateways: gateways as usize,
            metrics: true,
            storage: Storage {
                disk_bytes: volume.0 + volume.0 / 8 + JOURNAL.0 + SPARE,
                journal_bytes: JOURNAL.0,
                cache_bytes: cache.0,
                destage_bytes: Some(BLOCK_U64),
                emulation: Emulation::Each,
                ..Storage::default()
            },
            ..Spec::default()
        };
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let cluster = Cluster::start(&program, &spec)?;
        cluster.create(VOLUME, volume.0, &setting.layout)?;
        Ok(Bed { cluster, setting: setting.clone(), past_us: 0.0 })
    }

    /// Where clients connect to a gateway, counted from 0.
    pub(super) fn endpoint(&self, gateway: usize) -> String {
        self.cluster.endpoint(gateway)
    }

    /// What bricks say of themselves.
    pub(super) fn pages(&self) -> Result<Vec<Page>> {
        self.cluster.brick_pages()
    }

    /// Writes every block once, at the speed of the real disks.
    pub(super) fn fill(&self) -> Result<()> {
        let nbd = Nbd::open(&self.endpoint(0), VOLUME)?;
        let (size, wanted) = (nbd.size, self.setting.volume.0);
        ensure!(size == wanted, "the volume has {size} bytes, not {wanted}");
        steady::fill(nbd, TAG)
    }

    /// From now on reads of the volume go by `policy`.
    pub(super) fn read_by(&self, policy: ReadPolicy) -> Result<()> {
        let request = AdminRequest::SetReadPolicy { name: VOLUME.to_owned(), read_policy: policy };
        match self.cluster.call(request)? {
            AdminReply::Done | AdminReply::Volume(_) => Ok(()),
            other => bail!("the directory answered the read policy '{policy}' with {other:?}"),
        }
    }

    /// From now on the disks of each brick, counted from 0, behave as its text says; the empty one says that they are as they are.
    pub(super) fn emulate(&self, text: impl Fn(u32) -> String) -> Result<()> {
        (0..self.setting.bricks).try_for_each(|brick| self.cluster.emulate(brick as usize + 1, &text(brick)))
    }

    /// Something happens to a brick, counted from 0.
    pub(super) fn befall(&mut self, brick: u32, incident: Incident) -> Result<()> {
        let daemon = &mut self.cluster.bricks[brick as usize];
        match incident {
            Incident::Killed => {
                self.past_us += cluster::processor_us(daemon.pid()).unwrap_or(0) as f64;
                daemon.kill()
            }
            Incident::Started => daemon.start_again(),
            Incident::Stopped => daemon.stand_still(),
            Incident::Continued => daemon.go_on(),
        }
    }

    /// What processors were spent on until now. Those that do not run have spent nothing.
    pub(super) fn spent(&self) -> Spent {
        let of = |daemon: &Daemon| cluster::processor_us(daemon.pid()).unwrap_or(0) as f64;
        Spent {
            clients: cluster::processor_us(std::process::id()).unwrap_or(0) as f64,
            gateways: self.cluster.gateways.iter().map(|gateway| of(&gateway.daemon)).sum(),
            bricks: self.cluster.bricks.iter().map(of).sum::<f64>() + self.past_us,
        }
    }

    /// Waits until all bricks emulate their drives, or none does.
    pub(super) fn await_drives(&mut self, are_emulated: bool) -> Result<()> {
        self.cluster.wait_for_drives(are_emulated)
    }
}

/// A folder for a cluster: in memory where there is a file system for that, so that the real disk is never what is measured.
pub(super) fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
    base.join(format!("brickwork-live-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(place: &Path) -> Folder {
        let folder = Folder(place.join("run"));
        fs::create_dir_all(folder.logs()).expect("a folder");
        fs::create_dir(folder.cluster().join("brick-1")).expect("a folder");
        let files = ["logs/brick-1.log", "brick-1/disk", "directory.db"];
        files.iter().for_each(|name| fs::write(folder.cluster().join(name), "x").expect("a file"));
        folder
    }

    #[test]
    fn of_a_run_that_fails_the_logs_stay_and_of_one_that_does_not_nothing() {
        let place = tempfile::tempdir().expect("a directory");
        let failed = folder(place.path());
        let (logs, cluster) = (failed.logs(), failed.cluster());
        drop(failed);
        assert!(logs.join("brick-1.log").exists());
        assert_eq!(fs::read_dir(cluster).expect("it is there").count(), 1, "the logs alone");
        folder(place.path()).remove().expect("it is removed");
        assert_eq!(fs::read_dir(place.path()).expect("it is there").count(), 0);
    }
}
