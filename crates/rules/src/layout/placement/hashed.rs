//! The rule `hashed`: each group's bricks are drawn by hashing, so that all who know the bricks agree, and an extent's group is
//! drawn by jump consistent hashing. Its groups are what random duplicate allocation makes of buckets, for whole extents.

use super::rendezvous::{Draw, Field};
use super::{Candidate, PlacementError, Rule, Wanted, jump};
use base::{BrickId, VolumeId};

/// A brick's chance to be drawn first is proportional to its weight. As no brick is drawn twice for a group, and domains
/// narrow the later draws, heavier bricks get somewhat less than their share of wide groups, and lighter ones more.
pub(super) struct Hashed;

impl Rule for Hashed {
    fn place(
        &self,
        Wanted { family, groups, width }: Wanted,
        candidates: &[Candidate],
        domains: &[&str],
    ) -> Result<Vec<Vec<BrickId>>, PlacementError> {
        let field = Field::of(width, candidates, domains);
        (0..groups).map(|group| draw(&field, family, group, width)).collect()
    }

    fn group_of(&self, family: VolumeId, extent: u64, groups: usize) -> usize {
        jump::group_of(family, extent, groups)
    }
}

/// The bricks of one group. It depends on no other group.
fn draw(
    field: &Field<'_>,
    volume: VolumeId,
    group_index: u32,
    width: u8,
) -> Result<Vec<BrickId>, PlacementError> {
    let available = field.len();
    if available < usize::from(width) {
        return Err(PlacementError::TooFewBricks { volume, group_index, width, available });
    }
    Ok(Draw::new((volume, group_index), field).take(usize::from(width)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{DOMAINS, brick, bricks, within_six_sigma};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn choose(
        volume: VolumeId,
        group_index: u32,
        width: u8,
        candidates: &[Candidate],
        domains: &[&str],
    ) -> Result<Vec<BrickId>, PlacementError> {
        draw(&Field::of(width, candidates, domains), volume, group_index, width)
    }

    fn set(chosen: Result<Vec<BrickId>, PlacementError>) -> BTreeSet<BrickId> {
        let chosen = chosen.expect("enough bricks");
        let set: BTreeSet<BrickId> = chosen.iter().copied().collect();
        assert_eq!(set.len(), chosen.len(), "a brick is in a group twice: {chosen:?}");
        set
    }

    #[test]
    fn too_few_bricks_are_named() {
        let mut four = bricks(4);
        four[2].weight = 0;
        let refusal = choose(VolumeId(7), 2, 5, &four, &DOMAINS).expect_err("too few").to_string();
        let expected = "group 2 of volume-7 needs 5 bricks and 3 can take it: 2 more must join or come back";
        assert_eq!(refusal, expected);
    }

    #[test]
    fn the_draw_is_the_same_everywhere() {
        // Placements outlive the process that made them: these must never change.
        let chosen = choose(VolumeId(1), 0, 5, &bricks(20), &[]).expect("enough bricks");
        assert_eq!(chosen.iter().map(|id| id.0).collect::<Vec<_>>(), [7, 3, 19, 11, 17]);
    }

    #[test]
    fn few_racks_are_shared_evenly_and_hosts_are_not_shared() {
        // Two racks of three hosts of two bricks each.
        let bricks: Vec<Candidate> = (0..12).map(|id| brick(id, 10, id % 2, id / 4)).collect();
        for group in 0..200 {
            let chosen = set(choose(VolumeId(1), group, 4, &bricks, &DOMAINS));
            let in_rack = |rack| chosen.iter().filter(|id| id.0 % 2 == rack).count();
            assert_eq!((in_rack(0), in_rack(1)), (2, 2), "group {group}: {chosen:?}");
            let hosts: BTreeSet<_> = chosen.iter().map(|id| (id.0 % 2, id.0 / 4)).collect();
            assert_eq!(hosts.len(), 4, "group {group}: {chosen:?}");
        }
    }

    #[test]
    fn hosts_are_kept_apart_even_where_racks_are_uneven() {
        // Rack 0 has one host with two bricks, rack 1 has three hosts: an even split would put two on one host.
        let bricks = [(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 1, 1), (4, 1, 2)];
        let bricks = bricks.map(|(id, rack, host)| brick(id, 10, rack, host));
        for group in 0..100 {
            let chosen = set(choose(VolumeId(1), group, 4, &bricks, &DOMAINS));
            assert!(
                !(chosen.contains(&BrickId(0)) && chosen.contains(&BrickId(1))),
                "group {group}: {chosen:?}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn domains_are_respected(places in proptest::collection::vec((0..8_u32, 0..4_u32, 1..100_u64), 5..40), width in 1..6_u8, group: u32) {
            let bricks: Vec<Candidate> =
                (0..).zip(&places).map(|(id, (rack, host, weight))| brick(id, *weight, *rack, *host)).collect();
            let chosen = set(choose(VolumeId(3), group, width, &bricks, &DOMAINS));
            let spread = |domain: &dyn Fn(usize) -> (u32, u32)| {
                let all: BTreeSet<_> = (0..places.len()).map(domain).collect();
                let used: BTreeSet<_> = chosen.iter().map(|id| domain(id.0 as usize)).collect();
                all.len() < usize::from(width) || used.len() == usize::from(width)
            };
            prop_assert!(spread(&|at| (places[at].0, 0)), "two in a rack: {chosen:?}");
            prop_assert!(spread(&|at| (places[at].0, places[at].1)), "two on a host: {chosen:?}");
        }

        #[test]
        fn the_order_of_candidates_does_not_matter(seed: u64, group: u32) {
            let mut shuffled = bricks(12);
            base::Rng::with_seed(seed).shuffle(&mut shuffled);
            prop_assert_eq!(choose(VolumeId(1), group, 4, &shuffled, &DOMAINS), choose(VolumeId(1), group, 4, &bricks(12), &DOMAINS));
        }

        #[test]
        fn a_removed_brick_is_replaced_and_nothing_else_moves(volume: u64, count in 6..20_u32, width in 1..6_u8, gone: u32) {
            let (all, gone) = (bricks(count), BrickId(gone % count));
            let left: Vec<Candidate> = all.iter().filter(|brick| brick.id != gone).cloned().collect();
            for group in 0..50 {
                // Read the other way round, the same is true of a brick that is added.
                let before = set(choose(VolumeId(volume), group, width, &all, &DOMAINS));
                let after = set(choose(VolumeId(volume), group, width, &left, &DOMAINS));
                let lost: Vec<_> = before.difference(&after).collect();
                prop_assert_eq!(lost.len(), usize::from(before.contains(&gone)));
                prop_assert!(lost.iter().all(|id| **id == gone));
            }
        }

        #[test]
        fn shares_follow_weights(volume: u64, weights in proptest::collection::vec(1..10_u64, 2..10)) {
            let bricks: Vec<Candidate> = (0..).zip(&weights).map(|(id, weight)| brick(id, *weight, id, 0)).collect();
            let (draws, total) = (4000, weights.iter().sum::<u64>() as f64);
            let mut shares = vec![0; weights.len()];
            for group in 0..draws {
                let chosen = choose(VolumeId(volume), group, 1, &bricks, &DOMAINS).expect("enough bricks");
                shares[chosen[0].0 as usize] += 1;
            }
            for (share, weight) in shares.iter().zip(&weights) {
                prop_assert!(within_six_sigma(*share, f64::from(draws), *weight as f64 / total), "{shares:?} of {weights:?}");
            }
        }
    }
}
