//! Of two copies that are drawn, the one that would arrive first (after Mitzenmacher 2001): the paper's `power-of-two-choices`.

use super::chooser::Chooser;
use super::request::{Disk, Request};
use base::Rng;

#[derive(Debug)]
pub struct TwoChoices {
    random: Rng,
    looks: u64,
}

impl TwoChoices {
    /// All draws follow from `seed`.
    pub fn new(seed: u64) -> TwoChoices {
        TwoChoices { random: Rng::with_seed(seed), looks: 0 }
    }
}

impl Chooser for TwoChoices {
    fn choose(&mut self, disks: &mut [Disk], request: &Request, chosen: &mut Vec<u32>) {
        chosen.clear();
        for (holders, needed) in request.buckets() {
            let ours = chosen.len();
            for _ in 0..needed {
                // Holders that are left, each by its place: a draw, and another draw of the rest.
                let left = (holders.len() - (chosen.len() - ours)) as u64;
                let nth = |n: u64, chosen: &[u32]| {
                    let mut others = holders.iter().filter(|holder| !chosen.contains(holder));
                    *others.nth(n as usize).expect("a bucket needs no more than it has")
                };
                let first = self.random.u64(..left);
                let second = if left > 1 { (first + 1 + self.random.u64(..left - 1)) % left } else { first };
                let drawn = [nth(first, &chosen[ours..]), nth(second, &chosen[ours..])];
                let finish_ns = |disk: &u32| disks[*disk as usize].finish_ns(1);
                let better = if finish_ns(&drawn[1]) < finish_ns(&drawn[0]) { drawn[1] } else { drawn[0] };
                disks[better as usize].add();
                chosen.push(better);
                self.looks += 2;
            }
        }
    }

    fn looks(&self) -> u64 {
        self.looks
    }
}
