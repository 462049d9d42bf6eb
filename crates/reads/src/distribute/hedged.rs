//! Hedged requests (Dean and Barroso: "The tail at scale", CACM 2013): a read goes to one holder, and when it is not
//! answered within the time that most reads take (`Hedged::delay_ns`), to a second one. The first answer counts.
//! A gateway waits that long in `netraid::read::asking`.
//!
//! Where a gateway hedges, the first holder's answer that comes after the second's is not among the times: beside a brick
//! that is always slow the delay stays that of quick answers, and more than the rest of the percentage ask twice.

use super::load::Load;
use super::policy::{Course, First, Next, Part, Plan, Policy, Told};
use super::rescue;
use super::shortest_queue::ShortestQueue;
use base::{Time, octaves};
use core::time::Duration;

/// Response times are known to an eighth.
const PARTS: usize = 8;
const BOXES: usize = octaves::boxes::<PARTS>();
/// When so many are counted, all counts are halved, so that what was is forgotten.
const COUNTED_MAX: u32 = 8192;

/// Who is asked first, and when and who second.
#[derive(Debug)]
pub struct Hedged {
    first: ShortestQueue,
    percent: f64,
    counts: Vec<u32>,
    counted: u32,
    floor_ns: u64,
}

impl Hedged {
    /// Asks a second holder after the time in which `percent` of the reads are answered (the paper has 95), and not
    /// before `floor_ns` or a few are known.
    pub fn new(percent: f64, floor_ns: u64, first: ShortestQueue) -> Hedged {
        let percent = percent.clamp(0.0, 100.0);
        Hedged { first, percent, counts: vec![0; BOXES], counted: 0, floor_ns }
    }

    /// How long after the first question the second one goes out, in nanoseconds; `None` until enough is known.
    fn delay_ns(&self) -> Option<u64> {
        if self.counted < 32 {
            return None;
        }
        let rank = (f64::from(self.counted) * self.percent / 100.0) as u32;
        let mut seen = 0;
        let reached = |count: &u32| {
            seen += count;
            seen > rank
        };
        let reached_at = self.counts.iter().position(reached).unwrap_or(BOXES - 1);
        Some(octaves::greatest::<PARTS>(reached_at).max(self.floor_ns))
    }
}

impl Policy for Hedged {
    fn one(&mut self, now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        self.first.one(now, part, load)
    }

    fn first(&mut self, now: Time, part: &Part<'_>, load: &mut Load) -> Option<Plan> {
        let first = First::One(self.one(now, part, load)?);
        let delay_ns = if part.holders.len() > 1 { self.delay_ns() } else { None };
        Some(Plan { first, wait: delay_ns.map(Duration::from_nanos) })
    }

    fn next(&mut self, now: Time, part: &Part<'_>, course: &Course, load: &Load) -> Next {
        match course.direct.len() {
            0 | 1 => rescue::next(now, part, course, load),
            _ => Next::Nothing,
        }
    }

    fn answered(&mut self, told: &Told) {
        self.counts[octaves::index::<PARTS>(told.response_ns)] += 1;
        self.counted += 1;
        if self.counted >= COUNTED_MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.counted = self.counts.iter().sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BrickId;

    #[test]
    fn the_delay_is_the_percentile_of_what_was_seen_lately() {
        let mut policy = Hedged::new(95.0, 1000, ShortestQueue::default());
        let told =
            |response_ns| Told { brick: BrickId(1), response_ns, service_ns: 0, queue: 0, device_ns: None };
        assert_eq!(policy.delay_ns(), None);
        (1..=1000).for_each(|millionth| policy.answered(&told(millionth * 10_000)));
        let delay_ns = policy.delay_ns().expect("enough is known");
        assert!((9_500_000..10_900_000).contains(&delay_ns), "{delay_ns}");
        (0..16_000).for_each(|_| policy.answered(&told(50)));
        assert_eq!(policy.delay_ns(), Some(1000), "what is long ago is forgotten, and the floor holds");
    }
}
