//! What the paper proves of batching, on drawn requests with exact choices: Proposition 1, Lemmas 1 and 2, Theorem 1, and a remark.
//!
//! Reading order: [`Pair`] (two requests that come at once to idle disks), [`Pair::times`] (their service times), [`Pair::removal`] (the
//! remark below Lemma 2).

use base::Rng;
use reads::distribute::retrieval::{Disk, Request, Solver};

/// Copies a bucket has at most.
const COPIES_MAX: u64 = 4;
/// Disks an array has at most. Few, so that requests meet on them.
const DISKS_MAX: u64 = 20;

/// Two requests without a common bucket that come at once to idle disks, and what the second one is with common buckets.
#[derive(Clone, Debug)]
pub struct Pair {
    disks: Vec<Disk>,
    first: Vec<Vec<u32>>,
    second: Vec<Vec<u32>>,
    /// So many buckets of the second request are buckets of the first one instead, in Lemma 2.
    common: usize,
}

/// Service times, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// The paper's S1 and S2: of each request alone.
    pub alone_ns: [u64; 2],
    /// The paper's S_ind: of both together, each as is best for it alone.
    pub apart_ns: u64,
    /// The paper's S_bat1: of both together as is best for both.
    pub batch_ns: u64,
    /// S_ind where they have common buckets, which are then read twice.
    pub common_apart_ns: u64,
    /// The paper's S_bat2: of both together where they have common buckets.
    pub common_batch_ns: u64,
}

impl Times {
    /// Proposition 1: max(S1, S2) <= S_ind <= S1 + S2.
    pub fn holds_proposition_1(&self) -> bool {
        let [first, second] = self.alone_ns;
        (first.max(second)..=first + second).contains(&self.apart_ns)
    }

    /// Lemma 1: S_bat1 <= S_ind.
    pub fn holds_lemma_1(&self) -> bool {
        self.batch_ns <= self.apart_ns
    }

    /// Lemma 2: S_bat2 <= S_bat1.
    pub fn holds_lemma_2(&self) -> bool {
        self.common_batch_ns <= self.batch_ns
    }

    /// Theorem 1: a batch takes no longer than its requests apart, whether they have common buckets or not.
    pub fn holds_theorem_1(&self) -> bool {
        self.holds_lemma_1() && self.common_batch_ns <= self.common_apart_ns
    }
}

/// What comes of leaving out a bucket that is read last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Removal {
    /// Whether no other disk was done as late as the bucket's.
    pub was_alone: bool,
    pub is_sooner: bool,
}

impl Pair {
    /// A drawn one, of disks of these kinds. Its sizes are between one bucket and two for each disk.
    pub fn drawn(random: &mut Rng, access_ns: &[u64]) -> Pair {
        let count = random.u64(2..=DISKS_MAX);
        let disk = |random: &mut Rng| Disk {
            access_ns: access_ns[random.u64(..access_ns.len() as u64) as usize],
            ..Disk::default()
        };
        let disks: Vec<Disk> = (0..count).map(|_| disk(random)).collect();
        let copies = random.u64(1..=COPIES_MAX.min(count)) as usize;
        let mut holders: Vec<u32> = (0..count as u32).collect();
        let mut request = |random: &mut Rng| -> Vec<Vec<u32>> {
            let bucket = |random: &mut Rng, holders: &mut Vec<u32>| {
                random.shuffle(holders);
                holders[..copies].to_vec()
            };
            (0..random.u64(1..=2 * count)).map(|_| bucket(random, &mut holders)).collect()
        };
        let (first, second) = (request(random), request(random));
        let common = random.u64(1..=first.len().min(second.len()) as u64) as usize;
        Pair { disks, first, second, common }
    }

