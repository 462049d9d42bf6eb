//! A node's clock: it starts where it likes and runs a little too fast or too slow, and never backwards.

use base::Time;
use core::time::Duration;

/// Turns the world's time into the node's, and back.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started_ns: u64,
    origin: Time,
    rate_ppm: i32,
}

const MILLION: i128 = 1_000_000;

impl Clock {
    /// A clock that shows `origin` at the world's time `started_ns` and gains `rate_ppm` nanoseconds a millisecond
    /// (parts per million; above -1000000).
    pub fn new(started_ns: u64, origin: Time, rate_ppm: i32) -> Clock {
        assert!(rate_ppm > -1_000_000, "a clock that stands still");
        Clock { started_ns, origin, rate_ppm }
    }

    /// The same clock after it stood from `then_ns` to `now_ns`.
    #[must_use]
    pub fn after_standing(&self, then_ns: u64, now_ns: u64) -> Clock {
        Clock::new(now_ns, self.local(then_ns), self.rate_ppm)
    }

    /// The same clock after it went ahead by `span` at `now_ns`.
    #[must_use]
    pub fn ahead(&self, now_ns: u64, span: Duration) -> Clock {
        Clock::new(now_ns, self.local(now_ns) + span, self.rate_ppm)
    }

    /// What it shows at `world_ns`.
    pub fn local(&self, world_ns: u64) -> Time {
        let passed = i128::from(world_ns.saturating_sub(self.started_ns));
        let shown = passed * (MILLION + i128::from(self.rate_ppm)) / MILLION;
        Time(self.origin.0.saturating_add(u64::try_from(shown).unwrap_or(u64::MAX)))
    }

    /// The first moment of the world at which it shows `local` or later.
    pub fn world(&self, local: Time) -> u64 {
        let shown = i128::from(local.0.saturating_sub(self.origin.0));
        let rate = MILLION + i128::from(self.rate_ppm);
        let passed = (shown * MILLION + rate - 1) / rate;
        self.started_ns.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_way_back_is_the_first_such_moment(
            start in 0u64..1 << 50, origin in 0u64..1 << 63, rate in -5000i32..=5000, ahead in 0u64..1 << 45,
        ) {
            let clock = Clock::new(start, Time(origin), rate);
            let local = Time(origin + ahead);
            let world = clock.world(local);
            prop_assert!(clock.local(world) >= local);
            prop_assert!(world == start || clock.local(world - 1) < local);
        }
    }
}
