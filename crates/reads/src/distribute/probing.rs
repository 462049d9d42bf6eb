//! A choice by what replies tell (C3: Suresh and others, NSDI 2015): each answer carries the brick's queue and its service
//! time, and the next read goes to the brick with the lowest score. The queue counts by its cube, so that a fast brick
//! is not buried, and the reads that this asker itself has under way are counted for all askers.

use super::load::Load;
use super::policy::{Part, Policy, Told};
use base::{BrickId, HashMap, Time};

/// What is known of a brick: moving averages.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    response_ns: f64,
    service_ns: f64,
    queue: f64,
    is_known: bool,
}

#[derive(Debug)]
pub struct Probing {
    bricks: HashMap<BrickId, Known>,
    askers: f64,
}

/// How much the newest answer weighs.
const NEWEST: f64 = 0.1;

impl Probing {
    /// One of `askers` that read from the same bricks.
    pub fn new(askers: u32) -> Probing {
        Probing { bricks: HashMap::default(), askers: f64::from(askers.max(1)) }
    }

    /// C3, section 3.1: response - service + (1 + outstanding * askers + queue)^3 * service.
    fn score(&self, brick: BrickId, load: &Load) -> f64 {
        let outstanding = f64::from(load.queue(brick));
        let Some(known) = self.bricks.get(&brick).filter(|known| known.is_known) else { return outstanding };
        let queue = 1.0 + outstanding * self.askers + known.queue;
        known.response_ns - known.service_ns + queue * queue * queue * known.service_ns
    }
}

impl Policy for Probing {
    /// The holder with the lowest score. One that is not known is asked first, so that it will be; among equals an early one.
    fn one(&mut self, _now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        let score = |brick: BrickId| self.score(brick, load);
        part.holders.iter().min_by(|(_, a), (_, b)| score(*a).total_cmp(&score(*b))).map(|(slot, _)| *slot)
    }

    fn answered(&mut self, told: &Told) {
        let known = self.bricks.entry(told.brick).or_default();
        let newest = if known.is_known { NEWEST } else { 1.0 };
        let blend = |old: &mut f64, new: f64| *old += (new - *old) * newest;
        blend(&mut known.response_ns, told.response_ns as f64);
        blend(&mut known.service_ns, told.service_ns as f64);
        blend(&mut known.queue, f64::from(told.queue));
        known.is_known = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribute::pace::Kind;
    use crate::distribute::policy::PartId;

    #[test]
    fn the_slow_brick_is_asked_only_when_the_fast_one_is_busy() {
        let holders = [(0, BrickId(1)), (1, BrickId(2))];
        let part = Part { id: PartId::default(), address: 0, kind: Kind::Read, holders: &holders };
        let (mut policy, mut load) = (Probing::new(1), Load::default());
        let told = |brick, ns| Told { brick, response_ns: ns, service_ns: ns, queue: 0, device_ns: None };
        policy.answered(&told(BrickId(1), 8_000_000));
        assert_eq!(policy.one(Time::ZERO, &part, &load), Some(1), "who is not known is asked");
        policy.answered(&told(BrickId(2), 1_000_000));
        let mut asked = Vec::new();
        for _ in 0..3 {
            let slot = policy.one(Time::ZERO, &part, &load).expect("two holders");
            asked.push(slot);
            load.begin(holders[usize::from(slot)].1);
        }
        assert_eq!(asked, [1, 0, 1], "two outstanding at the fast one cost as much as one at the slow one");
        assert_eq!(policy.one(Time::ZERO, &Part { holders: &[], ..part }, &load), None);
    }
}
