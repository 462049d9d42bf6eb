//! One daemon: started, waited for, killed, started again.

use super::home::Home;
use anyhow::{Context, Result, bail};
use job::process::{self, Finished, Job, send, tail};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Debian's package `faketime`; the loader puts the machine's folder in the place of `$LIB`.
const FAKETIME: &str = "/usr/$LIB/faketime/libfaketime.so.1";
const READY_LIMIT: Duration = Duration::from_secs(40);
const END_LIMIT: Duration = Duration::from_secs(15);

/// A program that runs around a daemon.
#[derive(Clone, PartialEq, Eq)]
pub enum Wrapper {
    /// Puts each flush that it asks the kernel for, as a line of strace, among what it complains of.
    CountFlushes,
    /// Puts it into a network namespace.
    Namespace(String),
    /// Its wall clock is so many seconds ahead of the machine's, or behind it; its other clocks are the machine's.
    Clock { ahead_s: i64 },
    /// All of its clocks are as far behind as this file says ([`set_behind`]).
    Behind(PathBuf),
}

/// Says in the file of [`Wrapper::Behind`] by how much.
///
/// # Errors
/// When the file cannot be written.
pub fn set_behind(file: &Path, by: Duration) -> Result<()> {
    // A reader finds all of it, or what was there before.
    let new = file.with_extension("new");
    fs::write(&new, format!("-{:.3}", by.as_secs_f64()))?;
    Ok(fs::rename(&new, file)?)
}

/// How a daemon is started, each time.
pub(super) struct Start {
    pub(super) name: String,
    pub(super) binary: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) wrapper: Option<Wrapper>,
    /// Where it leaves its log and its pid; in the target folder, and no pid, when there is none.
    pub(super) home: Option<Home>,
}

/// A daemon; it ends with this value.
pub struct Daemon {
    start: Start,
    job: Option<Job>,
}

impl Daemon {
    /// Starts it, and does not wait until it serves.
    pub(super) fn start(start: Start) -> Result<Daemon> {
        let mut daemon = Daemon { start, job: None };
        daemon.start_again()?;
        Ok(daemon)
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.start.name
    }

    /// Starts it again with the same words, and waits until it says that it serves.
    pub fn restart(&mut self) -> Result<()> {
        self.start_again()?;
        self.wait_ready()
    }

    /// Kills it, and starts another program in its place with the same words; waits until that says that it serves.
    pub fn replace(&mut self, binary: &std::path::Path) -> Result<()> {
        self.kill()?;
        self.start.binary = binary.to_owned();
        self.restart()
    }

    /// Starts it again with the same words, and does not wait.
    pub fn start_again(&mut self) -> Result<()> {
        let (name, mut command) = (&self.start.name, self.command());
        let job = match &self.start.home {
            None => Job::spawn(name, &mut command)?,
            Some(home) => {
                let job = Job::spawn_at(name, &mut command, home.place(name))?;
                home.note(name, job.pid())?;
                job
            }
        };
        self.job = Some(job);
        Ok(())
    }

    /// Waits until it has said that it serves; one that was killed is not waited for.
    pub fn wait_ready(&mut self) -> Result<()> {
        let name = &self.start.name;
        self.job.as_mut().map_or(Ok(()), |job| wait_ready(job, name, READY_LIMIT))
    }

    /// The process that serves (not one that runs around it).
    pub fn pid(&self) -> u32 {
        let pid = self.job.as_ref().map_or(0, Job::pid);
        match &self.start.wrapper {
            Some(Wrapper::CountFlushes) => process::children(pid).first().copied().unwrap_or(pid),
            // `ip netns exec` becomes the program that it runs.
            Some(Wrapper::Namespace(_) | Wrapper::Clock { .. } | Wrapper::Behind(_)) | None => pid,
        }
    }

    /// Kills it as a power cut would (SIGKILL).
    pub fn kill(&mut self) -> Result<()> {
        self.send_kill()?;
        self.reap();
        Ok(())
    }

