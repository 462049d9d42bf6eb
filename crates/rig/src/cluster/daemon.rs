//! One daemon: started, waited for, killed, started again.

use anyhow::{Context, Result, bail};
use job::process::{self, Finished, Job, send, tail};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const READY_LIMIT: Duration = Duration::from_secs(40);
const END_LIMIT: Duration = Duration::from_secs(15);

/// A program that runs around a daemon.
#[derive(Clone, PartialEq, Eq)]
pub enum Wrapper {
    /// Puts each flush that it asks the kernel for, as a line of strace, among what it complains of.
    CountFlushes,
    /// Puts it into a network namespace.
    Namespace(String),
}

/// A daemon; it ends with this value.
pub struct Daemon {
    /// What it is called here.
    pub name: String,
    binary: PathBuf,
    arguments: Vec<String>,
    wrapper: Option<Wrapper>,
    job: Option<Job>,
}

impl Daemon {
    /// Starts it and waits until it says that it is ready.
    pub fn start(name: &str, binary: &Path, arguments: &[&str], wrapper: Option<Wrapper>) -> Result<Daemon> {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        let (name, binary) = (name.to_owned(), binary.to_owned());
        let mut daemon = Daemon { name, binary, arguments, wrapper, job: None };
        daemon.restart()?;
        Ok(daemon)
    }

    /// Starts it again, with the same words.
    pub fn restart(&mut self) -> Result<()> {
        let mut job = Job::spawn(&self.name, &mut self.command())?;
        wait_ready(&mut job, &self.name, READY_LIMIT)?;
        self.job = Some(job);
        Ok(())
    }

    /// The process that serves (not one that runs around it).
    pub fn pid(&self) -> u32 {
        let pid = self.job.as_ref().map_or(0, Job::pid);
        match &self.wrapper {
            Some(Wrapper::CountFlushes) => process::children(pid).first().copied().unwrap_or(pid),
            // `ip netns exec` becomes the program that it runs.
            Some(Wrapper::Namespace(_)) | None => pid,
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

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        send(self.pid(), signal).with_context(|| format!("{} is not running", self.name))
    }

    /// Collects it after a kill.
    pub fn reap(&mut self) {
        if let Some(job) = self.job.take() {
            let _ = job.wait(END_LIMIT);
        }
    }

    /// Asks it to end (SIGTERM); an error if it does not end well in time.
    pub fn stop(&mut self) -> Result<Finished> {
        self.signal(Signal::TERM)?;
        let job = self.job.take().with_context(|| format!("{} is not running", self.name))?;
        job.wait(END_LIMIT)?.success().with_context(|| format!("{} did not end well on SIGTERM", self.name))
    }

    /// Ends it if it runs, whatever state it is in.
    pub fn end(&mut self) {
        if self.job.is_some() && self.stop().is_err() {
            self.job = None;
        }
    }

    /// An error with its last words if it has ended by itself.
    pub fn alive(&mut self) -> Result<()> {
        let Some(job) = self.job.as_mut() else { return Ok(()) };
        if job.running() {
            return Ok(());
        }
        bail!("{} ended by itself:\n{}", self.name, tail(&job.stderr(), 20))
    }

    /// Its last words.
    pub fn said(&self) -> String {
        self.job.as_ref().map(|job| tail(&job.stderr(), 12)).unwrap_or_default()
    }

    fn command(&self) -> Command {
        let mut command = match &self.wrapper {
            None => Command::new(&self.binary),
            Some(Wrapper::Namespace(namespace)) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(&self.binary);
                command
            }
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
                command.arg(&self.binary);
                command
            }
        };
        command.args(&self.arguments);
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
    while !job.stdout().lines().any(|line| line.starts_with("ready")) {
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
