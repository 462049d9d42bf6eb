//! The consistency check on reads (`read`): what was read is whole when those that keep stamps of it agree on them. Of one
//! unit the stamps must be the same at all who have a say; of a row the parity's stamps must name just the versions of the
//! data that was read. Where they differ a write is under way, and the reader asks again.

use crate::netraid::members::width_at;
use crate::netraid::outcome::Fetched;
use base::{Payload, Stamp};
use rules::layout::Geometry;
use std::collections::BTreeMap;
use wire::{Slots, Span};

/// What the members say that are to confirm a read.
#[derive(Default)]
pub(crate) struct Confirmed {
    stamps: BTreeMap<u8, Vec<Stamp>>,
    content: Option<(u8, Payload)>,
}

/// What the answers so far come to.
pub(crate) enum Check {
    /// Somebody has not answered yet.
    Waits,
    /// A write is under way.
    Differs,
    Whole(Fetched),
}

/// Data unit `index` in the rows at a span.
#[derive(Clone, Copy)]
pub(crate) struct UnitAt<'a> {
    pub(crate) geometry: &'a Geometry,
    pub(crate) span: Span,
    pub(crate) index: u8,
}

impl UnitAt<'_> {
    /// The unit's stamp of a block among the stamps that the member at `slot` keeps.
    fn stamp(self, slot: u8, stamps: &[Stamp], block: usize) -> Option<Stamp> {
        let width = usize::from(width_at(self.geometry, self.span.lba, slot));
        let entry = if width > 1 { usize::from(self.index) } else { 0 };
        stamps.get(block * width + entry).copied()
    }
}

impl Confirmed {
    /// The member at `slot` answered.
    pub(crate) fn add(&mut self, slot: u8, stamps: Vec<Stamp>) {
        self.stamps.insert(slot, stamps);
    }

    /// The member at `slot` gave the content.
    pub(crate) fn add_content(&mut self, slot: u8, content: Payload) {
        self.content = Some((slot, content));
    }

    /// All `witnesses` must have answered, and those with a say have the same stamps as the one that gave the content.
    pub(crate) fn check(&mut self, unit: UnitAt<'_>, witnesses: Slots, with_a_say: Slots) -> Check {
        let has_all = witnesses.iter().all(|slot| self.stamps.contains_key(&slot));
        let Some((from, content)) = self.content.as_ref().filter(|_| has_all) else {
            return Check::Waits;
        };
        let entry = |slot: u8, block: usize| unit.stamp(slot, &self.stamps[&slot], block);
        let is_same = (0..unit.span.count as usize).all(|block| {
            let here = entry(*from, block);
            here.is_some() && with_a_say.iter().all(|slot| entry(slot, block) == here)
        });
        if !is_same {
            return Check::Differs;
        }
        let content = content.clone();
        let stamps = self.stamps.remove(from).expect("a witness");
        Check::Whole(Fetched { content, stamps })
    }
}

/// The stamps of all data units of the rows at `span`, a vector a block, if all members agree on them. A member without
/// stamps has no say.
pub(crate) fn agreed_stamps<'a>(
    geometry: &Geometry,
    span: Span,
    members: impl Iterator<Item = (u8, &'a [Stamp])>,
) -> Option<Vec<Stamp>> {
    let (data, blocks) = (usize::from(geometry.layout().data()), span.count as usize);
    let mut vectors: Vec<Option<Stamp>> = vec![None; blocks * data];
    for (slot, stamps) in members.filter(|(_, stamps)| !stamps.is_empty()) {
        if stamps.len() != blocks * usize::from(width_at(geometry, span.lba, slot)) {
            return None;
        }
        let index = geometry.data_index_at(span.lba, slot);
        for (at, stamp) in stamps.iter().enumerate() {
            let entry = match index {
                Some(index) => &mut vectors[at * data + usize::from(index)],
                None => &mut vectors[at],
            };
            if entry.is_some_and(|known| known != *stamp) {
                return None;
            }
            *entry = Some(*stamp);
        }
    }
    vectors.into_iter().collect()
}
