//! Load that goes on evenly until it is told to stop: requests at random places of a volume, so many at a time (a closed loop) or so many a
//! second (an open one, a Poisson process). Every read is checked.

use super::{Next, Operation, Outcome, Workload, drive};
use crate::nbd::{Command, Nbd};
use crate::noise::Noise;
use crate::pattern;
use anyhow::{Context, Result, anyhow, ensure};
use base::{BLOCK, BLOCK_U64};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Requests of an open loop that may be unanswered before others wait to be sent.
const OPEN_MOST: usize = 4096;
/// Blocks of a request that fills a volume.
const FILL_BLOCKS: u64 = 128;
const FILL_DEPTH: usize = 8;

/// When requests are sent.
#[derive(Clone, Copy, Debug)]
pub enum Arrivals {
    /// So many are under way all the time; 1 at least.
    Closed(usize),
    /// So many a second, whatever became of those before.
    Open(f64),
}

/// What one connection asks.
#[derive(Clone, Debug)]
pub struct Steady {
    pub arrivals: Arrivals,
    /// The least and the most blocks of a request; all sizes between are equally likely.
    pub blocks: [u32; 2],
    /// Of a hundred requests so many are reads.
    pub read_percent: u64,
    /// Tells the draws of one connection from those of another.
    pub seed: u64,
    /// Names the volume in its blocks.
    pub tag: u64,
}

/// A request that was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// When, since the time from which all loads of a measurement count.
    pub at: Duration,
    /// How long it took; of an open loop from when it was due.
    pub took: Duration,
    pub blocks: u32,
}

/// A load under way. It ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Vec<Sample>>>>,
}

impl Steady {
    /// Begins on a connection whose volume was filled ([`fill`]).
    pub fn start(self, nbd: Nbd, epoch: Instant) -> Result<Running> {
        let [least, most] = self.blocks;
        ensure!((1..=most).contains(&least), "requests of {least} to {most} blocks cannot be");
        let volume_blocks = nbd.size / BLOCK_U64;
        ensure!(volume_blocks >= u64::from(most), "the volume is smaller than a request");
        let (sender, receiver) = nbd.split()?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut asking = Asking {
            noise: Noise::new(self.seed),
            volume_blocks,
            stop: Arc::clone(&stop),
            epoch,
            due: Instant::now(),
            under_way: 0,
            value: self.seed << 40,
            samples: Vec::new(),
            failed: None,
            steady: self,
        };
        let thread = std::thread::spawn(move || {
            let driven = drive(sender, receiver, OPEN_MOST, &mut asking);
            asking.failed.map_or(driven, Err).map(|()| asking.samples)
        });
        Ok(Running { stop, thread: Some(thread) })
    }
}

impl Running {
    /// Ends it: all that was answered, or what went wrong.
    pub fn finish(mut self) -> Result<Vec<Sample>> {
        self.join().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Whether it ended by itself, which it does when something went wrong.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn join(&mut self) -> Option<Result<Vec<Sample>>> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        Some(thread.join().unwrap_or_else(|_| Err(anyhow!("the load panicked"))))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever wanted to know asked.
        drop(self.join());
    }
}

/// The load of one connection.
struct Asking {
    steady: Steady,
    noise: Noise,
    volume_blocks: u64,
    stop: Arc<AtomicBool>,
    epoch: Instant,
    /// When the next request of an open loop is due.
    due: Instant,
    under_way: usize,
    value: u64,
    samples: Vec<Sample>,
    failed: Option<anyhow::Error>,
}

impl Asking {
    fn operation(&mut self) -> Operation {
        let is_read = self.noise.below(100) < self.steady.read_percent;
        let [least, most] = self.steady.blocks;
        let blocks = least + self.noise.below(u64::from(most - least) + 1) as u32;
        // Requests of one size do not overlap in part.
        let block = self.noise.below(self.volume_blocks / u64::from(blocks)) * u64::from(blocks);
        self.value += 1;
        self.under_way += 1;
        let command = if is_read { Command::Read } else { Command::Write };
        Operation { command, block, blocks, value: self.value }
    }

    fn check(&self, operation: &Operation, content: &[u8]) -> Result<()> {
        for (block, content) in (operation.block..).zip(content.chunks_exact(BLOCK)) {
            let value =
                pattern::value(content, self.steady.tag, block).with_context(|| format!("block {block}"))?;
            ensure!(value > 0, "block {block} holds zeros, although it was written");
        }
        Ok(())
    }
}

impl Workload for Asking {
    fn next(&mut self) -> Next {
        if self.failed.is_some() || self.stop.load(Ordering::Relaxed) {
            return Next::Finished;
        }
        match self.steady.arrivals {
            Arrivals::Closed(depth) if self.under_way >= depth.max(1) => Next::Wait,
            Arrivals::Closed(_) => Next::Operation(self.operation()),
            Arrivals::Open(rate) => {
                self.due += self.noise.gap(Duration::from_secs_f64(1.0 / rate));
                Next::Due(self.operation(), self.due)
            }
        }
    }

