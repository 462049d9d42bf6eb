//! Requests brought into the order in which they were issued, within a window.

use crate::error::Place;
use crate::record::Record;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Records in the window in which traces are sorted whose formats do not keep the order of issue.
pub const WINDOW_RECORDS: usize = 1 << 16;

/// What to do with times that go backwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Refuse,
    /// Sort within a window; an error for what comes too late even for that.
    Sort {
        /// Records that the window holds.
        window: usize,
    },
    /// Raise them to the time before.
    Clamp,
}

/// A request, and where it was read.
#[derive(Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) record: Record,
    pub(crate) place: Place,
}

/// The earliest of a window of requests. Equal times leave as they came.
pub(crate) struct Window {
    /// Time of issue, number of arrival, and the slot that holds the request.
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    slots: Vec<Placed>,
    free: Vec<usize>,
    arrived: u64,
}

impl Window {
    pub(crate) fn new() -> Window {
        Window { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), arrived: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn push(&mut self, placed: Placed) {
        let slot = self.free.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(slot) {
            Some(place) => *place = placed,
            None => self.slots.push(placed),
        }
        self.heap.push(Reverse((placed.record.at_ns, self.arrived, slot)));
        self.arrived += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<Placed> {
        let Reverse((_, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        Some(self.slots[slot])
    }
}
