//! Jump consistent hashing (Lamping and Veach 2014): which of some groups a number falls on. When a group is added, numbers
//! move to the new one only.

use super::mix;
use base::VolumeId;

pub(super) fn group_of(family: VolumeId, extent: u64, groups: usize) -> usize {
    assert!(groups > 0, "{family} has no group to place extent {extent} on");
    let mut key = mix(mix(family.0) ^ extent);
    let (mut group, mut next) = (0, 0);
    while next < groups {
        group = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let step = (1_u64 << 31) as f64 / ((key >> 33) + 1) as f64;
        next = ((group + 1) as f64 * step) as usize;
    }
    group
}

#[cfg(test)]
mod tests {
    use super::super::testing::within_six_sigma;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_draw_is_the_same_everywhere() {
        // Placements outlive the process that made them: these must never change.
        assert_eq!([0, 1, 2, 3, 4, 5].map(|extent| group_of(VolumeId(1), extent, 12)), [1, 6, 4, 8, 1, 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn extents_spread_evenly_and_move_only_to_a_new_group(volume: u64, groups in 1..20_usize) {
            let (extents, mut shares) = (4000, vec![0; groups]);
            for extent in 0..extents {
                let (before, after) = (group_of(VolumeId(volume), extent, groups), group_of(VolumeId(volume), extent, groups + 1));
                prop_assert!(after == before || after == groups);
                shares[before] += 1;
            }
            for share in &shares {
                prop_assert!(within_six_sigma(*share, extents as f64, 1.0 / groups as f64), "{shares:?}");
            }
        }
    }
}
