//! What a request met at this brick so far, for its answer.

use base::Time;
use core::time::Duration;
use wire::Wait;

/// When a request came, and for how much of its time since then the disk worked for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stay {
    since: Time,
    disk: Duration,
    /// When it was asked for first, if nobody of its stream waited then, and its stream is to be served within some time.
    timed: Option<Time>,
}

impl Stay {
    /// It comes now.
    pub fn from(now: Time) -> Stay {
        Stay { since: now, disk: Duration::ZERO, timed: None }
    }

    /// The disk worked for it.
    pub fn at_disk(&mut self, took: Duration) {
        self.disk += took;
    }

    /// Its time counts for its stream's target.
    pub fn count(&mut self) {
        self.timed = Some(self.since);
    }

    /// What waited is asked for again: its time counts from the first time on.
    pub fn repeats(&mut self, before: &Stay) {
        self.timed = before.timed;
    }

    /// It was answered: an answer that is said again counts no more.
    pub fn answered(&mut self) {
        self.timed = None;
    }

    /// When it was asked for first, where its time counts and the disk worked for it.
    pub fn timed(&self) -> Option<Time> {
        self.timed.filter(|_| self.disk > Duration::ZERO)
    }

    /// What its answer tells: all time that the disk did not take is a wait, be it for its turn or for the decision of an earlier
    /// write.
    pub fn wait(&self, now: Time) -> Wait {
        let turn = now.since(self.since).saturating_sub(self.disk);
        Wait { turn_us: micros(turn), disk_us: micros(self.disk), queued: 0 }
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_again_counts_from_the_first_time_on() {
        let mut first = Stay::from(Time(5));
        first.count();
        let mut again = Stay::from(Time(900));
        again.repeats(&first);
        assert_eq!(again.timed(), None, "the disk did nothing for it");
        again.at_disk(Duration::from_micros(1));
        assert_eq!(again.timed(), Some(Time(5)));
        again.answered();
        assert_eq!(again.timed(), None);
    }
}
