//! The time of the cluster, as the directory keeps it.
//!
//! No wall clock has a part in it, since stamps need an order and no date. The store has what time it was a few minutes ago. A
//! directory that starts goes on from there, and hears within a heartbeat from gateways and bricks how much later it has become
//! meanwhile. Where nobody has counted on meanwhile, it has become no later.

use super::records::TimeRecord;
use base::{ClusterClock, ClusterTime, Time};
use core::time::Duration;

/// Between two notes in the store: what is forgotten where the whole cluster stops at once. Stamps that were drawn since are then ahead of
/// the time, by less than [`ClusterClock::AHEAD`].
const NOTED_EVERY: Duration = Duration::from_secs(600);
/// By so much gateways and bricks may take the time forward before it has been counted as much: the longest outage, or pause, of a
/// directory while others go on.
const OUTAGE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The cluster's time, and how far others may still take it.
#[derive(Debug)]
pub(super) struct Timekeeper {
    clock: ClusterClock,
    /// When this directory started, and what was noted then.
    started: Time,
    noted: TimeRecord,
    /// By how many ticks others have taken the time forward since.
    taken_forward: u64,
    /// When the next note is due.
    next_note: Time,
}

impl Timekeeper {
    /// Goes on from what was noted.
    pub(super) fn new(now: Time, noted: TimeRecord) -> Timekeeper {
        let clock = ClusterClock::new(now, noted.time);
        Timekeeper { clock, started: now, noted, taken_forward: 0, next_note: now }
    }

    pub(super) fn time(&self, now: Time) -> ClusterTime {
        self.clock.time(now)
    }

    /// A gateway or a brick says what time it believes it is. All of them together take the time forward by a month, and as much again as
    /// directories count by themselves: one that lies makes the cluster's time run at twice its rate, and 146 years are left.
    pub(super) fn hear(&mut self, now: Time, told: ClusterTime) {
        let record = self.record(now);
        let allowed = ClusterTime::ticks(OUTAGE_MAX) + record.counted;
        let ahead = told.0.saturating_sub(record.time.0);
        let step = ahead.min(allowed.saturating_sub(record.taken_forward));
        self.taken_forward += step;
        self.clock.hear(now, ClusterTime(record.time.0 + step));
    }

    fn record(&self, now: Time) -> TimeRecord {
        TimeRecord {
            time: self.time(now),
            counted: self.noted.counted + ClusterTime::ticks(now.since(self.started)),
            taken_forward: self.noted.taken_forward + self.taken_forward,
        }
    }

    /// What is to be noted in the store now, if that is due.
    pub(super) fn take_note(&mut self, now: Time) -> Option<TimeRecord> {
        if now < self.next_note {
            return None;
        }
        self.next_note = now + NOTED_EVERY;
        Some(self.record(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const DAY: Duration = Duration::from_secs(24 * 3600);
    const TODAY: Time = Time(1_796_000_000_000_000_000);

    fn noted() -> TimeRecord {
        TimeRecord::begins_at(ClusterTime::FIRST + 400 * DAY)
    }

    #[test]
    fn a_restart_goes_on_from_the_note_whatever_the_wall_clock_says() {
        for wall in [Time(0), TODAY, TODAY + 80 * 365 * DAY] {
            let keeper = Timekeeper::new(wall, noted());
            assert_eq!(keeper.time(wall), noted().time);
            assert_eq!(keeper.time(wall + HOUR), noted().time + HOUR);
        }
    }

    /// Whoever lies gains a month once, and then a day a day, over any number of restarts.
    #[test]
    fn others_take_the_time_forward_by_what_an_outage_can_be() {
        let mut keeper = Timekeeper::new(TODAY, noted());
        keeper.hear(TODAY, noted().time + 2 * DAY);
        assert_eq!(keeper.time(TODAY), noted().time + 2 * DAY);
        for day in 0..100 {
            let now = TODAY + day * DAY;
            keeper.hear(now, ClusterTime::LAST);
            keeper = Timekeeper::new(now, keeper.record(now));
            keeper.hear(now, ClusterTime::LAST);
            keeper.hear(now + DAY, ClusterTime::FIRST);
            let counted = keeper.record(now + DAY);
            keeper = Timekeeper::new(now + DAY, counted);
        }
        let gained = keeper.time(TODAY + 100 * DAY).since(noted().time);
        assert!(gained > 100 * DAY && gained <= OUTAGE_MAX + 201 * DAY, "{gained:?}");
    }

    #[test]
    fn it_is_noted_at_once_and_every_few_minutes() {
        let mut keeper = Timekeeper::new(TODAY, TimeRecord::begins_at(ClusterTime::FIRST));
        assert_eq!(keeper.take_note(TODAY), Some(TimeRecord::begins_at(ClusterTime::FIRST)));
        assert_eq!(keeper.take_note(TODAY + HOUR / 60), None);
        let later = keeper.take_note(TODAY + HOUR).expect("an hour later");
        assert_eq!((later.time, later.counted), (ClusterTime::FIRST + HOUR, ClusterTime::ticks(HOUR)));
    }
}
