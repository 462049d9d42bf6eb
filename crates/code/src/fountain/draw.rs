//! Numbers that a code's graph is drawn from. They are part of what is stored: they never change.

/// A sequence of numbers from a key: SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014).
#[derive(Clone, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    /// The sequence of `index` in the family of `seed`.
    pub(super) fn new(seed: u64, index: u64) -> Draw {
        Draw(mix(seed ^ mix(index.wrapping_add(GOLDEN))))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// One of `0..end`, by the upper half of a product (Lemire 2019). Off by at most `end / 2^32` of a share.
    pub(super) fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * u64::from(end)) >> 32) as u32
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The smallest prime that is at least `from`.
pub(super) fn prime_from(from: u32) -> u32 {
    let is_prime = |n: u32| n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    (from..).find(|n| is_prime(*n)).expect("there is a prime between n and 2n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fragments on disk depend on these numbers.
    #[test]
    fn the_numbers_are_the_published_ones() {
        let mut draw = Draw(0);
        assert_eq!([draw.next(), draw.next()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
        let mut draw = Draw::new(1, 2);
        assert!((0..1000).all(|_| draw.below(7) < 7));
    }

    #[test]
    fn primes() {
        let found: Vec<u32> = [0, 2, 3, 4, 24, 90, 1024].into_iter().map(prime_from).collect();
        assert_eq!(found, [2, 2, 3, 5, 29, 97, 1031]);
    }
}
