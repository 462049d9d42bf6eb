//! Bricks and bounds for the tests of placement.

use super::{Candidate, PlacementError};
use base::BrickId;
use std::collections::BTreeSet;

pub(super) const DOMAINS: [&str; 2] = ["rack", "host"];

pub(super) fn brick(id: u32, weight: u64, rack: u32, host: u32) -> Candidate {
    let labels = vec![("host".to_owned(), host.to_string()), ("rack".to_owned(), rack.to_string())];
    Candidate { id: BrickId(id), weight, labels }
}

/// Bricks of one weight, each in a rack of its own.
pub(super) fn bricks(count: u32) -> Vec<Candidate> {
    (0..count).map(|id| brick(id, 10, id, 0)).collect()
}

/// The bricks of each group, which are different ones.
pub(super) fn sets(placed: Result<Vec<Vec<BrickId>>, PlacementError>) -> Vec<BTreeSet<BrickId>> {
    let set = |group: Vec<BrickId>| {
        let set: BTreeSet<BrickId> = group.iter().copied().collect();
        assert_eq!(set.len(), group.len(), "a brick is in a group twice: {group:?}");
        set
    };
    placed.expect("enough bricks").into_iter().map(set).collect()
}

/// In how many groups each of the first `count` bricks is.
pub(super) fn shares(groups: &[BTreeSet<BrickId>], count: usize) -> Vec<u32> {
    let mut shares = vec![0; count];
    groups.iter().flatten().for_each(|id| shares[id.0 as usize] += 1);
    shares
}

/// Whether a count of independent draws is what its probability lets one expect.
pub(super) fn within_six_sigma(count: u32, draws: f64, probability: f64) -> bool {
    let sigma = libm::sqrt(draws * probability * (1.0 - probability));
    (f64::from(count) - draws * probability).abs() <= 6.0 * sigma
}
