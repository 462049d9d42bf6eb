//! The rule `weighted`: the groups are drawn together, so that each brick is in as many of them as its weight asks for, or one
//! more or less. Drawn one by one, as `hashed` does, a brick of 64 groups is easily a third above or below its share.
//!
//! 1. *Shares*. A brick is in a group once at most, so it has a share of at most all groups; what a heavy brick cannot take falls
//!    on the others in proportion to their weights. Failure domains have bounds of the same kind.
//! 2. *Quotas*. Shares are rounded up or down to whole groups, so that those of all bricks add up.
//! 3. *Groups*. Each is a systematic sample (Madow, "On the Theory of Systematic Sampling, II", 1949): the bricks are laid along a
//!    line in an order drawn for the group, each as long as its quota that is left, and are picked at equal distances, as many
//!    groups as are left. No stretch is longer than that distance, so no brick is picked twice, and one as long is picked. By
//!    the last group all quotas are used up.
//!
//! The bricks of a failure domain lie side by side, and a stretch that holds `x` distances is picked `x` times, rounded up or
//! down: a domain's bound on its share is a bound in each group.

use super::domains::{Domains, Path};
use super::{Candidate, PlacementError, Rule, Wanted, able, jump, mix};
use base::{BrickId, VolumeId};
use std::collections::BTreeMap;

pub(super) struct Weighted;

/// What shares are counted in: so many units are one place in one group. The shares of 1,024 groups of 32 bricks are below
/// 2^53, so that they are exact as floating-point numbers.
const UNIT: u64 = 1 << 32;

impl Rule for Weighted {
    fn place(
        &self,
        wanted: Wanted,
        candidates: &[Candidate],
        domains: &[&str],
    ) -> Result<Vec<Vec<BrickId>>, PlacementError> {
        let able = able(wanted, candidates)?.into_iter();
        let bricks: Vec<Leaf<'_>> = able.map(|brick| Leaf::new(brick, domains)).collect();
        let paths: Vec<Path<'_>> = bricks.iter().map(|leaf| leaf.path.clone()).collect();
        let spread = Domains::of(&paths, domains.len(), wanted.width).spread();
        let mut tree = Node::tree(bricks, 0, spread);
        let (places, key) = (u64::from(wanted.groups) * u64::from(wanted.width), mix(wanted.family.0));
        tree.share(places * UNIT, u64::from(wanted.groups) * UNIT);
        tree.round(&mut (key % UNIT));
        let group = |group: u32| {
            let left = u64::from(wanted.groups - group);
            let key = mix(key ^ u64::from(group));
            tree.draw_order(key);
            let (mut next, mut members) = (key % left, Vec::with_capacity(usize::from(wanted.width)));
            tree.pick(&mut next, left, &mut members);
            assert_eq!(members.len(), usize::from(wanted.width), "quotas add up to the places that are left");
            members
        };
        Ok((0..wanted.groups).map(group).collect())
    }

    fn group_of(&self, family: VolumeId, extent: u64, groups: usize) -> usize {
        jump::group_of(family, extent, groups)
    }
}

/// A brick that is to have its place in the tree.
struct Leaf<'a> {
    id: BrickId,
    weight: u64,
    path: Path<'a>,
}

impl<'a> Leaf<'a> {
    fn new(brick: &'a Candidate, domains: &[&str]) -> Leaf<'a> {
        Leaf { id: brick.id, weight: brick.weight, path: Path::of(brick, domains) }
    }
}

/// A brick, a failure domain, or all of them.
struct Node {
    weight: f64,
    /// Bricks of it that a group may have.
    most: u64,
    /// Tells it apart from others: the lowest id in it.
    id: BrickId,
    kind: Kind,
}

enum Kind {
    Brick {
        /// In [`UNIT`]s until it is rounded, then in groups that it has yet to be put into.
        quota: u64,
    },
    Domain(Vec<Node>),
}

impl Node {
    /// The domain of these bricks below `level`. From the level `spread` on a group has one brick of a domain.
    fn tree(bricks: Vec<Leaf<'_>>, level: usize, spread: Option<usize>) -> Node {
        let mut labels: BTreeMap<Option<&str>, Vec<Leaf<'_>>> = BTreeMap::new();
        let mut inside = Vec::new();
        for leaf in bricks {
            match leaf.path.label(level) {
                None => inside.push(Node::brick(&leaf)),
                label => labels.entry(label).or_default().push(leaf),
            }
        }
        for domain in labels.into_values() {
            let mut domain = Node::tree(domain, level + 1, spread);
            if spread.is_some_and(|spread| level >= spread) {
                domain.most = 1;
            }
            inside.push(domain);
        }
        Node {
            weight: inside.iter().map(|node| node.weight).sum(),
            most: inside.iter().map(|node| node.most).sum(),
            id: inside.iter().map(|node| node.id).min().expect("a domain has a brick"),
            kind: Kind::Domain(inside),
        }
    }

