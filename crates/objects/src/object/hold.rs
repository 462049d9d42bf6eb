//! A version that the index holds for whoever puts or reads it, as long as that is renewed.

use super::objects::Step;
use base::{ObjectVersion, Time};
use core::time::Duration;
use wire::IndexRequest;

#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    version: ObjectVersion,
    /// For how long, from when it was asked for last.
    length: Duration,
    /// When to ask for it again.
    renew: Time,
}

impl Hold {
    pub(super) fn new(version: ObjectVersion, held_ns: u64, now: Time) -> Hold {
        let length = Duration::from_nanos(held_ns);
        Hold { version, length, renew: now + length / 3 }
    }

    pub(super) fn version(&self) -> ObjectVersion {
        self.version
    }

    pub(super) fn deadline(&self) -> Time {
        self.renew
    }

    /// Asks for it again, when it is time to.
    pub(super) fn wake(&mut self, step: &mut Step<'_>) {
        if self.renew <= step.now {
            self.renew = step.now + self.length / 3;
            step.ask(IndexRequest::Hold { versions: vec![self.version], only_open: false });
        }
    }
}
