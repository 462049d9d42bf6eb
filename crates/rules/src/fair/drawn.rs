//! Anyone of those that wait, as a seed draws: who relies on an order that nobody promised is found out by this.

use super::{Discipline, Entry, Ticket, Unserved};
use base::{Rng, Time};

#[derive(Debug)]
pub struct Drawn {
    rng: Rng,
    waiting: Vec<Ticket>,
}

impl Drawn {
    pub fn new(seed: u64) -> Drawn {
        Drawn { rng: Rng::with_seed(seed), waiting: Vec::new() }
    }
}

impl Discipline for Drawn {
    fn push(&mut self, _: Time, entry: Entry) {
        self.waiting.push(entry.ticket);
    }

    fn pop(&mut self, _: Time) -> Option<Ticket> {
        if self.waiting.is_empty() {
            return None;
        }
        // By 64 bits everywhere: a draw of `usize` is another one where that has 32.
        let at = self.rng.u64(0..self.waiting.len() as u64);
        Some(self.waiting.swap_remove(at as usize))
    }

    fn remove(&mut self, _: Time, entry: Entry, _: Unserved) {
        self.waiting.retain(|ticket| *ticket != entry.ticket);
    }
}
