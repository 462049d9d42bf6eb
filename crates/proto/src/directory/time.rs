//! The time of the cluster, as the directory keeps it: for how long the cluster has been at work.
//!
//! No wall clock has a part in it, since stamps need an order and no date. The store has what time it was a few minutes ago. A
//! directory that starts goes on from there, and hears within a heartbeat from gateways and bricks how much later it has become
//! meanwhile; where all of them stood still, it has not.

use base::{ClusterClock, ClusterTime, Time};
use core::time::Duration;

/// Between two notes in the store: what is forgotten where the whole cluster stops at once. Stamps that were drawn since are then ahead of
/// the time, by less than [`ClusterClock::AHEAD`].
const NOTED_EVERY: Duration = Duration::from_secs(600);
/// By so much gateways and bricks may take the time forward at once: the longest outage, or pause, of a directory while others go on.
const OUTAGE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The cluster's time, and how far others may still take it.
#[derive(Debug)]
pub(super) struct Timekeeper {
    clock: ClusterClock,
    /// When this directory started.
    started: Time,
    /// By how much others have taken the time forward since.
    taken: Duration,
    /// When the next note is due.
    next_note: Time,
}

impl Timekeeper {
    /// Goes on from what was noted.
    pub(super) fn new(now: Time, noted: ClusterTime) -> Timekeeper {
        Timekeeper {
            clock: ClusterClock::new(now, noted),
            started: now,
            taken: Duration::ZERO,
            next_note: now,
        }
    }

    pub(super) fn time(&self, now: Time) -> ClusterTime {
        self.clock.time(now)
    }

    /// A gateway or a brick says what time it believes it is. All of them together take the time forward by no more than a month, and
    /// then by no more than what passes: one that lies makes the cluster's time run at twice its rate, and 146 years are left.
    pub(super) fn hear(&mut self, now: Time, told: ClusterTime) {
        let ahead = told.since(self.time(now));
        let allowed = (OUTAGE_MAX + now.since(self.started)).saturating_sub(self.taken);
        let step = ahead.min(allowed);
        self.taken += step;
        self.clock.hear(now, self.time(now) + step);
    }

    /// The time that is to be noted in the store now, if one is due.
    pub(super) fn to_note(&mut self, now: Time) -> Option<ClusterTime> {
        if now < self.next_note {
            return None;
        }
        self.next_note = now + NOTED_EVERY;
        Some(self.time(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const DAY: Duration = Duration::from_secs(24 * 3600);
    const TODAY: Time = Time(1_796_000_000_000_000_000);

    fn noted() -> ClusterTime {
        ClusterTime::FIRST + 400 * DAY
    }

    #[test]
    fn a_restart_goes_on_from_the_note_whatever_the_wall_clock_says() {
        for wall in [Time(0), TODAY, TODAY + 80 * 365 * DAY] {
            let keeper = Timekeeper::new(wall, noted());
            assert_eq!(keeper.time(wall), noted());
            assert_eq!(keeper.time(wall + HOUR), noted() + HOUR);
        }
    }

    #[test]
    fn others_take_the_time_forward_by_what_an_outage_can_be() {
        let mut keeper = Timekeeper::new(TODAY, noted());
        keeper.hear(TODAY, noted() + 2 * DAY);
        assert_eq!(keeper.time(TODAY), noted() + 2 * DAY);
        // Whoever lies gains a month once, and then a day a day.
        for day in 0..100 {
            keeper.hear(TODAY + day * DAY, ClusterTime::LAST);
        }
        let gained = keeper.time(TODAY + 99 * DAY).since(noted());
        assert!(gained <= OUTAGE_MAX + 2 * 99 * DAY, "{gained:?}");
    }

    #[test]
    fn it_is_noted_at_once_and_every_few_minutes() {
        let mut keeper = Timekeeper::new(TODAY, ClusterTime::FIRST);
        assert_eq!(keeper.to_note(TODAY), Some(ClusterTime::FIRST));
        assert_eq!(keeper.to_note(TODAY + HOUR / 60), None);
        assert_eq!(keeper.to_note(TODAY + HOUR), Some(ClusterTime::FIRST + HOUR));
    }
}
