//! The holder that a hash of the address names, each as often as its weight says: for bricks whose speeds are known and
//! do not change (D-SPTF, section 5.2.1).

use super::hash;
use super::load::Load;
use super::pace::Kind;
use super::policy::{Part, Policy};
use base::{BrickId, HashMap, Time};
use core::time::Duration;

/// How long weights by measured speed hold: what moves to another brick is not in its cache.
const WEIGHTS_EVERY: Duration = Duration::from_secs(1);

/// Weights of bricks; of one that is not listed it is 1.
#[derive(Clone, Debug, Default)]
pub struct WeightedHash {
    weights: HashMap<BrickId, f64>,
}

impl WeightedHash {
    /// The weights, of which only the ratios count. What is not a positive number counts as 1.
    pub fn new(weights: impl IntoIterator<Item = (BrickId, f64)>) -> WeightedHash {
        let weights = weights.into_iter().map(|(brick, weight)| (brick, proper(weight)));
        WeightedHash { weights: weights.collect() }
    }

    /// Lists a brick, unless it is listed.
    pub fn add(&mut self, brick: BrickId, weight: impl FnOnce(BrickId) -> f64) {
        self.weights.entry(brick).or_insert_with(|| proper(weight(brick)));
    }

    /// Weighs all that are listed anew.
    pub fn weigh_all(&mut self, weight: impl Fn(BrickId) -> f64) {
        self.weights.iter_mut().for_each(|(brick, old)| *old = proper(weight(*brick)));
    }

    /// The holder of `address` among `candidates` `(slot, brick)`.
    pub fn choose(&self, address: u64, candidates: &[(u8, BrickId)]) -> Option<u8> {
        let score = |brick: BrickId| self.score(address, brick);
        candidates.iter().min_by(|(_, a), (_, b)| score(*a).total_cmp(&score(*b))).map(|(slot, _)| *slot)
    }

    /// An exponential draw with the weight as its rate: the lowest of several falls on each in proportion to its weight.
    fn score(&self, address: u64, brick: BrickId) -> f64 {
        let uniform = ((hash::weight(address, brick) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        -libm::log(uniform) / self.weights.get(&brick).copied().unwrap_or(1.0)
    }
}

/// Shares by weights that the operator gives.
#[derive(Debug)]
pub struct Weighted {
    pub weights: WeightedHash,
    /// How many bytes are one place.
    pub granule: u64,
}

impl Policy for Weighted {
    fn one(&mut self, _now: Time, part: &Part<'_>, _load: &Load) -> Option<u8> {
        self.weights.choose(part.address / self.granule, part.holders)
    }

    fn home(&self, part: &Part<'_>) -> Option<BrickId> {
        let slot = self.weights.choose(part.address / self.granule, part.holders)?;
        part.holders.iter().find(|(holder, _)| *holder == slot).map(|(_, brick)| *brick)
    }
}

/// Shares by the speed that was measured: who answers faster gets more.
#[derive(Debug)]
pub struct Measured {
    weights: WeightedHash,
    weighed_at: Option<Time>,
    granule: u64,
}

impl Measured {
    /// By places of `granule` bytes.
    pub fn new(granule: u64) -> Measured {
        Measured { weights: WeightedHash::default(), weighed_at: None, granule }
    }

    fn weigh(&mut self, now: Time, kind: Kind, holders: &[(u8, BrickId)], load: &Load) {
        let speed = |brick| load.pace().measure(now, brick, kind).map(|measure| measure.mean_ns);
        let weight = |brick| speed(brick).map_or(1.0, |mean_ns| 1e6 / mean_ns.max(1) as f64);
        holders.iter().for_each(|(_, brick)| self.weights.add(*brick, weight));
        if self.weighed_at.is_none_or(|at| now >= at + WEIGHTS_EVERY) {
            self.weighed_at = Some(now);
            self.weights.weigh_all(weight);
        }
    }
}

impl Policy for Measured {
    fn one(&mut self, now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        self.weigh(now, part.kind, part.holders, load);
        self.weights.choose(part.address / self.granule, part.holders)
    }
}

fn proper(weight: f64) -> f64 {
    if weight.is_finite() && weight > 0.0 { weight } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_weights() {
        let policy = WeightedHash::new([(BrickId(1), 2.0), (BrickId(2), 1.0), (BrickId(3), f64::NAN)]);
        let candidates = [(0, BrickId(1)), (1, BrickId(2)), (2, BrickId(3))];
        let mut counts = [0u32; 3];
        for address in 0..40_000 {
            counts[usize::from(policy.choose(address, &candidates).expect("three candidates"))] += 1;
        }
        assert!((19_500..20_500).contains(&counts[0]), "{counts:?}");
        assert!(counts[1..].iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }
}
