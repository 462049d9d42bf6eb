//! What must always hold (DESIGN, section 4), one file a promise.
//!
//! Some watch packets as they pass ([`once`], [`progress`], [`evicted`], [`bounded`], [`sizes`], [`repeats`], [`stand_in`]); some look at what clients saw
//! ([`bytes`], [`atomic`], [`linearizable`] or [`regular`], as a volume's protocol promises, [`live`]); some at what is left at the end ([`durable`], [`redundancy`], [`snapshot`]).

pub mod atomic;
pub mod bounded;
pub mod bytes;
pub mod durable;
pub mod evicted;
pub(crate) mod failover;
pub mod linearizable;
pub mod live;
pub(crate) mod loans;
pub mod once;
pub mod progress;
pub mod redundancy;
pub mod regular;
pub(crate) mod repeats;
pub(crate) mod sizes;
pub mod snapshot;
pub mod stand_in;

use crate::history::Operation;
use wire::Protocol;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    pub checker: &'static str,
    pub what: String,
    /// The line of the program that found it. Two violations are of one kind if checker and line are the same.
    #[serde(skip)]
    place: String,
}

impl Violation {
    /// A violation that `checker` found.
    #[track_caller]
    pub fn new(checker: &'static str, what: impl Into<String>) -> Violation {
        let caller = core::panic::Location::caller();
        Violation::at(checker, what, &format!("{}:{}", caller.file(), caller.line()))
    }

    /// A violation that was found at this line of the program.
    pub fn at(checker: &'static str, what: impl Into<String>, place: &str) -> Violation {
        Violation { checker, what: what.into(), place: place.to_owned() }
    }

    /// The same, with more that is known of it.
    #[must_use]
    pub fn with(self, more: &[String]) -> Violation {
        let what = more.iter().fold(self.what, |what, line| format!("{what}\n  {line}"));
        Violation { what, ..self }
    }

    /// Whether the other one breaks the same promise in the same way, be it elsewhere.
    pub fn is_like(&self, other: &Violation) -> bool {
        self.checker == other.checker && self.place == other.place
    }
}

/// Whether a register's operations were in an order that a volume of this protocol promises.
pub(crate) fn check_order(protocol: Protocol, operations: &[Operation]) -> Result<(), Violation> {
    match protocol.atomicity.is_linearizable() {
        true => linearizable::check(operations),
        false => regular::check(operations),
    }
}

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}", self.checker, self.what)
    }
}
