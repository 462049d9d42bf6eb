//! Which bricks make a group, and which group gets an extent: by hashing, so that all who know the bricks agree, and
//! little moves when they change.
//!
//! Bricks are drawn by weighted rendezvous hashing (Thaler and Ravishankar 1998; the weights after Schindelhauer and
//! Schomaker, "Weighted Distributed Hash Tables", 2005): each brick has a score `-weight / ln(hash)` for each group,
//! and the highest scores win. Groups are drawn by jump consistent hashing (Lamping and Veach 2014).

use base::{BrickId, VolumeId};
use std::collections::BTreeMap;
use thiserror::Error;

/// A brick that a group could be placed on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    pub id: BrickId,
    /// Its share of the data relative to others, such as its capacity in bytes. A brick of weight 0 gets no group.
    pub weight: u64,
    /// Its failure domains, such as `("rack", "2")`.
    pub labels: Vec<(String, String)>,
}

/// Why there is no place for a group.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PlacementError {
    /// There are too few bricks.
    #[error(
        "group {group_index} of {volume} needs {width} bricks and {available} can take it: \
         {} more must join or come back", usize::from(*width) - available
    )]
    TooFewBricks {
        volume: VolumeId,
        /// The group's number in the volume.
        group_index: u32,
        /// Bricks in the group.
        width: u8,
        /// Bricks with a weight.
        available: usize,
    },
}

/// The bricks of a group, in the order of its slots. No brick is in it twice.
///
/// `domains` names the labels that tell failure domains apart, the widest first, such as `["rack", "host"]`; a domain
/// lies within one of the wider ones. The bricks are all in different domains of the widest label that has enough of
/// them, and spread as evenly as can be over the domains of wider ones. Bricks without the label share a domain.
///
/// A brick's chance to be drawn first is proportional to its weight. As no brick is drawn twice for a group, and domains
/// narrow the later draws, heavier bricks get somewhat less than their share of wide groups, and lighter ones more.
/// The candidates' ids differ.
pub fn choose(
    volume: VolumeId,
    group_index: u32,
    width: u8,
    candidates: &[Candidate],
    domains: &[&str],
) -> Result<Vec<BrickId>, PlacementError> {
    let mut contenders = contenders(volume, group_index, candidates, domains);
    let available = contenders.len();
    if available < usize::from(width) {
        return Err(PlacementError::TooFewBricks { volume, group_index, width, available });
    }
    let mut domains = Domains::new(&contenders, domains.len(), width);
    let mut chosen = Vec::with_capacity(usize::from(width));
    for _ in 0..width {
        // The first of several equals, which is the one with the highest score.
        let best = (0..contenders.len()).min_by_key(|&at| domains.crowding(&contenders[at]));
        let best = contenders.remove(best.expect("as many contenders as slots"));
        domains.take(&best);
        chosen.push(best.id);
    }
    Ok(chosen)
}

/// The brick that takes the place of a lost one beside the members that `stay`: of the other candidates the one whose
/// failure domains are the least crowded by those, and of several such the one with the highest score for the group.
/// `None` when there is no other candidate. `stay` are among the candidates, with whatever weight.
pub fn substitute(
    volume: VolumeId,
    group_index: u32,
    stay: &[BrickId],
    candidates: &[Candidate],
    domains: &[&str],
) -> Option<BrickId> {
    let stays = |id: BrickId| stay.contains(&id);
    // Members that stay take part in the count of domains even when they are full or away.
    let all: Vec<Candidate> = candidates
        .iter()
        .map(|candidate| match stays(candidate.id) {
            true => Candidate { weight: candidate.weight.max(1), ..candidate.clone() },
            false => candidate.clone(),
        })
        .collect();
    let contenders = contenders(volume, group_index, &all, domains);
    let mut domains = Domains::new(&contenders, domains.len(), stay.len() as u8 + 1);
    contenders.iter().filter(|contender| stays(contender.id)).for_each(|member| domains.take(member));
    let free = contenders.iter().filter(|contender| !stays(contender.id));
    free.min_by_key(|contender| domains.crowding(contender)).map(|contender| contender.id)
}

/// Which of a volume's `groups` groups an extent lies on. When a group is added, extents move to the new one only.
pub fn group_of(volume: VolumeId, extent: u64, groups: usize) -> usize {
    assert!(groups > 0, "{volume} has no group to place extent {extent} on");
    let mut key = mix(mix(volume.0) ^ extent);
    let (mut group, mut next) = (0, 0);
    while next < groups {
        group = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let step = (1_u64 << 31) as f64 / ((key >> 33) + 1) as f64;
        next = ((group + 1) as f64 * step) as usize;
    }
    group
}

/// A brick in the draw for one group.
struct Contender<'a> {
    id: BrickId,
    score: f64,
    labels: Vec<&'a str>,
}

impl<'a> Contender<'a> {
    /// Its domain at some level: the labels from the widest one down, as domains of one name in two wider ones are two.
    fn domain(&self, level: usize) -> &[&'a str] {
        &self.labels[..=level]
    }
}

