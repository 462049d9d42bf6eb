//! The one queue of all records, so that the journal has them in the order in which they were asked for.

use crate::discard::Region;
use crate::record::Extent;
use crate::works::WorkId;
use base::{Stamp, Time};
use std::collections::VecDeque;
use wire::Completion;
use wire::disk::Token;

/// A record on its way into the journal.
#[derive(Debug)]
pub(crate) enum Item {
    Stage(Stamp),
    Apply(Stamp),
    Image(Stamp, Vec<Extent>),
    Drop(Stamp),
    Mend(WorkId),
    Note {
        token: Token,
        key: Vec<u8>,
        value: Option<Vec<u8>>,
    },
    Remember(Token, Vec<Completion>),
    /// The same, and nobody waits for it.
    Refresh(Vec<Completion>),
    Discard(Region),
    /// No record: all that is before it is in the journal.
    Barrier(Token),
    Checkpoint,
}

impl Item {
    /// Whether somebody waits for it.
    fn is_urgent(&self) -> bool {
        matches!(
            self,
            Item::Stage(_) | Item::Mend(_) | Item::Note { .. } | Item::Remember(..) | Item::Barrier(_)
        )
    }
}

/// The records that wait for the next group.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    items: VecDeque<Item>,
    urgent: usize,
    /// When the oldest record came for which nobody waits.
    lazy_since: Option<Time>,
}

impl Queue {
    pub(crate) fn push(&mut self, item: Item, now: Time) {
        if item.is_urgent() {
            self.urgent += 1;
        } else {
            self.lazy_since.get_or_insert(now);
        }
        self.items.push_back(item);
    }

    pub(crate) fn front(&self) -> Option<&Item> {
        self.items.front()
    }

    pub(crate) fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.urgent -= usize::from(item.is_urgent());
        if self.items.len() == self.urgent {
            self.lazy_since = None;
        }
        Some(item)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// How many wait whose requests took effect elsewhere.
    pub(crate) fn remembers(&self) -> usize {
        self.items.iter().filter(|item| matches!(item, Item::Remember(..))).count()
    }

    /// Whether somebody waits for a record.
    pub(crate) fn has_urgent(&self) -> bool {
        self.urgent > 0
    }

    /// When the oldest record came for which nobody waits.
    pub(crate) fn lazy_since(&self) -> Option<Time> {
        self.lazy_since
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Item> {
        self.items.drain(..)
    }
}