    /// Sends SIGKILL and does not wait.
    pub fn send_kill(&self) -> Result<()> {
        self.signal(Signal::KILL)
    }

    /// Its process stands still, until it goes on.
    pub fn stand_still(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Its process goes on.
    pub fn go_on(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        send(self.pid(), signal).with_context(|| format!("{} is not running", self.start.name))
    }

    /// Collects it after a kill.
    pub fn reap(&mut self) {
        if let Some(job) = self.job.take() {
            let _ = job.wait(END_LIMIT);
        }
        self.forget_pid();
    }

    /// Lets it go on when this value is gone.
    pub(super) fn leave(&mut self) {
        if let Some(job) = self.job.take() {
            job.leave();
        }
    }

    fn forget_pid(&self) {
        if let Some(home) = &self.start.home {
            home.forget(&self.start.name);
        }
    }

    /// Asks it to end (SIGTERM); an error if it does not end well in time.
    pub fn stop(&mut self) -> Result<Finished> {
        self.signal(Signal::TERM)?;
        let job = self.job.take().with_context(|| format!("{} is not running", self.start.name))?;
        self.forget_pid();
        job.wait(END_LIMIT)?
            .success()
            .with_context(|| format!("{} did not end well on SIGTERM", self.start.name))
    }

    /// Ends it if it runs, whatever state it is in.
    pub fn end(&mut self) {
        if self.job.is_some() && self.stop().is_err() {
            self.job = None;
        }
    }

    /// Whether it was started and has not been collected since.
    pub(super) fn was_started(&self) -> bool {
        self.job.is_some()
    }

    /// An error with its last words if it has ended by itself.
    pub fn alive(&mut self) -> Result<()> {
        let Some(job) = self.job.as_mut() else { return Ok(()) };
        if job.running() {
            return Ok(());
        }
        bail!("{} ended by itself:\n{}", self.start.name, tail(&job.stderr(), 20))
    }

    pub fn said(&self) -> String {
        self.job.as_ref().map(|job| tail(&job.stderr(), 12)).unwrap_or_default()
    }

    fn command(&self) -> Command {
        let mut command = match &self.start.wrapper {
            None => Command::new(&self.start.binary),
            Some(Wrapper::Namespace(namespace)) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(&self.start.binary);
                command
            }
            Some(Wrapper::Clock { .. } | Wrapper::Behind(_)) => Command::new(&self.start.binary),
            Some(Wrapper::CountFlushes) => {
                let mut command = Command::new("strace");
                command.args([
                    "-f",
                    "-qq",
                    "--seccomp-bpf",
                    "-s",
                    "0",
                    "-e",
                    "trace=fdatasync,fsync,pwritev2",
                ]);
                command.arg(&self.start.binary);
                command
            }
        };
        command.args(&self.start.arguments);
        super::own_environment(&mut command);
        if let Some(Wrapper::Clock { ahead_s }) = &self.start.wrapper {
            // The program `faketime` would be a process around it.
            command.env("LD_PRELOAD", FAKETIME);
            command.env("FAKETIME", format!("{ahead_s:+}s"));
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        if let Some(Wrapper::Behind(file)) = &self.start.wrapper {
            command.env("LD_PRELOAD", FAKETIME);
            command.env("FAKETIME_TIMESTAMP_FILE", file);
            command.env("FAKETIME_NO_CACHE", "1");
        }
        command
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits for the line that begins with `ready`.
pub(super) fn wait_ready(job: &mut Job, name: &str, limit: Duration) -> Result<()> {
    let started = Instant::now();
    while !job.stdout().lines().any(|line| line.starts_with("ready ")) {
        if !job.running() {
            bail!(
                "{name} ended instead of getting ready:\n{}",
                tail(&format!("{}{}", job.stdout(), job.stderr()), 20)
            );
        }
        if started.elapsed() > limit {
            bail!("{name} is not ready after {} s:\n{}", limit.as_secs(), tail(&job.stderr(), 20));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
