//! Where the processes of a cluster leave their logs and pids; ending them by these pids, also from another process.

use anyhow::{Context, Result};
use job::process::Place;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a process may take to end cleanly before it is killed.
pub const GRACE: Duration = Duration::from_secs(5);
/// How long a folder may refuse to go.
const REMOVAL: Duration = Duration::from_secs(5);
/// Whether a signal has come, of those that end a cluster.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A cluster's folder, with `logs` and `pids` in it.
#[derive(Clone, Debug)]
pub(super) struct Home {
    dir: PathBuf,
    outlives: bool,
}

/// A process that a pid file names: a pid that was given to another process since is told by its start time.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Started {
    pid: i32,
    ticks: u64,
}

impl Home {
    /// Makes the folders. With `outlives` the processes go on when this one ends.
    pub(super) fn make(dir: &Path, outlives: bool) -> Result<Home> {
        let dir = std::path::absolute(dir)?;
        for folder in ["logs", "pids"] {
            let folder = dir.join(folder);
            fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        }
        Ok(Home { dir, outlives })
    }

    pub(super) fn place(&self, name: &str) -> Place {
        let logs = self.dir.join("logs");
        Place {
            stdout: logs.join(format!("{name}.out")),
            stderr: logs.join(format!("{name}.log")),
            outlives: self.outlives,
        }
    }

    pub(super) fn note(&self, name: &str, pid: u32) -> Result<()> {
        let ticks = Started::of(pid as i32).map(|started| started.ticks).unwrap_or_default();
        Ok(fs::write(self.dir.join("pids").join(name), format!("{pid} {ticks}\n"))?)
    }

    pub(super) fn forget(&self, name: &str) {
        let _ = fs::remove_file(self.dir.join("pids").join(name));
    }
}

impl Started {
    /// None when it does not run.
    fn of(pid: i32) -> Option<Started> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The command's name, in parentheses, may hold spaces; the fields behind it do not.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        if state == "Z" { None } else { Some(Started { pid, ticks: fields.nth(18)?.parse().ok()? }) }
    }

    /// The process of a pid file, if it still runs.
    fn read(pid_file: &str) -> Option<Started> {
        let (pid, ticks) = pid_file.trim().split_once(' ')?;
        let noted = Started { pid: pid.parse().ok()?, ticks: ticks.parse().ok()? };
        noted.runs().then_some(noted)
    }

    fn runs(&self) -> bool {
        Started::of(self.pid) == Some(*self)
    }

    fn signal(&self, signal: Signal) {
        // It may have ended by itself.
        let _ = Pid::from_raw(self.pid).map(|pid| kill_process(pid, signal));
    }
}

/// Ends the processes whose pid files are under `dir`, and no others. Those that do not end within `grace` are killed.
/// Returns how many were ended.
pub fn stop(dir: &Path, grace: Duration) -> Result<usize> {
    let entries = fs::read_dir(dir.join("pids")).with_context(|| {
        format!("{} holds no cluster; name the directory that `brickwork demo --keep` printed", dir.display())
    })?;
    let mut ours = Vec::new();
    for entry in entries {
        let path = entry?.path();
        ours.extend(Started::read(&fs::read_to_string(&path)?));
        fs::remove_file(&path)?;
    }
    ours.iter().for_each(|process| process.signal(Signal::TERM));
    let end = Instant::now() + grace;
    while ours.iter().any(Started::runs) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    ours.iter().filter(|process| process.runs()).for_each(|process| process.signal(Signal::KILL));
    Ok(ours.len())
}

/// On Ctrl-C and its like: ends what the pid files under `dir` name, removes `folder`, and ends this process with 130.
pub fn end_on_signal(dir: PathBuf, folder: Option<PathBuf>) -> Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([libc::SIGINT, libc::SIGTERM, libc::SIGHUP])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            INTERRUPTED.store(true, Ordering::SeqCst);
            eprintln!("\nbrickwork: interrupted; ending all processes of the cluster");
            // Nobody needs what the cluster holds, so that it need not end cleanly.
            if let Err(error) = stop(&dir, Duration::ZERO) {
                eprintln!("brickwork: {error:#}");
            }
            if let Some(folder) = folder {
                remove(&folder);
            }
            std::process::exit(130);
        }
    })?;
    Ok(())
}

/// Whoever fails because [`end_on_signal`] ends the processes waits here for the end of this one.
pub(super) fn wait_if_interrupted() {
    while INTERRUPTED.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Removes a folder in which the main thread may be making files still, until it fails for want of processes.
fn remove(folder: &Path) {
    let end = Instant::now() + REMOVAL;
    while folder.exists() && Instant::now() < end {
        let _ = fs::remove_dir_all(folder);
        std::thread::sleep(Duration::from_millis(50));
    }
}
