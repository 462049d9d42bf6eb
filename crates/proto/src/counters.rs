//! Counts of what happened in a machine: for metrics, and for the torture, which demands that rare states are reached.

use std::collections::BTreeMap;

/// Named counts. Names are fixed texts, so a count costs no allocation after its first.
#[derive(Clone, Debug, Default)]
pub struct Counters(BTreeMap<&'static str, u64>);

impl Counters {
    /// One more of `name`.
    pub fn count(&mut self, name: &'static str) {
        *self.0.entry(name).or_default() += 1;
    }

    /// All counts, by name.
    pub fn all(&self) -> &BTreeMap<&'static str, u64> {
        &self.0
    }

    /// The count of `name`.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
}
