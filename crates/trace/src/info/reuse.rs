//! Reuse distances: how many other blocks are used between two uses of a block, so how large a least-recently-used cache has
//! to be to hold it.
//!
//! Blocks are sampled by a hash of their address, as in SHARDS (Waldspurger et al., FAST 2015): only those whose hash lies below a
//! threshold are followed, and what they show is scaled up. The threshold falls whenever more than a fixed number are
//! followed, so memory is bounded. Traces with fewer blocks are counted exactly.

use crate::recency::Recency;
use crate::record::Record;
use base::HashMap;
use std::collections::BinaryHeap;

/// Sectors of a block: 4 KiB.
pub const BLOCK_SECTORS: u64 = 8;
/// [`BLOCK_SECTORS`] in bytes.
const BLOCK_BYTES: u64 = BLOCK_SECTORS * crate::SECTOR_BYTES;
/// Blocks followed at most.
const FOLLOWED_MAX: usize = 1 << 16;
/// Hashes lie below this.
const HASH_END: u64 = 1 << 32;
/// Bins of the histogram: distances by powers of two of blocks.
const BINS: usize = 41;

/// How blocks of 4 KiB are used again.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Reuse {
    /// Uses of blocks.
    pub references: u64,
    /// Distinct blocks, in bytes: estimated unless `is_exact`.
    pub footprint_bytes: f64,
    /// Whether every block was followed.
    pub is_exact: bool,
    /// The share of blocks that were followed at the end.
    pub sampled: f64,
    /// The share of references that are the first to their block.
    pub cold_share: f64,
    /// Reuse distances: up to so many bytes (exclusive), and the share of references.
    pub histogram: Vec<(u64, f64)>,
}

impl Reuse {
    /// The share of references that a least-recently-used cache of `bytes` holds. Inside a bin it is interpolated.
    pub fn hits(&self, bytes: u64) -> f64 {
        let mut hits = 0.0;
        for (end, share) in &self.histogram {
            let start = if *end == BLOCK_BYTES { 0 } else { end / 2 };
            if *end <= bytes {
                hits += share;
            } else if start < bytes {
                hits += share * (bytes - start) as f64 / (end - start) as f64;
            }
        }
        hits
    }
}

pub(super) struct Sampler {
    /// Blocks are followed whose hash is below.
    threshold: u64,
    slots: HashMap<u64, usize>,
    recency: Recency<u64>,
    /// Hash and block of all that are followed, the highest hash first.
    highest: BinaryHeap<(u64, u64)>,
    bins: [f64; BINS],
    references: u64,
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler {
            threshold: HASH_END,
            slots: HashMap::default(),
            recency: Recency::new(),
            highest: BinaryHeap::new(),
            bins: [0.0; BINS],
            references: 0,
        }
    }
}

impl Sampler {
    pub(super) fn add(&mut self, record: &Record) {
        let blocks = record.sector / BLOCK_SECTORS..record.end().div_ceil(BLOCK_SECTORS);
        self.references += blocks.end - blocks.start;
        // Devices apart: no trace has addresses of 2^44 blocks.
        let device = u64::from(record.device) << 44;
        for block in blocks {
            let key = block ^ device;
            let hash = hash(key);
            if hash < self.threshold {
                self.follow(key, hash);
            }
        }
    }

    fn follow(&mut self, key: u64, hash: u64) {
        let weight = HASH_END as f64 / self.threshold as f64;
        if let Some(slot) = self.slots.get(&key) {
            let distance = self.recency.depth(*slot) as f64 * weight;
            self.bins[bin(distance)] += weight;
            self.recency.remove(*slot);
        } else {
            self.highest.push((hash, key));
        }
        let slots = &mut self.slots;
        let slot = self.recency.push(key, |key, slot| {
            slots.insert(*key, slot);
        });
        slots.insert(key, slot);
        if slots.len() > FOLLOWED_MAX {
            self.lower();
        }
    }

    /// Follows one hash, and so mostly one block, less.
    fn lower(&mut self) {
        let Some(&(highest, _)) = self.highest.peek() else { return };
        self.threshold = highest;
        while let Some(&(hash, key)) = self.highest.peek()
            && hash >= highest
        {
            self.highest.pop();
            let slot = self.slots.remove(&key).expect("a block that is followed has a slot");
            self.recency.remove(slot);
        }
    }

    pub(super) fn reuse(&self) -> Reuse {
        let weight = HASH_END as f64 / self.threshold as f64;
        let is_exact = self.threshold == HASH_END;
        let total = (self.references as f64).max(1.0);
        let footprint = self.slots.len() as f64 * weight;
        let mut bins = self.bins;
        // What a few hot blocks, sampled or not, make too much or too little belongs to short distances (SHARDS-adj).
        let found: f64 = bins.iter().sum::<f64>() + footprint;
        bins[0] += self.references as f64 - found;
        if bins[0] < 0.0 {
            bins[1] += std::mem::take(&mut bins[0]);
        }
        let last = bins.iter().rposition(|share| *share > 0.0).map_or(0, |last| last + 1);
        let bin = |(index, count): (usize, &f64)| (BLOCK_BYTES << index, count.max(0.0) / total);
        Reuse {
            references: self.references,
            footprint_bytes: footprint * BLOCK_BYTES as f64,
            is_exact,
            sampled: 1.0 / weight,
            cold_share: (footprint / total).min(1.0),
            histogram: bins[..last].iter().enumerate().map(bin).collect(),
        }
    }
}

/// The bin of a distance in blocks: 0 for 0, 1 for 1, 2 for 2 and 3, 3 for 4 to 7, ... A cache of more than `distance` blocks holds it.
fn bin(distance: f64) -> usize {
    let distance = distance as u64;
    (64 - distance.leading_zeros() as usize).min(BINS - 1)
}

/// The upper half of a multiplicative mix (the finalizer of SplitMix64): addresses are anything but random.
fn hash(key: u64) -> u64 {
    let mut mixed = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) >> 32
}
