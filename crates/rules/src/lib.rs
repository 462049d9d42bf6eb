//! Pure rules that know no message and no machine.
//!
//! Reading order: [`layout`] (where blocks lie), [`heads`] (what a disk does next), [`fair`] (how streams share a disk), [`promises`] (the rules at which a
//! mistake would break a promise), [`counters`] (rare events, by name).

pub mod counters;
pub mod fair;
pub mod heads;
pub mod layout;
pub mod median;
#[cfg(feature = "planted")]
pub mod planted;
pub mod promises;

pub use counters::Counters;
