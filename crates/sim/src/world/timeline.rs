//! The time of the world, and what happens next.

use super::event::Event;
use crate::queue::EventQueue;
use base::Time;

/// What is to happen, in the order of time.
pub(crate) struct Timeline {
    now_ns: u64,
    queue: EventQueue<Event>,
}

impl Timeline {
    pub(super) fn new() -> Timeline {
        Timeline { now_ns: 0, queue: EventQueue::new() }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Schedules an event after `delay_ns`.
    pub(crate) fn later(&mut self, delay_ns: u64, event: Event) {
        self.at(self.now_ns + delay_ns, event);
    }

    pub(crate) fn at(&mut self, at_ns: u64, event: Event) {
        self.queue.push(Time(at_ns), event);
    }

    /// Goes on to the next event, or to `until_ns` if there is none before.
    pub(super) fn next(&mut self, until_ns: u64) -> Option<Event> {
        match self.queue.pop_due(Time(until_ns)) {
            Some((at, event)) => {
                self.now_ns = at.0;
                Some(event)
            }
            None => {
                self.now_ns = self.now_ns.max(until_ns);
                None
            }
        }
    }
}
