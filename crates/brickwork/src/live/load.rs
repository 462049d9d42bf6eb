//! The clients: a closed loop of single blocks at random places, whose every read is checked.

use super::plan::{self, Plan, TAG, VOLUME};
use anyhow::{Context, Result, anyhow, ensure};
use base::Rng;
use rig::load::{self, Next, Operation, Outcome, Workload};
use rig::nbd::{Command, Nbd};
use rig::pattern;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);

pub(super) struct Client {
    flags: Arc<Flags>,
    thread: JoinHandle<Result<Seen>>,
}

#[derive(Default)]
struct Flags {
    measuring: AtomicBool,
    stop: AtomicBool,
}

/// Requests of a kind that were answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answered {
    pub(super) count: u64,
    pub(super) total: Duration,
}

/// What clients saw while it was measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) seconds: f64,
    pub(super) reads: Answered,
    pub(super) writes: Answered,
}

impl Answered {
    pub(super) fn mean(&self) -> Duration {
        self.total.div_f64(self.count.max(1) as f64)
    }
}

pub(super) fn start(plan: &Plan, endpoint: &str) -> Result<Client> {
    let (sender, receiver) = Nbd::open(endpoint, VOLUME)?.split()?;
    let flags = Arc::new(Flags::default());
    let mut random = Random::new(plan, flags.clone());
    let thread = std::thread::spawn(move || {
        load::drive(sender, receiver, plan::OUTSTANDING, &mut random)?;
        random.failed.map_or(Ok(random.seen), Err)
    });
    Ok(Client { flags, thread })
}

impl Client {
    /// Waits, as long as the load goes on.
    pub(super) fn sleep(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            ensure!(!self.thread.is_finished(), "the load ended before its time");
            std::thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Requests that end from now on count, or do not.
    pub(super) fn measure(&self, measuring: bool) {
        self.flags.measuring.store(measuring, Ordering::Relaxed);
    }

    /// Ends it: what it saw, or what went wrong.
    pub(super) fn stop(self) -> Result<Seen> {
        self.flags.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("the load panicked"))?
    }
}

struct Random {
    rng: Rng,
    blocks: u64,
    flags: Arc<Flags>,
    value: u64,
    /// When it began to be measured, and when the last request of that time ended.
    since: Option<Instant>,
    seen: Seen,
    failed: Option<anyhow::Error>,
}

impl Random {
    fn new(plan: &Plan, flags: Arc<Flags>) -> Random {
        let (rng, blocks) = (Rng::with_seed(plan.seed), plan.blocks());
        Random { rng, blocks, flags, value: 1, since: None, seen: Seen::default(), failed: None }
    }

    fn count(&mut self, operation: &Operation, start: Instant) {
        if !self.flags.measuring.load(Ordering::Relaxed) {
            return;
        }
        let now = Instant::now();
        // The first answer begins the time, and does not count.
        let Some(since) = self.since else {
            self.since = Some(now);
            return;
        };
        self.seen.seconds = (now - since).as_secs_f64();
        let answered =
            if operation.command == Command::Read { &mut self.seen.reads } else { &mut self.seen.writes };
        answered.count += 1;
        answered.total += now - start;
    }
}

impl Workload for Random {
    fn next(&mut self) -> Next {
        if self.failed.is_some() || self.flags.stop.load(Ordering::Relaxed) {
            return Next::Finished;
        }
        let is_read = self.rng.f64() < plan::READS;
        let command = if is_read { Command::Read } else { Command::Write };
        self.value += 1;
        Next::Operation(Operation {
            command,
            block: self.rng.u64(..self.blocks),
            blocks: 1,
            value: self.value,
        })
    }

    fn fill(&self, operation: &Operation, out: &mut [u8]) {
        pattern::fill(out, TAG, operation.block, operation.value);
    }

    fn ended(&mut self, operation: &Operation, start: Instant, outcome: Outcome, content: &[u8]) {
        let result = match (outcome, operation.command) {
            (Outcome::Done, Command::Read) => check(content, operation.block),
            (Outcome::Done, _) => Ok(()),
            (Outcome::Failed(errno), _) => Err(anyhow!("a request failed with errno {errno}")),
            (Outcome::Lost, _) => Err(anyhow!("the gateway closed the connection")),
        };
        match result {
            Ok(()) => self.count(operation, start),
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
    }
}

/// Fails with what the load has seen go wrong.
fn check(content: &[u8], block: u64) -> Result<()> {
    let value = pattern::value(content, TAG, block).with_context(|| format!("block {block}"))?;
    ensure!(value > 0, "block {block} holds zeros, although it was written");
    Ok(())
}
