//! The making of a new view of a group, as the directory does it:
//!
//! 1. the view to come is on the directory's stable storage;
//! 2. its members promise to serve nothing under older ones (*fence*), and name their writes in doubt;
//! 3. what one names and another does not is asked of the other (*resolve*);
//! 4. a write that all members that can say have is committed, every other one aborted; the members apply this and
//!    begin (*activate*);
//! 5. the view is on the directory's stable storage as the active one, and is published.
//!
//! Only *voters* speak in 2 to 4: those that take writes in the view in force, in every view that was to come since, and
//! in this one. Who joins with this change knows nothing of older writes.
//!
//! Why nothing acknowledged is lost: an acknowledged write is on stable storage at every writer of the view under which
//! it was made, so at every voter; and the new current set is a part of the voters, so step 4 commits it and all new
//! current members have it. Whoever makes the same change again (the directory after a restart, or with fewer members)
//! comes to the same decisions or to ones that follow from them, as decided writes are reported as committed.
//!
//! A change that leaves out a member that is alive is *revocable* until all that remain have promised: who of them died
//! before that is left out instead, under a later number. It goes on to 3 only once the directory has durably given up
//! to revoke it; before that no member can have begun, and the view counts for nothing.
//!
//! A change that moves a volume to another branch stops after 2 until all groups of the family have come so far: nothing
//! that happens after a write to the new branch can be written to the old one.

use crate::layout::Geometry;
use crate::netraid::members::{participants, width_at};
use base::{BrickId, NodeId, Time, ViewNumber};
use std::collections::BTreeMap;
use wire::{Decision, Fate, GroupView, Message, Slots, WriteId};

/// How far a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The view to come is being stored.
    Storing,
    Fencing,
    /// All have promised; other groups of the family have yet to.
    Held,
    /// All have promised; that the change is not revoked any more is being stored.
    Confirming,
    /// Members are asked for fates.
    Resolving,
    Activating,
    /// The active view is being stored.
    Finishing,
}

/// A change under way.
#[derive(Debug)]
pub(super) struct Change {
    /// The view to come.
    pub(super) next: GroupView,
    /// How far it is.
    pub(super) step: Step,
    /// When to repeat what is unanswered.
    pub(super) due: Time,
    /// When it was begun.
    pub(super) began: Time,
    /// Whether the group had a view before: then its members are fenced first.
    fences: bool,
    voters: Slots,
    /// Whether it waits for the other groups of the family once its members have promised.
    holds: bool,
    /// Whether it may be revoked until it is confirmed.
    is_revocable: bool,
    geometry: Geometry,
    answered: Slots,
    fates: BTreeMap<WriteId, BTreeMap<u8, Fate>>,
    asked: BTreeMap<u8, Vec<WriteId>>,
    commits: Vec<Decision>,
    aborts: Vec<Decision>,
}

impl Change {
    /// To `next`; `voters` are `None` when it is the group's first. With `holds` it waits to be released once all have
    /// promised.
    pub(super) fn new(
        next: GroupView,
        geometry: Geometry,
        voters: Option<Slots>,
        holds: bool,
        now: Time,
    ) -> Change {
        assert!(
            voters.is_none_or(|voters| next.current.and(voters) == next.current),
            "who is to be current has a say: {next:?}, voters {voters:?}"
        );
        Change {
            began: now,
            step: Step::Storing,
            due: now,
            // A first view that was not finished may have begun here and there: the next one is promised like others.
            fences: next.number > ViewNumber(1),
            next,
            voters: voters.unwrap_or_default(),
            holds,
            is_revocable: false,
            geometry,
            answered: Slots::default(),
            fates: BTreeMap::new(),
            asked: BTreeMap::new(),
            commits: Vec::new(),
            aborts: Vec::new(),
        }
    }

    /// The same; it goes on from fencing only once it is confirmed.
    pub(super) fn revocable(self) -> Change {
        Change { is_revocable: true, ..self }
    }

    /// It is stored that it is not revoked any more: go on.
    pub(super) fn on_confirmed(&mut self) {
        self.is_revocable = false;
        if self.step == Step::Confirming {
            self.ask_for_fates();
        }
    }

    /// The view to come is stored: begin.
    pub(super) fn on_stored(&mut self) {
        self.step = if self.fences { Step::Fencing } else { Step::Activating };
        self.answered = Slots::default();
    }

    /// Whom it waits for now.
    pub(super) fn missing(&self) -> Slots {
        match self.step {
            Step::Fencing | Step::Resolving | Step::Activating => {
                Slots(self.next.writers().0 & !self.answered.0)
            }
            Step::Storing | Step::Held | Step::Confirming | Step::Finishing => Slots::default(),
        }
    }

