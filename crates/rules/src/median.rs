//! The middle of several measurements.

use core::cmp::Reverse;

/// The upper median: of an even number the greater of the two in the middle; none of none.
pub fn upper_median<T: Ord + Copy>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    let middle = values.len() / 2;
    (middle < values.len()).then(|| *values.select_nth_unstable(middle).1)
}

/// The lower median: of an even number the lesser of the two in the middle; none of none.
pub fn lower_median<T: Ord + Copy>(values: impl IntoIterator<Item = T>) -> Option<T> {
    upper_median(values.into_iter().map(Reverse)).map(|Reverse(value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_or_lesser_of_two_counts_and_the_order_does_not() {
        assert_eq!(upper_median([3, 9, 1]), Some(3));
        assert_eq!(upper_median([9, 3]), Some(9));
        assert_eq!(upper_median(Vec::<u32>::new()), None);
        assert_eq!((lower_median([3, 9, 1]), lower_median([9, 3])), (Some(3), Some(3)));
        assert_eq!(lower_median(Vec::<u32>::new()), None);
    }
}
