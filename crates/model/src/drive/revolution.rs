//! The platter as a clock. An angle is a part of a turn in 2^-64, so that whole turns fall off by overflow and the angle
//! at any moment is one multiplication: nothing is added up from access to access, and nothing drifts.

use base::Time;

/// A head that comes to a sector this late still reads it: moments are rounded to nanoseconds, and an access that
/// follows on the one before must not lose a turn to the rounding. A sector takes ten thousand times as long.
const ROUNDING_NS: u64 = 2;

/// How fast the platter turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Revolution {
    /// One turn, in nanoseconds and 2^-16 of them.
    period_q16: u64,
    period_ns: u64,
    /// 2^64 over the nanoseconds of a turn.
    turn_per_ns: u64,
}

impl Revolution {
    /// A turn of this many nanoseconds, which are finite and positive.
    pub(super) fn new(period_ns: f64) -> Revolution {
        let period_q16 = (period_ns * 65_536.0).round() as u64;
        assert!(period_q16 > 1 << 16, "a turn takes more than a nanosecond");
        let turn_per_ns = (1u128 << 80) / u128::from(period_q16);
        Revolution { period_q16, period_ns: period_q16 >> 16, turn_per_ns: turn_per_ns as u64 }
    }

    /// One turn, in whole nanoseconds.
    pub(super) fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// One turn, as exactly as it is known.
    pub(super) fn exact_ns(&self) -> f64 {
        self.period_q16 as f64 / 65_536.0
    }

    /// How long the platter takes for a part of a turn.
    pub(super) fn turn_ns(&self, turn: u64) -> u64 {
        ((u128::from(turn) * u128::from(self.period_q16)) >> 80) as u64
    }

    /// How long `sectors` of a track of `sectors_per_track` take to pass.
    pub(super) fn sectors_ns(&self, sectors: u32, sectors_per_track: u32) -> u64 {
        (u64::from(sectors) * self.period_q16 / u64::from(sectors_per_track)) >> 16
    }

    /// Where in its turn the platter is, in nanoseconds after its origin.
    pub(super) fn angle_ns(&self, now: Time) -> u64 {
        self.turn_ns(now.0.wrapping_mul(self.turn_per_ns))
    }

    /// How long a head that is there at `now` waits until `angle_ns` comes by.
    pub(super) fn wait_ns(&self, now: Time, angle_ns: u64) -> u64 {
        let now_ns = self.angle_ns(now);
        let target_ns = angle_ns + ROUNDING_NS;
        let ahead_ns =
            if target_ns >= now_ns { target_ns - now_ns } else { target_ns + self.period_ns - now_ns };
        let ahead_ns = if ahead_ns > self.period_ns { ahead_ns - self.period_ns } else { ahead_ns };
        ahead_ns.saturating_sub(ROUNDING_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against plain arithmetic in picoseconds: no drift in a month of turns.
        #[test]
        fn the_angle_is_the_remainder_of_time(rpm in 3_600u64..20_000, at_ns in 0u64..2_600_000_000_000_000) {
            let period_ns = 60e9 / rpm as f64;
            let turn = Revolution::new(period_ns);
            let exact_ns = (u128::from(at_ns) * 1_000 * u128::from(rpm)) % 60_000_000_000_000 / u128::from(rpm) / 1_000;
            let apart_ns = turn.angle_ns(Time(at_ns)).abs_diff(exact_ns as u64);
            // The period is rounded by less than 2^-17 ns, in up to 2^28 turns.
            prop_assert!(apart_ns.min(turn.period_ns().abs_diff(apart_ns)) <= 7_000, "{apart_ns}");
        }

        /// Whoever waits as long as told finds the sector under the head.
        #[test]
        fn a_wait_ends_at_the_angle(at_ns in 0u64..1_000_000_000_000, angle_ns in 0u64..5_985_000) {
            let turn = Revolution::new(60e9 / 10_025.0);
            let wait_ns = turn.wait_ns(Time(at_ns), angle_ns);
            prop_assert!(wait_ns <= turn.period_ns());
            let there_ns = turn.angle_ns(Time(at_ns + wait_ns));
            let apart_ns = there_ns.abs_diff(angle_ns);
            prop_assert!(apart_ns.min((turn.period_ns() + 1).abs_diff(apart_ns)) <= ROUNDING_NS + 1, "{apart_ns}");
        }
    }
}
