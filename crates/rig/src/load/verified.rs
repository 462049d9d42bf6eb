//! One volume under one writer that remembers what every block must hold: fills it, overwrites it at random while
//! reading it back, and in the end reads all of it.

use super::stats::Meter;
use super::{Next, Operation, Outcome, Workload};
use crate::nbd::Command;
use crate::pattern;
use base::{BLOCK, BLOCK_U64, Rng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Blocks in one operation of a fill or of the final check.
const LARGE_BLOCKS: u64 = 64;
/// Blocks in one operation of the random part, the largest.
const SMALL_BLOCKS: u64 = 4;

/// What the volume must hold, by block, and what went wrong so far.
pub struct Ledger {
    tag: u64,
    values: Vec<u64>,
    /// The value of a write that failed or was never answered: either is right until the block is written again.
    doubtful: Vec<u64>,
    pub troubles: Troubles,
}

#[derive(Clone, Debug, Default)]
pub struct Troubles {
    /// Requests that were answered with an error, or never.
    pub io_errors: u64,
    /// Bytes of blocks that did not hold what was acknowledged.
    pub lost_bytes: u64,
    /// The first of each, in words.
    pub examples: Vec<String>,
}

/// Which part of the work.
#[derive(Clone)]
pub enum Phase {
    /// Write every block once, in order.
    Fill,
    /// Random reads and writes until told to stop.
    Mix {
        /// Set when it is enough.
        stop: Arc<AtomicBool>,
    },
    /// Read every block once, in order.
    Verify,
}

/// The work of one phase.
pub struct Verified<'a> {
    ledger: &'a mut Ledger,
    phase: Phase,
    cursor: u64,
    busy: Vec<bool>,
    rng: Rng,
    next_value: u64,
    progress: Arc<AtomicU64>,
    flushed: bool,
    pub reads: Meter,
    pub writes: Meter,
    /// Bytes whose content was compared.
    pub verified_bytes: u64,
}

impl Ledger {
    /// A volume of zeros, of `blocks` blocks. `tag` names it in its blocks.
    pub fn new(tag: u64, blocks: u64) -> Ledger {
        let zeros = || vec![0; blocks as usize];
        Ledger { tag, values: zeros(), doubtful: zeros(), troubles: Troubles::default() }
    }

    /// How many blocks it has.
    pub fn blocks(&self) -> u64 {
        self.values.len() as u64
    }

    fn trouble(&mut self, what: String) {
        if self.troubles.examples.len() < 8 {
            self.troubles.examples.push(what);
        }
    }

    fn written(&mut self, operation: &Operation, outcome: Outcome) {
        for block in range(operation) {
            let index = block as usize;
            match outcome {
                Outcome::Done => (self.values[index], self.doubtful[index]) = (operation.value, 0),
                _ => self.doubtful[index] = operation.value,
            }
        }
    }

    fn compare(&mut self, operation: &Operation, content: &[u8]) {
        for (block, content) in range(operation).zip(content.chunks_exact(BLOCK)) {
            let (expected, doubtful) = (self.values[block as usize], self.doubtful[block as usize]);
            match pattern::value(content, self.tag, block) {
                Ok(value) if value == expected || (doubtful != 0 && value == doubtful) => {}
                Ok(value) => {
                    self.lose(block, &format!("it holds write {value}, acknowledged was {expected}"))
                }
                Err(damage) => self.lose(block, &damage.to_string()),
            }
        }
    }

    fn lose(&mut self, block: u64, why: &str) {
        self.troubles.lost_bytes += BLOCK_U64;
        self.trouble(format!("block {block} of volume {}: {why}", self.tag));
    }
}

impl<'a> Verified<'a> {
    /// The work of `phase`; `seed` decides the random part, `first_value` must be above all values written before.
    /// `progress` counts bytes answered.
    pub fn new(
        ledger: &'a mut Ledger,
        phase: Phase,
        seed: u64,
        first_value: u64,
        progress: Arc<AtomicU64>,
    ) -> Self {
        let busy = vec![false; ledger.values.len()];
        Verified {
            ledger,
            phase,
            cursor: 0,
            busy,
            rng: Rng::with_seed(seed),
            next_value: first_value,
            progress,
            flushed: false,
            reads: Meter::default(),
            writes: Meter::default(),
            verified_bytes: 0,
        }
    }

    /// The next of the operations that walk over the whole volume.
    fn walk(&mut self, command: Command) -> Next {
        if self.cursor == self.ledger.blocks() {
            return if command == Command::Write { self.flush() } else { Next::Finished };
        }
        let blocks = LARGE_BLOCKS.min(self.ledger.blocks() - self.cursor);
        self.cursor += blocks;
        self.take(command, self.cursor - blocks, blocks)
    }