    fn brick(leaf: &Leaf<'_>) -> Node {
        Node { weight: leaf.weight as f64, most: 1, id: leaf.id, kind: Kind::Brick { quota: 0 } }
    }

    /// Gives it a share of the places in all groups, of which one place in each would be `each`.
    fn share(&mut self, share: u64, each: u64) {
        let inside = match &mut self.kind {
            Kind::Brick { quota } => return *quota = share,
            Kind::Domain(inside) => inside,
        };
        // In a group that has so many bricks of it, they are spread as evenly as can be.
        let least = level(inside, share / each);
        let most = level_above(inside, share.div_ceil(each));
        let parts: Vec<Part> = inside
            .iter()
            .map(|node| Part {
                weight: node.weight,
                least: node.most.min(least) * each,
                most: node.most.min(most) * each,
            })
            .collect();
        for (node, share) in inside.iter_mut().zip(divide(share, &parts)) {
            node.share(share, each);
        }
    }

    /// Rounds the quotas of bricks to whole groups: each reaches over so many whole units as lie in its stretch of the line.
    fn round(&mut self, at: &mut u64) {
        match &mut self.kind {
            Kind::Domain(inside) => inside.iter_mut().for_each(|node| node.round(at)),
            Kind::Brick { quota } => {
                let begin = *at;
                *at += *quota;
                *quota = *at / UNIT - begin / UNIT;
            }
        }
    }

    /// Draws an order on the line.
    fn draw_order(&mut self, key: u64) {
        if let Kind::Domain(inside) = &mut self.kind {
            inside.sort_by_cached_key(|node| (mix(key ^ u64::from(node.id.0)), node.id));
            inside.iter_mut().for_each(|node| node.draw_order(mix(key)));
        }
    }

    /// Picks the bricks at `next` from its beginning on, and each `distance` further.
    fn pick(&mut self, next: &mut u64, distance: u64, members: &mut Vec<BrickId>) {
        match &mut self.kind {
            Kind::Domain(inside) => inside.iter_mut().for_each(|node| node.pick(next, distance, members)),
            Kind::Brick { quota } if *next < *quota => {
                *next += distance - *quota;
                *quota -= 1;
                members.push(self.id);
            }
            Kind::Brick { quota } => *next -= *quota,
        }
    }
}

/// How many places each of some nodes holds, as far as it can, where they share `places` as evenly as can be: rounded down.
fn level(nodes: &[Node], places: u64) -> u64 {
    let most = nodes.iter().map(|node| node.most).max().unwrap_or(0);
    (0..=most).rev().find(|level| held(nodes, *level) <= places).unwrap_or(0)
}

/// The same, rounded up.
fn level_above(nodes: &[Node], places: u64) -> u64 {
    let most = nodes.iter().map(|node| node.most).max().unwrap_or(0);
    (0..=most).find(|level| held(nodes, *level) >= places).unwrap_or(most)
}

fn held(nodes: &[Node], level: u64) -> u64 {
    nodes.iter().map(|node| node.most.min(level)).sum()
}

/// One of those that share something.
struct Part {
    weight: f64,
    least: u64,
    most: u64,
}

impl Part {
    /// What it gets where a weight of 1 gets `rate`.
    fn at(&self, rate: f64) -> u64 {
        ((self.weight * rate) as u64).clamp(self.least, self.most)
    }
}

/// Divides `total` in proportion to weights, as far as each part's bounds allow. The bounds allow `total`.
fn divide(total: u64, parts: &[Part]) -> Vec<u64> {
    let given = |rate: f64| parts.iter().map(|part| part.at(rate)).sum::<u64>();
    let (mut low, mut high) =
        (0.0, parts.iter().map(|part| part.most as f64 / part.weight).fold(0.0, f64::max));
    // Halving the distance as often as a number has bits leaves none that could be told apart.
    for _ in 0..64 {
        let rate = (low + high) / 2.0;
        if given(rate) <= total { low = rate } else { high = rate }
    }
    let mut shares: Vec<u64> = parts.iter().map(|part| part.at(low)).collect();
    // What was rounded off: a few units in billions.
    let mut rest = total - shares.iter().sum::<u64>();
    for (share, part) in shares.iter_mut().zip(parts) {
        let more = rest.min(part.most - *share);
        *share += more;
        rest -= more;
    }
    assert_eq!(rest, 0, "the bounds allow the total");
    shares
}

#[cfg(test)]
mod tests {
    use super::super::testing::{DOMAINS, brick, bricks, sets, shares};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn wanted(family: u64, groups: u32, width: u8) -> Wanted {
        Wanted { family: VolumeId(family), groups, width }
    }

