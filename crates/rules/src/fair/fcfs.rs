//! First come, first served, whatever the stream.

use super::{Discipline, Entry, Ticket, Unserved};
use base::Time;
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub struct Fcfs {
    waiting: BTreeSet<Ticket>,
}

impl Discipline for Fcfs {
    fn push(&mut self, _: Time, entry: Entry) {
        self.waiting.insert(entry.ticket);
    }

    fn pop(&mut self, _: Time) -> Option<Ticket> {
        self.waiting.pop_first()
    }

    fn remove(&mut self, _: Time, entry: Entry, _: Unserved) {
        self.waiting.remove(&entry.ticket);
    }
}
