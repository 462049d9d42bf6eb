//! Reading a unit by way of the code: from the other units of its rows and their parity.
//!
//! Where all writers answer, for content, for stamps alone or (those that join) just as witnesses, no lease is needed;
//! where one cannot be reached the others must hold theirs (see [`super::read`] for both). So a read need not wait until
//! a dead brick is left out. The answers fit together when the parity's stamps name just the versions of the data that
//! was read; otherwise writes are under way, and all is asked again. A member answers only without a write in doubt, so
//! what fits is decided.

use super::coordinator::{Answer, Operate, Outcome, Shared, width_at};
use super::settle::settle_foreign;
use crate::counters::Counter;
use crate::layout::Geometry;
use base::{BLOCK, GroupId, Payload, Stamp};
use code::Code;
use core::time::Duration;
use std::collections::BTreeMap;
use wire::{IoError, Message, ReadOutcome, Slots, Span, WriteId};

const SOON: Duration = Duration::from_millis(10);

struct Shard {
    stamps: Vec<Stamp>,
    content: Option<Payload>,
    leased: bool,
}

/// Reconstructs one shard of the rows of a span. Ends with [`Outcome::Read`]; its stamps are those of the shard:
/// one a block for data, one a data unit and block for parity.
pub struct ReconstructOperation {
    group: GroupId,
    span: Span,
    wanted: u8,
    excluded: Slots,
    shards: BTreeMap<u8, Shard>,
    asked: Slots,
    sources: Vec<u8>,
    /// Whether every writer is to answer, as leases are not in force.
    ask_all: bool,
    settling: usize,
    attempt: u32,
}

impl ReconstructOperation {
    /// Of shard `wanted` (data units first, then parity), without the help of the members at `excluded`.
    pub fn new(group: GroupId, span: Span, wanted: u8, excluded: Slots) -> ReconstructOperation {
        ReconstructOperation {
            group,
            span,
            wanted,
            excluded,
            shards: BTreeMap::new(),
            asked: Slots::default(),
            sources: Vec::new(),
            ask_all: false,
            settling: 0,
            attempt: 0,
        }
    }

    fn geometry(&self, shared: &Shared) -> Geometry {
        shared.geometry(self.group)
    }

    /// The slots whose content is used: as many as there are data units, data before parity.
    fn sources(&self, geometry: &Geometry, helpers: Slots) -> Vec<u8> {
        let layout = geometry.layout();
        (0..layout.data() + layout.parity())
            .filter(|shard| *shard != self.wanted)
            .map(|shard| geometry.slot_of_shard(self.span.lba, shard))
            .filter(|slot| helpers.has(*slot))
            .take(usize::from(layout.data()))
            .collect()
    }

    fn combine(&mut self, shared: &mut Shared) -> Option<Outcome> {
        let geometry = self.geometry(shared);
        let writers = shared.view(self.group).writers();
        let all_answered = writers.and(self.asked) == writers;
        if !all_answered && self.shards.values().any(|shard| !shard.leased) {
            self.ask_all = true;
            return shared.again_after(SOON);
        }
        let Some(vectors) = self.consistent_stamps(&geometry) else {
            shared.counters.count(Counter::DegradedReadMetAWriteUnderWay);
            return shared.again_after(SOON);
        };
        let layout = geometry.layout();
        let (data, lba) = (layout.data(), self.span.lba);
        let shards: Vec<(u8, Payload)> = self
            .shards
            .iter()
            .filter_map(|(slot, shard)| Some((geometry.shard_at(lba, *slot), shard.content.clone()?)))
            .collect();
        let Ok(content) = Code::new(data, layout.parity()).reconstruct(&shards, self.wanted) else {
            return Some(Outcome::Failed(IoError::Unreadable));
        };
        shared.counters.count(Counter::UnitReconstructedFromItsRow);
        let width = usize::from(data);
        let stamps = match self.wanted < data {
            true => vectors.chunks(width).map(|vector| vector[usize::from(self.wanted)]).collect(),
            false => vectors,
        };
        Some(Outcome::Read { content, stamps })
    }