    fn weighted(weights: &[u64]) -> Vec<Candidate> {
        (0..).zip(weights).map(|(id, weight)| brick(id, *weight, id, 0)).collect()
    }

    /// How many groups each brick should be in: its weight's part of all places, or all groups where that is more.
    fn exact(weights: &[u64], groups: f64, width: u8) -> Vec<f64> {
        let mut exact = vec![0.0; weights.len()];
        let (mut places, mut open) = (groups * f64::from(width), (0..weights.len()).collect::<Vec<_>>());
        loop {
            let sum: u64 = open.iter().map(|at| weights[*at]).sum();
            let full = |at: &usize| places * weights[*at] as f64 / sum as f64 >= groups;
            let (above, below): (Vec<usize>, Vec<usize>) = open.iter().partition(|at| full(at));
            below.iter().for_each(|at| exact[*at] = places * weights[*at] as f64 / sum as f64);
            above.iter().for_each(|at| exact[*at] = groups);
            places -= groups * above.len() as f64;
            if above.is_empty() || below.is_empty() {
                return exact;
            }
            open = below;
        }
    }

    #[test]
    fn a_row_of_disks_of_three_sizes_is_in_as_many_groups_as_their_sizes_say() {
        let bricks = weighted(&[1, 1, 1, 1, 2, 2, 4, 4]);
        let groups = sets(Weighted.place(wanted(1, 64, 2), &bricks, &DOMAINS));
        assert_eq!(shares(&groups, 8), [8, 8, 8, 8, 16, 16, 32, 32]);
    }

    #[test]
    fn a_brick_heavier_than_all_others_is_in_every_group_once() {
        let groups = sets(Weighted.place(wanted(1, 30, 3), &weighted(&[1, 1, 1, 1, 1000]), &DOMAINS));
        assert_eq!(shares(&groups, 5), [15, 15, 15, 15, 30]);
    }

    #[test]
    fn all_other_bricks_share_groups_with_a_brick() {
        // So that all of them can help to rebuild it.
        let groups = sets(Weighted.place(wanted(3, 48, 3), &bricks(12), &DOMAINS));
        let beside: BTreeSet<BrickId> =
            groups.iter().filter(|group| group.contains(&BrickId(0))).flatten().copied().collect();
        assert!(beside.len() >= 11, "{beside:?}");
    }

    #[test]
    fn too_few_bricks_are_named() {
        let refusal = Weighted.place(wanted(7, 4, 3), &weighted(&[1, 0, 5]), &[]).expect_err("too few");
        let expected = "group 0 of volume-7 needs 3 bricks and 2 can take it: 1 more must join or come back";
        assert_eq!(refusal.to_string(), expected);
    }

