//! A rate: a bucket of bytes that fills with time. Whoever finds it not empty may take more than is in it, and the next
//! one waits until that is paid.

use base::Time;
use core::time::Duration;

/// How much may be saved up.
const BURST: Duration = Duration::from_millis(100);
const SECOND_NS: i128 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Bucket {
    bytes_per_second: u64,
    bytes: i128,
    filled: Time,
}

impl Bucket {
    /// Full, at `now`.
    pub(super) fn new(bytes_per_second: u64, now: Time) -> Bucket {
        let mut bucket = Bucket { bytes_per_second: 1, bytes: 0, filled: now };
        bucket.set_rate(bytes_per_second);
        bucket.bytes = bucket.burst();
        bucket
    }

    /// From now on it fills at this rate; at least one byte a second. What has still to be paid takes as long as before.
    pub(super) fn set_rate(&mut self, bytes_per_second: u64) {
        let before = i128::from(core::mem::replace(&mut self.bytes_per_second, bytes_per_second.max(1)));
        if self.bytes < 0 {
            self.bytes = self.bytes * i128::from(self.bytes_per_second) / before;
        }
        self.bytes = self.bytes.min(self.burst());
    }

    fn burst(&self) -> i128 {
        (i128::from(self.bytes_per_second) * BURST.as_nanos() as i128 / SECOND_NS).max(1)
    }

    /// Whether something may be taken.
    pub(super) fn is_open(&mut self, now: Time) -> bool {
        let passed = now.0.saturating_sub(self.filled.0);
        let gained = i128::from(self.bytes_per_second) * i128::from(passed) / SECOND_NS;
        if gained > 0 {
            self.bytes = (self.bytes + gained).min(self.burst());
            self.filled = now;
        }
        self.bytes > 0
    }

    pub(super) fn take(&mut self, bytes: u64) {
        self.bytes -= i128::from(bytes);
    }

    /// When something may be taken again.
    pub(super) fn opens_at(&self) -> Time {
        let missing = (1 - self.bytes).max(0) as u128;
        let wait_ns = (missing * SECOND_NS as u128).div_ceil(u128::from(self.bytes_per_second));
        self.filled + Duration::from_nanos(wait_ns.min(u128::from(u32::MAX) * 1000) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_has_to_be_paid() {
        let second = Duration::from_secs(1);
        let start = Time(5_000_000_000);
        let mut bucket = Bucket::new(1000, start);
        assert!(bucket.is_open(start));
        bucket.take(2100);
        assert!(!bucket.is_open(start + second));
        assert!(bucket.opens_at() > start + second);
        let opens = bucket.opens_at();
        assert!(opens <= start + second * 3 && bucket.is_open(opens), "{opens:?}");
        assert!(bucket.is_open(start + second * 60));
        bucket.take(150);
        assert!(!bucket.is_open(start + second * 60), "no more is saved up than a burst");
        bucket.take(1_000_000);
        let opens = bucket.opens_at();
        bucket.set_rate(1);
        assert!(bucket.opens_at() <= opens + second * 2, "a debt is not paid at a rate that comes later");
    }
}