    /// All service times, by an exact solver.
    pub fn times(&self, solver: &mut Solver) -> Times {
        let Pair { disks, first, second, common } = self;
        let mut best = |buckets: &[&[Vec<u32>]]| {
            let (mut request, mut chosen) = (Request::default(), Vec::new());
            buckets.iter().flat_map(|part| part.iter()).for_each(|holders| request.push(holders));
            (solver.solve(disks, &request, &mut chosen), chosen)
        };
        // Each as is best for it alone, and then whatever disk has whatever buckets.
        let apart_ns = |chosen: [&[u32]; 2]| Request::default().finish_ns(disks, &chosen.concat());
        let ((first_ns, of_first), (second_ns, of_second)) = (best(&[first]), best(&[second]));
        let (_, of_changed) = best(&[&first[..*common], &second[*common..]]);
        Times {
            alone_ns: [first_ns, second_ns],
            apart_ns: apart_ns([&of_first, &of_second]),
            batch_ns: best(&[first, second]).0,
            common_apart_ns: apart_ns([&of_first, &of_changed]),
            common_batch_ns: best(&[first, &second[*common..]]).0,
        }
    }

    /// Leaves out of the first request a bucket of a disk that is done last. The paper says below Lemma 2 that this "guarantees" an earlier
    /// end. It does if no other disk is done as late.
    pub fn removal(&self, random: &mut Rng, solver: &mut Solver) -> Removal {
        let (mut request, mut chosen) = (Request::default(), Vec::new());
        self.first.iter().for_each(|holders| request.push(holders));
        let last_ns = solver.solve(&self.disks, &request, &mut chosen);
        let finish_ns = |disk: u32| {
            let count = chosen.iter().filter(|other| **other == disk).count();
            self.disks[disk as usize].finish_ns(count as u32)
        };
        let mut last: Vec<u32> = chosen.iter().copied().filter(|disk| finish_ns(*disk) == last_ns).collect();
        last.sort_unstable();
        last.dedup();
        let disk = last[random.u64(..last.len() as u64) as usize];
        let removed = chosen.iter().position(|other| *other == disk).expect("it reads a bucket");
        let mut rest = Request::default();
        let left = self.first.iter().enumerate().filter(|(at, _)| *at != removed);
        left.for_each(|(_, holders)| rest.push(holders));
        let is_sooner = solver.solve(&self.disks, &rest, &mut Vec::new()) < last_ns;
        Removal { was_alone: last.len() == 1, is_sooner }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal disks, and disks whose times divide each other or do not.
    const KINDS: [&[u64]; 2] = [&[7], &[132, 83, 61, 5, 2]];

    #[test]
    fn no_drawn_pair_violates_what_is_proven() {
        let (mut random, mut solver) = (Rng::with_seed(1), Solver::default());
        let mut differ = 0;
        for case in 0..10_000 {
            let pair = Pair::drawn(&mut random, KINDS[case % 2]);
            let times = pair.times(&mut solver);
            assert!(times.holds_proposition_1(), "case {case}: {times:?} {pair:?}");
            assert!(times.holds_lemma_1(), "case {case}: {times:?} {pair:?}");
            assert!(times.holds_lemma_2(), "case {case}: {times:?} {pair:?}");
            assert!(times.holds_theorem_1(), "case {case}: {times:?} {pair:?}");
            differ += u32::from(times.batch_ns < times.apart_ns);
        }
        assert!(differ > 2_000, "{differ} pairs put the lemmas to the test");
    }

    #[test]
    fn leaving_out_a_last_bucket_helps_for_certain_where_one_disk_alone_is_last() {
        let (mut random, mut solver) = (Rng::with_seed(2), Solver::default());
        let mut in_vain = 0;
        for case in 0..10_000 {
            let pair = Pair::drawn(&mut random, KINDS[case % 2]);
            let removal = pair.removal(&mut random, &mut solver);
            assert!(removal.is_sooner || !removal.was_alone, "case {case}: {pair:?}");
            in_vain += u32::from(!removal.is_sooner);
        }
        assert!(in_vain > 1_000, "{in_vain} removals are in vain");
    }
}
