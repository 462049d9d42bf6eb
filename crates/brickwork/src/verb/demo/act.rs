//! The load of the demo: both volumes at once, a connection each.

use super::comeback::Comeback;
use crate::config::Bytes;
use crate::output;
use anyhow::{Context, Result, ensure};
use base::BLOCK_U64;
use rig::cluster::Cluster;
use rig::load::stats::Meter;
use rig::load::verified::{Ledger, Phase, Verified};
use rig::load::{self};
use rig::nbd::Nbd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Requests in flight on each volume.
const DEPTH: usize = 16;

/// A part of the story.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Fill,
    /// Random load, and a brick killed under it.
    Kill {
        /// How long before.
        before: Duration,
        /// How long after.
        after: Duration,
    },
    Verify,
}

/// A volume and all that is known of it.
pub(super) struct Volume {
    pub(super) name: &'static str,
    pub(super) layout: &'static str,
    pub(super) ledger: Ledger,
    pub(super) fill: Meter,
    pub(super) mix_reads: Meter,
    pub(super) mix_writes: Meter,
    pub(super) verify: Meter,
    pub(super) verified_bytes: u64,
}

pub(super) struct Act {
    pub(super) volumes: Vec<Volume>,
    pub(super) victim: Option<String>,
    pub(super) comeback: Option<Comeback>,
    /// Bytes answered in the last part of the random load, when the dead brick had been left out.
    pub(super) bytes_after_kill: u64,
    /// How long nothing may be answered.
    patience: Duration,
}

impl Act {
    pub(super) fn new(volumes: &[(&'static str, &'static str)], size: Bytes, patience: Duration) -> Act {
        let volume = |(tag, &(name, layout)): (usize, &(&'static str, &'static str))| Volume {
            name,
            layout,
            ledger: Ledger::new(tag as u64 + 1, size.0 / BLOCK_U64),
            fill: Meter::default(),
            mix_reads: Meter::default(),
            mix_writes: Meter::default(),
            verify: Meter::default(),
            verified_bytes: 0,
        };
        Act {
            volumes: volumes.iter().enumerate().map(volume).collect(),
            victim: None,
            comeback: None,
            bytes_after_kill: 0,
            patience,
        }
    }

    /// Runs one part on all volumes.
    pub(super) fn run(&mut self, cluster: &mut Cluster, stage: Stage) -> Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Arc::new(AtomicU64::new(0));
        let running = Arc::new(AtomicU64::new(self.volumes.len() as u64));
        let total: u64 = self.volumes.iter().map(|volume| volume.ledger.blocks() * BLOCK_U64).sum();
        let endpoint = cluster.endpoint(0);
        let (victim, after) = (&mut self.victim, &mut self.bytes_after_kill);
        let mut patience = Patience { limit: self.patience, seen: 0, since: Instant::now() };
        std::thread::scope(|scope| {
            let work = |volume| {
                let (phase, progress, running) = (phase(stage, &stop), progress.clone(), running.clone());
                let endpoint = endpoint.as_str();
                scope.spawn(move || {
                    let result = drive(volume, endpoint, phase, progress);
                    running.fetch_sub(1, Ordering::AcqRel);
                    result
                })
            };
            let workers: Vec<_> = self.volumes.iter_mut().map(work).collect();
            let watched = match stage {
                Stage::Kill { before, after: rest } => {
                    strike(cluster, before, rest, &progress, (victim, after))
                }
                _ => watch(cluster, (total, stage), &progress, &running, &mut patience),
            };
            stop.store(true, Ordering::Relaxed);
            let watched = watched.and_then(|()| patience.until_end(&progress, &running));
            if watched.is_err() {
                // Who waits for an answer is told that there will be none.
                let _ = cluster.kill_gateways();
            }
            let worked: Result<()> =
                workers.into_iter().try_for_each(|worker| worker.join().expect("the load does not panic"));
            watched.and(worked)
        })
    }

    pub(super) fn sum(&self, of: impl Fn(&Volume) -> u64) -> u64 {
        self.volumes.iter().map(of).sum()
    }
}

fn phase(stage: Stage, stop: &Arc<AtomicBool>) -> Phase {
    match stage {
        Stage::Fill => Phase::Fill,
        Stage::Kill { .. } => Phase::Mix { stop: stop.clone() },
        Stage::Verify => Phase::Verify,
    }
}

