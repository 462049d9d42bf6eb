//! Boxes for values of any size: each octave, from a power of two to the next, in `PARTS` boxes of equal width (a power of
//! two). A value that is known by its box is known to one part in so many.

/// So many boxes hold all values.
pub const fn boxes<const PARTS: usize>() -> usize {
    64 * PARTS
}

/// The box that holds `value`; those below `PARTS` are in the first one that is used.
pub fn index<const PARTS: usize>(value: u64) -> usize {
    let value = value.max(PARTS as u64);
    let octave = value.ilog2() as usize;
    octave * PARTS + (value >> (octave - PARTS.ilog2() as usize)) as usize % PARTS
}

/// The greatest value in a box.
pub fn greatest<const PARTS: usize>(index: usize) -> u64 {
    let (octave, part) = (index / PARTS, index % PARTS);
    let end = ((PARTS + part + 1) as u128) << octave >> PARTS.ilog2();
    u64::try_from(end - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds<const PARTS: usize>(value: u64) {
        let index = index::<PARTS>(value);
        assert!(index < boxes::<PARTS>() && value <= greatest::<PARTS>(index), "{value} in {index}");
        let parts = PARTS as u64;
        if value >= parts {
            assert!(greatest::<PARTS>(index) - value <= value / parts, "{value} in {index}");
        }
        if value > parts {
            assert!(index == self::index::<PARTS>(parts) || value > greatest::<PARTS>(index - 1));
        }
    }

    proptest! {
        #[test]
        fn a_box_holds_what_is_above_the_one_before(value: u64, shift in 0u32..64) {
            holds::<8>(value >> shift);
            holds::<64>(value >> shift);
        }
    }

    #[test]
    fn the_ends_have_boxes() {
        assert_eq!((index::<8>(0), index::<8>(8)), (24, 24));
        assert_eq!((index::<64>(u64::MAX), greatest::<64>(boxes::<64>() - 1)), (boxes::<64>() - 1, u64::MAX));
    }
}
