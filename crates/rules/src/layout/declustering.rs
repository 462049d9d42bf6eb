//! Replicated declustering of single buckets: which disks hold the copies of each.
//!
//! The schemes of Altiparmak and Tosun, "Continuous Retrieval of Replicated Data from Heterogeneous Storage Arrays":
//! [`random`] duplicate allocation (their section IV.C, after Sanders, Egner and Korst, SODA 2000), the same in proportion to
//! what disks can do ([`Weights`]), and the [`periodic`] scheme of their Fig. 1. Volumes are placed by whole extents and go by
//! the same ideas: see [`super::placement`].
//!
//! Disks are numbered from 0. The copies of a bucket are on different disks.

use super::placement::mix;
use thiserror::Error;

/// Random duplicate allocation: fills `holders` with different ones of `disks` disks, each set and order equally likely. The
/// first is where the first copy is. The same seed gives a bucket the same disks.
pub fn random(seed: u64, bucket: u64, disks: u32, holders: &mut [u32]) {
    assert!(holders.len() <= disks as usize, "{} copies on {disks} disks", holders.len());
    let mut taken = Taken::default();
    let mut draws = Draws::new(seed, bucket);
    for (drawn, holder) in holders.iter_mut().enumerate() {
        let at = draws.below(u64::from(disks) - drawn as u64);
        *holder = taken.skip(at, |at| (at, 1)) as u32;
    }
}

/// What disks can do or hold, relative to each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Weights {
    /// The sum of the weights up to and including each disk's.
    ends: Vec<u64>,
    /// Disks with a weight.
    able: usize,
}

/// Why weights are refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum WeightsError {
    /// The sum is out of range.
    #[error("the weights of {0} disks are more than {max} together", max = u64::MAX)]
    TooHeavy(usize),
}

impl Weights {
    /// One for each disk. A disk of weight 0 holds nothing.
    pub fn new(weights: &[u64]) -> Result<Weights, WeightsError> {
        let mut end = 0_u64;
        let add = |weight: &u64| {
            end = end.checked_add(*weight).ok_or(WeightsError::TooHeavy(weights.len()))?;
            Ok(end)
        };
        let ends = weights.iter().map(add).collect::<Result<_, _>>()?;
        Ok(Weights { ends, able: weights.iter().filter(|weight| **weight > 0).count() })
    }

    /// How many disks can hold copies.
    pub fn able(&self) -> usize {
        self.able
    }

    /// Random duplicate allocation in proportion to weights: each copy's disk is drawn among those that have none of the bucket
    /// yet, so that a heavy disk has somewhat less than its share when there are many copies.
    pub fn random(&self, seed: u64, bucket: u64, holders: &mut [u32]) {
        assert!(holders.len() <= self.able, "{} copies on {} disks with a weight", holders.len(), self.able);
        let mut left = self.ends.last().copied().unwrap_or(0);
        let mut taken = Taken::default();
        let mut draws = Draws::new(seed, bucket);
        for holder in holders {
            let at = taken.skip(draws.below(left), |at| self.stretch(self.disk_at(at)));
            let disk = self.disk_at(at);
            left -= self.stretch(disk).1;
            *holder = disk as u32;
        }
    }

    /// The disk that has a place in the row of all weights.
    fn disk_at(&self, at: u64) -> usize {
        self.ends.partition_point(|end| *end <= at)
    }

    /// Where a disk's weight begins in the row of all weights, and how long it is.
    fn stretch(&self, disk: usize) -> (u64, u64) {
        let begin = disk.checked_sub(1).map_or(0, |before| self.ends[before]);
        (begin, self.ends[disk] - begin)
    }
}

/// The periodic scheme: on which of `disks` disks the copy (from 0) of the bucket in row `i` and column `j` of a grid lies. With two
/// copies and seven disks it is the paper's Fig. 1: `(3i + j) mod 7` and `(2i + j) mod 7`.
///
/// Along a row, each copy visits all disks in turn. Along a column it does so where `disks` has no divisor in common with the
/// copy's step; a prime number of disks has none. In some rows, as in row 0 of the figure, copies fall on one disk:
/// [`periodic_rows`] leaves those rows out.
pub fn periodic(i: u64, j: u64, copy: u32, disks: u32) -> u32 {
    let (i, j, disks) = (i % u64::from(disks), j % u64::from(disks), u64::from(disks));
    ((step(copy) * i + j) % disks) as u32
}

