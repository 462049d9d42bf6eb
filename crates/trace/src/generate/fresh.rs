//! Addresses never used before: runs of sequential requests, each in a chunk of its own and each request in blocks of its own. The chunks of a LUN are taken in an order
//! that looks random and has no repetitions, so that nothing has to be remembered.

use super::description::{BLOCK_BYTES, Description};
use crate::record::SECTOR_BYTES;
use base::Rng;

/// What one request touches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) sector: u64,
    pub(super) device: u32,
    pub(super) count: u32,
}

pub(super) struct Fresh {
    random: Rng,
    /// The chance that a run goes on.
    goes_on: f64,
    chunk_sectors: u64,
    chunks_per_lun: u64,
    luns: Vec<Lun>,
    /// Cumulative popularity of the LUNs; the last is 1.
    popularity: Vec<f64>,
    run: Run,
}

struct Lun {
    used: u64,
    order: Order,
}

/// A run: where it goes on, and where its chunk ends.
#[derive(Default)]
struct Run {
    device: u32,
    next: u64,
    end: u64,
}

impl Fresh {
    pub(super) fn new(description: &Description, mut random: Rng) -> Fresh {
        let chunks_per_lun = description.chunks_per_lun();
        let luns = (0..description.luns.count)
            .map(|_| Lun { used: 0, order: Order::new(chunks_per_lun, &mut random) });
        Fresh {
            luns: luns.collect(),
            popularity: description.luns.popularity(),
            goes_on: 1.0 - 1.0 / description.locality.run_requests,
            chunk_sectors: description.chunk_bytes() / SECTOR_BYTES,
            chunks_per_lun,
            run: Run::default(),
            random,
        }
    }

    pub(super) fn next(&mut self, count: u32) -> Extent {
        let is_over = self.run.next + u64::from(count) > self.run.end;
        if is_over || self.random.f64() >= self.goes_on {
            self.run = self.start();
        }
        let extent = Extent { sector: self.run.next, device: self.run.device, count };
        self.run.next += u64::from(count).next_multiple_of(BLOCK_BYTES / SECTOR_BYTES);
        extent
    }

    fn start(&mut self) -> Run {
        let drawn = self.random.f64();
        let wanted = self.popularity.partition_point(|share| *share <= drawn).min(self.luns.len() - 1);
        // A LUN that is used up hands on to the next. When all are, which a checked description excludes but for bad luck in the
        // length of runs, addresses repeat.
        let all = self.luns.len();
        let free =
            (0..all).map(|step| (wanted + step) % all).find(|lun| self.luns[*lun].used < self.chunks_per_lun);
        let index = free.unwrap_or(wanted);
        let lun = &mut self.luns[index];
        let chunk = lun.order.place(lun.used % self.chunks_per_lun);
        lun.used += 1;
        let next = chunk * self.chunk_sectors;
        Run { device: index as u32, next, end: next + self.chunk_sectors }
    }
}

/// An order of `0..length` that looks random: a Feistel network over the next power of four, walked until it is inside.
struct Order {
    length: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Order {
    fn new(length: u64, random: &mut Rng) -> Order {
        let bits = u64::BITS - length.saturating_sub(1).leading_zeros();
        Order { length, half_bits: bits.div_ceil(2).max(1), keys: std::array::from_fn(|_| random.u64(..)) }
    }

    /// What stands at `index`, which has to be less than the length.
    fn place(&self, index: u64) -> u64 {
        let mut place = index;
        loop {
            place = self.mix(place);
            if place < self.length {
                return place;
            }
        }
    }

    fn mix(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (left, right) = (right, (left ^ mixed >> 32) & mask);
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn an_order_has_everything_once(length in 1_u64..3_000, seed: u64) {
            let order = Order::new(length, &mut base::Rng::with_seed(seed));
            let mut places: Vec<u64> = (0..length).map(|index| order.place(index)).collect();
            places.sort_unstable();
            prop_assert!(places.into_iter().eq(0..length));
        }
    }
}
