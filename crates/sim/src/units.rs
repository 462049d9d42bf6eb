//! Spans of time in the world's unit, the nanosecond.

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;
