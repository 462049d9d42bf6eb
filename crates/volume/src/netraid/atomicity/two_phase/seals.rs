//! Writes refused for ever: an abort is final because a member that said "refused" never takes the write again.
//!
//! Seals are durable notes, and bounded: of those dropped a *floor* stays, and all stamps up to it are refused.

use base::Stamp;
use std::collections::BTreeSet;
use wire::Wire;

/// The most seals kept; stamps up to the latest seal dropped are refused altogether. So many fit into what the
/// smallest journal has for notes, with room to spare: a seal that finds none would hold up whoever asked for it.
const SEALS_MAX: usize = 256;
/// The most late writes remembered.
const LATE_MAX: usize = 4096;
const SEAL_PREFIX: u8 = b's';
const FLOOR_KEY: &[u8] = b"f";

/// A note to be put on stable storage; without a value it is removed.
pub type Note = (Vec<u8>, Option<Vec<u8>>);

/// The seals of a disk.
#[derive(Debug, Default)]
pub struct Seals {
    sealed: BTreeSet<Stamp>,
    /// Writes refused for being earlier than what is here: a settler that asks gets that sealed.
    late: BTreeSet<Stamp>,
    floor: Stamp,
}

impl Seals {
    /// What the notes of a disk say.
    pub fn recover(notes: &[(Vec<u8>, Vec<u8>)]) -> Seals {
        let floor = notes.iter().find(|(key, _)| key == FLOOR_KEY);
        Seals {
            sealed: notes.iter().filter_map(|(key, _)| seal_of(key)).collect(),
            late: BTreeSet::new(),
            floor: floor.and_then(|(_, value)| Stamp::from_bytes(value).ok()).unwrap_or_default(),
        }
    }

    /// Whether this very write has a seal.
    pub fn has(&self, stamp: Stamp) -> bool {
        self.sealed.contains(&stamp)
    }

    /// Whether the write is refused for ever.
    pub fn refuses(&self, stamp: Stamp) -> bool {
        stamp <= self.floor || self.has(stamp)
    }

    /// Stamps up to this are refused.
    pub fn floor(&self) -> Stamp {
        self.floor
    }

    /// Refuses a write for ever: from when the note is durable.
    pub fn seal(&mut self, stamp: Stamp) -> Note {
        self.sealed.insert(stamp);
        (seal_key(stamp), Some(Vec::new()))
    }

    /// Where there are too many seals, drops the oldest if it is earlier than `bound`, and raises the floor to it.
    pub fn drop_oldest(&mut self, bound: Stamp) -> Option<[Note; 2]> {
        let oldest = *self.sealed.first().filter(|oldest| **oldest < bound)?;
        if self.sealed.len() <= SEALS_MAX {
            return None;
        }
        self.sealed.pop_first();
        self.floor = self.floor.max(oldest);
        Some([(FLOOR_KEY.to_vec(), Some(self.floor.to_bytes())), (seal_key(oldest), None)])
    }

    /// A write was refused for being late.
    pub fn note_late(&mut self, stamp: Stamp) {
        self.late.insert(stamp);
        if self.late.len() > LATE_MAX {
            self.late.pop_first();
        }
    }

    /// Whether the write was refused for being late, as far as is remembered.
    pub fn was_late(&self, stamp: Stamp) -> bool {
        self.late.contains(&stamp)
    }
}

fn seal_key(stamp: Stamp) -> Vec<u8> {
    let mut key = vec![SEAL_PREFIX];
    stamp.append(&mut key);
    key
}

fn seal_of(key: &[u8]) -> Option<Stamp> {
    (key.first() == Some(&SEAL_PREFIX)).then(|| Stamp::from_bytes(&key[1..]).ok()).flatten()
}
