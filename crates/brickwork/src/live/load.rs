//! The clients: closed loops at random places of a volume, whose every read is checked.

use super::bed::{TAG, VOLUME};
use anyhow::{Context, Result, anyhow, ensure};
use base::{BLOCK, Rng};
use rig::load::{self, Next, Operation, Outcome, Workload};
use rig::nbd::{Command, Nbd};
use rig::pattern;
use sim::timed::Window;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);

/// What clients ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) seed: u64,
    /// Blocks of the volume.
    pub(super) blocks: u64,
    /// Blocks of each request, which begins at a multiple of as many.
    pub(super) request_blocks: u32,
    /// The share of reads.
    pub(super) reads: f64,
    /// Requests under way at a time, through all gateways.
    pub(super) outstanding: u32,
}

/// A client for each gateway.
pub(super) struct Client {
    flags: Arc<Flags>,
    threads: Vec<JoinHandle<Result<Seen>>>,
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
    /// When each request was answered, since its client began, and how long it took.
    pub(super) took: Vec<(Duration, Duration)>,
}

impl Answered {
    pub(super) fn mean(&self) -> Duration {
        self.total.div_f64(self.count.max(1) as f64)
    }

    fn and(self, other: Answered) -> Answered {
        Answered { count: self.count + other.count, total: self.total + other.total }
    }
}

impl Seen {
    /// What both saw, in the same time.
    fn and(mut self, other: Seen) -> Seen {
        self.took.extend(other.took);
        Seen {
            seconds: self.seconds.max(other.seconds),
            reads: self.reads.and(other.reads),
            writes: self.writes.and(other.writes),
            took: self.took,
        }
    }

    pub(super) fn requests_per_second(&self) -> f64 {
        (self.reads.count + self.writes.count) as f64 / self.seconds.max(1e-9)
    }

    /// The times that these shares of all requests do not exceed, in milliseconds; 0 when there was none.
    pub(super) fn percentiles_ms<const N: usize>(&mut self, shares: [f64; N]) -> [f64; N] {
        self.took.sort_unstable_by_key(|(_, took)| *took);
        shares.map(|share| percentile_ms(&self.took, share))
    }

    /// What was seen from one interval to the next, until `end`.
    pub(super) fn windows(&mut self, length: Duration, end: Duration) -> Vec<Window> {
        self.took.sort_unstable();
        let count = (end.as_secs_f64() / length.as_secs_f64()).ceil() as u32;
        let window = |number: u32| {
            let (from, until) = (length * number, length * (number + 1));
            let first = self.took.partition_point(|(at, _)| *at < from);
            let last = self.took.partition_point(|(at, _)| *at < until);
            let mut within = self.took[first..last].to_vec();
            within.sort_unstable_by_key(|(_, took)| *took);
            Window {
                from_s: from.as_secs_f64(),
                seconds: length.as_secs_f64(),
                requests: within.len() as u64,
                p50_ms: percentile_ms(&within, 0.5),
                p99_ms: percentile_ms(&within, 0.99),
                max_ms: percentile_ms(&within, 1.0),
            }
        };
        (0..count).map(window).collect()
    }
}

/// The time that this share of the requests, which stand in the order of their times, does not exceed.
fn percentile_ms(sorted: &[(Duration, Duration)], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    let found = sorted.get(rank.clamp(1, sorted.len().max(1)) - 1);
    found.map_or(0.0, |(_, took)| took.as_secs_f64() * 1e3)
}

impl Client {
    /// Begins: the requests are divided evenly among the gateways at these endpoints.
    pub(super) fn start(asked: &Asked, endpoints: &[String]) -> Result<Client> {
        let (flags, count) = (Arc::new(Flags::default()), endpoints.len() as u32);
        let start = |(at, endpoint): (u32, &String)| {
            let (sender, receiver) = Nbd::open(endpoint, VOLUME)?.split()?;
            let depth = (asked.outstanding + count - 1 - at) / count;
            let mut random = Random::new(asked, u64::from(at), flags.clone());
            Ok(std::thread::spawn(move || {
                load::drive(sender, receiver, depth as usize, &mut random)?;
                random.failed.map_or(Ok(random.seen), Err)
            }))
        };
        let threads = (0..).zip(endpoints).map(start).collect::<Result<_>>()?;
        Ok(Client { flags, threads })
    }

    /// Waits, as long as the load goes on.
    pub(super) fn sleep(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let are_there = self.threads.iter().all(|thread| !thread.is_finished());
            ensure!(are_there, "the load ended before its time");
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
        let join =
            |thread: JoinHandle<Result<Seen>>| thread.join().map_err(|_| anyhow!("the load panicked"))?;
        let all: Vec<Result<Seen>> = self.threads.into_iter().map(join).collect();
        all.into_iter().try_fold(Seen::default(), |sum, seen| Ok(sum.and(seen?)))
    }
}

struct Random {
    rng: Rng,
    asked: Asked,
    flags: Arc<Flags>,
    value: u64,
    began: Instant,
    /// When it began to be measured, and when the last request of that time ended.
    since: Option<Instant>,
    seen: Seen,
    failed: Option<anyhow::Error>,
}

impl Random {
    /// Each of several clients draws differently, and writes other values.
    fn new(asked: &Asked, number: u64, flags: Arc<Flags>) -> Random {
        let rng = Rng::with_seed(asked.seed ^ number << 32);
        let value = number << 48 | 1;
        Random {
            rng,
            asked: *asked,
            flags,
            value,
            began: Instant::now(),
            since: None,
            seen: Seen::default(),
            failed: None,
        }
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
        self.seen.took.push((now - self.began, now - start));
    }
}

impl Workload for Random {
    fn next(&mut self) -> Next {
        if self.failed.is_some() || self.flags.stop.load(Ordering::Relaxed) {
            return Next::Finished;
        }
        let is_read = self.rng.f64() < self.asked.reads;
        let command = if is_read { Command::Read } else { Command::Write };
        let Asked { blocks, request_blocks, .. } = self.asked;
        let block = self.rng.u64(..blocks / u64::from(request_blocks)) * u64::from(request_blocks);
        self.value += 1;
        Next::Operation(Operation { command, block, blocks: request_blocks, value: self.value })
    }

    fn fill(&self, operation: &Operation, out: &mut [u8]) {
        for (block, out) in (operation.block..).zip(out.chunks_exact_mut(BLOCK)) {
            pattern::fill(out, TAG, block, operation.value);
        }
    }

    fn ended(&mut self, operation: &Operation, start: Instant, outcome: Outcome, content: &[u8]) {
        let result = match (outcome, operation.command) {
            (Outcome::Done, Command::Read) => {
                let blocks = (operation.block..).zip(content.chunks_exact(BLOCK));
                blocks.into_iter().try_for_each(|(block, content)| check(content, block))
            }
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
