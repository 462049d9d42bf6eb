//! Other programs: started with their output in files, bounded in time, and what they cost.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::fs::{self, File};
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A program that runs, in a process group of its own; it ends with this value.
pub struct Job {
    name: String,
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
    started: Instant,
}

/// A program that ended.
pub struct Finished {
    name: String,
    pub status: ExitStatus,
    pub stdout: String,
    /// All it complained of.
    pub stderr: String,
    /// How long it ran.
    pub took: Duration,
}

/// Where a program's output goes, and whether the program outlives this one.
pub struct Place {
    /// What it prints; made anew.
    pub stdout: PathBuf,
    /// What it complains of; appended to.
    pub stderr: PathBuf,
    /// Whether it goes on when this process ends.
    pub outlives: bool,
}

impl Job {
    /// Starts a program whose output goes to `target/xtask/log`.
    pub fn spawn(name: &str, command: &mut Command) -> Result<Job> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let base = crate::scratch("log")?.join(format!("{}-{number:04}-{name}", std::process::id()));
        let (stdout, stderr) = (base.with_extension("out"), base.with_extension("err"));
        Job::spawn_at(name, command, Place { stdout, stderr, outlives: false })
    }

    /// Starts a program whose output goes to a place of its own.
    pub fn spawn_at(name: &str, command: &mut Command, place: Place) -> Result<Job> {
        let Place { stdout, stderr, outlives } = place;
        let log = File::options().create(true).append(true).open(&stderr);
        // A process group of its own, so that Ctrl-C reaches this process first.
        command.stdin(Stdio::null()).stdout(File::create(&stdout)?).stderr(log?).process_group(0);
        if !outlives {
            end_with_parent(command);
        }
        let child =
            command.spawn().with_context(|| format!("starting {name}: {:?}", command.get_program()))?;
        Ok(Job { name: name.to_owned(), child, stdout, stderr, started: Instant::now() })
    }

    /// Lets it go on when this value is gone.
    pub fn leave(self) {
        std::mem::forget(self);
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it printed so far.
    pub fn stdout(&self) -> String {
        read_lossy(&self.stdout)
    }

    /// What it complained of so far.
    pub fn stderr(&self) -> String {
        read_lossy(&self.stderr)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        send(self.pid(), signal)
    }

    /// Waits for its end; past the limit it is ended, and that is an error.
    pub fn wait(mut self, limit: Duration) -> Result<Finished> {
        self.wait_until(limit, |_| ())
    }

    /// As [`Job::wait`], and shows now and then how far it is.
    pub fn wait_showing(mut self, limit: Duration) -> Result<Finished> {
        let mut shown = Instant::now();
        let terminal = std::io::stderr().is_terminal();
        let pause = Duration::from_secs(if terminal { 2 } else { 30 });
        self.wait_until(limit, |job| {
            if shown.elapsed() >= pause {
                shown = Instant::now();
                let line =
                    format!("    {} {:>4} s  {}", job.name, job.started.elapsed().as_secs(), job.last_line());
                if terminal { eprint!("\x1b[2K{line}\r") } else { eprintln!("{line}") }
            }
        })
    }

    /// The limit counts from now, not from the start: a daemon may have run for long before it is waited for.
    fn wait_until(&mut self, limit: Duration, mut tick: impl FnMut(&Job)) -> Result<Finished> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(self.finished(status));
            }
            if begun.elapsed() > limit {
                self.end_group();
                bail!("{} did not end within {} s; last: {}", self.name, limit.as_secs(), self.last_line());
            }
            tick(self);
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    fn finished(&self, status: ExitStatus) -> Finished {
        let (stdout, stderr) = (self.stdout(), self.stderr());
        Finished { name: self.name.clone(), status, stdout, stderr, took: self.started.elapsed() }
    }

    fn last_line(&self) -> String {
        let text = if self.stderr().trim().is_empty() { self.stdout() } else { self.stderr() };
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("").chars().take(60).collect()
    }

    fn end_group(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.running() {
            self.end_group();
        }
    }
}

impl Finished {
    /// Itself if it went well, else an error with the end of what it said.
    pub fn success(self) -> Result<Finished> {
        if self.status.success() {
            return Ok(self);
        }
        let said = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        bail!("{} ended with {}:\n{}", self.name, self.status, tail(said, 25))
    }
}

