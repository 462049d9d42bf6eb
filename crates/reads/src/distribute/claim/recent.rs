//! Claims that came before their read: the read is squashed when it comes. The memory is a table that a claim finds its
//! only place in by a hash, and takes it from who was there: forgetting costs a second service, nothing else.

use super::{Attempt, ReadId};

#[derive(Debug)]
pub(super) struct Recent {
    // The attempt's number is one more, so that an empty place covers nothing.
    places: Vec<(ReadId, u16)>,
}

impl Recent {
    /// Room for `claims`, and a few more.
    pub(super) fn new(claims: usize) -> Recent {
        Recent { places: vec![(ReadId::default(), 0); claims.max(1).next_power_of_two()] }
    }

    pub(super) fn note(&mut self, attempt: Attempt) {
        let number = u16::from(attempt.number) + 1;
        let place = self.place(attempt.read);
        let (read, known) = &mut self.places[place];
        *known = if *read == attempt.read { number.max(*known) } else { number };
        *read = attempt.read;
    }

    /// Whether this attempt or a later one was claimed.
    pub(super) fn covers(&self, attempt: Attempt) -> bool {
        let (read, known) = self.places[self.place(attempt.read)];
        read == attempt.read && known > u16::from(attempt.number)
    }

    fn place(&self, read: ReadId) -> usize {
        hash(read) as usize & (self.places.len() - 1)
    }
}

/// Spreads reads over 32 bits.
fn hash(read: ReadId) -> u32 {
    let mixed = (read.asker.rotate_left(29) ^ read.sequence).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32
}
