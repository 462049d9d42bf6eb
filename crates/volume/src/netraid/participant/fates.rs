//! What a member tells of a write's fate: a settler asks for it, or the directory that makes a view. What a member does not
//! know to be prepared or committed it refuses for ever before it says so.

use super::context::{Asker, Context};
use super::disk::{Disk, Noting};
use super::outcomes::Outcomes;
use crate::netraid::atomicity::two_phase;
use crate::netraid::atomicity::two_phase::seals::{Note, Seals};
use crate::netraid::link;
use base::{Payload, Stamp};
use wire::disk::{Blocks, StoreError};
use wire::{Fate, Message, WriteId};

/// A fate that was found, for the making of a view.
#[derive(Debug)]
pub struct FoundFate {
    /// The question of the brick.
    pub job: u64,
    /// Which of its writes.
    pub index: usize,
    /// What became of the write here.
    pub fate: Fate,
}

/// What follows from what the blocks of a write show.
pub(super) enum Verdict {
    /// Its fate is known.
    Tell(Fate),
    /// It is not here, and is refused from now on.
    Seal,
    /// The disk has no time: whoever asks asks again.
    Later,
}

/// The fates that were asked for, and the writes that are refused.
#[derive(Debug)]
pub(super) struct Fates {
    seals: Seals,
    /// For the making of views.
    found: Vec<FoundFate>,
}

impl Fates {
    /// What the notes of a disk say.
    pub(super) fn recover(notes: &[(Vec<u8>, Vec<u8>)]) -> Fates {
        Fates { seals: Seals::recover(notes), found: Vec::new() }
    }

    /// Whether this very write was sealed.
    pub(super) fn is_sealed(&self, stamp: Stamp) -> bool {
        self.seals.has(stamp)
    }

    /// The stamp that a writer has to exceed, where the write is refused for ever.
    pub(super) fn refuses(&self, stamp: Stamp) -> Option<Stamp> {
        self.seals.refuses(stamp).then(|| stamp.max(self.seals.floor()))
    }

    /// A write was refused for being late.
    pub(super) fn note_late(&mut self, stamp: Stamp) {
        self.seals.note_late(stamp);
    }

    /// What the blocks of a write say of its fate.
    pub(super) fn verdict(
        &self,
        outcomes: &Outcomes,
        is_staged: bool,
        (write, width): (WriteId, u8),
        result: Result<Blocks, StoreError>,
    ) -> Verdict {
        let by_stamps = |blocks: &Blocks| match blocks.unreadable.is_empty() {
            true => two_phase::member::fate_by_stamps(&write, width, &blocks.stamps),
            false => Some(Fate::Unreadable),
        };
        let took_effect = result.as_ref().is_ok_and(|blocks| by_stamps(blocks) == Some(Fate::Committed));
        let fate = match result {
            _ if is_staged => Some(Fate::Prepared),
            // A member may have refused it while it caught up, and got the blocks since.
            _ if took_effect || outcomes.has_applied(write.stamp) => Some(Fate::Committed),
            _ if self.seals.has(write.stamp) => None,
            // It can say, but not now.
            Err(StoreError::Busy) => return Verdict::Later,
            Err(_) => Some(Fate::Unreadable),
            Ok(blocks) => by_stamps(&blocks),
        };
        // Of a record nothing follows from what is not remembered: it is of no request, and others rest on what is said of it.
        if fate == Some(Fate::Unreadable) && write.span.lba >= link::RECORDS {
            return Verdict::Tell(Fate::Unreadable);
        }
        // What the blocks show took effect. For the rest a seal may have been here, and be part of the floor by now.
        let fate = fate.filter(|fate| *fate != Fate::Unreadable || write.stamp > self.seals.floor());
        // Newer writes wiped its traces; but what took effect here lately is remembered.
        let is_known = outcomes.covers(write.stamp) || self.seals.was_late(write.stamp);
        match fate {
            Some(fate) if fate != Fate::Unreadable || !is_known => Verdict::Tell(fate),
            _ => Verdict::Seal,
        }
    }

    /// Refuses a write for ever: from when the note is durable.
    pub(super) fn seal(&mut self, stamp: Stamp) -> Note {
        self.seals.seal(stamp)
    }

    /// Puts a seal on stable storage for `asker`, and drops seals that are too many, but none from `bound` on.
    pub(super) fn note_seal(
        &mut self,
        cx: &mut Context<'_>,
        disk: &mut Disk,
        (note, asker): (Note, Asker),
        bound: Stamp,
    ) {
        disk.note(cx, note, Noting::Seal { asker });
        while let Some(notes) = self.seals.drop_oldest(bound) {
            for note in notes {
                disk.note(cx, note, Noting::SealDropped);
            }
        }
    }

    /// Tells a fate that is final.
    pub(super) fn tell(&mut self, cx: &mut Context<'_>, asker: Asker, fate: Fate) {
        match asker {
            Asker::Gateway(from, operation) | Asker::Looker(from, operation) => {
                cx.send(from, Message::QueryDone { operation, fate: Ok(fate) }, Payload::new());
            }
            Asker::View(job, index) => self.found.push(FoundFate { job, index, fate }),
        }
    }

    /// The fates found since the last call, for the making of views.
    pub(super) fn take(&mut self) -> Vec<FoundFate> {
        core::mem::take(&mut self.found)
    }
}
