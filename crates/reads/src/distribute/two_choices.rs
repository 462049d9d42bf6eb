//! The shorter queue of two holders that are drawn at random (Mitzenmacher: "The Power of Two Choices in Randomized Load
//! Balancing", IEEE TPDS 2001). Nearly as even as the shortest queue of all, and many askers that know little of each other
//! do not all run to the same brick.

use super::load::Load;
use super::policy::{Part, Policy};
use super::random::Random;
use base::Time;

/// Two draws, and the better of them.
#[derive(Debug)]
pub struct TwoChoices(Random);

impl TwoChoices {
    /// All draws follow from `seed`.
    pub fn new(seed: u64) -> TwoChoices {
        TwoChoices(Random::new(seed))
    }
}

impl Policy for TwoChoices {
    fn one(&mut self, _now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        let holders = part.holders;
        let ([_, ..], count) = (holders, holders.len()) else { return None };
        let first = self.0.below(count);
        // Another one than the first.
        let second = if count > 1 { (first + 1 + self.0.below(count - 1)) % count } else { first };
        let better = [first, second].into_iter().min_by_key(|at| load.queue(holders[*at].1))?;
        Some(holders[better].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribute::pace::Kind;
    use crate::distribute::policy::PartId;
    use base::BrickId;

    #[test]
    fn the_longest_queue_is_never_chosen_and_all_others_are() {
        let holders = [(0, BrickId(1)), (1, BrickId(2)), (2, BrickId(3))];
        let part = Part { id: PartId::default(), address: 0, kind: Kind::Read, holders: &holders };
        let (mut policy, mut load) = (TwoChoices::new(1), Load::default());
        load.begin(BrickId(2));
        let mut counts = [0u32; 3];
        for _ in 0..3000 {
            counts[usize::from(policy.one(Time::ZERO, &part, &load).expect("three holders"))] += 1;
        }
        assert!(counts[1] == 0 && counts[0].min(counts[2]) > 1000, "{counts:?}");
        assert_eq!(policy.one(Time::ZERO, &Part { holders: &holders[1..2], ..part }, &load), Some(1));
        assert_eq!(policy.one(Time::ZERO, &Part { holders: &[], ..part }, &load), None);
    }

    #[test]
    fn queues_are_far_more_even_than_by_one_draw() {
        let holders: Vec<_> = (0..16).map(|slot| (slot, BrickId(u32::from(slot)))).collect();
        let part = Part { id: PartId::default(), address: 0, kind: Kind::Read, holders: &holders };
        let longest = |policy: &mut dyn Policy| {
            let mut load = Load::default();
            for _ in 0..1600 {
                let slot = policy.one(Time::ZERO, &part, &load).expect("sixteen holders");
                load.begin(BrickId(u32::from(slot)));
            }
            (0..16).map(|brick| load.queue(BrickId(brick))).max().expect("sixteen")
        };
        let (one, two) = (longest(&mut Random::new(7)), longest(&mut TwoChoices::new(7)));
        assert!(two <= 103 && one > two + 5, "of 100 on average: {one} by one draw, {two} by two");
    }
}
