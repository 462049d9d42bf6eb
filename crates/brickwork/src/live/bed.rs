//! The cluster that is measured: eight bricks and a gateway, each a process, one volume with a copy on every brick.

use super::figures;
use super::plan::{self, Plan, TAG, VOLUME};
use crate::config::Bytes;
use crate::security::files;
use anyhow::{Context, Result, bail, ensure};
use base::BLOCK;
use rig::cluster::{self, Cluster, Emulation, Page, Spec};
use rig::load::{self, Next, Operation, Outcome, Workload};
use rig::nbd::{Command, Nbd};
use rig::pattern;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wire::{AdminReply, AdminRequest, ReadPolicy};

const JOURNAL: Bytes = Bytes(32 << 20);
/// Beside the volume: superblocks, metadata, slots that change places.
const SPARE: u64 = 64 << 20;
const FILL_BLOCKS: u64 = 128;
const FILL_DEPTH: usize = 8;
const PATIENCE: Duration = Duration::from_secs(10);

/// The cluster, which ends with it.
pub(super) struct Bed {
    cluster: Cluster,
    emulation: PathBuf,
}

/// Where the cluster keeps its files. When a run fails its logs stay, but not the disks: they are large, and in
/// memory.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes it. From now on a signal ends what runs there, and removes it.
    pub(super) fn make(plan: &Plan) -> Result<Folder> {
        files::make_dir(&plan.folder)?;
        let folder = Folder(plan.folder.clone());
        cluster::end_on_signal(folder.cluster(), Some(plan.folder.clone()))?;
        Ok(folder)
    }

    fn cluster(&self) -> PathBuf {
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
    pub(super) fn start(plan: &Plan, folder: &Folder) -> Result<Bed> {
        let emulation = plan.folder.join("emulation.toml");
        files::replace(&emulation, b"")?;
        // Every applied block goes home at once, where the drive's scheduler has it: as in the paper.
        let spec = Spec {
            name: "live",
            folder: Some(folder.cluster()),
            bricks: plan::BRICKS as usize,
            disk_bytes: plan.volume.0 + plan.volume.0 / 8 + JOURNAL.0 + SPARE,
            journal_bytes: JOURNAL.0,
            cache_bytes: 0,
            destage_bytes: Some(plan::REQUEST_BYTES),
            emulation: Emulation::File(emulation.clone()),
            metrics: true,
            ..Spec::default()
        };
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let cluster = Cluster::start(&program, &spec)?;
        cluster.create(VOLUME, plan.volume.0, &format!("raid1x{}", plan::BRICKS))?;
        Ok(Bed { cluster, emulation })
    }

    /// Where clients connect.
    pub(super) fn endpoint(&self) -> String {
        self.cluster.endpoint(0)
    }

    /// What bricks say of themselves.
    pub(super) fn pages(&self) -> Result<Vec<Page>> {
        self.cluster.brick_pages()
    }

    /// Writes every block once, at the speed of the real disks.
    pub(super) fn fill(&self, plan: &Plan) -> Result<()> {
        let nbd = Nbd::open(&self.endpoint(), VOLUME)?;
        let size = nbd.size;
        let (sender, receiver) = nbd.split()?;
        ensure!(size == plan.volume.0, "the volume has {size} bytes, not {}", plan.volume.0);
        let mut fill = Fill { next: 0, blocks: plan.blocks(), failed: None };
        load::drive(sender, receiver, FILL_DEPTH, &mut fill)?;
        fill.failed.map_or(Ok(()), |errno| bail!("filling the volume failed with errno {errno}"))
    }

    /// From now on reads of the volume go by `policy`.
    pub(super) fn read_by(&self, policy: ReadPolicy) -> Result<()> {
        let request = AdminRequest::SetReadPolicy { name: VOLUME.to_owned(), read_policy: policy };
        match self.cluster.call(request)? {
            AdminReply::Done | AdminReply::Volume(_) => Ok(()),
            other => bail!("the directory answered the read policy '{policy}' with {other:?}"),
        }
    }

    /// Puts drives before the disks, and waits until all bricks have them.
    pub(super) fn emulate(&mut self, plan: &Plan) -> Result<()> {
        files::replace(&self.emulation, plan.emulation().as_bytes())?;
        self.wait("emulate their drives", |page| figures::clock_s(page) > 0.0)
    }

    /// Takes the drives away.
    pub(super) fn emulate_nothing(&mut self) -> Result<()> {
        files::replace(&self.emulation, b"")?;
        self.wait("stop emulating their drives", |page| figures::clock_s(page) <= 0.0)
    }

    fn wait(&mut self, what: &str, state: impl Fn(&Page) -> bool) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while !self.pages()?.iter().all(&state) {
            self.cluster.all_alive()?;
            ensure!(
                Instant::now() < end,
                "not all bricks {what}; look into {}",
                self.cluster.dir.join("logs").display()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

/// Every block, in order.
struct Fill {
    next: u64,
    blocks: u64,
    failed: Option<u32>,
}

impl Workload for Fill {
    fn next(&mut self) -> Next {
        let left = self.blocks - self.next;
        if left == 0 || self.failed.is_some() {
            return Next::Finished;
        }
        let blocks = left.min(FILL_BLOCKS);
        let operation =
            Operation { command: Command::Write, block: self.next, blocks: blocks as u32, value: 1 };
        self.next += blocks;
        Next::Operation(operation)
    }

    fn fill(&self, operation: &Operation, out: &mut [u8]) {
        for (index, block) in out.chunks_exact_mut(BLOCK).enumerate() {
            pattern::fill(block, TAG, operation.block + index as u64, operation.value);
        }
    }

    fn ended(&mut self, _: &Operation, _: Instant, outcome: Outcome, _: &[u8]) {
        match outcome {
            Outcome::Done => {}
            Outcome::Failed(errno) => self.failed = Some(errno),
            Outcome::Lost => self.failed = Some(libc::ENOTCONN as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

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
