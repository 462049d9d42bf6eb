//! A choice by what replies tell (C3: Suresh and others, NSDI 2015): each answer carries the brick's queue and its service
//! time, and the next read goes to the brick with the lowest score. The queue counts by its cube, so that a fast brick
//! is not buried, and the reads that this asker itself has under way are counted for all askers.

use base::{BrickId, HashMap};

/// What is known of a brick: moving averages.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    under_way: u32,
    response_ns: f64,
    service_ns: f64,
    queue: f64,
    is_known: bool,
}

/// Scores of bricks.
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

    /// The holder with the lowest score among `candidates` `(slot, brick)`. One that is not known is asked first, so
    /// that it will be; among equals an early one.
    pub fn choose(&self, candidates: &[(u8, BrickId)]) -> Option<u8> {
        let score = |brick: BrickId| self.score(brick);
        candidates.iter().min_by(|(_, a), (_, b)| score(*a).total_cmp(&score(*b))).map(|(slot, _)| *slot)
    }

    /// A question went to `brick`.
    pub fn begin(&mut self, brick: BrickId) {
        self.bricks.entry(brick).or_default().under_way += 1;
    }

    /// It is of no interest any more.
    pub fn end(&mut self, brick: BrickId) {
        let known = self.bricks.entry(brick).or_default();
        known.under_way = known.under_way.saturating_sub(1);
    }

    /// `brick` answered after `response_ns`, of which the access took `service_ns`, with `queue` reads before it.
    pub fn answered(&mut self, brick: BrickId, response_ns: u64, service_ns: u64, queue: u32) {
        let known = self.bricks.entry(brick).or_default();
        let newest = if known.is_known { NEWEST } else { 1.0 };
        let blend = |old: &mut f64, new: f64| *old += (new - *old) * newest;
        blend(&mut known.response_ns, response_ns as f64);
        blend(&mut known.service_ns, service_ns as f64);
        blend(&mut known.queue, f64::from(queue));
        known.is_known = true;
    }

    /// C3, section 3.1: response - service + (1 + under way * askers + queue)^3 * service.
    fn score(&self, brick: BrickId) -> f64 {
        let known = self.bricks.get(&brick).copied().unwrap_or_default();
        if !known.is_known {
            return f64::from(known.under_way);
        }
        let queue = 1.0 + f64::from(known.under_way) * self.askers + known.queue;
        known.response_ns - known.service_ns + queue * queue * queue * known.service_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slow_brick_is_asked_only_when_the_fast_one_is_busy() {
        let candidates = [(0, BrickId(1)), (1, BrickId(2))];
        let mut policy = Probing::new(1);
        policy.answered(BrickId(1), 8_000_000, 8_000_000, 0);
        assert_eq!(policy.choose(&candidates), Some(1), "who is not known is asked");
        policy.answered(BrickId(2), 1_000_000, 1_000_000, 0);
        let mut asked = Vec::new();
        for _ in 0..3 {
            let slot = policy.choose(&candidates).expect("two candidates");
            asked.push(slot);
            policy.begin(candidates[usize::from(slot)].1);
        }
        assert_eq!(asked, [1, 0, 1], "two under way at the fast one cost as much as one at the slow one");
        policy.end(BrickId(1));
        assert_eq!(policy.choose(&[]), None);
    }
}