/// The rows of the periodic scheme, of the first `disks`, in which the copies of no bucket share a disk. The first is row 1 unless
/// there is but one copy, and row `i + disks` is like row `i`. There is none with fewer disks than copies.
pub fn periodic_rows(disks: u32, copies: u32) -> impl Iterator<Item = u32> {
    (0..disks).filter(move |row| {
        let holder = |copy| periodic(u64::from(*row), 0, copy, disks);
        (0..copies).all(|copy| (0..copy).all(|other| holder(other) != holder(copy)))
    })
}

/// How many disks further the copy lies in each next row. The steps of `c` copies are 2 to `c + 1`: each two of them differ by
/// less than `c`, so with at least `c` disks the copies in row 1 lie apart.
fn step(copy: u32) -> u64 {
    match copy {
        0 => 3,
        1 => 2,
        later => u64::from(later) + 2,
    }
}

/// The random numbers of one bucket.
struct Draws {
    key: u64,
    drawn: u64,
}

impl Draws {
    fn new(seed: u64, bucket: u64) -> Draws {
        Draws { key: mix(mix(seed) ^ bucket), drawn: 0 }
    }

    /// One of 0 to `bound - 1`, by the high half of a product: off by at most `bound / 2^64` from equally likely.
    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        let bits = mix(self.key ^ self.drawn);
        ((u128::from(bits) * u128::from(bound)) >> 64) as u64
    }
}

/// Stretches of a row that were drawn already, in order. They are skipped, so a draw never has to be made again.
#[derive(Default)]
struct Taken {
    stretches: [(u64, u64); Taken::MOST],
    count: usize,
}

impl Taken {
    /// More copies of a bucket than any layout has.
    const MOST: usize = 16;

