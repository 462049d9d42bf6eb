//! Strangers that are refused: every one is counted, and few are logged, so that nobody from outside fills a disk with
//! log lines. All messages that a stranger can cause share one bound for the whole process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lines a minute: enough to see a misconfigured peer, which calls again after seconds.
const LINES_MAX: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);

static LIMITER: Mutex<Limiter> = Mutex::new(Limiter { minute: None, lines: 0, silent: 0, total: 0 });

/// Counts a refusal, and calls `log` unless this minute's lines are used up.
pub fn refused(log: impl FnOnce()) {
    // Bound to a name, so that the lock is free again before the line is written.
    let is_logged = limiter().admit(Instant::now());
    if is_logged {
        log();
    }
}

/// Logs how many refusals of the last minute were not, once that minute is over.
pub(crate) fn report() {
    let silent = limiter().silent_of_last_minute(Instant::now());
    if let Some(silent) = silent {
        tracing::info!("{silent} more were refused in the last minute");
    }
}

/// Refusals since the start.
pub(crate) fn total() -> u64 {
    limiter().total
}

fn limiter() -> MutexGuard<'static, Limiter> {
    LIMITER.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Limiter {
    /// When the minute began in which lines are counted.
    minute: Option<Instant>,
    lines: u32,
    /// Refusals of this minute that were not logged.
    silent: u64,
    total: u64,
}

impl Limiter {
    /// Whether this refusal is logged.
    fn admit(&mut self, now: Instant) -> bool {
        self.total += 1;
        if self.is_over(now) && self.silent == 0 {
            (self.minute, self.lines) = (Some(now), 0);
        }
        let is_logged = self.lines < LINES_MAX;
        self.lines += u32::from(is_logged);
        self.silent += u64::from(!is_logged);
        is_logged
    }

    fn silent_of_last_minute(&mut self, now: Instant) -> Option<u64> {
        let due = self.is_over(now) && self.silent > 0;
        due.then(|| {
            (self.minute, self.lines) = (None, 0);
            std::mem::take(&mut self.silent)
        })
    }

    fn is_over(&self, now: Instant) -> bool {
        self.minute.is_none_or(|minute| now.duration_since(minute) >= MINUTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_strangers_makes_few_lines_and_none_is_uncounted() {
        let (mut limiter, start) = (Limiter::default(), Instant::now());
        let mut lines = 0;
        // 10,774 refusals in 20 seconds: what one stranger did to a gateway.
        for number in 0..10_774u32 {
            lines += u32::from(limiter.admit(start + Duration::from_secs(20) * number / 10_774));
            assert_eq!(limiter.silent_of_last_minute(start + Duration::from_secs(20)), None);
        }
        assert_eq!(lines, LINES_MAX);
        let later = start + MINUTE;
        assert_eq!(limiter.silent_of_last_minute(later), Some(10_774 - u64::from(LINES_MAX)));
        assert_eq!(limiter.silent_of_last_minute(later), None, "told once");
        assert!(limiter.admit(later), "the next minute has lines of its own");
        assert_eq!(limiter.total, 10_775);
    }
}
