//! The brick that takes the place of a lost one, of many that could.
//!
//! It is the same under every rule: a lost brick's groups are spread over all bricks that have room, and no other member moves.

use super::domains::{Domains, Path};
use super::rendezvous::score;
use super::{Candidate, mix};
use base::{BrickId, VolumeId};
use core::cmp::Ordering;

/// Of those that fit equally well so many draw for a slot, and the others do not. That is a bound on its cost; which ones depends on the group.
const DRAWN: usize = 64;

/// Bricks, and their failure domains by numbers: what is the same for all slots.
#[derive(Debug)]
pub struct Pool {
    ids: Vec<BrickId>,
    weights: Vec<u64>,
    domains: Domains,
}

impl Pool {
    /// Of all bricks, in the order of their ids: also those that may take no slot, as their failure domains count where they stay in a group. They have
    /// weight 0. Failure domains are by these labels, the widest first.
    pub fn new(bricks: &[Candidate], labels: &[&str]) -> Pool {
        debug_assert!(bricks.is_sorted_by_key(|brick| brick.id), "looked up by id");
        let paths: Vec<Path<'_>> = bricks.iter().map(|brick| Path::of(brick, labels)).collect();
        Pool {
            ids: bricks.iter().map(|brick| brick.id).collect(),
            weights: bricks.iter().map(|brick| brick.weight).collect(),
            domains: Domains::of(&paths, labels.len(), 0),
        }
    }

    /// The brick that takes a slot of a group beside the members that `stay`: of those that `fits` allows the ones whose failure domains are the least
    /// crowded by these, and of these the one with the highest score for the group that `has_time`. `None` where nobody fits, or nobody of these has time:
    /// they will, and the slot is taken for long.
    ///
    /// Looks at the numbers of each brick's failure domains, and asks of few whether they fit where most do.
    pub fn substitute(
        &self,
        (volume, group_index): (VolumeId, u32),
        stay: &[BrickId],
        fits: impl Fn(BrickId) -> bool,
        has_time: impl Fn(BrickId) -> bool,
    ) -> Option<BrickId> {
        let group = mix(mix(volume.0) ^ u64::from(group_index));
        let stay: Vec<usize> = stay.iter().filter_map(|id| self.ids.binary_search(id).ok()).collect();
        let mut best = None;
        let mut draw: Vec<usize> = Vec::new();
        for brick in each_once(self.ids.len(), group) {
            if self.weights[brick] == 0 || stay.contains(&brick) {
                continue;
            }
            let around = |brick| self.domains.around(brick, &stay);
            let order = best.map_or(Ordering::Less, |best| around(brick).cmp(around(best)));
            let is_enough = order == Ordering::Equal && draw.len() >= DRAWN;
            if order == Ordering::Greater || is_enough || !fits(self.ids[brick]) {
                continue;
            }
            if order == Ordering::Less {
                best = Some(brick);
                draw.clear();
            }
            draw.extend(has_time(self.ids[brick]).then_some(brick));
        }
        let score = |brick: usize| score(mix(group ^ u64::from(self.ids[brick].0)), self.weights[brick]);
        let highest = |a: &usize, b: &usize| score(*a).total_cmp(&score(*b)).then(b.cmp(a));
        draw.into_iter().max_by(highest).map(|brick| self.ids[brick])
    }
}

