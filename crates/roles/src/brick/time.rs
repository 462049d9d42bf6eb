//! What a brick knows of the cluster's time: what the directory told it, in this run or, by a note on its first disk, in one before.
//!
//! So a brick that starts while the directory is away still knows which stamps are out of the question, and a cluster that starts as a whole
//! after the directory was away for days goes on from the time that its bricks noted.

use base::{ClusterClock, ClusterTime, Time};
use core::time::Duration;
use wire::Wire;

/// Between two notes: what is forgotten of the time by a restart.
const NOTED_EVERY: Duration = Duration::from_secs(600);
const TIME_KEY: &[u8] = b"t";

#[derive(Debug)]
pub(super) struct BrickTime {
    /// None before it was told for the first time in its life.
    clock: Option<ClusterClock>,
    next_note: Time,
}

impl BrickTime {
    /// What the notes of the first disk say.
    pub(super) fn recover(notes: &[(Vec<u8>, Vec<u8>)], now: Time) -> BrickTime {
        let noted = notes.iter().find(|(key, _)| key == TIME_KEY);
        let time = noted.and_then(|(_, value)| ClusterTime::from_bytes(value).ok());
        let clock = time.filter(|time| time.is_valid()).map(|time| ClusterClock::new(now, time));
        BrickTime { clock, next_note: now }
    }

    /// What time it is; zero where that was never told.
    pub(super) fn time(&self, now: Time) -> ClusterTime {
        self.clock.as_ref().map(|clock| clock.time(now)).unwrap_or_default()
    }

    /// The directory said what time it is, if it knows.
    pub(super) fn hear(&mut self, now: Time, time: ClusterTime) {
        if time.is_valid() {
            self.clock.get_or_insert(ClusterClock::new(now, time)).hear(now, time);
        }
    }

    /// The latest time of a stamp that may be taken: what is further ahead would take the block, and whoever writes it next, out of the
    /// cluster's time. A brick that was never told the time takes any.
    pub(super) fn stamps_until(&self, now: Time) -> ClusterTime {
        self.clock.as_ref().map_or(ClusterTime::LAST, |clock| clock.limit(now))
    }

    /// The note that is to be written now, if one is due.
    pub(super) fn take_note(&mut self, now: Time) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let clock = self.clock.as_ref().filter(|_| now >= self.next_note)?;
        self.next_note = now + NOTED_EVERY;
        Some((TIME_KEY.to_vec(), Some(clock.time(now).to_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_restart_goes_on_from_the_note_and_refuses_what_is_far_ahead() {
        let now = Time(1_796_000_000_000_000_000);
        let mut time = BrickTime::recover(&[], now);
        assert_eq!((time.take_note(now), time.stamps_until(now)), (None, ClusterTime::LAST));
        time.hear(now, ClusterTime::FIRST);
        let (key, value) = time.take_note(now).expect("at once");
        assert_eq!(time.take_note(now + HOUR / 60), None);
        let later = now + 1000 * HOUR;
        let again = BrickTime::recover(&[(key, value.expect("a value"))], later);
        assert_eq!(again.time(later), ClusterTime::FIRST);
        assert_eq!(again.stamps_until(later), ClusterTime::FIRST + HOUR);
    }
}