    /// A random operation on blocks that nothing in flight touches.
    fn draw(&mut self) -> Next {
        for _ in 0..8 {
            let blocks = self.rng.u64(1..=SMALL_BLOCKS);
            let block = self.rng.u64(0..=self.ledger.blocks() - blocks);
            if !self.busy[block as usize..(block + blocks) as usize].contains(&true) {
                let command = if self.rng.bool() { Command::Write } else { Command::Read };
                return self.take(command, block, blocks);
            }
        }
        Next::Wait
    }

    /// One flush behind all writes.
    fn flush(&mut self) -> Next {
        if self.flushed {
            return Next::Finished;
        }
        if self.busy.contains(&true) {
            return Next::Wait;
        }
        self.flushed = true;
        Next::Operation(Operation { command: Command::Flush, block: 0, blocks: 0, value: 0 })
    }

    fn take(&mut self, command: Command, block: u64, blocks: u64) -> Next {
        self.next_value += 1;
        let operation = Operation { command, block, blocks: blocks as u32, value: self.next_value };
        self.mark(&operation, true);
        Next::Operation(operation)
    }

    fn mark(&mut self, operation: &Operation, busy: bool) {
        range(operation).for_each(|block| self.busy[block as usize] = busy);
    }

    fn failed(&mut self, operation: &Operation, outcome: Outcome) {
        self.ledger.troubles.io_errors += 1;
        let what = format!(
            "{:?} of {} blocks at block {}: {outcome:?}",
            operation.command, operation.blocks, operation.block
        );
        self.ledger.trouble(what);
    }
}

impl Workload for Verified<'_> {
    fn next(&mut self) -> Next {
        match &self.phase {
            Phase::Fill => self.walk(Command::Write),
            Phase::Verify => self.walk(Command::Read),
            Phase::Mix { stop } if stop.load(Ordering::Relaxed) => self.flush(),
            Phase::Mix { .. } => self.draw(),
        }
    }

    fn fill(&self, operation: &Operation, out: &mut [u8]) {
        for (block, content) in range(operation).zip(out.chunks_exact_mut(BLOCK)) {
            pattern::fill(content, self.ledger.tag, block, operation.value);
        }
    }

    fn ended(&mut self, operation: &Operation, start: Instant, outcome: Outcome, content: &[u8]) {
        self.mark(operation, false);
        let bytes = u64::from(operation.blocks) * BLOCK_U64;
        if operation.command == Command::Write {
            self.ledger.written(operation, outcome);
        }
        match (outcome, operation.command) {
            (Outcome::Failed(_) | Outcome::Lost, _) => self.failed(operation, outcome),
            (Outcome::Done, Command::Read) => {
                self.ledger.compare(operation, content);
                self.verified_bytes += bytes;
                self.reads.record(start, bytes);
            }
            (Outcome::Done, Command::Write) => self.writes.record(start, bytes),
            (Outcome::Done, _) => {}
        }
        self.progress.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn range(operation: &Operation) -> std::ops::Range<u64> {
    operation.block..operation.block + u64::from(operation.blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(work: &mut Verified<'_>, outcome: Outcome, content: &[u8]) -> Operation {
        let Next::Operation(operation) = work.next() else { panic!("there is work") };
        work.ended(&operation, Instant::now(), outcome, content);
        operation
    }

    #[test]
    fn a_lost_write_is_found_and_an_unanswered_one_is_not_held_against_anyone() {
        let mut ledger = Ledger::new(1, 64);
        let mut fill = Verified::new(&mut ledger, Phase::Fill, 0, 0, Arc::default());
        let written = answer(&mut fill, Outcome::Done, &[]);
        let mut content = vec![0; 64 * BLOCK];
        fill.fill(&written, &mut content);
        let mut again = Verified::new(&mut ledger, Phase::Verify, 0, 0, Arc::default());
        answer(&mut again, Outcome::Done, &content);
        assert_eq!((again.verified_bytes, ledger.troubles.lost_bytes), (64 * BLOCK_U64, 0));

        content[5 * BLOCK..6 * BLOCK].fill(0);
        content[9 * BLOCK + 100] ^= 1;
        answer(&mut Verified::new(&mut ledger, Phase::Verify, 0, 0, Arc::default()), Outcome::Done, &content);
        assert_eq!(ledger.troubles.lost_bytes, 2 * BLOCK_U64, "one block of zeros, one flipped bit");

        let mut fill = Verified::new(&mut ledger, Phase::Fill, 0, 1 << 20, Arc::default());
        let lost = answer(&mut fill, Outcome::Lost, &[]);
        let mut newer = vec![0; 64 * BLOCK];
        fill.fill(&lost, &mut newer);
        answer(&mut Verified::new(&mut ledger, Phase::Verify, 0, 0, Arc::default()), Outcome::Done, &newer);
        assert_eq!((ledger.troubles.lost_bytes, ledger.troubles.io_errors), (2 * BLOCK_U64, 1));
    }
}
