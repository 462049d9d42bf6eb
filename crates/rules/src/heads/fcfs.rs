//! First come, first served.

use super::slots::{List, NONE, Slots};

/// The order of arrival.
#[derive(Debug, Default)]
pub(super) struct Fcfs {
    arrivals: List<0>,
}

impl Fcfs {
    pub(super) fn insert<T>(&mut self, slots: &mut Slots<T>, slot: u32) {
        slots.append(&mut self.arrivals, slot);
    }

    pub(super) fn remove<T>(&mut self, slots: &mut Slots<T>, slot: u32) {
        slots.unlink(&mut self.arrivals, slot);
    }

    pub(super) fn first(&self) -> Option<u32> {
        (self.arrivals.first != NONE).then_some(self.arrivals.first)
    }
}