    fn fill(&self, operation: &Operation, out: &mut [u8]) {
        for (block, out) in (operation.block..).zip(out.chunks_exact_mut(BLOCK)) {
            pattern::fill(out, self.steady.tag, block, operation.value);
        }
    }

    fn ended(&mut self, operation: &Operation, start: Instant, outcome: Outcome, content: &[u8]) {
        self.under_way -= 1;
        let result = match (outcome, operation.command) {
            (Outcome::Done, Command::Read) => self.check(operation, content),
            (Outcome::Done, _) => Ok(()),
            (Outcome::Failed(errno), _) => Err(anyhow!("a request failed with errno {errno}")),
            (Outcome::Lost, _) => Err(anyhow!("the gateway closed the connection")),
        };
        match result {
            Ok(()) => {
                let (at, took) = (self.epoch.elapsed(), start.elapsed());
                self.samples.push(Sample { at, took, blocks: operation.blocks });
            }
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
    }
}

/// Writes every block of a volume once.
pub fn fill(nbd: Nbd, tag: u64) -> Result<()> {
    let blocks = nbd.size / BLOCK_U64;
    let (sender, receiver) = nbd.split()?;
    let mut filling = Filling { tag, next: 0, blocks, failed: None };
    drive(sender, receiver, FILL_DEPTH, &mut filling)?;
    filling.failed.map_or(Ok(()), |errno| Err(anyhow!("filling the volume failed with errno {errno}")))
}

/// Every block, in order.
struct Filling {
    tag: u64,
    next: u64,
    blocks: u64,
    failed: Option<u32>,
}

impl Workload for Filling {
    fn next(&mut self) -> Next {
        let left = self.blocks - self.next;
        if left == 0 || self.failed.is_some() {
            return Next::Finished;
        }
        let blocks = left.min(FILL_BLOCKS);
        let operation =
            Operation { command: Command::Write, block: self.next, blocks: blocks as u32, value: 1 };
        self.next += blocks;
        Next::Operation(operation)
    }

    fn fill(&self, operation: &Operation, out: &mut [u8]) {
        for (block, out) in (operation.block..).zip(out.chunks_exact_mut(BLOCK)) {
            pattern::fill(out, self.tag, block, operation.value);
        }
    }

    fn ended(&mut self, _: &Operation, _: Instant, outcome: Outcome, _: &[u8]) {
        match outcome {
            Outcome::Done => {}
            Outcome::Failed(errno) => self.failed = Some(errno),
            Outcome::Lost => self.failed = Some(libc::ENOTCONN as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(arrivals: Arrivals, read_percent: u64) -> Asking {
        let steady = Steady { arrivals, blocks: [4, 4], read_percent, seed: 3, tag: 9 };
        Asking {
            noise: Noise::new(3),
            volume_blocks: 32,
            stop: Arc::default(),
            epoch: Instant::now(),
            due: Instant::now(),
            under_way: 0,
            value: 0,
            samples: Vec::new(),
            failed: None,
            steady,
        }
    }

    #[test]
    fn a_closed_loop_keeps_its_depth() {
        let mut load = asking(Arrivals::Closed(2), 0);
        let Next::Operation(first) = load.next() else { panic!("there is room") };
        assert!(matches!(load.next(), Next::Operation(_)) && matches!(load.next(), Next::Wait));
        assert!(first.block % 4 == 0 && first.block < 32);
        load.ended(&first, Instant::now(), Outcome::Done, &[]);
        assert!(matches!(load.next(), Next::Operation(_)) && matches!(load.next(), Next::Wait));
        assert_eq!(load.samples.len(), 1);
    }

    #[test]
    fn requests_of_an_open_loop_are_due_one_after_the_other() {
        let mut load = asking(Arrivals::Open(1000.0), 100);
        let due = |load: &mut Asking| match load.next() {
            Next::Due(_, due) => due,
            _ => panic!("it is due at a time"),
        };
        let begin = load.due;
        let moments: Vec<Instant> = (0..1000).map(|_| due(&mut load)).collect();
        assert!(moments.is_sorted());
        let mean_ms = (moments[999] - begin).as_secs_f64();
        assert!((0.8..1.2).contains(&mean_ms), "{mean_ms} ms");
    }

    #[test]
    fn a_read_that_is_not_what_was_written_ends_the_load() {
        let mut load = asking(Arrivals::Closed(1), 100);
        let Next::Operation(read) = load.next() else { panic!("there is room") };
        load.ended(&read, Instant::now(), Outcome::Done, &[0; 4 * BLOCK]);
        assert!(matches!(load.next(), Next::Finished));
        assert!(load.failed.expect("it failed").to_string().contains("zeros"));
    }
}
