//! Hedged requests (Dean and Barroso: "The tail at scale", CACM 2013): a read goes to one holder, and when it is not
//! answered within the time that most reads take, to a second one. The first answer counts.
//!
//! Where a gateway hedges, the first holder's answer that comes after the second's is not among the times: beside a brick
//! that is always slow the delay stays that of quick answers, and more than the rest of the percentage ask twice.

use super::shortest_queue::ShortestQueue;
use base::{BrickId, octaves};

/// Response times are known to an eighth.
const PARTS: usize = 8;
const BOXES: usize = octaves::boxes::<PARTS>();
/// When so many are counted, all counts are halved, so that what was is forgotten.
const COUNTED_MAX: u32 = 8192;

/// Who is asked first, and when and who second.
#[derive(Debug)]
pub struct Hedged {
    queues: ShortestQueue,
    percent: f64,
    counts: Vec<u32>,
    counted: u32,
    floor_ns: u64,
}

impl Hedged {
    /// Asks a second holder after the time in which `percent` of the reads are answered (the paper has 95), and not
    /// before `floor_ns` or a few are known.
    pub fn new(percent: f64, floor_ns: u64) -> Hedged {
        let percent = percent.clamp(0.0, 100.0);
        Hedged { queues: ShortestQueue::default(), percent, counts: vec![0; BOXES], counted: 0, floor_ns }
    }

    /// The holder to ask among `candidates` `(slot, brick)`: the one with the shortest queue. For the second question
    /// give the others.
    pub fn choose(&self, address: u64, candidates: &[(u8, BrickId)]) -> Option<u8> {
        self.queues.choose(address, candidates)
    }

    /// How long after the first question the second one goes out, in nanoseconds; `None` until enough is known.
    pub fn delay_ns(&self) -> Option<u64> {
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

    /// A read was answered, the first time, after `response_ns`.
    pub fn answered(&mut self, response_ns: u64) {
        self.counts[octaves::index::<PARTS>(response_ns)] += 1;
        self.counted += 1;
        if self.counted >= COUNTED_MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.counted = self.counts.iter().sum();
        }
    }

    /// A question went to `brick`.
    pub fn begin(&mut self, brick: BrickId) {
        self.queues.begin(brick);
    }

    /// It was answered, or is of no interest any more.
    pub fn end(&mut self, brick: BrickId) {
        self.queues.end(brick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_is_the_percentile_of_what_was_seen_lately() {
        let mut policy = Hedged::new(95.0, 1000);
        assert_eq!(policy.delay_ns(), None);
        (1..=1000).for_each(|millionth| policy.answered(millionth * 10_000));
        let delay_ns = policy.delay_ns().expect("enough is known");
        assert!((9_500_000..10_900_000).contains(&delay_ns), "{delay_ns}");
        (0..16_000).for_each(|_| policy.answered(50));
        assert_eq!(policy.delay_ns(), Some(1000), "what is long ago is forgotten, and the floor holds");
    }
}
