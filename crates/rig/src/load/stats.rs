//! What load measures about itself.

use std::time::{Duration, Instant};

/// Counts, rates and pauses of one kind of operation.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    pub operations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The longest that one operation took.
    pub slowest: Duration,
    /// The longest time without any answer, between two answers.
    pub longest_pause: Duration,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Meter {
    /// An operation of `bytes` that began at `start` was answered now.
    pub fn record(&mut self, start: Instant, bytes: u64) {
        let now = Instant::now();
        self.operations += 1;
        self.bytes += bytes;
        self.slowest = self.slowest.max(now - start);
        // A pause counts only while something was asked and unanswered.
        if let Some(last) = self.last {
            self.longest_pause = self.longest_pause.max(now - last.max(start));
        }
        self.first.get_or_insert(start);
        self.last = Some(now);
    }

    /// Bytes per second from the first question to the last answer.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.seconds()
    }

    /// Operations per second from the first question to the last answer.
    pub fn operations_per_s(&self) -> f64 {
        self.operations as f64 / self.seconds()
    }

    fn seconds(&self) -> f64 {
        match (self.first, self.last) {
            (Some(first), Some(last)) => (last - first).as_secs_f64().max(1e-6),
            _ => f64::INFINITY,
        }
    }
}
