//! What a request met at this brick so far, for its answer.

use base::Time;
use core::time::Duration;
use wire::Wait;

/// When a request came, and for how much of its time since then the disk worked for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stay {
    since: Time,
    disk: Duration,
    /// Whether nobody of its stream waited when it came, and its stream is to be served within some time.
    is_timed: bool,
}

impl Stay {
    /// It comes now.
    pub fn from(now: Time) -> Stay {
        Stay { since: now, disk: Duration::ZERO, is_timed: false }
    }

    /// The disk worked for it.
    pub fn at_disk(&mut self, took: Duration) {
        self.disk += took;
    }

    /// Its time counts for its stream's target.
    pub fn count(&mut self) {
        self.is_timed = true;
    }

    /// It was answered: an answer that is said again counts no more.
    pub fn answered(&mut self) {
        self.is_timed = false;
    }

    /// When it came, where its time counts and the disk worked for it.
    pub fn timed(&self) -> Option<Time> {
        (self.is_timed && self.disk > Duration::ZERO).then_some(self.since)
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
