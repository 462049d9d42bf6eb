//! Clients that share blocks through several gateways, and the history of what they saw: a JSON line an operation on a
//! block, for porcupine. Nobody remembers what a block must hold.
//!
//! Reading order: [`History`], [`Client`] (who asks), [`Tally`] (how far writes get on).

use anyhow::{Context, Result, ensure};
use base::BLOCK_U64;
use rig::nbd::Nbd;
use rig::noise::Noise;
use rig::pattern;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What a client does between two operations, and before it tries again to connect.
const THINK: Duration = Duration::from_millis(4);

pub(crate) struct History {
    epoch: Instant,
    out: Mutex<BufWriter<File>>,
    clients: AtomicU64,
    values: AtomicU64,
    /// Blocks that were no block of any write.
    torn: Mutex<Vec<String>>,
}

/// Writes through one way, counted from a moment on.
#[derive(Default)]
pub(crate) struct Tally {
    since_ns: AtomicU64,
    acknowledged: AtomicU64,
    refused: AtomicU64,
}

/// Blocks of a volume: which clients share them, and under what number they are in the history.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    pub(crate) count: u64,
    /// The number of the first in the history.
    pub(crate) first: u64,
}

/// One client, with one request at a time.
pub(crate) struct Client<'a> {
    history: &'a History,
    blocks: Blocks,
    id: u64,
    noise: Noise,
}

#[derive(Clone, Copy)]
struct Operation {
    kind: char,
    block: u64,
    value: u64,
    asked_ns: u64,
    answered_ns: Option<u64>,
}

impl History {
    /// A history in a file.
    pub(crate) fn create(path: &Path) -> Result<History> {
        let file = File::create(path).with_context(|| format!("making {}", path.display()))?;
        Ok(History {
            epoch: Instant::now(),
            out: Mutex::new(BufWriter::new(file)),
            clients: AtomicU64::new(1),
            values: AtomicU64::new(1),
            torn: Mutex::default(),
        })
    }

    /// Nanoseconds since it began.
    pub(crate) fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Writes out what is not yet in the file. An error names the first block that was no block of any write.
    pub(crate) fn finish(&self) -> Result<()> {
        lock(&self.out).flush()?;
        let torn = lock(&self.torn);
        ensure!(torn.is_empty(), "{} blocks torn; the first: {}", torn.len(), torn[0]);
        Ok(())
    }

    fn push(&self, client: u64, first: u64, operation: Operation) -> Result<()> {
        let Operation { kind, block, value, asked_ns, answered_ns } = operation;
        let (answered, block) = (answered_ns.map_or(-1, |ns| ns as i64), first + block);
        let line = format!(
            r#"{{"c":{client},"t0":{asked_ns},"t1":{answered},"op":"{kind}","b":{block},"v":{value}}}"#
        );
        Ok(writeln!(lock(&self.out), "{line}")?)
    }
}

impl<'a> Client<'a> {
    /// A client of some blocks.
    pub(crate) fn new(history: &'a History, blocks: Blocks, seed: u64) -> Client<'a> {
        Client {
            history,
            blocks,
            id: history.clients.fetch_add(1, Ordering::Relaxed),
            noise: Noise::new(seed),
        }
    }

    /// Reads and writes random blocks until `stop`; when a connection breaks it makes another.
    pub(crate) fn live(
        &mut self,
        connect: impl Fn() -> Result<Nbd>,
        tally: &Tally,
        stop: &AtomicBool,
    ) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let Ok(mut nbd) = connect() else {
                std::thread::sleep(THINK);
                continue;
            };
            while !stop.load(Ordering::Relaxed) && self.one(&mut nbd, tally)? {
                std::thread::sleep(THINK);
            }
        }
        Ok(())
    }

    /// Reads every block in order; what it read. Every request must succeed.
    pub(crate) fn sweep(&mut self, nbd: &mut Nbd) -> Result<Vec<u64>> {
        (0..self.blocks.count)
            .map(|block| self.read(nbd, block)?.with_context(|| format!("block {block} cannot be read")))
            .collect()
    }

    /// One operation; false when the connection is of no more use.
    fn one(&mut self, nbd: &mut Nbd, tally: &Tally) -> Result<bool> {
        let block = self.noise.below(self.blocks.count);
        if self.noise.below(2) == 0 {
            return Ok(self.read(nbd, block)?.is_some());
        }
        let value = self.history.values.fetch_add(1, Ordering::Relaxed);
        let asked_ns = self.history.now_ns();
        let done = nbd.write(block * BLOCK_U64, &pattern::content(value, block)).is_ok();
        let answered_ns = done.then(|| self.history.now_ns());
        tally.count(asked_ns, done);
        self.history.push(
            self.id,
            self.blocks.first,
            Operation { kind: 'w', block, value, asked_ns, answered_ns },
        )?;
        if !done {
            // What became of it is open for ever, so that whoever goes on is another client.
            self.id = self.history.clients.fetch_add(1, Ordering::Relaxed);
        }
        Ok(done)
    }

    fn read(&mut self, nbd: &mut Nbd, block: u64) -> Result<Option<u64>> {
        let asked_ns = self.history.now_ns();
        let Ok(data) = nbd.read(block * BLOCK_U64, BLOCK_U64 as u32) else { return Ok(None) };
        let answered_ns = Some(self.history.now_ns());
        let value = match pattern::value_at(&data, block) {
            Ok(value) => value,
            Err(error) => {
                lock(&self.history.torn).push(error.to_string());
                return Ok(None);
            }
        };
        self.history.push(
            self.id,
            self.blocks.first,
            Operation { kind: 'r', block, value, asked_ns, answered_ns },
        )?;
        Ok(Some(value))
    }
}

impl Tally {
    /// Counts from now on only writes that are asked from now on.
    pub(crate) fn mark(&self, history: &History) {
        self.since_ns.store(history.now_ns(), Ordering::SeqCst);
        self.acknowledged.store(0, Ordering::SeqCst);
        self.refused.store(0, Ordering::SeqCst);
    }

    /// Writes asked and acknowledged since the mark.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    /// Writes asked since the mark that got an error or lost their connection.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::SeqCst)
    }

    fn count(&self, asked_ns: u64, done: bool) {
        if asked_ns >= self.since_ns.load(Ordering::SeqCst) {
            let counter = if done { &self.acknowledged } else { &self.refused };
            counter.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// What a panicked thread held is still true here: every change is a single push.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
