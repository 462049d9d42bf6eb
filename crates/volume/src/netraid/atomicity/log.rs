//! Going back to an older version (`log`): a read that meets a write waits for no decision. It takes what was there before, if the write
//! is not complete; a write is complete when all members that take part have it. (Kenchammana-Hosekote et al., section 2.2.2, *version*:
//! "If the versions the client gets are not consistent, then the client can read older versions until it has obtained a consistent set".)
//!
//! A brick has two versions of a block at the most: the one that is decided, in its place or in the journal, and a later one in the journal
//! that is not. The older one stands until the decision, so that no reader finds neither; the journal gives its space back when it is
//! moved to its place.
//!
//! Why the older one may be returned: a write is acknowledged when all have it, and a read returns it only when all have it. So if
//! one did not have it when it was asked, at that time it was neither acknowledged nor seen by anyone, and the read, which began before, comes
//! before it. Once all have it, all will go on having it until it is decided, and no answer can decide otherwise than for it: what a settler does
//! with the same answers ([`crate::netraid::settle`]).

use crate::netraid::members::participants;
use crate::netraid::operate::{Context, Operate, retry_delay};
use crate::netraid::outcome::{Completeness, Looked, NoChild, Progress};
use crate::netraid::settle::FateAnswer;
use base::{GroupId, Stamp};
use core::time::Duration;
use rules::counters::Counter;
use std::collections::BTreeSet;
use wire::{Fate, Slots, Span, WriteId};

/// The newer writes that a reader looks at before it goes back.
///
/// A write is judged once, whichever look at it ends first: any of them saw it after the read began.
pub(crate) struct Looks {
    left: BTreeSet<Stamp>,
    /// Whether one of them is complete, or that is not known.
    is_over: bool,
}

/// What follows for the reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GoesBack {
    /// Some are still being looked at.
    Waits,
    /// None is complete: it takes what was there before them.
    Yes,
    /// It reads again.
    No,
}

/// After so many rounds in vain a reader waits for decisions.
pub(crate) const ROUNDS_MAX: u32 = 3;

impl Looks {
    /// Whether these may be the newer writes of a read of `span`, which a member names: a stranger may name any.
    pub(crate) fn are_of(newer: &[WriteId], group: GroupId, span: Span) -> bool {
        // A block has one undecided write, a parity block one for each data unit.
        const LANES_MAX: usize = 32;
        let is_of =
            |write: &WriteId| write.group == group && write.span.is_valid() && write.span.overlaps(&span);
        newer.len() <= LANES_MAX * span.count as usize && newer.iter().all(is_of)
    }

    /// Begins to look at `newer`, on behalf of the current operation.
    pub(crate) fn begin(cx: &mut Context<'_>, newer: Vec<WriteId>) -> Looks {
        if !cx.rules.asks_whether_complete() {
            return Looks { left: BTreeSet::new(), is_over: false };
        }
        let left = newer.iter().map(|write| write.stamp).collect();
        newer.into_iter().for_each(|write| cx.begin(CompletenessOperation::new(write)));
        Looks { left, is_over: false }
    }

    /// A write was looked at.
    pub(crate) fn on_looked(&mut self, looked: Looked) {
        if self.left.remove(&looked.stamp) {
            self.is_over |= looked.completeness != Completeness::Incomplete;
        }
    }

    /// What follows from what is known so far.
    pub(crate) fn goes_back(&self) -> GoesBack {
        match (self.left.is_empty(), self.is_over) {
            (false, _) => GoesBack::Waits,
            (true, false) => GoesBack::Yes,
            (true, true) => GoesBack::No,
        }
    }
}

/// Finds out whether a write that a member holds undecided is complete, and has it decided if it is. It changes nothing if not.
pub(crate) struct CompletenessOperation {
    write: WriteId,
    asked: Slots,
    have: Slots,
    attempt: u32,
}

type Looking = Progress<Looked>;

impl CompletenessOperation {
    pub(crate) fn new(write: WriteId) -> CompletenessOperation {
        CompletenessOperation { write, asked: Slots::default(), have: Slots::default(), attempt: 0 }
    }

