//! Any copy: the paper's `random`.

use super::chooser::{Chooser, bucket_by_bucket};
use super::request::{Disk, Request};
use base::Rng;

#[derive(Debug)]
pub struct Random {
    random: Rng,
    looks: u64,
}

impl Random {
    /// All draws follow from `seed`.
    pub fn new(seed: u64) -> Random {
        Random { random: Rng::with_seed(seed), looks: 0 }
    }
}

impl Chooser for Random {
    fn choose(&mut self, disks: &mut [Disk], request: &Request, chosen: &mut Vec<u32>) {
        self.looks += request.accesses() as u64;
        bucket_by_bucket(disks, request, chosen, |_| self.random.u64(..));
    }

    fn looks(&self) -> u64 {
        self.looks
    }
}
