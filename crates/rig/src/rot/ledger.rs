//! What every block of a volume must hold, and reading all of it back.

use anyhow::{Result, ensure};
use base::BLOCK_U64;
use rig::nbd::Nbd;
use rig::noise::Noise;
use rig::pattern;
use std::collections::BTreeSet;

/// Blocks that are read in one request, as long as all is well.
const RUN: u64 = 256;

pub(super) struct Ledger {
    values: Vec<u64>,
    next: u64,
}

impl Ledger {
    /// A volume of so many blocks that was never written.
    pub(super) fn new(blocks: u64) -> Ledger {
        Ledger { values: vec![0; blocks as usize], next: 1 }
    }

    /// How many blocks.
    pub(super) fn blocks(&self) -> u64 {
        self.values.len() as u64
    }

    /// What a block holds.
    pub(super) fn content(&self, block: u64) -> Vec<u8> {
        pattern::content(self.values[block as usize], block)
    }

    /// Writes every block.
    pub(super) fn fill(&mut self, nbd: &mut Nbd) -> Result<()> {
        (0..self.blocks()).step_by(RUN as usize).try_for_each(|block| self.write(nbd, block, RUN))
    }

    /// Writes so many short runs in random places.
    pub(super) fn scribble(&mut self, nbd: &mut Nbd, runs: u64, noise: &mut Noise) -> Result<()> {
        (0..runs).try_for_each(|_| {
            let count = if noise.below(8) == 0 { 1 + noise.below(64) } else { 1 };
            self.write(nbd, noise.below(self.blocks() - count), count)
        })
    }

    fn write(&mut self, nbd: &mut Nbd, block: u64, count: u64) -> Result<()> {
        let count = count.min(self.blocks() - block);
        let mut data = Vec::with_capacity((count * BLOCK_U64) as usize);
        for index in block..block + count {
            self.values[index as usize] = self.next;
            data.extend(pattern::content(self.next, index));
            self.next += 1;
        }
        nbd.write(block * BLOCK_U64, &data)
    }

    /// Reads every block: those that cannot be read. A block with other bytes than were written is an error.
    pub(super) fn verify(&self, nbd: &mut Nbd) -> Result<BTreeSet<u64>> {
        let mut unreadable = BTreeSet::new();
        for block in (0..self.blocks()).step_by(RUN as usize) {
            let count = RUN.min(self.blocks() - block);
            match nbd.read_unless_lost(block * BLOCK_U64, (count * BLOCK_U64) as u32)? {
                Some(data) => self.compare(block, &data)?,
                None => unreadable.extend(self.verify_singly(nbd, block, count)?),
            }
        }
        Ok(unreadable)
    }

    fn verify_singly(&self, nbd: &mut Nbd, block: u64, count: u64) -> Result<Vec<u64>> {
        let mut unreadable = Vec::new();
        for block in block..block + count {
            match nbd.read_unless_lost(block * BLOCK_U64, BLOCK_U64 as u32)? {
                Some(data) => self.compare(block, &data)?,
                None => unreadable.push(block),
            }
        }
        Ok(unreadable)
    }

    fn compare(&self, block: u64, data: &[u8]) -> Result<()> {
        for (block, data) in (block..).zip(data.chunks_exact(BLOCK_U64 as usize)) {
            let (expected, found) = (self.values[block as usize], pattern::value_at(data, block));
            ensure!(
                found.as_ref().is_ok_and(|value| *value == expected),
                "WRONG BYTES: block {block} must hold {expected} and holds {found:?}"
            );
        }
        Ok(())
    }
}
