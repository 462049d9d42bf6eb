//! Blocks that many clients read and write at once, each with one request at a time. Every operation goes into a
//! history, in which a checker finds the order that explains it; nobody remembers what a block must hold.

use super::{Next, Operation, Outcome, Workload};
use crate::nbd::Command;
use crate::pattern;
use base::{BLOCK, Rng};
use sim::history::{self, History, Kind, Register};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What all clients of a run share.
pub struct Arena {
    epoch: Instant,
    next_client: AtomicU64,
    next_value: AtomicU64,
    history: Mutex<History>,
    torn: Mutex<Vec<String>>,
    stop: AtomicBool,
}

/// A client's work on one volume.
pub struct Client {
    arena: Arc<Arena>,
    volume: usize,
    blocks: u64,
    id: u64,
    rng: Rng,
    busy: bool,
    /// What is still to do in order; a client that has it does nothing else.
    sweep: Option<Sweep>,
    think: Duration,
    /// What went wrong with its requests.
    pub failures: Failures,
}

/// Blocks to read or write in order.
struct Sweep {
    command: Command,
    blocks: Range<u64>,
}

/// Requests that did not end well.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Failures {
    /// Never answered: the connection broke.
    pub lost: u64,
    /// Answered with an error.
    pub refused: u64,
    /// The last of these errors, an errno; 0 when there was none.
    pub errno: u32,
}

impl Arena {
    /// Nothing has happened yet.
    pub fn new() -> Arc<Arena> {
        Arc::new(Arena {
            epoch: Instant::now(),
            next_client: AtomicU64::new(1),
            next_value: AtomicU64::new(1),
            history: Mutex::default(),
            torn: Mutex::default(),
            stop: AtomicBool::new(false),
        })
    }

    /// Clients finish what they are at, and end.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether clients are to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How many operations ended so far.
    pub fn operations(&self) -> u64 {
        self.history.lock().expect("nobody panics with it").operations().len() as u64
    }

    /// All that clients saw, and the blocks that were no block of any write.
    pub fn take(&self) -> (History, Vec<String>) {
        let history = std::mem::take(&mut *self.history.lock().expect("nobody panics with it"));
        (history, std::mem::take(&mut *self.torn.lock().expect("nobody panics with it")))
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

impl Client {
    /// A client of the first `blocks` blocks of a volume. Volumes are numbered from 0.
    pub fn new(arena: &Arc<Arena>, volume: usize, blocks: u64, seed: u64) -> Client {
        let id = arena.next_client.fetch_add(1, Ordering::Relaxed);
        Client {
            arena: arena.clone(),
            volume,
            blocks,
            id,
            rng: Rng::with_seed(seed),
            busy: false,
            sweep: None,
            think: Duration::ZERO,
            failures: Failures::default(),
        }
    }

    /// A client that reads, or writes, these blocks once, and ends.
    pub fn sweeping(arena: &Arc<Arena>, volume: usize, command: Command, blocks: Range<u64>) -> Client {
        let all = blocks.end;
        Client { sweep: Some(Sweep { command, blocks }), ..Client::new(arena, volume, all, 0) }
    }

    /// The same client, but it waits so long before each operation.
    pub fn thinking(self, think: Duration) -> Client {
        Client { think, ..self }
    }

    fn draw(&mut self) -> Operation {
        let blocks = self.rng.u64(1..=3).min(self.blocks);
        let block = self.rng.u64(0..=self.blocks - blocks);
        let (command, value) = match self.rng.u32(0..100) {
            0..48 => (Command::Read, 0),
            48..52 => (Command::WriteZeroes, 0),
            52..54 => (Command::Trim, 0),
            _ => (Command::Write, self.arena.next_value.fetch_add(blocks, Ordering::Relaxed)),
        };
        Operation { command, block, blocks: blocks as u32, value }
    }

    fn record(
        &self,
        operation: &Operation,
        index: u64,
        kind: Kind,
        value: u64,
        asked_ns: u64,
        answered_ns: Option<u64>,
    ) {
        let register = Register::block(self.volume, operation.block + index);
        let entry = history::Operation { client: self.id, register, kind, value, asked_ns, answered_ns };
        self.arena.history.lock().expect("nobody panics with it").push(entry);
    }

    fn record_read(
        &self,
        operation: &Operation,
        index: u64,
        content: &[u8],
        asked_ns: u64,
        answered_ns: u64,
    ) {
        let block = operation.block + index;
        match pattern::value(content, self.tag(), block) {
            Ok(value) => self.record(operation, index, Kind::Read, value, asked_ns, Some(answered_ns)),
            Err(damage) => {
                let what =
                    format!("block {block} of volume {}, read by client {}: {damage}", self.volume, self.id);
                self.arena.torn.lock().expect("nobody panics with it").push(what);
            }
        }
    }

    fn tag(&self) -> u64 {
        self.volume as u64 + 1
    }
}

impl Sweep {
    /// Blocks of one request.
    const RUN: u64 = 8;

    fn next(&mut self, arena: &Arena) -> Operation {
        let (block, blocks) = (self.blocks.start, Sweep::RUN.min(self.blocks.end - self.blocks.start));
        self.blocks.start += blocks;
        let is_write = self.command == Command::Write;
        let value = if is_write { arena.next_value.fetch_add(blocks, Ordering::Relaxed) } else { 0 };
        Operation { command: self.command, block, blocks: blocks as u32, value }
    }
}

impl Workload for Client {
    fn next(&mut self) -> Next {
        if self.busy {
            return Next::Wait;
        }
        let operation = match &mut self.sweep {
            Some(sweep) if sweep.blocks.is_empty() => return Next::Finished,
            Some(sweep) => sweep.next(&self.arena),
            None if self.arena.is_stopped() => return Next::Finished,
            None => {
                std::thread::sleep(self.think);
                self.draw()
            }
        };
        self.busy = true;
        Next::Operation(operation)
    }

    fn fill(&self, operation: &Operation, out: &mut [u8]) {
        for (index, content) in (0..).zip(out.chunks_exact_mut(BLOCK)) {
            pattern::fill(content, self.tag(), operation.block + index, operation.value + index);
        }
    }

    fn ended(&mut self, operation: &Operation, start: Instant, outcome: Outcome, content: &[u8]) {
        self.busy = false;
        let asked_ns = (start - self.arena.epoch).as_nanos() as u64;
        let answered_ns = self.arena.now_ns();
        let done = outcome == Outcome::Done;
        for index in 0..u64::from(operation.blocks) {
            if operation.command != Command::Read {
                let value = if operation.command == Command::Write { operation.value + index } else { 0 };
                self.record(operation, index, Kind::Write, value, asked_ns, done.then_some(answered_ns));
            } else if done {
                let content = &content[index as usize * BLOCK..][..BLOCK];
                self.record_read(operation, index, content, asked_ns, answered_ns);
            }
        }
        if !done {
            match outcome {
                Outcome::Failed(errno) => {
                    self.failures.refused += 1;
                    self.failures.errno = errno;
                }
                _ => self.failures.lost += 1,
            }
            // What became of it is open for ever, so that whoever goes on is another client.
            self.id = self.arena.next_client.fetch_add(1, Ordering::Relaxed);
        }
    }
}