/// All numbers below `count`, in an order that depends on `seed`: in steps that have no factor in common with `count`.
fn each_once(count: usize, seed: u64) -> impl Iterator<Item = usize> {
    let has_no_factor = |step: &usize| {
        let (mut a, mut b) = (*step, count);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    };
    let (first, from) = (mix(seed) as usize % count.max(1), mix(mix(seed)) as usize % count.max(1));
    let step = (from..).find(has_no_factor).unwrap_or(1);
    (0..count).map(move |nth| (first + nth * step) % count)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{DOMAINS, brick};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn substitute(group: u32, stay: &[u32], bricks: &[Candidate]) -> Option<u32> {
        let stay: Vec<BrickId> = stay.iter().copied().map(BrickId).collect();
        let pool = Pool::new(bricks, &DOMAINS);
        pool.substitute((VolumeId(1), group), &stay, |_| true, |_| true).map(|id| id.0)
    }

    #[test]
    fn steps_meet_all_once() {
        for count in [0, 1, 2, 12, 97, 360] {
            for seed in 0..20 {
                let mut all: Vec<usize> = each_once(count, seed).collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..count), "{count}, {seed}");
            }
        }
    }

    #[test]
    fn a_substitute_is_in_a_domain_of_its_own_where_there_is_one() {
        let bricks = [brick(1, 10, 1, 1), brick(2, 10, 2, 2), brick(3, 10, 1, 3), brick(4, 10, 3, 4)];
        for group in 0..20 {
            assert_eq!(substitute(group, &[1, 2], &bricks), Some(4), "rack 3 is the one without a member");
        }
        assert_eq!(substitute(0, &[1, 2], &bricks[..3]), Some(3));
        assert_eq!(substitute(0, &[1, 2], &bricks[..2]), None);
        let full = [brick(1, 0, 1, 1), brick(2, 0, 2, 2), brick(3, 0, 1, 3)];
        assert_eq!(substitute(0, &[1, 2], &full), None, "weight 0 takes nothing");
    }

    #[test]
    fn every_brick_of_many_is_drawn_and_in_proportion_to_its_weight() {
        // Two racks are free: one of 300 bricks, the other of three that weigh as much as ten.
        let rack = |id: u32| if id <= 100 { 0 } else { 1 + u32::from(id > 400) };
        let weight = |id: u32| if id > 400 { 100 } else { 10 };
        let bricks: Vec<Candidate> = (1..=403).map(|id| brick(id, weight(id), rack(id), id)).collect();
        let pool = Pool::new(&bricks, &DOMAINS);
        let draw = |group| pool.substitute((VolumeId(1), group), &[BrickId(1)], |_| true, |_| true);
        let drawn: Vec<u32> = (0..10_000).filter_map(draw).map(|id| id.0).collect();
        let times = |ids: core::ops::RangeInclusive<u32>| drawn.iter().filter(|id| ids.contains(id)).count();
        assert_eq!((times(1..=100), drawn.iter().collect::<BTreeSet<_>>().len()), (0, 303));
        // 30 of 330 by weight.
        let of_the_heavy = times(401..=403) as f64 / drawn.len() as f64;
        assert!((0.06..0.13).contains(&of_the_heavy), "{of_the_heavy}");
    }

    proptest! {
        /// Racks and hosts of very different sizes, of which some bricks do not fit: nobody who fits is better placed.
        #[test]
        fn nobody_who_fits_is_better_placed(
            sizes in prop::collection::vec(prop::collection::vec(prop_oneof![1..4_u32, 1..100_u32], 1..4), 1..6),
            stay in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
            fit_percent in prop_oneof![Just(100_u64), 1..50_u64],
            time_percent in prop_oneof![Just(100_u64), 1..50_u64],
            group in any::<u32>(),
        ) {
            let hosts = sizes.iter().zip(0..).flat_map(|(hosts, rack)| hosts.iter().zip(0..).map(move |(size, host)| (*size, rack, host)));
            let places = hosts.flat_map(|(size, rack, host)| (0..size).map(move |_| (rack, host)));
            let bricks: Vec<Candidate> = places.zip(1..).map(|((rack, host), id)| brick(id, 10, rack, host)).collect();
            let stay: BTreeSet<u32> = stay.iter().map(|index| index.get(&bricks).id.0).collect();
            let stay: Vec<u32> = stay.into_iter().collect();
            let fits = |id: u32| mix(u64::from(id) ^ u64::from(group)) % 100 < fit_percent;
            let has_time = |id: u32| mix(mix(u64::from(id) ^ u64::from(group))) % 100 < time_percent;
            let domain = |id: u32, level: usize| {
                let labels = &bricks[id as usize - 1].labels;
                let of = |name| labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str());
                (of("rack"), if level == 1 { of("host") } else { None })
            };
            let count = |level| bricks.iter().map(|one| domain(one.id.0, level)).collect::<BTreeSet<_>>().len();
            let spread = (0..2).find(|level| count(*level) > stay.len());
            let crowd = |id: u32| -> Vec<usize> {
                let levels = spread.into_iter().chain(0..2);
                levels.map(|level| stay.iter().filter(|member| domain(**member, level) == domain(id, level)).count()).collect()
            };
            let able = || bricks.iter().map(|one| one.id.0).filter(|id| !stay.contains(id) && fits(*id));
            let members: Vec<BrickId> = stay.iter().copied().map(BrickId).collect();
            let pool = Pool::new(&bricks, &DOMAINS);
            let taker = pool.substitute((VolumeId(1), group), &members, |id| fits(id.0), |id| has_time(id.0));
            let least = able().map(crowd).min();
            let best = || able().filter(|id| Some(crowd(*id)) == least && has_time(*id));
            match taker {
                Some(taker) => prop_assert!(best().any(|id| id == taker.0)),
                None => prop_assert_eq!(best().next(), None),
            }
        }
    }
}
