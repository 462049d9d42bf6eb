//! Any holder, each as often as the others: what a policy must be better than.

use super::load::Load;
use super::policy::{Part, Policy};
use base::{Rng, Time};

#[derive(Debug)]
pub struct Random(Rng);

impl Random {
    /// All draws follow from `seed`.
    pub fn new(seed: u64) -> Random {
        Random(Rng::with_seed(seed))
    }

    /// One of `choices`, of which there is one at least.
    pub(super) fn below(&mut self, choices: usize) -> usize {
        self.0.u64(0..choices as u64) as usize
    }
}

impl Policy for Random {
    fn one(&mut self, _now: Time, part: &Part<'_>, _load: &Load) -> Option<u8> {
        let holders = part.holders.len();
        (holders > 0).then(|| part.holders[self.below(holders)].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribute::pace::Kind;
    use crate::distribute::policy::PartId;
    use base::BrickId;

    #[test]
    fn each_holder_is_asked_as_often() {
        let holders = [(0, BrickId(1)), (1, BrickId(2)), (4, BrickId(3))];
        let part = Part { id: PartId::default(), address: 0, kind: Kind::Read, holders: &holders };
        let (mut policy, load) = (Random::new(1), Load::default());
        let mut counts = [0u32; 5];
        for _ in 0..30_000 {
            counts[usize::from(policy.one(Time::ZERO, &part, &load).expect("three holders"))] += 1;
        }
        assert!([0, 1, 4].iter().all(|slot| (9_600..10_400).contains(&counts[*slot])), "{counts:?}");
        assert_eq!(policy.one(Time::ZERO, &Part { holders: &[], ..part }, &load), None);
    }
}
