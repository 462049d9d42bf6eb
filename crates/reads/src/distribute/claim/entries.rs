//! Where what waits lies: slots that are used again, so that arrivals allocate nothing in the steady state.

use super::{Attempt, Holders};
use base::{BrickId, Position, Time};
use core::ops::{Index, IndexMut};
use rules::heads::Ticket;

/// An access that has come and was neither served nor dropped.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) place: Place,
    pub(super) attempt: Attempt,
    /// `None` for work that is the disk's own.
    pub(super) holders: Option<Holders>,
    pub(super) position: Position,
    pub(super) item: T,
}

/// Where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Between two places, within a step.
    Nowhere,
    /// In the head's queue.
    Waiting(Ticket),
    /// Left until then to another brick, since it came, in the turn of so many. Whoever claims it once it was `passed` took up
    /// what the other had let pass.
    Deferred { since: Time, until: Time, passed: Time, to: BrickId, turn: u64 },
    /// The next to be issued.
    Chosen,
}

#[derive(Debug)]
pub(super) struct Entries<T> {
    slots: Vec<Option<Entry<T>>>,
    free: Vec<u32>,
}

impl<T> Default for Entries<T> {
    fn default() -> Entries<T> {
        Entries { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Entries<T> {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, entry: Entry<T>) -> u32 {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = Some(entry);
            return index;
        }
        let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 accesses wait for a disk");
        self.slots.push(Some(entry));
        index
    }

    pub(super) fn remove(&mut self, index: u32) -> Entry<T> {
        let entry = self.slots[index as usize].take().expect("the access is here");
        self.free.push(index);
        entry
    }

    pub(super) fn into_items(self) -> impl Iterator<Item = T> {
        self.slots.into_iter().flatten().map(|entry| entry.item)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Entry<T>)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| Some((index as u32, slot.as_ref()?)))
    }
}

impl<T> Index<u32> for Entries<T> {
    type Output = Entry<T>;
    fn index(&self, index: u32) -> &Entry<T> {
        self.slots[index as usize].as_ref().expect("the access is here")
    }
}

impl<T> IndexMut<u32> for Entries<T> {
    fn index_mut(&mut self, index: u32) -> &mut Entry<T> {
        self.slots[index as usize].as_mut().expect("the access is here")
    }
}
