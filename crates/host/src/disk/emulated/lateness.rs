//! How late the emulation was: a run whose emulated disks could not keep their times measures something else.

use std::time::Duration;

/// Buckets in each power of two.
const STEPS: u32 = 4;
/// Below this all are one bucket.
const LEAST_NS: u64 = 1_000;
/// From 1 us to 2^20 us.
const BUCKETS: usize = 1 + 20 * STEPS as usize;

/// A histogram whose bounds are a fifth apart at most.
#[derive(Debug, Clone)]
pub struct Lateness {
    counts: [u64; BUCKETS],
    sum: Duration,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { counts: [0; BUCKETS], sum: Duration::ZERO }
    }
}

impl Lateness {
    /// An answer was given so long after it was due.
    pub fn record(&mut self, late: Duration) {
        self.counts[bucket(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX))] += 1;
        self.sum += late;
    }

    /// How many answers were given.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Answers by upper bound: `(bound, given not later than it)`. The last bound takes all.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.counts.iter().enumerate().scan(0, |total, (bucket, count)| {
            *total += count;
            Some((bound(bucket), *total))
        })
    }

    /// An upper bound of the lateness of `share` (0 to 1) of all answers; zero when there were none.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (self.count() as f64 * share).ceil() as u64;
        if wanted == 0 {
            return Duration::ZERO;
        }
        self.cumulative().find(|(_, count)| *count >= wanted).map_or(Duration::ZERO, |(bound, _)| bound)
    }
}

/// Where a lateness is counted: the first bucket whose bound is not below it.
fn bucket(ns: u64) -> usize {
    if ns <= LEAST_NS {
        return 0;
    }
    let octave = ((ns - 1) / LEAST_NS).ilog2();
    let base = LEAST_NS << octave;
    let step = (u128::from(ns - base) * u128::from(STEPS)).div_ceil(u128::from(base)) as u32;
    ((octave * STEPS + step) as usize).min(BUCKETS - 1)
}

fn bound(bucket: usize) -> Duration {
    if bucket + 1 == BUCKETS { Duration::MAX } else { Duration::from_nanos(bound_ns(bucket)) }
}

/// Between two powers of two the bounds are evenly spread.
fn bound_ns(bucket: usize) -> u64 {
    let (octave, step) = (bucket as u32 / STEPS, (bucket as u32 % STEPS) as u64);
    let base = LEAST_NS << octave;
    base + base * step / u64::from(STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_upper_bounds() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile(0.99), Duration::ZERO);
        (0..99).for_each(|_| lateness.record(Duration::from_micros(3)));
        lateness.record(Duration::from_secs(7));
        assert_eq!(lateness.quantile(0.5), Duration::from_micros(3));
        assert_eq!(lateness.quantile(0.99), Duration::from_micros(3));
        assert_eq!(lateness.quantile(1.0), Duration::MAX);
        assert_eq!((lateness.count(), lateness.sum()), (100, Duration::from_micros(7_000_297)));
    }

    proptest! {
        #[test]
        fn a_bucket_is_the_first_whose_bound_is_not_below(ns in prop_oneof![0u64..5_000, 0u64..2_000_000_000, any::<u64>()]) {
            let bucket = bucket(ns);
            prop_assert!(Duration::from_nanos(ns) <= bound(bucket));
            prop_assert!(bucket == 0 || bound(bucket - 1) < Duration::from_nanos(ns));
        }
    }
}