fn drive(volume: &mut Volume, endpoint: &str, phase: Phase, progress: Arc<AtomicU64>) -> Result<()> {
    let nbd = Nbd::open(endpoint, volume.name)?;
    let size = nbd.size;
    let (sender, receiver) = nbd.split()?;
    let blocks = volume.ledger.blocks();
    ensure!(
        size >= blocks * BLOCK_U64,
        "the export '{}' has {size} bytes, fewer than the volume",
        volume.name
    );
    // Values are unique because each part begins above all values that the part before can have written.
    let first_value = match phase {
        Phase::Fill => 0,
        Phase::Mix { .. } => 1 << 32,
        Phase::Verify => 1 << 40,
    };
    let mut work = Verified::new(&mut volume.ledger, phase.clone(), first_value + 1, first_value, progress);
    let driven = load::drive(sender, receiver, DEPTH, &mut work);
    let (reads, writes, verified_bytes) = (work.reads, work.writes, work.verified_bytes);
    match phase {
        Phase::Fill => volume.fill = writes,
        Phase::Mix { .. } => (volume.mix_reads, volume.mix_writes) = (reads, writes),
        Phase::Verify => (volume.verify, volume.verified_bytes) = (reads, verified_bytes),
    }
    driven.with_context(|| format!("the load on volume '{}' broke off", volume.name))
}

/// Shows progress until all workers are done.
fn watch(
    cluster: &mut Cluster,
    (total, stage): (u64, Stage),
    progress: &AtomicU64,
    running: &AtomicU64,
    patience: &mut Patience,
) -> Result<()> {
    let bar = output::progress(
        total,
        if stage == Stage::Fill { "filling both volumes" } else { "verifying every byte" },
        true,
    );
    while running.load(Ordering::Acquire) > 0 {
        bar.set_position(progress.load(Ordering::Relaxed));
        std::thread::sleep(Duration::from_millis(20));
        cluster.all_alive()?;
        patience.look(progress.load(Ordering::Relaxed))?;
    }
    bar.finish_and_clear();
    Ok(())
}

/// Notices when nothing moves any more.
struct Patience {
    limit: Duration,
    seen: u64,
    since: Instant,
}

impl Patience {
    /// So many bytes have been answered by now.
    fn look(&mut self, answered: u64) -> Result<()> {
        if answered != self.seen {
            (self.seen, self.since) = (answered, Instant::now());
        }
        ensure!(
            self.since.elapsed() < self.limit,
            "nothing was answered for {} s: the logs of the bricks and the gateway may say why (keep them with --dir)",
            self.limit.as_secs()
        );
        Ok(())
    }

    /// Waits for the workers to end what they have begun.
    fn until_end(&mut self, progress: &AtomicU64, running: &AtomicU64) -> Result<()> {
        self.since = Instant::now();
        while running.load(Ordering::Acquire) > 0 {
            self.look(progress.load(Ordering::Relaxed))?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Lets the load run, kills a brick, lets the load run on, and sees that it does.
fn strike(
    cluster: &mut Cluster,
    before: Duration,
    after: Duration,
    progress: &AtomicU64,
    (victim, bytes_after_kill): (&mut Option<String>, &mut u64),
) -> Result<()> {
    let bar = output::progress((before + after).as_millis() as u64, "random load, a brick dies", false);
    let name = busiest_brick(cluster)?;
    let start = Instant::now();
    wait(start + before, start, &bar);
    cluster.kill(&name)?;
    *victim = Some(name);
    // By half of the time the brick has been left out; what comes then is work without it.
    wait(start + before + after / 2, start, &bar);
    let halfway = progress.load(Ordering::Relaxed);
    wait(start + before + after, start, &bar);
    *bytes_after_kill = progress.load(Ordering::Relaxed) - halfway;
    bar.finish_and_clear();
    cluster.all_alive()
}

fn wait(until: Instant, start: Instant, bar: &indicatif::ProgressBar) {
    while Instant::now() < until {
        bar.set_position(start.elapsed().as_millis() as u64);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The brick in most groups, so that its death hurts.
fn busiest_brick(cluster: &Cluster) -> Result<String> {
    let status = cluster.health()?;
    let brick = status.bricks.iter().max_by_key(|brick| brick.groups).context("there is no brick")?;
    Ok(brick.id.to_string())
}