/// All bricks with a weight, the highest score first.
fn contenders<'a>(
    volume: VolumeId,
    group_index: u32,
    candidates: &'a [Candidate],
    domains: &[&str],
) -> Vec<Contender<'a>> {
    let group = mix(mix(volume.0) ^ u64::from(group_index));
    let mut contenders: Vec<Contender<'a>> = candidates
        .iter()
        .filter(|candidate| candidate.weight > 0)
        .map(|candidate| Contender {
            id: candidate.id,
            score: score(mix(group ^ u64::from(candidate.id.0)), candidate.weight),
            labels: domains.iter().map(|domain| label(candidate, domain)).collect(),
        })
        .collect();
    contenders.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    contenders
}

fn label<'a>(candidate: &'a Candidate, domain: &str) -> &'a str {
    candidate.labels.iter().find(|(name, _)| name == domain).map_or("", |(_, value)| value)
}

/// How many bricks were taken of each failure domain.
struct Domains<'a> {
    levels: Vec<BTreeMap<Vec<&'a str>, u8>>,
    /// The widest level with a domain for each slot.
    spread: Option<usize>,
}

impl<'a> Domains<'a> {
    fn new(contenders: &[Contender<'a>], levels: usize, width: u8) -> Domains<'a> {
        let domains =
            |level| contenders.iter().map(move |contender| (contender.domain(level).to_vec(), 0)).collect();
        let levels: Vec<BTreeMap<Vec<&'a str>, u8>> = (0..levels).map(domains).collect();
        let spread = levels.iter().position(|domains| domains.len() >= usize::from(width));
        Domains { levels, spread }
    }

    /// How many bricks were taken of this one's domains; what matters most comes first.
    fn crowding(&self, contender: &Contender<'a>) -> Vec<u8> {
        let levels = self.spread.into_iter().chain(0..self.levels.len());
        levels.map(|level| self.levels[level][contender.domain(level)]).collect()
    }

    fn take(&mut self, contender: &Contender<'a>) {
        for (level, domains) in self.levels.iter_mut().enumerate() {
            *domains.get_mut(contender.domain(level)).expect("every contender's domain is known") += 1;
        }
    }
}

/// `-weight / ln(hash)`, the hash taken as a fraction between 0 and 1, both excluded.
fn score(hash: u64, weight: u64) -> f64 {
    let fraction = ((hash >> 12) as f64 + 0.5) / (1_u64 << 52) as f64;
    -(weight as f64) / libm::log(fraction)
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014), one step on, so that 0 is nothing special.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const DOMAINS: [&str; 2] = ["rack", "host"];

    fn brick(id: u32, weight: u64, rack: u32, host: u32) -> Candidate {
        let labels = vec![("host".to_owned(), host.to_string()), ("rack".to_owned(), rack.to_string())];
        Candidate { id: BrickId(id), weight, labels }
    }

    /// Bricks of one weight, each in a rack of its own.
    fn bricks(count: u32) -> Vec<Candidate> {
        (0..count).map(|id| brick(id, 10, id, 0)).collect()
    }

    fn set(chosen: Result<Vec<BrickId>, PlacementError>) -> BTreeSet<BrickId> {
        let chosen = chosen.expect("enough bricks");
        let set: BTreeSet<BrickId> = chosen.iter().copied().collect();
        assert_eq!(set.len(), chosen.len(), "a brick is in a group twice: {chosen:?}");
        set
    }

    #[test]
    fn a_substitute_is_in_a_domain_of_its_own_where_there_is_one() {
        let candidates = [brick(1, 10, 1, 1), brick(2, 10, 2, 2), brick(3, 10, 1, 3), brick(4, 10, 3, 4)];
        let stay = [BrickId(1), BrickId(2)];
        for group in 0..20 {
            let found = substitute(VolumeId(1), group, &stay, &candidates, &DOMAINS);
            assert_eq!(found, Some(BrickId(4)), "rack 3 is the one without a member");
        }
        assert_eq!(substitute(VolumeId(1), 0, &stay, &candidates[..3], &DOMAINS), Some(BrickId(3)));
        assert_eq!(substitute(VolumeId(1), 0, &stay, &candidates[..2], &DOMAINS), None);
        let full = [brick(1, 0, 1, 1), brick(2, 0, 2, 2), brick(3, 0, 1, 3)];
        assert_eq!(substitute(VolumeId(1), 0, &stay, &full, &DOMAINS), None, "weight 0 takes nothing");
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
        assert_eq!([0, 1, 2, 3, 4, 5].map(|extent| group_of(VolumeId(1), extent, 12)), [1, 6, 4, 8, 1, 0]);
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

    /// Whether a count of independent draws is what its probability lets one expect.
    fn within_six_sigma(count: u32, draws: f64, probability: f64) -> bool {
        let sigma = libm::sqrt(draws * probability * (1.0 - probability));
        (f64::from(count) - draws * probability).abs() <= 6.0 * sigma
    }
}
