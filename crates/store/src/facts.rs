//! The small state that every checkpoint repeats: notes, and which requests took effect.

use crate::completions::Completions;
use crate::record::Record;
use base::{Stamp, VolumeId};
use std::collections::BTreeMap;
use wire::disk::{HORIZON_NOTE, StoreError};
use wire::{Completion, Wire};

/// Notes and outcomes take at most one in so many bytes of the journal, each.
const JOURNAL_SHARE: usize = 20;
/// What an outcome takes of the journal, in bytes.
const COMPLETION_BYTES: usize = 32;
/// What a note takes beside key and value.
const NOTE_BYTES: usize = 8;
/// At most what the bound of 64 busy clients is.
const COMPLETIONS_MAX: usize = 64 * 4096;

#[derive(Debug)]
pub(crate) struct Facts {
    notes: BTreeMap<Vec<u8>, Vec<u8>>,
    notes_bytes: usize,
    notes_bytes_max: usize,
    completions: Completions,
}

impl Facts {
    /// None, beside a journal of so many bytes.
    pub(crate) fn new(journal_bytes: u64) -> Facts {
        let notes_bytes_max = journal_bytes as usize / JOURNAL_SHARE;
        let effects_max = (notes_bytes_max / COMPLETION_BYTES).min(COMPLETIONS_MAX);
        let (notes, notes_bytes) = (BTreeMap::new(), 0);
        Facts { notes, notes_bytes, notes_bytes_max, completions: Completions::new(effects_max) }
    }

    /// Whether there is room for a note; one that takes no more than what it replaces always has it.
    pub(crate) fn admit_note(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        let old = self.notes.get(key).map_or(0, |old| note_bytes(key, old));
        let new = value.map_or(0, |new| note_bytes(key, new));
        let is_full = new > old && self.notes_bytes - old + new > self.notes_bytes_max;
        if is_full { Err(StoreError::NoSpace) } else { Ok(()) }
    }

    /// Sets or removes a note. The horizon only rises: what the store has forgotten since is in it, and whoever notes another one may
    /// not know of that.
    pub(crate) fn note(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        if key == HORIZON_NOTE && stamp_of(value.as_ref()) < stamp_of(self.notes.get(HORIZON_NOTE)) {
            return;
        }
        self.notes_bytes -= self.notes.get(&key).map_or(0, |old| note_bytes(&key, old));
        match value {
            Some(value) => {
                self.notes_bytes += note_bytes(&key, &value);
                self.notes.insert(key, value);
            }
            None => drop(self.notes.remove(&key)),
        }
    }

    /// A checkpoint says which notes there are.
    pub(crate) fn reset_notes(&mut self, notes: Vec<(Vec<u8>, Vec<u8>)>) {
        self.notes = notes.into_iter().collect();
        self.notes_bytes = self.notes.iter().map(|(key, value)| note_bytes(key, value)).sum();
    }

    /// All notes; that of the horizon covers what was forgotten.
    pub(crate) fn notes(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let horizon = stamp_of(self.notes.get(HORIZON_NOTE)).max(self.completions.forgotten());
        let others = self.notes.iter().filter(|(key, _)| *key != HORIZON_NOTE);
        let others = others.map(|(key, value)| (key.clone(), value.clone()));
        let horizon = (horizon > Stamp::ZERO).then(|| (HORIZON_NOTE.to_vec(), horizon.to_bytes()));
        others.chain(horizon).collect()
    }

    pub(crate) fn completions_max(&self) -> usize {
        self.completions.max()
    }

    pub(crate) fn completions(&self) -> impl Iterator<Item = Completion> {
        self.completions.iter()
    }

    /// The latest of what took effect elsewhere: as much as would be remembered.
    pub(crate) fn latest(&self, mut completions: Vec<Completion>) -> Vec<Completion> {
        completions.sort_unstable_by_key(|completion| completion.stamp);
        completions.drain(..completions.len().saturating_sub(self.completions.max()));
        completions
    }

    pub(crate) fn remember(&mut self, completion: Completion) {
        self.completions.insert(completion);
    }

    /// All of it, with the volumes that are being given back.
    pub(crate) fn checkpoint(&self, discards: Vec<VolumeId>) -> Record {
        Record::Checkpoint { notes: self.notes(), completions: self.completions.iter().collect(), discards }
    }

    /// A bound of what that takes.
    pub(crate) fn checkpoint_bytes(&self) -> usize {
        self.completions.len() * COMPLETION_BYTES + self.notes_bytes + 96
    }
}

fn stamp_of(value: Option<&Vec<u8>>) -> Stamp {
    value.and_then(|value| Stamp::from_bytes(value).ok()).unwrap_or_default()
}

fn note_bytes(key: &[u8], value: &[u8]) -> usize {
    key.len() + value.len() + NOTE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A catch-up may note a horizon that is below what the store itself has forgotten, and said in a checkpoint.
    #[test]
    fn the_horizon_only_rises() {
        let mut facts = Facts::new(64 << 20);
        let horizon = |stamp: u64| (HORIZON_NOTE.to_vec(), Stamp(stamp).to_bytes());
        facts.reset_notes(vec![horizon(9)]);
        let (key, value) = horizon(7);
        facts.note(key, Some(value));
        assert_eq!(facts.notes(), [horizon(9)]);
        let (key, value) = horizon(11);
        facts.note(key, Some(value));
        assert_eq!(facts.notes(), [horizon(11)]);
    }
}
