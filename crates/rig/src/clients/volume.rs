//! The volume that a client works on, in a cluster just wide enough for its layout, so that any brick is a member.
//!
//! With a kill, one brick gets SIGKILL while the client is at work: when the gateway, or whoever else coordinates, has spent some processor time on it.
//! A client that ends before that is an error, as it proves nothing.

use anyhow::{Result, anyhow, ensure};
use job::process::{self, Finished, Job};
use rig::cluster::{Cluster, Spec, attach, attach_direct};
use rig::noise::Noise;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wire::{DataPath, Protocol};

const SIZE_BYTES: u64 = 256 << 20;
const TOOL_LIMIT: Duration = Duration::from_secs(240);

/// Processor time of the coordinator after which the brick dies: two ticks of the kernel's count.
const KILL_AFTER_US: u64 = 20_000;

/// A volume of 256 MiB with nothing in it.
pub(crate) struct Volume<'a> {
    cluster: &'a Cluster,
    pub(crate) uri: String,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// Set when the brick has died.
    killed: &'a AtomicBool,
}

/// Makes a cluster and a volume, and runs a client's case over it.
pub(super) fn run(
    binary: &Path,
    (layout, protocol): (&str, Protocol),
    kill: bool,
    body: super::OverVolume,
) -> Result<()> {
    let beside = protocol.path.is_of_bricks();
    let bricks = width(layout);
    let gateways = if beside { bricks } else { 1 };
    let mut cluster = Cluster::start(binary, &Spec { bricks, gateways, beside, ..Spec::default() })?;
    cluster.create_under("v", SIZE_BYTES, layout, protocol)?;
    let (killed, done) = (AtomicBool::new(!kill), AtomicBool::new(false));
    let attached = Attached::by(&cluster, protocol.path)?;
    let uri = attached.as_ref().map_or_else(|| cluster.uri(0, "v"), |attached| attached.uri.clone());
    let served_by =
        attached.as_ref().map_or_else(|| cluster.gateways[0].daemon.pid(), |attached| attached.job.pid());
    let volume = Volume { cluster: &cluster, uri, bytes: SIZE_BYTES, killed: &killed };
    let outcome = std::thread::scope(|scope| {
        if kill {
            scope.spawn(|| kill_when_busy((&cluster, served_by), &killed, &done));
        }
        let outcome = body(&volume);
        done.store(true, Ordering::SeqCst);
        outcome
    });
    outcome.map_err(|error| anyhow!("{error:#}{}", what_daemons_said(&cluster)))?;
    ensure!(
        killed.load(Ordering::SeqCst),
        "the client ended before the brick could be killed: this shows nothing"
    );
    if kill {
        cluster.bricks[0].reap();
    }
    cluster.all_alive()
}

/// An `attach` of the volume, which coordinates by itself or goes to the gateways beside bricks.
struct Attached {
    job: Job,
    uri: String,
    socket: PathBuf,
}

impl Attached {
    /// As the data path has it; `None` where any gateway serves the client.
    fn by(cluster: &Cluster, path: DataPath) -> Result<Option<Attached>> {
        let socket = std::env::temp_dir().join(format!("brickwork-attached-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&socket);
        let job = match path {
            DataPath::Gateway => return Ok(None),
            DataPath::Direct => {
                let refused = cluster.connect(0, "v").err();
                ensure!(
                    refused.is_some(),
                    "a gateway serves a volume whose client is to coordinate by itself"
                );
                attach_direct(cluster, "v", &socket)?
            }
            DataPath::Coordinator | DataPath::Amongst => attach(cluster, "v", &socket)?,
        };
        Ok(Some(Attached { job, uri: format!("nbd+unix:///v?socket={}", socket.display()), socket }))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// Bricks that a layout needs: `raid1x3` 3, `raid5-4+1` 5, `rs-4+2` 6.
pub(crate) fn width(layout: &str) -> usize {
    let digits: Vec<usize> = layout
        .rsplit(['x', '-'])
        .next()
        .unwrap_or(layout)
        .split('+')
        .filter_map(|number| number.parse().ok())
        .collect();
    digits.iter().sum::<usize>().max(1)
}

/// Bricks' worth of data in a layout that stripes with parity, else 1.
pub(crate) fn data(layout: &str) -> u64 {
    let before_plus = layout.rsplit_once('+').and_then(|(before, _)| before.rsplit('-').next());
    before_plus.and_then(|number| number.parse().ok()).unwrap_or(1)
}

fn kill_when_busy((cluster, coordinator): (&Cluster, u32), killed: &AtomicBool, done: &AtomicBool) {
    let Ok(before) = process::processor_us(coordinator) else { return };
    while !done.load(Ordering::SeqCst) {
        let busy = process::processor_us(coordinator).is_ok_and(|now| now >= before + KILL_AFTER_US);
        if busy && cluster.bricks[0].signal(Signal::KILL).is_ok() {
            killed.store(true, Ordering::SeqCst);
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn what_daemons_said(cluster: &Cluster) -> String {
    let said = cluster.daemons().into_iter().map(|daemon| (daemon.name().to_owned(), daemon.said()));
    let lines =
        said.filter(|(_, words)| !words.is_empty()).map(|(name, words)| format!("\n--- {name}\n{words}"));
    lines.collect()
}

impl Volume<'_> {
    /// Runs a tool to its good end.
    pub(crate) fn tool(&self, program: &str, arguments: &[&str]) -> Result<Finished> {
        let mut command = Command::new(program);
        Job::spawn(program, command.args(arguments))?.wait(TOOL_LIMIT)?.success()
    }

    /// Waits until the brick has died, so that what follows is done without it. Repeats `work` meanwhile.
    pub(crate) fn until_killed(&self, mut work: impl FnMut() -> Result<()>) -> Result<()> {
        let started = Instant::now();
        while !self.killed.load(Ordering::SeqCst) {
            ensure!(started.elapsed() < TOOL_LIMIT, "the gateway never got busy");
            work()?;
        }
        Ok(())
    }

    /// A place for a file of this case.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.cluster.dir.join(name)
    }

    /// An image file of so many bytes: noise, but every fourth MiB a hole.
    pub(crate) fn image(&self, name: &str, bytes: u64, seed: u64) -> Result<PathBuf> {
        use std::os::unix::fs::FileExt;
        let path = self.file(name);
        let file = std::fs::File::create(&path)?;
        file.set_len(bytes)?;
        let mut noise = Noise::new(seed);
        for mebibyte in (0..bytes >> 20).filter(|mebibyte| mebibyte % 4 != 3) {
            file.write_all_at(&noise.bytes(1 << 20), mebibyte << 20)?;
        }
        Ok(path)
    }
}

/// An error unless both files hold the same bytes.
pub(crate) fn same(left: &Path, right: &Path) -> Result<()> {
    process::run("cmp", Command::new("cmp").args([left, right]), 120).map(drop)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_layout_says_how_many_bricks_it_needs() {
        let widths = ["raid0x1", "raid1x3", "raid5-4+1", "rs-4+2", "raid4-2+1"].map(super::width);
        assert_eq!(widths, [1, 3, 5, 6, 3]);
        assert_eq!(["raid1x3", "raid5-4+1", "rs-4+2"].map(super::data), [1, 4, 4]);
    }
}