/// Runs a program to its good end.
pub fn run(name: &str, command: &mut Command, limit_s: u64) -> Result<Finished> {
    Job::spawn(name, command)?.wait(Duration::from_secs(limit_s))?.success()
}

/// Runs a program that says little to its good end, and leaves no log.
pub fn capture(name: &str, command: &mut Command, limit: Duration) -> Result<Finished> {
    let started = Instant::now();
    end_with_parent(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().with_context(|| format!("starting {name}: {:?}", command.get_program()))?;
    let (pid, (done, ended)) = (child.id(), std::sync::mpsc::channel());
    // A thread reads both pipes, so that neither fills up while the program is waited for.
    std::thread::spawn(move || done.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(limit) else {
        send(pid, Signal::KILL)?;
        bail!("{name} did not end within {} s", limit.as_secs());
    };
    let output = output?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr, took) = (text(&output.stdout), text(&output.stderr), started.elapsed());
    Finished { name: name.to_owned(), status: output.status, stdout, stderr, took }.success()
}

/// The last lines of a text.
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// The last JSON object of an output: the whole of it, or its last line.
pub fn last_object(text: &str) -> Option<Value> {
    let whole = serde_json::from_str(text).ok().filter(Value::is_object);
    let last_line =
        || text.lines().rev().find_map(|line| serde_json::from_str(line).ok().filter(Value::is_object));
    whole.or_else(last_line).or_else(|| {
        let start = if text.starts_with('{') { 0 } else { text.rfind("\n{")? + 1 };
        serde_json::from_str(&text[start..]).ok()
    })
}

/// Whether a program is on the path (or in the places where administrators' tools lie).
pub fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).any(|folder| folder.join(program).is_file())
}

/// Sends a signal to one process.
pub fn send(pid: u32, signal: Signal) -> Result<()> {
    let pid = Pid::from_raw(pid as i32).context("no process has the id 0")?;
    kill_process(pid, signal)
        .with_context(|| format!("sending {signal:?} to process {}", pid.as_raw_nonzero()))
}

/// Whether this process may do everything.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Processor time that a process and its threads took so far, in microseconds. Source: `/proc/PID/stat`, fields 14 and 15,
/// in ticks of 10 ms.
pub fn processor_us(pid: u32) -> Result<u64> {
    let text =
        fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid} is gone"))?;
    let after_name = text.rsplit_once(')').context("/proc/PID/stat without a name")?.1;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(ticks * 10_000)
}

/// Processor time in seconds of all programs that this process started, and waited for.
pub fn processor_s_of_children() -> f64 {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    // SAFETY: all zeros is a value of this plain C struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a value of the right type that outlives the call.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Resident memory of a process in bytes.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    memory_bytes(pid, "VmRSS:")
}

/// The most memory that a process has had resident, in bytes.
pub fn peak_bytes(pid: u32) -> Result<u64> {
    memory_bytes(pid, "VmHWM:")
}

fn memory_bytes(pid: u32, field: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("process {pid} is gone"))?;
    let value = text.lines().find_map(|line| line.strip_prefix(field));
    let value = value.with_context(|| format!("no {field} in /proc/PID/status"))?;
    let kib: u64 = value.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}

/// The processes that a process started.
pub fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The kernel kills the child when the thread that starts it ends, however that happens: a test that is itself killed
/// leaves nothing behind.
pub fn end_with_parent(command: &mut Command) {
    let parent = rustix::process::Pid::from_raw(std::process::id() as i32);
    let tie = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before the line above.
        if rustix::process::getppid() != parent {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls that may be made between fork and exec, and allocates nothing.
    unsafe { command.pre_exec(tie) };
}

fn read_lossy(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_last_object() {
        let lines = last_object("seed 1\n{\"a\":1}\n{\"b\":[{\"c\":2}]}\n\n");
        assert_eq!(lines.map(|value| value["b"][0]["c"] == 2), Some(true));
        let pretty = last_object("seed 1\n{\n  \"a\": {\n    \"b\": 3\n  }\n}\n");
        assert_eq!(pretty.map(|value| value["a"]["b"] == 3), Some(true));
        assert_eq!(last_object("nothing\n"), None);
    }
}
