//! Whose turn it is where one question is outstanding at a time.

use base::Time;

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// The next question may be asked at once.
    Ready,
    /// A question is outstanding.
    Waiting,
    /// The next question may be asked from then on: the last one was answered with a refusal.
    After(Time),
}

impl Turn {
    pub(super) fn is_ready(self, now: Time) -> bool {
        match self {
            Turn::Ready => true,
            Turn::Waiting => false,
            Turn::After(due) => due <= now,
        }
    }

    /// When to ask again what was refused.
    pub(super) fn due(self) -> Option<Time> {
        match self {
            Turn::After(due) => Some(due),
            Turn::Ready | Turn::Waiting => None,
        }
    }
}
