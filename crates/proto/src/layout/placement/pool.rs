//! Candidates of which a few are looked at for each slot, from all failure domains.

use super::domains::Path;
use super::{Candidate, mix};
use std::collections::BTreeMap;

/// About so many candidates are looked at; all of them where there are no more.
const DRAWN: usize = 64;

/// Many candidates. To compare all of them for each slot would make work grow with groups times bricks.
#[derive(Debug, Default)]
pub struct Pool {
    all: Vec<Candidate>,
    /// Of each of the widest failure domains, indices of its candidates, neighbours in narrower domains beside each other.
    domains: Vec<Vec<usize>>,
}

impl Pool {
    /// Of these candidates, with failure domains by these labels, the widest first.
    pub fn new(all: Vec<Candidate>, labels: &[&str]) -> Pool {
        let mut by_path: Vec<(Path<'_>, usize)> =
            all.iter().enumerate().map(|(index, one)| (Path::of(one, labels), index)).collect();
        by_path.sort();
        let mut domains: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
        for (path, index) in &by_path {
            domains.entry(path.label(0)).or_default().push(*index);
        }
        let domains = domains.into_values().collect();
        Pool { all, domains }
    }

    /// All, in the order in which they were given.
    pub fn all(&self) -> &[Candidate] {
        &self.all
    }

    /// About [`DRAWN`] of them; which ones depends on `seed`. Each of the widest failure domains is among theirs, or as many of these as are drawn:
    /// whoever takes the least crowded of all these domains finds it here.
    pub fn some(&self, seed: u64) -> impl Iterator<Item = &Candidate> {
        let first = mix(seed) as usize;
        let each = match self.all.len() > DRAWN {
            true => DRAWN.div_ceil(self.domains.len()),
            false => self.all.len(),
        };
        let domains = few(&self.domains, first, DRAWN);
        domains.flat_map(move |domain| few(domain, first, each)).map(|index| &self.all[*index])
    }

    /// Whether [`Pool::some`] leaves some of them out.
    pub fn is_drawn_from(&self) -> bool {
        self.all.len() > DRAWN
    }
}

/// At most so many of these, spread over all of them.
fn few<T>(of: &[T], first: usize, most: usize) -> impl Iterator<Item = &T> {
    let count = of.len().min(most);
    (0..count).map(move |nth| &of[(first.wrapping_add(nth * of.len() / count)) % of.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::placement::substitute;
    use base::{BrickId, VolumeId};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const LABELS: [&str; 2] = ["rack", "host"];

    fn in_rack(id: u32, rack: u32, host: u32) -> Candidate {
        let labels = vec![("rack".to_owned(), rack.to_string()), ("host".to_owned(), host.to_string())];
        Candidate { id: BrickId(id), weight: 1, labels }
    }

    fn drawn(pool: &Pool, seed: u64) -> BTreeSet<u32> {
        pool.some(seed).map(|one| one.id.0).collect()
    }

    #[test]
    fn of_many_some_are_drawn_that_are_spread_over_all() {
        let of = |count: u32| {
            let brick = |id| Candidate { id: BrickId(id), weight: 1, labels: Vec::new() };
            Pool::new((1..=count).map(brick).collect(), &[])
        };
        let count = |count| drawn(&of(count), 1).len();
        assert_eq!([0, 5, 64, 65].map(count), [0, 5, 64, 64]);
        let (first, second) = (drawn(&of(1000), 1), drawn(&of(1000), 2));
        assert!(first.len() == DRAWN && first != second);
        // Of each hundred in a row some are among them.
        assert!((0..10).all(|hundred| first.range(hundred * 100 + 1..=hundred * 100 + 100).count() >= 5));
        // Of racks of one brick each as many as that.
        let racks = Pool::new((1..=1000).map(|id| in_rack(id, id, 1)).collect(), &LABELS);
        assert_eq!(drawn(&racks, 1).len(), DRAWN);
    }

    proptest! {
        /// Racks of very different sizes: the slot goes to the least crowded one all the same.
        #[test]
        fn no_failure_domain_is_missed(
            sizes in prop::collection::vec(prop_oneof![1..4_u32, 1..200_u32], 3..8),
            seed in any::<u64>(),
        ) {
            let racks = sizes.iter().zip(0..).flat_map(|(size, rack)| (0..*size).map(move |host| (rack, host)));
            let bricks: Vec<Candidate> = racks.zip(1..).map(|((rack, host), id)| in_rack(id, rack, host)).collect();
            let rack = |id: BrickId| &bricks[id.0 as usize - 1].labels[0].1;
            // One member is in each of the first two racks.
            let stay: Vec<BrickId> = ["0", "1"].iter().filter_map(|of| bricks.iter().map(|one| one.id).find(|id| rack(*id) == *of)).collect();
            let (staying, others): (Vec<Candidate>, Vec<Candidate>) =
                bricks.iter().cloned().partition(|one| stay.contains(&one.id));
            let pool = Pool::new(others, &LABELS);
            let drawn: Vec<Candidate> = staying.iter().chain(pool.some(seed)).cloned().collect();
            let taker = substitute(VolumeId(1), seed as u32, &stay, &drawn, &LABELS).expect("there are others");
            prop_assert!(stay.iter().all(|member| rack(*member) != rack(taker)), "{taker} is in rack {}", rack(taker));
        }
    }
}