    /// The place in the whole row of the place `at` in what is left of it; the stretch around it counts as taken from now on.
    fn skip(&mut self, mut at: u64, stretch: impl Fn(u64) -> (u64, u64)) -> u64 {
        for (begin, length) in &self.stretches[..self.count] {
            at += if at >= *begin { *length } else { 0 };
        }
        assert!(self.count < Taken::MOST, "more than {} copies of a bucket", Taken::MOST);
        self.stretches[self.count] = stretch(at);
        self.count += 1;
        self.stretches[..self.count].sort_unstable();
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The two grids of the paper's Fig. 1 as printed.
    const FIRST: [[u32; 7]; 7] = [
        [0, 1, 2, 3, 4, 5, 6],
        [3, 4, 5, 6, 0, 1, 2],
        [6, 0, 1, 2, 3, 4, 5],
        [2, 3, 4, 5, 6, 0, 1],
        [5, 6, 0, 1, 2, 3, 4],
        [1, 2, 3, 4, 5, 6, 0],
        [4, 5, 6, 0, 1, 2, 3],
    ];
    const SECOND: [[u32; 7]; 7] = [
        [0, 1, 2, 3, 4, 5, 6],
        [2, 3, 4, 5, 6, 0, 1],
        [4, 5, 6, 0, 1, 2, 3],
        [6, 0, 1, 2, 3, 4, 5],
        [1, 2, 3, 4, 5, 6, 0],
        [3, 4, 5, 6, 0, 1, 2],
        [5, 6, 0, 1, 2, 3, 4],
    ];

    fn grid(copy: u32) -> [[u32; 7]; 7] {
        core::array::from_fn(|i| core::array::from_fn(|j| periodic(i as u64, j as u64, copy, 7)))
    }

    #[test]
    fn figure_1_is_the_periodic_scheme_of_seven_disks() {
        assert_eq!(grid(0), FIRST);
        assert_eq!(grid(1), SECOND);
        // Request R1: rows 0 to 2, columns 0 and 1. Its bucket [2, 1] is moved to disk 5.
        let holder = |copy| move |(i, j)| periodic(i, j, copy, 7);
        let request = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)];
        assert_eq!(request.map(holder(0)), [0, 1, 3, 4, 6, 0]);
        assert_eq!(holder(1)((2, 1)), 5);
        assert_eq!(
            periodic_rows(7, 2).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5, 6],
            "row 0 has both copies on one disk"
        );
    }

    #[test]
    fn the_draws_are_the_same_everywhere() {
        let mut holders = [0; 3];
        random(1, 7, 100, &mut holders);
        assert_eq!(holders, [94, 40, 68]);
        let weights = Weights::new(&[1, 2, 3, 4, 5]).expect("a small sum");
        weights.random(1, 7, &mut holders);
        assert_eq!(holders, [4, 2, 3]);
    }

    #[test]
    fn weights_out_of_range_are_refused() {
        let refusal = Weights::new(&[u64::MAX, 1]).expect_err("too heavy").to_string();
        assert_eq!(refusal, "the weights of 2 disks are more than 18446744073709551615 together");
        assert_eq!(Weights::new(&[0, 5, 0]).expect("a small sum").able(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn copies_of_the_periodic_scheme_are_distinct_and_balanced(disks in 1..60_u32, copies in 1..6_u32) {
            let rows: Vec<u32> = periodic_rows(disks, copies).collect();
            prop_assert_eq!(rows.is_empty(), copies > disks);
            for row in rows {
                let holders = |copy| (0..disks).map(move |j| periodic(u64::from(row), u64::from(j), copy, disks));
                for copy in 0..copies {
                    prop_assert_eq!(holders(copy).collect::<BTreeSet<_>>().len(), disks as usize, "along row {}", row);
                }
                for j in 0..disks {
                    let of = (0..copies).map(|copy| periodic(u64::from(row), u64::from(j), copy, disks));
                    prop_assert_eq!(of.collect::<BTreeSet<_>>().len(), copies as usize, "bucket [{}, {}]", row, j);
                }
            }
        }

        #[test]
        fn along_a_column_the_copies_of_a_prime_number_of_disks_are_balanced(disks in prop::sample::select(vec![7_u32, 11, 13, 101]), copy in 0..5_u32, j: u64) {
            let holders: BTreeSet<u32> = (0..disks).map(|i| periodic(u64::from(i), j, copy, disks)).collect();
            prop_assert_eq!(holders.len(), disks as usize);
        }

        #[test]
        fn random_copies_are_distinct_and_each_disk_is_as_likely(seed: u64, disks in 5..12_u32, copies in 2..6_usize) {
            let (buckets, mut holders) = (4000, vec![0; copies]);
            let mut counts = vec![vec![0_u32; disks as usize]; copies];
            for bucket in 0..buckets {
                random(seed, bucket, disks, &mut holders);
                prop_assert_eq!(holders.iter().collect::<BTreeSet<_>>().len(), copies);
                holders.iter().zip(&mut counts).for_each(|(holder, counts)| counts[*holder as usize] += 1);
            }
            for count in counts.iter().flatten() {
                prop_assert!(within_six_sigma(*count, buckets as f64, 1.0 / f64::from(disks)), "{counts:?}");
            }
        }

        #[test]
        fn weighted_copies_are_distinct_and_follow_weights(seed: u64, weights in prop::collection::vec(0..20_u64, 8), copies in 2..6_usize) {
            let given = Weights::new(&weights).expect("a small sum");
            prop_assume!(given.able() >= copies);
            let (buckets, mut holders, mut first) = (4000, vec![0; copies], [0_u32; 8]);
            for bucket in 0..buckets {
                given.random(seed, bucket, &mut holders);
                prop_assert_eq!(holders.iter().collect::<BTreeSet<_>>().len(), copies);
                prop_assert!(holders.iter().all(|disk| weights[*disk as usize] > 0));
                first[holders[0] as usize] += 1;
            }
            let total = weights.iter().sum::<u64>() as f64;
            for (count, weight) in first.iter().zip(&weights) {
                prop_assert!(within_six_sigma(*count, buckets as f64, *weight as f64 / total), "{first:?} of {weights:?}");
            }
        }
    }

    /// Whether a count of independent draws is what its probability lets one expect.
    fn within_six_sigma(count: u32, draws: f64, probability: f64) -> bool {
        let sigma = libm::sqrt(draws * probability * (1.0 - probability));
        (f64::from(count) - draws * probability).abs() <= 6.0 * sigma
    }
}
