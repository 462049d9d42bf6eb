//! What goes on while gateways and bricks die or stop: through `brickwork attach`, and after everything died at once.

use super::record::{Ended, Recorder};
use anyhow::{Result, ensure};
use rig::cluster::{self, Cluster, Spec};
use rig::nbd::Nbd;
use rustix::process::Signal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The bound for going on through another gateway.
const GOES_ON_WITHIN: Duration = Duration::from_secs(5);

/// Through `attach`, I/O goes on within 5 s and without an error when the gateway in use is killed. Which one is in use is
/// not ours to know, so both die, one after the other.
pub(super) fn gateway_killed(binary: &Path) -> Result<()> {
    let mut cluster = Cluster::start(binary, &Spec { gateways: 2, ..Spec::default() })?;
    cluster.create("v", 64 << 20, "raid1x3")?;
    let socket = std::env::temp_dir().join(format!("brickwork-xtask-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&socket);
    let attached = cluster::attach(&cluster, "v", &socket)?;
    let (acknowledged, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let outcome = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_through(&socket, &acknowledged, &done));
        let killed = kill_each(&mut cluster, &acknowledged);
        done.store(true, Ordering::SeqCst);
        let written = writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))?;
        killed.and(written)
    });
    drop(attached);
    let _ = std::fs::remove_file(&socket);
    let slowest = outcome?;
    eprintln!("    the slowest write took {:.2} s while gateways were killed", slowest.as_secs_f64());
    ensure!(slowest <= GOES_ON_WITHIN, "a write took {slowest:?} when its gateway was killed");
    cluster.all_alive()
}

fn write_through(socket: &Path, acknowledged: &AtomicU64, done: &AtomicBool) -> Result<Duration> {
    let mut recorder = Recorder::new(0, 4096, 11);
    let mut nbd = Nbd::unix(socket, "v")?;
    let ended = recorder.write(&mut nbd, 8, |count| {
        acknowledged.store(count, Ordering::SeqCst);
        done.load(Ordering::SeqCst)
    })?;
    ensure!(ended == Ended::Stopped, "attach closed the connection");
    recorder.verify(&mut nbd)?;
    Ok(recorder.slowest)
}

fn kill_each(cluster: &mut Cluster, acknowledged: &AtomicU64) -> Result<()> {
    for number in 0..cluster.gateways.len() {
        wait_for_more(acknowledged, 500)?;
        cluster.gateways[number].daemon.kill()?;
        wait_for_more(acknowledged, 500)?;
        cluster.gateways[number].daemon.restart()?;
    }
    wait_for_more(acknowledged, 500)
}

fn wait_for_more(acknowledged: &AtomicU64, more: u64) -> Result<()> {
    let (started, before) = (Instant::now(), acknowledged.load(Ordering::SeqCst));
    while acknowledged.load(Ordering::SeqCst) < before + more {
        ensure!(started.elapsed() < Duration::from_secs(60), "no more writes are acknowledged");
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Everything is killed at once; after a restart each block holds what was acknowledged.
pub(super) fn all_killed(binary: &Path) -> Result<()> {
    for layout in super::LAYOUTS {
        let bricks = super::volume::width(layout);
        let mut cluster = Cluster::start(binary, &Spec { bricks, ..Spec::default() })?;
        cluster.create("v", 64 << 20, layout)?;
        let (_, verified) = survives_killing_all(&mut cluster, 2000)?;
        eprintln!("    {layout}: {verified} blocks verified after all daemons were killed at once");
    }
    Ok(())
}

/// Writes to volume `v` at depth 32 until so many writes are acknowledged, kills every daemon at once, starts them again and
/// verifies. Returns acknowledged writes and verified blocks.
pub(crate) fn survives_killing_all(cluster: &mut Cluster, writes: u64) -> Result<(u64, u64)> {
    let mut recorder = Recorder::new(0, 4096, 5);
    let mut nbd = cluster.connect(0, "v")?;
    let enough = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            recorder.write(&mut nbd, 32, |count| {
                enough.fetch_or(count >= writes, Ordering::SeqCst);
                false
            })
        });
        while !enough.load(Ordering::SeqCst) && !writer.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let killed = cluster.kill_all();
        let written = writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))?;
        killed.and(written)
    })?;
    ensure!(
        written == Ended::ConnectionLost && recorder.unanswered > 0,
        "nothing was in flight when all were killed"
    );
    let restarted = Instant::now();
    cluster.restart_all()?;
    let mut nbd = connect_patiently(cluster)?;
    nbd.read(0, 4096)?;
    eprintln!("    the first read was answered {:.1} s after the restart", restarted.elapsed().as_secs_f64());
    let verified = recorder.verify(&mut nbd)?;
    Ok((recorder.acknowledged, verified))
}

/// After a restart of everything it takes a moment until the groups are whole again.
fn connect_patiently(cluster: &Cluster) -> Result<Nbd> {
    let started = Instant::now();
    loop {
        match cluster.connect(0, "v") {
            Ok(nbd) => return Ok(nbd),
            Err(error) if started.elapsed() > Duration::from_secs(60) => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// A brick that stands still for longer than its lease, and whose clock has then jumped, does no harm.
pub(super) fn brick_paused(binary: &Path) -> Result<()> {
    let mut cluster = Cluster::start(binary, &Spec::default())?;
    cluster.create("v", 64 << 20, "raid1x3")?;
    let connect = || cluster.connect(0, "v");
    super::record::beside(connect, || {
        cluster.bricks[0].signal(Signal::STOP)?;
        std::thread::sleep(Duration::from_secs(5));
        cluster.bricks[0].signal(Signal::CONT)?;
        std::thread::sleep(Duration::from_secs(1));
        Ok(())
    })?;
    cluster.all_alive()
}