    /// What to send to members that have not answered.
    pub(super) fn questions(&self) -> Vec<(NodeId, Message)> {
        let waiting = self.next.writing_bricks().filter(|(slot, _)| !self.answered.has(*slot));
        waiting.filter_map(|(slot, brick)| Some((NodeId::Brick(brick), self.question(slot)?))).collect()
    }

    fn question(&self, slot: u8) -> Option<Message> {
        let (group, number, view) = (self.next.group, self.next.number, self.next.clone());
        match self.step {
            Step::Fencing => Some(Message::Fence { view, speaks: self.voters.has(slot) }),
            Step::Resolving => {
                let writes = self.asked.get(&slot)?;
                let width = |write: &WriteId| width_at(&self.geometry, write.span.lba, slot);
                Some(Message::Resolve {
                    group,
                    number,
                    writes: writes.iter().map(|w| (*w, width(w))).collect(),
                })
            }
            Step::Activating => {
                Some(Message::Activate { view, commits: self.commits.clone(), aborts: self.aborts.clone() })
            }
            Step::Storing | Step::Held | Step::Confirming | Step::Finishing => None,
        }
    }

    fn slot(&self, from: BrickId, number: ViewNumber, step: Step) -> Option<u8> {
        let slot = self.next.slot_of(from)?;
        let fits = number == self.next.number && self.step == step && self.next.writers().has(slot);
        (fits && !self.answered.has(slot)).then_some(slot)
    }

    fn answered_by(&mut self, slot: u8) -> bool {
        self.answered = self.answered.with(slot);
        self.next.writers().and(self.answered) == self.next.writers()
    }

    /// A member promised. True when the step changed.
    pub(super) fn on_fenced(&mut self, from: BrickId, number: ViewNumber, doubts: Vec<WriteId>) -> bool {
        let Some(slot) = self.slot(from, number, Step::Fencing) else { return false };
        let is_voter = self.voters.has(slot);
        for write in doubts.into_iter().filter(|write| is_voter && write.group == self.next.group) {
            self.fates.entry(write).or_default().insert(slot, Fate::Prepared);
        }
        if !self.answered_by(slot) {
            return false;
        }
        match (self.holds, self.is_revocable) {
            (true, _) => self.step = Step::Held,
            (false, true) => self.step = Step::Confirming,
            (false, false) => self.ask_for_fates(),
        }
        true
    }

    /// All groups of the family have promised: go on.
    pub(super) fn release(&mut self) {
        self.holds = false;
        if self.step == Step::Held {
            self.ask_for_fates();
        }
    }

    /// All members promised: ask those that take part in a write in doubt and did not name it.
    fn ask_for_fates(&mut self) {
        for (write, fates) in &self.fates {
            let silent = participants(&self.geometry, self.voters, write);
            for slot in silent.iter().filter(|slot| !fates.contains_key(slot)) {
                self.asked.entry(slot).or_default().push(*write);
            }
        }
        self.step = Step::Resolving;
        self.answered = self.next.writers().iter().fold(Slots::default(), |answered, slot| {
            if self.asked.contains_key(&slot) { answered } else { answered.with(slot) }
        });
        if self.asked.is_empty() {
            self.decide();
        }
    }

    /// A member said what it knows. True when the step changed.
    pub(super) fn on_resolved(
        &mut self,
        from: BrickId,
        number: ViewNumber,
        fates: Vec<(WriteId, Fate)>,
    ) -> bool {
        let Some(slot) = self.slot(from, number, Step::Resolving) else { return false };
        let Some(asked) = self.asked.get(&slot) else { return false };
        // An answer to an earlier making of this view does not count.
        if !asked.iter().eq(fates.iter().map(|(write, _)| write)) {
            return false;
        }
        for (write, fate) in fates {
            self.fates.entry(write).or_default().insert(slot, fate);
        }
        let complete = self.answered_by(slot);
        if complete {
            self.decide();
        }
        complete
    }

    fn decide(&mut self) {
        for (write, fates) in &self.fates {
            let any = |fate| fates.values().any(|known| *known == fate);
            let commit = any(Fate::Committed) || (any(Fate::Prepared) && !any(Fate::Refused));
            if commit { &mut self.commits } else { &mut self.aborts }.push(Decision::from(write));
        }
        self.step = Step::Activating;
        self.answered = Slots::default();
    }

    /// A member began. True when all have.
    pub(super) fn on_activated(&mut self, from: BrickId, number: ViewNumber) -> bool {
        let Some(slot) = self.slot(from, number, Step::Activating) else { return false };
        let complete = self.answered_by(slot);
        if complete {
            self.step = Step::Finishing;
        }
        complete
    }

    /// How many writes it committed and aborted.
    pub(super) fn decisions(&self) -> (usize, usize) {
        (self.commits.len(), self.aborts.len())
    }
}
