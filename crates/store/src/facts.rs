//! The small state that every checkpoint repeats: notes as far as no sheet says them, and which requests took effect.

use crate::completions::Completions;
use crate::notes::{Notes, Pairs};
use crate::record::Record;
use base::{Stamp, VolumeId};
use wire::disk::HORIZON_NOTE;
use wire::{Completion, Wire};

/// Notes and outcomes take at most one in so many bytes of the journal, each.
const JOURNAL_SHARE: usize = 20;
/// What an outcome takes of the journal, in bytes.
const COMPLETION_BYTES: usize = 32;
/// At most what the bound of 64 busy clients is.
const COMPLETIONS_MAX: usize = 64 * 4096;

#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) notes: Notes,
    completions: Completions,
}

impl Facts {
    /// None, beside a journal of so many bytes.
    pub(crate) fn new(journal_bytes: u64) -> Facts {
        let notes_bytes_max = journal_bytes as usize / JOURNAL_SHARE;
        let effects_max = (notes_bytes_max / COMPLETION_BYTES).min(COMPLETIONS_MAX);
        Facts { notes: Notes::new(notes_bytes_max), completions: Completions::new(effects_max) }
    }

    /// Sets or removes a note. The horizon only rises: what the store has forgotten since is in it, and whoever notes another one may
    /// not know of that.
    pub(crate) fn note(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        if key == HORIZON_NOTE && stamp_of(value.as_ref()) < stamp_of(self.notes.get(HORIZON_NOTE)) {
            return;
        }
        self.notes.set(key, value);
    }

    /// All notes.
    pub(crate) fn all_notes(&self) -> Pairs {
        self.with_horizon(self.notes.iter())
    }

    /// These notes; that of the horizon covers what was forgotten.
    fn with_horizon<'a>(&self, notes: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>) -> Pairs {
        let horizon = stamp_of(self.notes.get(HORIZON_NOTE)).max(self.completions.forgotten());
        let others = notes.filter(|(key, _)| *key != HORIZON_NOTE);
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

    /// All of it, with the volumes that are being given back; [`Notes::records`] follow.
    pub(crate) fn checkpoint(&self, discards: Vec<VolumeId>) -> Record {
        let notes = self.with_horizon(self.notes.loose());
        Record::Checkpoint { notes, completions: self.completions.iter().collect(), discards }
    }

    /// A bound of what that takes.
    pub(crate) fn checkpoint_bytes(&self) -> usize {
        self.completions.len() * COMPLETION_BYTES + self.notes.checkpoint_bytes() + 96
    }
}

fn stamp_of(value: Option<&Vec<u8>>) -> Stamp {
    value.and_then(|value| Stamp::from_bytes(value).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A catch-up may note a horizon that is below what the store itself has forgotten, and said in a checkpoint.
    #[test]
    fn the_horizon_only_rises() {
        let mut facts = Facts::new(64 << 20);
        let horizon = |stamp: u64| (HORIZON_NOTE.to_vec(), Stamp(stamp).to_bytes());
        facts.notes.reset(vec![horizon(9)]);
        let (key, value) = horizon(7);
        facts.note(key, Some(value));
        assert_eq!(facts.all_notes(), [horizon(9)]);
        let (key, value) = horizon(11);
        facts.note(key, Some(value));
        assert_eq!(facts.all_notes(), [horizon(11)]);
    }
}
