//! The shape of all protocol code: a value that takes an event and the time, and gives back effects.

use crate::Time;

/// How much of a machine's invariants to check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// What costs little: run after every step.
    Cheap,
    /// All of it: run on a sample of steps.
    Deep,
}

/// A state machine. It never reads a clock, draws a random number, opens a socket or touches a disk; the simulator
/// and the real host drive the very same value.
///
/// Effects impose no order on the driver: a machine that must answer only after a disk write answers when it gets
/// the event that says so. After any number of `step`s the driver calls `settle` once; it may then hand out effects.
pub trait Machine {
    /// All that can happen to it.
    type Event;
    /// All that it can ask for.
    type Effect;

    fn step(&mut self, now: Time, event: Self::Event, fx: &mut Vec<Self::Effect>);

    /// Ends a batch of events: group commit, one message for many.
    fn settle(&mut self, now: Time, fx: &mut Vec<Self::Effect>);

    /// Its deadline has come. A call before the deadline does nothing.
    fn wake(&mut self, now: Time, fx: &mut Vec<Self::Effect>);

    /// When to wake it, and why. Asked after every batch, so it costs O(log n) at most.
    fn deadline(&self) -> Option<(Time, &'static str)>;

    fn check(&self, _depth: Depth) {}
}

impl<M: Machine + ?Sized> Machine for Box<M> {
    type Event = M::Event;
    type Effect = M::Effect;

    fn step(&mut self, now: Time, event: Self::Event, fx: &mut Vec<Self::Effect>) {
        (**self).step(now, event, fx);
    }

    fn settle(&mut self, now: Time, fx: &mut Vec<Self::Effect>) {
        (**self).settle(now, fx);
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<Self::Effect>) {
        (**self).wake(now, fx);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        (**self).deadline()
    }

    fn check(&self, depth: Depth) {
        (**self).check(depth);
    }
}
