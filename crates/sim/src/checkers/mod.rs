//! What must always hold (DESIGN, section 4), one file a promise.
//!
//! Some watch packets as they pass ([`once`], [`evicted`], [`bounded`]); some look at what clients saw
//! ([`bytes`], [`atomic`], [`linearizable`] or [`regular`], as a volume's protocol promises, [`live`]); some at what is left at the end ([`durable`], [`redundancy`], [`snapshot`]).

pub mod atomic;
pub mod bounded;
pub mod bytes;
pub mod durable;
pub mod evicted;
pub(crate) mod failover;
pub mod linearizable;
pub mod live;
pub mod once;
pub mod redundancy;
pub mod regular;
pub mod snapshot;

use crate::history::Operation;
use wire::Protocol;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    pub checker: &'static str,
    pub what: String,
}

impl Violation {
    /// A violation that `checker` found.
    pub fn new(checker: &'static str, what: impl Into<String>) -> Violation {
        Violation { checker, what: what.into() }
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
