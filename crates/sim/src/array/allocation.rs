//! Which disks an array has, and who holds what.

use base::Rng;
use reads::distribute::retrieval::Request;

/// Disks by the time that they take for a bucket, and how buckets lie on them.
#[derive(Clone, PartialEq, Debug)]
pub struct Array {
    pub access_ns: Vec<u64>,
    pub allocation: Allocation,
}

/// Random duplicate allocation: copies lie on different disks, drawn with equal chances.
#[derive(Clone, PartialEq, Debug)]
pub struct Allocation {
    /// Copies of each bucket.
    pub copies: usize,
    /// They lie on the first so many disks.
    pub disks: u32,
    pub extra: Option<Extra>,
}

/// A part of the buckets has one more copy, on one of the disks behind the first ones: a cache that does not change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Extra {
    pub share: f64,
}

impl Array {
    pub(super) fn holders(&self, seed: u64) -> Holders {
        Holders { random: Rng::with_seed(seed), array: self.clone(), drawn: Vec::new() }
    }
}

/// Draws buckets: any, one after the other.
pub(super) struct Holders {
    random: Rng,
    array: Array,
    drawn: Vec<u32>,
}

impl Holders {
    /// One bucket more of a request.
    pub(super) fn draw(&mut self, request: &mut Request) {
        let Allocation { copies, disks, extra } = self.array.allocation;
        self.drawn.clear();
        while self.drawn.len() < copies {
            let disk = self.random.u64(..u64::from(disks)) as u32;
            if !self.drawn.contains(&disk) {
                self.drawn.push(disk);
            }
        }
        if extra.is_some_and(|extra| self.random.f64() < extra.share) {
            self.drawn.push(self.random.u64(u64::from(disks)..self.array.access_ns.len() as u64) as u32);
        }
        request.push(&self.drawn);
    }
}
