//! The middle of several measurements.

/// The upper median: of an even number the greater of the two in the middle; none of none.
pub(crate) fn upper_median<T: Ord + Copy>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    let middle = values.len() / 2;
    (middle < values.len()).then(|| *values.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_of_two_counts_and_the_order_does_not() {
        assert_eq!(upper_median([3, 9, 1]), Some(3));
        assert_eq!(upper_median([9, 3]), Some(9));
        assert_eq!(upper_median(Vec::<u32>::new()), None);
    }
}
