//! The names that are put: which numbers they have, which keys follow from these, and in which order.

use wire::ObjectName;

pub(super) const BUCKET: &str = "bench";
/// The golden ratio of 2^64, which is odd: each number has a key of its own, and keys of neighbours lie far from each other.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// A prime, so that no number comes twice, and they are spread over all.
const STRIDE: u64 = 2_147_483_647;

pub(super) fn name(number: u64) -> ObjectName {
    ObjectName { bucket: BUCKET.to_owned(), key: format!("{:016x}", place(number)) }
}

/// Where a number's key lies among all keys.
fn place(number: u64) -> u64 {
    (number + 1).wrapping_mul(STEP)
}

/// Some of the numbers below `all`, spread over them, each once at most.
pub(super) fn spread(all: u64, some: u64) -> impl Iterator<Item = u64> + Send + 'static {
    (1..=some).map(move |turn| (u128::from(turn) * u128::from(STRIDE) % u128::from(all)) as u64)
}

/// All numbers below `all`, in the order of their keys.
///
/// Keys are multiples of a step on a circle. From a multiple to the next one on the circle there are three ways at most (the three-distance theorem; Sós 1958): as
/// far as from zero to the first one behind it, as far as from the last one to zero, or both. In numbers, that is forward by the number of the
/// former, or back by that of the latter, or both.
pub(super) fn in_order(all: u64) -> impl Iterator<Item = u64> {
    let multiple = |number: &u64| number.wrapping_mul(STEP);
    let forward = (1..all).min_by_key(multiple).unwrap_or_default();
    let back = (1..all).max_by_key(multiple).unwrap_or_default();
    let next = move |number: u64| match number {
        number if number + forward < all => number + forward,
        number if number >= back => number - back,
        number => number + forward - back,
    };
    let first = (0..all).min_by_key(|number| place(*number));
    let count = usize::try_from(all).unwrap_or(usize::MAX);
    std::iter::successors(first, move |number| Some(next(*number))).take(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_the_order_of_their_keys() {
        for all in (0..200).chain([987, 1000, 12_345, 100_000]) {
            let mut sorted: Vec<u64> = (0..all).collect();
            sorted.sort_unstable_by_key(|number| place(*number));
            assert_eq!(in_order(all).collect::<Vec<_>>(), sorted, "{all} numbers");
        }
    }

    #[test]
    fn numbers_that_are_spread_come_once() {
        for all in [1, 2, 7, 1000] {
            let mut numbers: Vec<u64> = spread(all, all).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..all).collect::<Vec<_>>());
        }
    }
}
