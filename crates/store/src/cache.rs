//! Clean blocks in memory, and the clock that chooses what to forget.

use base::{BLOCK, Checksum, HashMap};
use bytes::Bytes;
use std::collections::VecDeque;

/// What an entry costs beside its bytes: its place in the maps and queues.
const OVERHEAD: usize = 192;

/// Blocks by their place on the disk. An entry is a whole buffer, so that no small slice keeps a large buffer alive
/// behind the accounts.
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
    sums: Vec<Checksum>,
    content: Bytes,
    referenced: bool,
}

impl Buffer {
    fn has(&self, physical: u64) -> bool {
        (self.first..self.first + self.sums.len() as u64).contains(&physical)
    }
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
        if buffer.sums[index] != sum {
            return None;
        }
        buffer.referenced = true;
        Some((&buffer.content, index * BLOCK))
    }

    /// Keeps the blocks from `first` on; `content` owns its buffer alone.
    pub(crate) fn insert(&mut self, first: u64, sums: Vec<Checksum>, content: Bytes) {
        let cost = content.len() + OVERHEAD * (1 + sums.len());
        if cost > self.limit {
            return;
        }
        self.forget(first, sums.len() as u64);
        let id = self.next;
        self.next += 1;
        self.blocks.extend((first..first + sums.len() as u64).map(|physical| (physical, id)));
        self.buffers.insert(id, Buffer { first, sums, content, referenced: false });
        self.clock.push_back(id);
        self.bytes += cost;
        while self.bytes > self.limit {
            self.evict();
        }
    }

    /// Forgets the buffers that hold any of `count` blocks from `first` on: they are about to change.
    pub(crate) fn forget(&mut self, first: u64, count: u64) {
        for physical in first..first + count {
            if let Some(&id) = self.blocks.get(&physical) {
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
        let count = buffer.sums.len();
        for physical in buffer.first..buffer.first + count as u64 {
            self.blocks.remove(&physical);
        }
        self.bytes -= buffer.content.len() + OVERHEAD * (1 + count);
        // Stale names stay on the clock until it comes round; without this bound an idle clock could only grow.
        if self.clock.len() > 64 + self.buffers.len() * 2 {
            self.clock.retain(|id| self.buffers.contains_key(id));
        }
    }

    /// Asserts that the accounts are true.
    pub(crate) fn check(&self) {
        let held: usize =
            self.buffers.values().map(|b| b.content.len() + OVERHEAD * (1 + b.sums.len())).sum();
        assert_eq!(held, self.bytes, "the cache's accounts");
        assert_eq!(self.buffers.values().map(|b| b.sums.len()).sum::<usize>(), self.blocks.len());
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
        cache.forget(99, 1);
        assert!(cache.get(98, 1).is_none());
        cache.check();
    }
}
