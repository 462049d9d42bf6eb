//! Child processes: started, watched, killed; and found again by their pid files.
//!
//! A child ends when this process ends, however that happens (`PR_SET_PDEATHSIG`), unless it is to be kept. The kernel
//! ties that to the *thread* that started the child, so only the main thread starts children.

use crate::security::files;
use anyhow::{Context, Result, bail, ensure};
use signal_hook::iterator::Signals;
use std::fs::{self, File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a process may take to end cleanly before it is killed.
pub const GRACE: Duration = Duration::from_secs(5);

/// How long a folder may refuse to go.
const REMOVAL: Duration = Duration::from_secs(5);
/// Whether a signal has come, of those that end a cluster.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Starts children.
pub struct Spawner {
    program: PathBuf,
    dir: PathBuf,
    keep: bool,
}

/// A child.
pub struct Process {
    name: String,
    arguments: Vec<String>,
    child: Child,
    said: PathBuf,
    log: PathBuf,
    pid_file: PathBuf,
    ready: bool,
    killed: bool,
    ends_with_us: bool,
}

impl Spawner {
    /// Children run `program`, this very one where none is given, and keep their logs and pid files under `dir`; with
    /// `keep` they outlive this process.
    pub fn new(program: Option<&Path>, dir: &Path, keep: bool) -> Result<Spawner> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => std::env::current_exe().context("cannot find this program's own file")?,
        };
        let dir = std::path::absolute(dir)?;
        files::make_dir(&dir.join("logs"))?;
        files::make_dir(&dir.join("pids"))?;
        Ok(Spawner { program, dir, keep })
    }

    /// Starts `brickwork ARGUMENTS`.
    pub fn spawn(&self, name: &str, arguments: &[&str]) -> Result<Process> {
        let said = self.dir.join("logs").join(format!("{name}.out"));
        let log = self.dir.join("logs").join(format!("{name}.log"));
        let errors = OpenOptions::new().create(true).append(true).open(&log)?;
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).stdout(File::create(&said)?).stderr(errors);
        own_environment(&mut command);
        end_with_parent(&mut command, !self.keep);
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let pid_file = self.dir.join("pids").join(name);
        let pid = child.id();
        files::replace(&pid_file, format!("{pid} {}\n", started(pid).unwrap_or_default()).as_bytes())?;
        Ok(Process {
            name: name.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            child,
            said,
            log,
            pid_file,
            ready: false,
            killed: false,
            ends_with_us: true,
        })
    }
}

impl Process {
    /// What it was started with.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Waits until it has printed its `ready` line.
    pub fn wait_ready(&mut self, end: Instant) -> Result<()> {
        while !self.ready {
            self.check_alive()?;
            self.ready = fs::read_to_string(&self.said)
                .is_ok_and(|text| text.starts_with("ready ") && text.ends_with('\n'));
            if !self.ready {
                ensure!(
                    Instant::now() < end,
                    "{} does not become ready; its log is {}",
                    self.name,
                    self.log.display()
                );
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }

    /// Fails when it ended by itself.
    pub fn check_alive(&mut self) -> Result<()> {
        if self.killed {
            return Ok(());
        }
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!(
                "{} ended ({status}); the end of {}:\n{}",
                self.name,
                self.log.display(),
                tail(&self.log)
            ),
        }
    }

    /// Kills it with SIGKILL, now.
    pub fn kill(&mut self) {
        self.killed = true;
        // It may have ended by itself; then there is nothing to kill or to wait for.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.pid_file);
    }

    /// Stops it where it stands (SIGSTOP), or lets it go on (SIGCONT).
    pub fn pause(&self, paused: bool) {
        signal(self.child.id(), if paused { libc::SIGSTOP } else { libc::SIGCONT });
    }

    /// Asks it to end (SIGTERM), and waits for that.
    pub fn end(&mut self) -> Result<()> {
        signal(self.child.id(), libc::SIGTERM);
        let end = Instant::now() + GRACE;
        while self.child.try_wait()?.is_none() {
            ensure!(
                Instant::now() < end,
                "{} does not end on SIGTERM; its log is {}",
                self.name,
                self.log.display()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
        Ok(())
    }

    /// Does not end it when this value is dropped.
    pub fn leave_running(&mut self) {
        self.ends_with_us = false;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ends_with_us && !self.killed {
            self.kill();
        }
    }
}

/// Ends the processes whose pid files are under `dir`, and no others: a pid that was given to another process since is
/// told by its start time. Processes that do not end within `grace` are killed. Returns how many were ended.
pub fn stop(dir: &Path, grace: Duration) -> Result<usize> {
    let pids = dir.join("pids");
    let entries = fs::read_dir(&pids).with_context(|| {
        format!("{} holds no cluster; name the directory that `brickwork demo --keep` printed", dir.display())
    })?;
    let mut ours = Vec::new();
    for entry in entries {
        let path = entry?.path();
        ours.extend(running(&files::read(&path)?));
        fs::remove_file(&path)?;
    }
    ours.iter().for_each(|&(pid, _)| signal(pid, libc::SIGTERM));
    let end = Instant::now() + grace;
    while ours.iter().any(|&(pid, start)| started(pid) == Some(start)) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    let stubborn = ours.iter().filter(|&&(pid, start)| started(pid) == Some(start));
    stubborn.for_each(|&(pid, _)| signal(pid, libc::SIGKILL));
    Ok(ours.len())
}

/// On Ctrl-C and its like: ends what the pid files under `dir` name, removes `folder`, and ends this process with 130.
pub fn end_on_signal(dir: PathBuf, folder: Option<PathBuf>) -> Result<()> {
    let mut signals = Signals::new([libc::SIGINT, libc::SIGTERM, libc::SIGHUP])?;
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
pub fn wait_if_interrupted() {
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

/// The process of a pid file, if it still runs.
fn running(pid_file: &str) -> Option<(u32, u64)> {
    let (pid, start) = pid_file.trim().split_once(' ')?;
    let (pid, start) = (pid.parse().ok()?, start.parse().ok()?);
    (started(pid) == Some(start)).then_some((pid, start))
}

/// When a process started, in clock ticks since boot; none when it does not run.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name, in parentheses, may hold spaces; the fields behind it do not.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if state == "Z" { None } else { fields.nth(18)?.parse().ok() }
}

fn signal(pid: u32, signal: libc::c_int) {
    // SAFETY: kill takes no pointers.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

/// A child's configuration is its file alone: what the environment says is meant for this process.
fn own_environment(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BRICKWORK_") {
            command.env_remove(name);
        }
    }
}

/// Puts the child into a process group of its own, so that Ctrl-C reaches this process first.
fn end_with_parent(command: &mut Command, end_with_parent: bool) {
    command.process_group(0);
    let parent = std::process::id();
    let set = move || {
        // SAFETY: prctl and getppid take no pointers, and both may be called between fork and exec.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // The parent may have ended before the line above.
            if libc::getppid() as u32 != parent {
                libc::_exit(1);
            }
        }
        Ok(())
    };
    if end_with_parent {
        // SAFETY: the closure makes async-signal-safe calls only, and allocates nothing.
        unsafe { command.pre_exec(set) };
    }
}

fn tail(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}
