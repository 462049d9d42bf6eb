//! The time of a cluster: what stamps of writes are drawn from, whatever the clocks of its machines say.
//!
//! The directory keeps it and tells it with each answer to a gateway or a brick; between two answers everybody counts on by a
//! clock of their own, of which only the rate matters. So machines whose clocks differ by hours draw stamps that
//! differ by milliseconds.

use crate::Time;
use core::fmt;
use core::time::Duration;

/// A moment of the cluster: a counter that a new cluster begins at [`ClusterTime::FIRST`], and that runs at the rate of time, in ticks of
/// 8.192 us.
///
/// A stamp has room for 2^50 ticks, which are 292 years. A gateway that writes more often than once a tick (122,000
/// times a second) runs ahead of the cluster's time, by as much as it writes more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClusterTime(pub u64);

impl ClusterTime {
    /// Binary digits of a tick's nanoseconds.
    const TICK_SHIFT: u32 = 13;
    /// Where a new cluster begins. Below it lies what is never a gateway's stamp: zero, and the numbers that bricks give
    /// their own writes.
    pub const FIRST: ClusterTime = ClusterTime(1 << 32);
    /// The last moment of which there are stamps.
    pub const LAST: ClusterTime = ClusterTime((1 << 50) - 1);
    /// Where the time stands still: a year before the last stamp, so that no peer can make a clock draw stamps that there are not.
    pub const END: ClusterTime = ClusterTime(ClusterTime::LAST.0 - (1 << 42));

    /// What builds before the cluster had a time drew stamps from: the wall clock, in units of 1.024 us. A cluster that they
    /// made goes on from there.
    pub fn of_earlier_builds(now: Time) -> ClusterTime {
        ClusterTime((now.0 >> 10) & ClusterTime::LAST.0).clamp(ClusterTime::FIRST, ClusterTime::END)
    }

    /// So many whole ticks.
    pub fn ticks(duration: Duration) -> u64 {
        u64::try_from(duration.as_nanos() >> ClusterTime::TICK_SHIFT).unwrap_or(u64::MAX)
    }

    /// How long after `earlier` this moment is; zero when it is not after it.
    pub fn since(self, earlier: ClusterTime) -> Duration {
        let ticks = self.0.saturating_sub(earlier.0).min(ClusterTime::LAST.0);
        Duration::from_nanos(ticks << ClusterTime::TICK_SHIFT)
    }

    /// Whether it is a moment that a cluster can have reached.
    pub fn is_valid(self) -> bool {
        (ClusterTime::FIRST..=ClusterTime::END).contains(&self)
    }
}

impl core::ops::Add<Duration> for ClusterTime {
    type Output = ClusterTime;
    fn add(self, duration: Duration) -> ClusterTime {
        ClusterTime(self.0.saturating_add(ClusterTime::ticks(duration)))
    }
}

impl fmt::Debug for ClusterTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tick {}", self.0)
    }
}

/// What a machine knows of the cluster's time: what it was told, and what its own clock counted since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterClock {
    told: ClusterTime,
    at: Time,
}

impl ClusterClock {
    /// By how much a stamp may be ahead of the cluster's time. Bricks refuse what is further ahead, so that no writer can take
    /// blocks, and through them other writers, to the end of all stamps. Machines that were told the time differ by milliseconds, and by ten
    /// minutes where all of them stopped at once and go on from their notes.
    pub const AHEAD: Duration = Duration::from_secs(3600);
    const MARGIN: Duration = Duration::from_secs(60);

    /// It is `time` where this machine's clock shows `now`.
    pub fn new(now: Time, time: ClusterTime) -> ClusterClock {
        ClusterClock { told: time, at: now }
    }

    /// The time of the cluster.
    pub fn time(&self, now: Time) -> ClusterTime {
        (self.told + now.since(self.at)).min(ClusterTime::END)
    }

    /// The latest time of a stamp that may be taken.
    pub fn limit(&self, now: Time) -> ClusterTime {
        self.time(now) + ClusterClock::AHEAD
    }

    /// How far a clock of stamps follows others: not quite to the limit, since bricks know the time by other clocks.
    pub fn follows_to(&self, now: Time) -> ClusterTime {
        self.time(now) + (ClusterClock::AHEAD - ClusterClock::MARGIN)
    }

    /// It is at least `time`: the cluster's time never goes back.
    pub fn hear(&mut self, now: Time, time: ClusterTime) {
        if time > self.time(now) {
            *self = ClusterClock::new(now, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn it_is_what_was_told_and_what_passed_since() {
        let noon = Time(1_796_000_000_000_000_000);
        let mut clock = ClusterClock::new(noon, ClusterTime::FIRST);
        assert_eq!(clock.time(noon + HOUR).since(ClusterTime::FIRST).as_secs(), 3600);
        clock.hear(noon + HOUR, ClusterTime::FIRST);
        assert!(clock.time(noon + HOUR) > ClusterTime::FIRST, "it never goes back");
        clock.hear(noon + HOUR, ClusterTime::FIRST + 5 * HOUR);
        assert_eq!(clock.time(noon + HOUR), ClusterTime::FIRST + 5 * HOUR);
    }

    #[test]
    fn centuries_fit_into_a_stamp() {
        let years = ClusterTime::LAST.since(ClusterTime::FIRST).as_secs() / (365 * 24 * 3600);
        assert_eq!(years, 292);
    }
}
