//! Clean blocks in memory, and the clock that chooses what to forget.

use base::{BLOCK, Checksum, HashMap};
use bytes::Bytes;
use std::collections::VecDeque;

/// What an entry costs beside its bytes: its place in the maps and queues.
const OVERHEAD: usize = 192;

/// Blocks by their place on the disk. An entry is a whole buffer, so that no small slice keeps a large buffer alive
/// behind the accounts; single blocks of it can be forgotten.
#[derive(Debug, Default)]
pub(crate) struct BlockCache {
    limit: usize,
    bytes: usize,
    next: u64,
    buffers: HashMap<u64, Buffer>,
    blocks: HashMap<u64, u64>,
    /// The buffer found last: the next block asked for is mostly its neighbour.
    last: u64,
    clock: VecDeque<u64>,
}

#[derive(Debug)]
struct Buffer {
    first: u64,
    /// None of a block that was forgotten.
    sums: Vec<Option<Checksum>>,
    /// Blocks that were not.
    held: usize,
    content: Bytes,
    referenced: bool,
}

impl Buffer {
    fn has(&self, physical: u64) -> bool {
        let index = physical.checked_sub(self.first);
        index.and_then(|index| self.sums.get(index as usize)).is_some_and(Option::is_some)
    }

    /// What it costs, with the blocks that were forgotten.
    fn cost(&self) -> usize {
        cost(&self.content, self.sums.len())
    }
}

fn cost(content: &Bytes, blocks: usize) -> usize {
    content.len() + OVERHEAD * (1 + blocks)
}

impl BlockCache {
    /// A cache of at most `limit` bytes, all told.
    pub(crate) fn new(limit: usize) -> BlockCache {
        BlockCache { limit, ..BlockCache::default() }
    }

    /// The block at `physical`, if it is here with this checksum: its buffer, and where in it.
    pub(crate) fn get(&mut self, physical: u64, sum: Checksum) -> Option<(&Bytes, usize)> {
        let is_near = self.buffers.get(&self.last).is_some_and(|buffer| buffer.has(physical));
        if !is_near {
            self.last = *self.blocks.get(&physical)?;
        }
        let buffer = self.buffers.get_mut(&self.last)?;
        let index = (physical - buffer.first) as usize;
        if buffer.sums[index] != Some(sum) {
            return None;
        }
        buffer.referenced = true;
        Some((&buffer.content, index * BLOCK))
    }

    /// Keeps the blocks from `first` on; `content` owns its buffer alone.
    pub(crate) fn insert(&mut self, first: u64, sums: Vec<Checksum>, content: Bytes) {
        let cost = cost(&content, sums.len());
        if cost > self.limit {
            return;
        }
        self.forget(first, sums.len() as u64);
        let id = self.next;
        self.next += 1;
        self.blocks.extend((first..first + sums.len() as u64).map(|physical| (physical, id)));
        let (held, sums) = (sums.len(), sums.into_iter().map(Some).collect());
        self.buffers.insert(id, Buffer { first, sums, held, content, referenced: false });
        self.clock.push_back(id);
        self.bytes += cost;
        while self.bytes > self.limit {
            self.evict();
        }
    }

    /// Forgets `count` blocks from `first` on: they are about to change. A buffer goes when less than half of it is left, so that what was
    /// forgotten never takes more memory than what is held.
    pub(crate) fn forget(&mut self, first: u64, count: u64) {
        for physical in first..first + count {
            let Some(id) = self.blocks.remove(&physical) else { continue };
            let buffer = self.buffers.get_mut(&id).expect("a mapped buffer exists");
            buffer.sums[(physical - buffer.first) as usize] = None;
            buffer.held -= 1;
            if buffer.held * 2 < buffer.sums.len() {
                self.remove(id);
            }
        }
    }

    /// Bytes in use, all told.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn evict(&mut self) {
        let id = self.clock.pop_front().expect("what takes memory is on the clock");
        match self.buffers.get_mut(&id) {
            Some(buffer) if buffer.referenced => {
                buffer.referenced = false;
                self.clock.push_back(id);
            }
            Some(_) => self.remove(id),
            None => {}
        }
    }

    fn remove(&mut self, id: u64) {
        let buffer = self.buffers.remove(&id).expect("a mapped buffer exists");
        for (physical, _) in (buffer.first..).zip(&buffer.sums).filter(|(_, sum)| sum.is_some()) {
            self.blocks.remove(&physical);
        }
        self.bytes -= buffer.cost();
        // Stale names stay on the clock until it comes round; without this bound an idle clock could only grow.
        if self.clock.len() > 64 + self.buffers.len() * 2 {
            self.clock.retain(|id| self.buffers.contains_key(id));
        }
    }

    /// Asserts that the accounts are true.
    pub(crate) fn check(&self) {
        assert_eq!(
            self.buffers.values().map(Buffer::cost).sum::<usize>(),
            self.bytes,
            "the cache's accounts"
        );
        assert_eq!(self.buffers.values().map(|buffer| buffer.held).sum::<usize>(), self.blocks.len());
        let is_true =
            |(physical, id): (&u64, &u64)| self.buffers.get(id).is_some_and(|buffer| buffer.has(*physical));
        assert!(self.blocks.iter().all(is_true), "a block is mapped to a buffer that does not hold it");
        assert!(self.bytes <= self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_used_and_stays_within_its_limit() {
        let mut cache = BlockCache::new(4 * (BLOCK + 2 * OVERHEAD));
        for n in 0..100 {
            cache.insert(n, vec![n as u32], Bytes::from(vec![n as u8; BLOCK]));
            assert!(n < 1 || cache.get(1, 1).is_some(), "used each time round");
            cache.check();
        }
        assert!(cache.get(50, 50).is_none() && cache.get(99, 98).is_none());
        let first = |found: Option<(&Bytes, usize)>| found.map(|(buffer, offset)| buffer[offset]);
        assert_eq!(first(cache.get(99, 99)), Some(99));
        cache.insert(98, vec![1, 2], Bytes::from(vec![7; 2 * BLOCK]));
        assert_eq!(first(cache.get(99, 2)), Some(7));
        cache.forget(98, 2);
        assert!(cache.get(98, 1).is_none() && cache.get(99, 2).is_none());
        cache.check();
    }

    #[test]
    fn a_block_that_is_forgotten_does_not_cost_its_neighbours_until_half_of_them_are_gone() {
        let mut cache = BlockCache::new(1 << 20);
        cache.insert(8, vec![8, 9, 10, 11], Bytes::from(vec![7; 4 * BLOCK]));
        assert!(cache.get(8, 8).is_some());
        cache.forget(9, 1);
        assert!(cache.get(9, 9).is_none() && cache.get(10, 10).is_some());
        // What was forgotten has changed, and is found where it is now.
        cache.insert(9, vec![90], Bytes::from(vec![8; BLOCK]));
        assert!(cache.get(10, 10).is_some());
        assert_eq!(cache.get(9, 90).map(|(buffer, offset)| buffer[offset]), Some(8));
        cache.check();
        let before = cache.bytes();
        cache.forget(10, 1);
        assert_eq!(cache.bytes(), before, "half is left");
        cache.forget(8, 1);
        assert!(cache.get(11, 11).is_none() && cache.bytes() < before && cache.get(9, 90).is_some());
        cache.check();
    }
}
