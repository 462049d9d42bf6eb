//! Shortest positioning time first (Seltzer, Chen and Ousterhout, "Disk scheduling revisited", 1990; Jacobson and
//! Wilkes, "Disk scheduling algorithms based on rotational position", 1991), over the whole queue and with exact times.
//!
//! A short queue is a dense array, and each of it is evaluated. A long one is kept by cylinder and searched outwards
//! from the arm: where the shortest seek alone takes longer than the best found, nothing better lies farther out. Both
//! choose the same.

use super::cylinders::Cylinders;
use super::slots::{List, NONE, Slots};
use base::{Mechanics, Position, Time};

/// From this length on a queue is kept by cylinder. Before an Atlas 10K both ways are equally fast with 28 queued.
const LONG: usize = 32;
/// From this length down it is an array again; far enough below [`LONG`] that a queue does not go to and fro.
const SHORT: usize = 16;

#[derive(Debug)]
pub(super) struct Sptf {
    // The queue while it is short, in no order; empty while it is long.
    short: Vec<Candidate>,
    // The queue while it is long; empty while it is short.
    long: Cylinders,
    is_long: bool,
    age: Option<Age>,
}

/// What an evaluation needs, side by side in memory.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    position: Position,
    sequence: u64,
    slot: u32,
}

/// How much waiting is too much.
#[derive(Debug)]
struct Age {
    later_max: u32,
    arrivals: List<1>,
}

/// Sooner is better, then who was pushed first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Best {
    positioning_ns: u64,
    sequence: u64,
    slot: u32,
}

const NOTHING: Best = Best { positioning_ns: u64::MAX, sequence: u64::MAX, slot: NONE };

impl Sptf {
    /// With `later_max`, the oldest goes first once so many came after it.
    pub(super) fn new(later_max: Option<u32>) -> Sptf {
        let age = later_max.map(|later_max| Age { later_max, arrivals: List::default() });
        Sptf { short: Vec::new(), long: Cylinders::default(), is_long: false, age }
    }

    pub(super) fn insert<T>(&mut self, slots: &mut Slots<T>, slot: u32) {
        if let Some(age) = &mut self.age {
            slots.append(&mut age.arrivals, slot);
        }
        if self.is_long {
            self.long.insert(slots, slot);
        } else {
            self.list(slots, slot);
            if self.short.len() >= LONG {
                self.lengthen(slots);
            }
        }
    }

    pub(super) fn remove<T>(&mut self, slots: &mut Slots<T>, slot: u32) {
        if let Some(age) = &mut self.age {
            slots.unlink(&mut age.arrivals, slot);
        }
        if !self.is_long {
            return self.unlist(slots, slot);
        }
        self.long.remove(slots, slot);
        if slots.len() <= SHORT + 1 {
            self.shorten(slots);
        }
    }

    /// The access whose first sector the head can reach soonest, and in how many nanoseconds.
    pub(super) fn soonest<T>(
        &self,
        slots: &Slots<T>,
        free: Time,
        mechanics: &impl Mechanics,
    ) -> Option<(u32, u64)> {
        if let Some(slot) = self.overdue(slots) {
            return Some((slot, mechanics.positioning_ns(free, slots.position(slot))));
        }
        let best = match self.is_long {
            true => self.search(slots, free, mechanics),
            false => self.scan(free, mechanics),
        };
        (best.slot != NONE).then_some((best.slot, best.positioning_ns))
    }

    fn overdue<T>(&self, slots: &Slots<T>) -> Option<u32> {
        let age = self.age.as_ref()?;
        let oldest = age.arrivals.first;
        (oldest != NONE && slots.pushed() - slots.sequence(oldest) > u64::from(age.later_max))
            .then_some(oldest)
    }

    fn scan(&self, free: Time, mechanics: &impl Mechanics) -> Best {
        let evaluate = |candidate: &Candidate| Best {
            positioning_ns: mechanics.positioning_ns(free, &candidate.position),
            sequence: candidate.sequence,
            slot: candidate.slot,
        };
        self.short.iter().map(evaluate).min().unwrap_or(NOTHING)
    }

    fn search<T>(&self, slots: &Slots<T>, free: Time, mechanics: &impl Mechanics) -> Best {
        let mut best = NOTHING;
        for (cylinder, distance) in self.long.outwards(mechanics.cylinder()) {
            let floor_ns = mechanics.seek_floor_ns(distance);
            if floor_ns > best.positioning_ns {
                break;
            }
            let mut slot = self.long.first(cylinder);
            // Once the floor is reached only an earlier push is better, and the list goes on to later ones.
            while slot != NONE && (best.positioning_ns > floor_ns || slots.sequence(slot) < best.sequence) {
                let positioning_ns = mechanics.positioning_ns(free, slots.position(slot));
                best = best.min(Best { positioning_ns, sequence: slots.sequence(slot), slot });
                slot = slots.next(slot);
            }
        }
        best
    }

    fn list<T>(&mut self, slots: &mut Slots<T>, slot: u32) {
        slots.set_index(slot, self.short.len());
        self.short.push(Candidate { position: *slots.position(slot), sequence: slots.sequence(slot), slot });
    }

    fn unlist<T>(&mut self, slots: &mut Slots<T>, slot: u32) {
        let index = slots.index(slot);
        self.short.swap_remove(index);
        if let Some(moved) = self.short.get(index) {
            slots.set_index(moved.slot, index);
        }
    }

    fn lengthen<T>(&mut self, slots: &mut Slots<T>) {
        self.is_long = true;
        // On a cylinder the order is that of arrival, which the array has lost.
        self.short.sort_unstable_by_key(|candidate| candidate.sequence);
        self.short.iter().for_each(|candidate| self.long.insert(slots, candidate.slot));
        self.short.clear();
    }

    fn shorten<T>(&mut self, slots: &mut Slots<T>) {
        self.is_long = false;
        while let Some(cylinder) = self.long.from(0) {
            let slot = self.long.first(cylinder);
            self.long.remove(slots, slot);
            self.list(slots, slot);
        }
    }
}