    #[test]
    fn few_racks_are_shared_evenly_whatever_their_weights() {
        // Two racks of three hosts of two bricks each; the first rack is ten times as heavy.
        let bricks: Vec<Candidate> =
            (0..12).map(|id| brick(id, if id % 2 == 0 { 100 } else { 10 }, id % 2, id / 4)).collect();
        for group in sets(Weighted.place(wanted(1, 50, 4), &bricks, &DOMAINS)) {
            let in_rack = |rack| group.iter().filter(|id| id.0 % 2 == rack).count();
            assert_eq!((in_rack(0), in_rack(1)), (2, 2), "{group:?}");
            let hosts: BTreeSet<_> = group.iter().map(|id| (id.0 % 2, id.0 / 4)).collect();
            assert_eq!(hosts.len(), 4, "{group:?}");
        }
    }

    #[test]
    fn hosts_are_kept_apart_even_where_racks_are_uneven() {
        // Rack 0 has one host with two bricks, rack 1 has three hosts: an even split would put two on one host.
        let bricks = [(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 1, 1), (4, 1, 2)];
        let bricks = bricks.map(|(id, rack, host)| brick(id, 10, rack, host));
        for group in sets(Weighted.place(wanted(1, 50, 4), &bricks, &DOMAINS)) {
            assert!(!(group.contains(&BrickId(0)) && group.contains(&BrickId(1))), "{group:?}");
        }
    }

    #[test]
    fn a_light_rack_is_in_every_group_where_there_are_fewer_racks_than_copies() {
        let weights = [100, 100, 1];
        let bricks: Vec<Candidate> =
            (0..9).map(|id| brick(id, weights[id as usize % 3], id % 3, id)).collect();
        for group in sets(Weighted.place(wanted(1, 50, 4), &bricks, &DOMAINS)) {
            assert!(group.iter().any(|id| id.0 % 3 == 2), "{group:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn each_brick_is_in_as_many_groups_as_its_weight_says_or_one_more_or_less(family: u64, weights in prop::collection::vec(1..1_000_000_u64, 1..40), width in 1..9_u8, groups in 1..300_u32) {
            prop_assume!(weights.len() >= usize::from(width));
            let placed = sets(Weighted.place(wanted(family, groups, width), &weighted(&weights), &DOMAINS));
            let exact = exact(&weights, f64::from(groups), width);
            for (share, exact) in shares(&placed, weights.len()).into_iter().zip(exact) {
                prop_assert!((f64::from(share) - exact).abs() < 1.0001, "{share} groups instead of {exact}");
            }
        }

        #[test]
        fn domains_are_respected(places in prop::collection::vec((0..8_u32, 0..4_u32, 1..100_u64), 5..40), width in 1..6_u8, groups in 1..60_u32) {
            let bricks: Vec<Candidate> =
                (0..).zip(&places).map(|(id, (rack, host, weight))| brick(id, *weight, *rack, *host)).collect();
            for chosen in sets(Weighted.place(wanted(3, groups, width), &bricks, &DOMAINS)) {
                let spread = |domain: &dyn Fn(usize) -> (u32, u32)| {
                    let all: BTreeSet<_> = (0..places.len()).map(domain).collect();
                    let used: BTreeSet<_> = chosen.iter().map(|id| domain(id.0 as usize)).collect();
                    used.len() == all.len().min(usize::from(width))
                };
                prop_assert!(spread(&|at| (places[at].0, 0)), "two in a rack, and one is left out: {chosen:?}");
                let hosts: BTreeSet<_> = places.iter().map(|(rack, host, _)| (rack, host)).collect();
                prop_assert!(hosts.len() < usize::from(width) || spread(&|at| (places[at].0, places[at].1)), "two on a host: {chosen:?}");
            }
        }

        #[test]
        fn the_order_of_candidates_does_not_matter(seed: u64, groups in 1..40_u32) {
            let mut shuffled = bricks(12);
            base::Rng::with_seed(seed).shuffle(&mut shuffled);
            let [one, other] = [shuffled, bricks(12)].map(|of| Weighted.place(wanted(1, groups, 4), &of, &DOMAINS));
            prop_assert_eq!(one, other);
        }

        #[test]
        fn the_smallest_and_the_greatest_weights_add_up(weights in prop::collection::vec(prop::sample::select(vec![1, 1 << 20, 1 << 62, u64::MAX]), 3..12), groups in 1..1025_u32) {
            let placed = Weighted.place(wanted(1, groups, 3), &weighted(&weights), &DOMAINS);
            prop_assert_eq!(sets(placed).len(), groups as usize);
        }
    }
}