    fn end(&self, completeness: Completeness) -> Looking {
        Progress::Ended(Looked { stamp: self.write.stamp, completeness })
    }

    fn ask(&mut self, cx: &mut Context<'_>) -> Looking {
        let view = cx.views.view(self.write.group);
        for slot in self.asked.iter().filter(|slot| !self.have.has(*slot)) {
            cx.query(&view, slot, self.write, true);
        }
        Progress::WaitsFor(retry_delay(self.attempt))
    }

    /// All have it: whoever learns that may decide it.
    fn commit(&self, cx: &mut Context<'_>) -> Looking {
        cx.counters.count(Counter::WriteFoundCompleteByAReader);
        let view = cx.views.view(self.write.group);
        cx.decisions.decide(cx.now, &view, self.asked, &self.write, true);
        self.end(Completeness::Complete)
    }
}

impl Operate for CompletenessOperation {
    type Answer = FateAnswer;
    type Child = NoChild;
    type Outcome = Looked;

    fn start(&mut self, cx: &mut Context<'_>) -> Looking {
        let (view, geometry) = (cx.views.view(self.write.group), cx.views.geometry(self.write.group));
        self.asked = participants(&geometry, view.writers(), &self.write);
        // One that has a record is decided by that, which is settled like any other.
        match self.asked.is_empty() || self.write.link.is_some() {
            true => self.end(Completeness::Unknown),
            false => self.ask(cx),
        }
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: FateAnswer) -> Looking {
        match answer.fate() {
            Ok(Fate::Committed) => self.commit(cx),
            Ok(Fate::Prepared) => {
                self.have = self.have.with(slot);
                match self.asked.iter().all(|slot| self.have.has(slot)) {
                    true => self.commit(cx),
                    false => Progress::Waits,
                }
            }
            Ok(Fate::Absent | Fate::Refused) => self.end(Completeness::Incomplete),
            // Later writes have wiped its traces there.
            Ok(Fate::Unreadable) => self.end(Completeness::Unknown),
            Err(view) => {
                cx.on_stale(self.write.group, view);
                Progress::WaitsFor(Duration::from_millis(20 << self.attempt.min(5)))
            }
        }
    }

    fn on_child(&mut self, _: &mut Context<'_>, child: NoChild) -> Looking {
        match child {}
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Looking {
        self.attempt += 1;
        cx.forget_calls();
        self.ask(cx)
    }

    fn group(&self) -> GroupId {
        self.write.group
    }

    /// The new view has decided it, one way or the other.
    fn on_view(&mut self, _: &mut Context<'_>) -> Looking {
        self.end(Completeness::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::VolumeId;
    use wire::Scope;

    #[test]
    fn a_write_that_is_judged_twice_does_not_stand_for_another() {
        let mut looks = Looks { left: [Stamp(1), Stamp(2)].into(), is_over: false };
        let looked = |stamp, completeness| Looked { stamp: Stamp(stamp), completeness };
        looks.on_looked(looked(1, Completeness::Incomplete));
        looks.on_looked(looked(1, Completeness::Incomplete));
        assert_eq!(looks.goes_back(), GoesBack::Waits, "the other one may be complete");
        looks.on_looked(looked(2, Completeness::Complete));
        assert_eq!(looks.goes_back(), GoesBack::No);
    }

    #[test]
    fn newer_writes_are_of_the_blocks_that_were_read() {
        let span = Span { volume: VolumeId(3), lba: 8, count: 2 };
        let write = |group, lba, volume| WriteId {
            group: GroupId(group),
            span: Span { volume: VolumeId(volume), lba, count: 1 },
            stamp: Stamp(1),
            scope: Scope::Row,
            link: None,
        };
        let are = |newer: &[WriteId]| Looks::are_of(newer, GroupId(1), span);
        assert!(are(&[write(1, 8, 3), write(1, 9, 3)]));
        assert!(!are(&[write(2, 8, 3)]) && !are(&[write(1, 10, 3)]) && !are(&[write(1, 8, 4)]));
        assert!(!are(&[write(1, 8, 3); 65]), "more than two blocks can have");
    }
}
