//! The clients: requests in closed loops, or when they are due, whose every read is checked.

use super::asked::{self, Asked, Part};
use super::bed::{TAG, VOLUME};
use anyhow::{Context, Result, anyhow, ensure};
use base::{BLOCK, BLOCK_U64, SECTOR_BYTES};
use rig::load::{self, Next, Operation, Outcome, Workload};
use rig::nbd::{Command, Nbd};
use rig::pattern;
use sim::timed::Window;
use sim::timed::workload::Shape;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
/// A request that is sent so long after it was due is late: a process that sleeps is often woken some tenths of that too late.
pub(super) const LATE: Duration = Duration::from_millis(1);
const BLOCK_SECTORS: u64 = BLOCK_U64 / SECTOR_BYTES;

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

/// How long after they were due requests were sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lateness {
    pub(super) requests: u64,
    /// Those later than [`LATE`].
    pub(super) late: u64,
    pub(super) most: Duration,
}

/// What clients saw while it was measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) reads: Answered,
    pub(super) writes: Answered,
    /// When each request was answered, since its client began, and how long it took.
    pub(super) took: Vec<(Duration, Duration)>,
    /// Of requests that were due at a time.
    pub(super) lateness: Lateness,
}

impl Answered {
    pub(super) fn mean(&self) -> Duration {
        self.total.div_f64(self.count.max(1) as f64)
    }

    fn and(self, other: Answered) -> Answered {
        Answered { count: self.count + other.count, total: self.total + other.total }
    }
}

impl Lateness {
    fn add(&mut self, late: Duration) {
        let is_late = u64::from(late > LATE);
        *self = self.and(Lateness { requests: 1, late: is_late, most: late });
    }

    fn and(self, other: Lateness) -> Lateness {
        Lateness {
            requests: self.requests + other.requests,
            late: self.late + other.late,
            most: self.most.max(other.most),
        }
    }
}

impl Seen {
    /// What both saw, in the same time.
    fn and(mut self, other: Seen) -> Seen {
        self.took.extend(other.took);
        Seen {
            reads: self.reads.and(other.reads),
            writes: self.writes.and(other.writes),
            took: self.took,
            lateness: self.lateness.and(other.lateness),
        }
    }

    pub(super) fn requests(&self) -> f64 {
        (self.reads.count + self.writes.count) as f64
    }

    /// When the last request was answered, since clients began.
    pub(super) fn last(&self) -> Duration {
        self.took.iter().map(|(at, _)| *at).max().unwrap_or_default()
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
        let connect = |endpoint: &String| Nbd::open(endpoint, VOLUME)?.split();
        let connections = endpoints.iter().map(connect).collect::<Result<Vec<_>>>()?;
        let began = Instant::now();
        let start = |(at, (sender, receiver))| {
            let depth = asked::share(asked.outstanding(), at, count);
            let mut checked = Checked::new(asked.part(at, count), u64::from(at), began, flags.clone());
            std::thread::spawn(move || {
                let driven = load::drive(sender, receiver, depth as usize, &mut checked);
                let result = checked.failed.map_or(driven, Err);
                if result.is_err() {
                    checked.flags.stop.store(true, Ordering::Relaxed);
                }
                result.map(|()| checked.seen)
            })
        };
        let threads = (0..).zip(connections).map(start).collect();
        Ok(Client { flags, threads })
    }

    /// Waits, as long as the load goes on.
    pub(super) fn sleep(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.is_over() {
            std::thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// Whether all requests are answered, or one failed.
    fn is_over(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
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

/// Requests whose every answer is checked.
struct Checked {
    part: Part,
    flags: Arc<Flags>,
    value: u64,
    began: Instant,
    outstanding: u32,
    seen: Seen,
    failed: Option<anyhow::Error>,
}

impl Checked {
    /// Each of several clients writes other values.
    fn new(part: Part, number: u64, began: Instant, flags: Arc<Flags>) -> Checked {
        Checked {
            part,
            flags,
            value: number << 48 | 1,
            began,
            outstanding: 0,
            seen: Seen::default(),
            failed: None,
        }
    }

    fn count(&mut self, operation: &Operation, start: Instant) {
        if !self.flags.measuring.load(Ordering::Relaxed) {
            return;
        }
        let now = Instant::now();
        let answered =
            if operation.command == Command::Read { &mut self.seen.reads } else { &mut self.seen.writes };
        answered.count += 1;
        answered.total += now - start;
        self.seen.took.push((now - self.began, now - start));
    }
}

impl Workload for Checked {
    fn next(&mut self) -> Next {
        if self.failed.is_some() || self.flags.stop.load(Ordering::Relaxed) {
            return Next::Finished;
        }
        let (threads, until) = self.part.threads(self.began.elapsed());
        if self.outstanding >= threads {
            // Whoever ends it is not waited for until then.
            let look = Instant::now() + POLL;
            return Next::Until(until.map_or(look, |until| look.min(self.began + until)));
        }
        let Some((due, Shape { sector, count, is_write })) = self.part.next() else { return Next::Finished };
        let command = if is_write { Command::Write } else { Command::Read };
        let blocks = (u64::from(count) / BLOCK_SECTORS) as u32;
        self.value += 1;
        self.outstanding += 1;
        let operation = Operation { command, block: sector / BLOCK_SECTORS, blocks, value: self.value };
        match due {
            Some(due) => Next::Due(operation, self.began + due),
            None => Next::Operation(operation),
        }
    }

    fn sent(&mut self, late: Duration) {
        if self.flags.measuring.load(Ordering::Relaxed) {
            self.seen.lateness.add(late);
        }
    }

    fn fill(&self, operation: &Operation, out: &mut [u8]) {
        for (block, out) in (operation.block..).zip(out.chunks_exact_mut(BLOCK)) {
            pattern::fill(out, TAG, block, operation.value);
        }
    }

    fn ended(&mut self, operation: &Operation, start: Instant, outcome: Outcome, content: &[u8]) {
        self.outstanding -= 1;
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