    /// The stamps of all data units, a vector a block, if all members agree on them.
    fn consistent_stamps(&self, geometry: &Geometry) -> Option<Vec<Stamp>> {
        let (data, lba) = (geometry.layout().data(), self.span.lba);
        let mut vectors: Vec<Option<Stamp>> = vec![None; self.span.count as usize * usize::from(data)];
        for (slot, shard) in &self.shards {
            let width = usize::from(width_at(geometry, lba, *slot));
            if shard.stamps.is_empty() {
                continue;
            }
            if shard.stamps.len() != self.span.count as usize * width {
                return None;
            }
            let index = geometry.data_index_at(lba, *slot);
            for (at, stamp) in shard.stamps.iter().enumerate() {
                let entry = match index {
                    Some(index) => &mut vectors[at * usize::from(data) + usize::from(index)],
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

    fn on_doubt(&mut self, shared: &mut Shared, writes: Vec<WriteId>) -> Option<Outcome> {
        shared.forget_calls();
        self.attempt += 1;
        if self.attempt > 1 {
            self.settling = settle_foreign(shared, self.group, self.span, writes);
        }
        if self.settling == 0 { shared.again_after(SOON) } else { None }
    }
}

impl Operate for ReconstructOperation {
    fn start(&mut self, shared: &mut Shared) -> Option<Outcome> {
        let (view, geometry) = (shared.view(self.group), self.geometry(shared));
        self.shards.clear();
        let own = Slots::one(geometry.slot_of_shard(self.span.lba, self.wanted));
        let helpers = Slots(view.current.0 & !self.excluded.0 & !own.0);
        let reachable = helpers
            .iter()
            .filter(|slot| shared.up.contains(&view.members[usize::from(*slot)]))
            .fold(Slots::default(), Slots::with);
        let near = self.sources(&geometry, reachable);
        let enough = near.len() == usize::from(geometry.layout().data()) && !self.ask_all;
        let (helpers, sources) =
            if enough { (reachable, near) } else { (helpers, self.sources(&geometry, helpers)) };
        if sources.len() < usize::from(geometry.layout().data()) {
            return match self.excluded.is_empty() {
                false => Some(Outcome::Failed(IoError::Unreadable)),
                true => shared.again_after(Duration::from_millis(100)),
            };
        }
        self.asked = if self.ask_all { view.writers() } else { helpers };
        self.sources = sources;
        for slot in self.asked.iter() {
            let (group, span) = (self.group, self.span);
            let width = width_at(&geometry, span.lba, slot);
            let content = self.sources.contains(&slot);
            shared.call(&view, slot, Payload::new(), |operation| Message::Read {
                operation,
                group,
                view: view.number,
                span,
                width,
                stamps: view.current.has(slot),
                content,
                contest: None,
            });
        }
        shared.wake_to_retry(self.attempt);
        None
    }

    fn on_answer(&mut self, shared: &mut Shared, slot: u8, answer: Answer) -> Option<Outcome> {
        let Answer::Read(outcome, content) = answer else { return None };
        match outcome {
            ReadOutcome::Done { leased, mut stamps, unreadable }
                if unreadable.is_empty() || !self.sources.contains(&slot) =>
            {
                if !unreadable.is_empty() || !shared.view(self.group).current.has(slot) {
                    // It shows that no later view had begun, and has no say about the content.
                    stamps.clear();
                }
                let content = (content.len() == self.span.count as usize * BLOCK).then_some(content);
                self.shards.insert(slot, Shard { stamps, content, leased });
                let complete = self.asked.iter().all(|slot| self.shards.contains_key(&slot));
                if complete { self.combine(shared) } else { None }
            }
            ReadOutcome::Done { .. } | ReadOutcome::Failed => {
                self.excluded = self.excluded.with(slot);
                shared.again_after(Duration::ZERO)
            }
            ReadOutcome::InDoubt { writes } => self.on_doubt(shared, writes),
            ReadOutcome::Stale { view } => {
                shared.on_stale(self.group, view);
                shared.again_after(SOON)
            }
            ReadOutcome::Busy => shared.again_after(SOON),
        }
    }

    fn on_child(&mut self, shared: &mut Shared, _outcome: Outcome) -> Option<Outcome> {
        self.settling = self.settling.saturating_sub(1);
        if self.settling == 0 { shared.again_after(Duration::ZERO) } else { None }
    }

    fn on_timer(&mut self, shared: &mut Shared) -> Option<Outcome> {
        self.attempt += 1;
        shared.forget_calls();
        self.start(shared)
    }

    fn group(&self) -> GroupId {
        self.group
    }
}
