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
//! A write that goes by a record takes effect only if that does: once all fates are known, those records are asked for whose
//! writes all have (*asking records*), of the members of the view in force of their group. A group asks only groups with lower numbers than its own, so that
//! no two changes wait for each other; a record of the group itself is a write in doubt like others, or its members are asked for it with the rest.
//!
//! A change that leaves out members of a view in force, as they are silent or slow, is *revocable* until all that remain have promised: who of them is lost
//! before that is left out instead, under a later number, and who is back by then stays. It goes on to 3 only once the directory has durably given up
//! to revoke it; before that no member can have begun, and the view counts for nothing.
//!
//! A change that moves a volume to another branch stops after 2 until all groups of the family have come so far: nothing
//! that happens after a write to the new branch can be written to the old one.

use base::{BrickId, NodeId, Time, ViewNumber};
use core::time::Duration;
use rules::layout::Geometry;
use std::collections::BTreeMap;
use volume::netraid::link;
use volume::netraid::members::{participants, width_at};
use wire::{Decision, Fate, GroupView, Message, Slots, WriteId};

/// A question to a member that is not answered is repeated after this, several round trips of a busy network, and then after twice as long each time.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(250);
/// But no later than this: a member that is back is to go on soon.
const ASK_AGAIN_MAX: Duration = Duration::from_secs(1);

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
    /// Members of other groups are asked for records.
    AskingRecords,
    Activating,
    /// The active view is being stored.
    Finishing,
}

/// How long a change waits if only new stand-ins have not answered. Then it goes on without them.
pub(super) const STAND_IN_PATIENCE: Duration = Duration::from_millis(100);

/// A change under way.
#[derive(Debug)]
pub(super) struct Change {
    /// The view to come.
    pub(super) next: GroupView,
    /// How far it is.
    pub(super) step: Step,
    /// When to repeat what is unanswered.
    pub(super) due: Time,
    /// What was asked last, and how long it waited then.
    asked_last: Option<(Step, Duration)>,
    /// When it was begun.
    pub(super) began: Time,
    /// Since when nobody but new stand-ins has been missing in this step, as far as somebody looked.
    alone: Option<(Step, Time)>,
    /// Whether the group had a view before: then its members are fenced first.
    fences: bool,
    voters: Slots,
    /// Whether it waits for the other groups of the family once its members have promised.
    holds: bool,
    /// Whether it may be revoked until it is confirmed.
    is_revocable: bool,
    geometry: Geometry,
    /// What is said of slots whose blocks are lost.
    bare: Option<Slots>,
    answered: Slots,
    fates: BTreeMap<WriteId, BTreeMap<u8, Fate>>,
    asked: BTreeMap<u8, Vec<WriteId>>,
    /// Records of other groups, and what is known of them.
    records: BTreeMap<WriteId, RecordFates>,
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
        Change {
            began: now,
            alone: None,
            step: Step::Storing,
            due: now,
            asked_last: None,
            // A first view that was not finished may have begun here and there: the next one is promised like others.
            fences: next.number > ViewNumber(1),
            next,
            voters: voters.unwrap_or_default(),
            holds,
            is_revocable: false,
            geometry,
            bare: None,
            answered: Slots::default(),
            fates: BTreeMap::new(),
            asked: BTreeMap::new(),
            records: BTreeMap::new(),
            commits: Vec::new(),
            aborts: Vec::new(),
        }
    }

    /// The same; it goes on from fencing only once it is confirmed.
    pub(super) fn revocable(self) -> Change {
        Change { is_revocable: true, ..self }
    }

    /// The same; members are told that these slots lost their blocks.
    pub(super) fn telling(self, bare: Option<Slots>) -> Change {
        Change { bare, ..self }
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

    /// Whether it makes the group's first view.
    pub(super) fn is_first(&self) -> bool {
        self.next.number == ViewNumber(1)
    }

    pub(super) fn has_answer_of(&self, brick: BrickId) -> bool {
        self.next.slot_of(brick).is_some_and(|slot| self.answered.has(slot))
    }

    /// Whom it waits for now.
    pub(super) fn missing(&self) -> Slots {
        match self.step {
            Step::Fencing | Step::Resolving | Step::Activating => {
                Slots(self.next.writers().0 & !self.answered.0)
            }
            Step::Storing | Step::Held | Step::Confirming | Step::AskingRecords | Step::Finishing => {
                Slots::default()
            }
        }
    }

    /// The bricks that stand in from this view on.
    fn new_stand_ins(&self) -> Slots {
        Slots(self.next.stand_ins().0 & !self.voters.0)
    }

    /// For how long it has waited for members that join, and for nobody else: for new stand-ins alone since all others answered, which `true` says.
    pub(super) fn waits_for_joiners(&mut self, now: Time) -> Option<(bool, Duration)> {
        let missing = self.missing();
        if missing.is_empty() || missing.and(self.next.joining) != missing {
            self.alone = None;
            return None;
        }
        if missing.and(self.new_stand_ins()) != missing {
            self.alone = None;
            return Some((false, now.since(self.began)));
        }
        let since = self.alone.filter(|(step, _)| *step == self.step).map_or(now, |(_, since)| since);
        self.alone = Some((self.step, since));
        Some((true, now.since(since)))
    }

    /// The same by their bricks.
    pub(super) fn waits_for(&self) -> Vec<BrickId> {
        let missing = self.missing();
        self.next.writing_bricks().filter(|(slot, _)| missing.has(*slot)).map(|(_, brick)| brick).collect()
    }

    /// The questions of this step are sent: after how long they are repeated to who has not answered.
    pub(super) fn next_wait(&mut self) -> Duration {
        let wait = match self.asked_last {
            // Records are asked for only while their groups are not changing: maybe nobody was asked yet.
            Some((step, wait)) if step == self.step && step != Step::AskingRecords => {
                (wait * 2).min(ASK_AGAIN_MAX)
            }
            _ => ASK_AGAIN,
        };
        self.asked_last = Some((self.step, wait));
        wait
    }

    /// What to send to members that have not answered: to the process of each that counts.
    pub(super) fn questions(&self, run: impl Fn(BrickId) -> u64) -> Vec<(NodeId, Message)> {
        let waiting = self.next.writing_bricks().filter(|(slot, _)| !self.answered.has(*slot));
        let question = |(slot, brick)| Some((NodeId::Brick(brick), self.question(slot, run(brick))?));
        waiting.filter_map(question).collect()
    }

    fn question(&self, slot: u8, run: u64) -> Option<Message> {
        let (group, number, view) = (self.next.group, self.next.number, self.next.clone());
        match self.step {
            Step::Fencing => Some(Message::Fence { view, speaks: self.voters.has(slot), run }),
            Step::Resolving => {
                let writes = self.asked.get(&slot)?;
                let width = |write: &WriteId| width_at(&self.geometry, write.span.lba, slot);
                Some(Message::Resolve {
                    group,
                    number,
                    writes: writes.iter().map(|w| (*w, width(w))).collect(),
                    run,
                })
            }
            Step::Activating => {
                let (commits, aborts, bare) = (self.commits.clone(), self.aborts.clone(), self.bare);
                Some(Message::Activate { view, commits, aborts, bare, run })
            }
            Step::Storing | Step::Held | Step::Confirming | Step::AskingRecords | Step::Finishing => None,
        }
    }

    /// The records of other groups that it waits for.
    pub(super) fn open_records(&self) -> impl Iterator<Item = &WriteId> {
        let is_asking = self.step == Step::AskingRecords;
        self.records
            .iter()
            .filter(move |(_, fates)| is_asking && fates.commit.is_none())
            .map(|(record, _)| record)
    }

    /// How the members of its group keep a record.
    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn slot(&self, from: BrickId, number: ViewNumber, step: Step) -> Option<u8> {
        let slot = self.next.slot_of(from)?;
        let fits = number == self.next.number && self.step == step && self.next.writers().has(slot);
        (fits && !self.answered.has(slot)).then_some(slot)
    }

    /// The brick's answer to a question that it can be asked again: for a promise, and to begin the `first` view of a group.
    pub(super) fn forget_answer(&mut self, of: BrickId, is_first: bool) {
        let is_asked = self.step == Step::Fencing || is_first && self.step == Step::Activating;
        if let Some(slot) = self.next.slot_of(of).filter(|_| is_asked) {
            self.answered = self.answered.without(slot);
        }
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
        let group = self.next.group;
        let own = self.linked().filter(|record| record.group == group).collect::<Vec<_>>();
        for record in own {
            self.fates.entry(record).or_default();
        }
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
            self.ask_for_records();
        }
    }

    /// The records of writes in doubt.
    fn linked(&self) -> impl Iterator<Item = WriteId> {
        self.fates.keys().filter_map(|write| self.record_of(write))
    }

    fn record_of(&self, write: &WriteId) -> Option<WriteId> {
        write.link.map(|link| link::record_of(&self.geometry, write.span.volume, link))
    }

    /// All fates are known: asks for the records of other groups on which it depends what follows from them. Of a group with a higher number no
    /// write has its record.
    fn ask_for_records(&mut self) {
        let group = self.next.group;
        let complete = self.fates.iter().filter(|(_, fates)| all_have(fates));
        let records = complete.filter_map(|(write, _)| self.record_of(write));
        let others = records.filter(|record| record.group < group);
        self.records = others.map(|record| (record, RecordFates::default())).collect();
        self.step = Step::AskingRecords;
        self.decide_if_known();
    }

    fn decide_if_known(&mut self) -> bool {
        let is_known = self.open_records().next().is_none();
        if is_known {
            self.decide();
        }
        is_known
    }

    /// A member of another group, of which these are all that take part in a record under the view of that number, said what it knows of it. True
    /// when the step changed.
    pub(super) fn on_record(
        &mut self,
        record: &WriteId,
        (view, all): (ViewNumber, Slots),
        slot: u8,
        fate: Fate,
    ) -> bool {
        let is_asking = self.step == Step::AskingRecords;
        let Some(known) = self.records.get_mut(record).filter(|_| is_asking) else { return false };
        known.hear((view, all), slot, fate);
        self.decide_if_known()
    }

    /// The members that have a record which others have refused. The change rests on that, also after those have died: so these are to refuse it as well.
    pub(super) fn to_clear(&self, record: &WriteId) -> Slots {
        self.records.get(record).map_or_else(Slots::default, RecordFates::to_clear)
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
            self.ask_for_records();
        }
        complete
    }

    fn decide(&mut self) {
        for (write, fates) in &self.fates {
            let commit = took_effect(fates) || (all_have(fates) && self.record_allows(write));
            if commit { &mut self.commits } else { &mut self.aborts }.push(Decision::from(write));
        }
        self.step = Step::Activating;
        self.answered = Slots::default();
    }

    /// Whether a write that all have takes effect: one that goes by a record, if that does.
    fn record_allows(&self, write: &WriteId) -> bool {
        let Some(record) = self.record_of(write) else { return true };
        match record.group == self.next.group {
            true => self.fates.get(&record).is_some_and(|fates| took_effect(fates) || all_have(fates)),
            false => self.records.get(&record).is_some_and(|fates| fates.commit == Some(true)),
        }
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

/// Whether some member says that a write was decided.
fn took_effect(fates: &BTreeMap<u8, Fate>) -> bool {
    fates.values().any(|fate| *fate == Fate::Committed)
}

/// Whether all that can say have a write.
fn all_have(fates: &BTreeMap<u8, Fate>) -> bool {
    let any = |fate| fates.values().any(|known| *known == fate);
    any(Fate::Prepared) && !any(Fate::Refused)
}

/// What members of another group say of a record.
#[derive(Debug, Default)]
struct RecordFates {
    /// The view under which they say it.
    view: ViewNumber,
    fates: BTreeMap<u8, Fate>,
    /// What follows, once all have said.
    commit: Option<bool>,
}

impl RecordFates {
    fn hear(&mut self, (view, all): (ViewNumber, Slots), slot: u8, fate: Fate) {
        if view != self.view {
            self.view = view;
            self.fates.clear();
        }
        self.fates.insert(slot, fate);
        if all.iter().all(|slot| self.fates.contains_key(&slot)) && self.to_clear().is_empty() {
            self.commit = Some(took_effect(&self.fates) || all_have(&self.fates));
        }
    }

    fn to_clear(&self) -> Slots {
        let any = |fate| self.fates.values().any(|known| *known == fate);
        if took_effect(&self.fates) || !any(Fate::Refused) {
            return Slots::default();
        }
        let have = self.fates.iter().filter(|(_, fate)| **fate == Fate::Prepared);
        have.fold(Slots::default(), |have, (slot, _)| have.with(*slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{GroupId, Stamp, VolumeId};
    use wire::{Link, Scope, Span};

    const RECORD: Stamp = Stamp(8 << 40);

    /// Of two mirrors; both have the part, which goes by a record of the group `home`.
    fn change(home: u64) -> (Change, WriteId) {
        let group = GroupId(2);
        let next = GroupView {
            group,
            volume: VolumeId(7),
            number: ViewNumber(2),
            members: vec![BrickId(1), BrickId(2)],
            current: Slots(0b11),
            joining: Slots::default(),
            lineage: Box::default(),
            sealed: Vec::new(),
        };
        let geometry = Geometry::usual("raid1x2".parse().expect("a layout")).expect("the usual measures");
        let mut change = Change::new(next, geometry, Some(Slots(0b11)), false, Time(0));
        change.on_stored();
        let link = Link::new(GroupId(home), 1 << 43, RECORD);
        let span = Span { volume: VolumeId(7), lba: 0, count: 1 };
        let part = WriteId { group, span, stamp: Stamp(9 << 40), scope: Scope::Row, link: Some(link) };
        assert!(!change.on_fenced(BrickId(1), ViewNumber(2), vec![part]));
        assert!(change.on_fenced(BrickId(2), ViewNumber(2), vec![part]));
        (change, part)
    }

    fn record_of(change: &Change, part: &WriteId) -> WriteId {
        change.record_of(part).expect("it has one")
    }

    #[test]
    fn a_part_goes_by_its_record_in_another_group() {
        let all = (ViewNumber(5), Slots(0b11));
        let (mut change, part) = change(1);
        let record = record_of(&change, &part);
        assert_eq!(change.open_records().collect::<Vec<_>>(), [&record]);
        assert!(!change.on_record(&record, all, 0, Fate::Prepared));
        assert!(change.on_record(&record, all, 1, Fate::Prepared), "any settler would have it take effect");
        assert_eq!(change.decisions(), (1, 0));
    }

    #[test]
    fn a_record_counts_as_refused_only_when_no_member_has_it() {
        let all = (ViewNumber(5), Slots(0b11));
        let (mut change, part) = change(1);
        let record = record_of(&change, &part);
        change.on_record(&record, all, 0, Fate::Prepared);
        assert!(!change.on_record(&record, all, 1, Fate::Refused));
        assert_eq!((change.to_clear(&record), change.step), (Slots(0b01), Step::AskingRecords));
        assert!(change.on_record(&record, all, 0, Fate::Refused));
        assert_eq!(change.decisions(), (0, 1));
    }

    #[test]
    fn what_was_said_under_an_earlier_view_of_the_other_group_does_not_count() {
        let (mut change, part) = change(1);
        let record = record_of(&change, &part);
        change.on_record(&record, (ViewNumber(5), Slots(0b11)), 0, Fate::Refused);
        assert!(!change.on_record(&record, (ViewNumber(6), Slots(0b11)), 1, Fate::Committed));
        assert!(change.on_record(&record, (ViewNumber(6), Slots(0b11)), 0, Fate::Refused));
        assert_eq!(change.decisions(), (1, 0), "who joined knows nothing of it");
    }

    #[test]
    fn a_record_of_the_group_itself_is_resolved_with_the_rest() {
        let (mut change, part) = change(2);
        let record = record_of(&change, &part);
        assert_eq!(change.step, Step::Resolving);
        let asked = |change: &Change| match change.question(0, 0) {
            Some(Message::Resolve { writes, .. }) => writes,
            other => panic!("{other:?}"),
        };
        assert_eq!(asked(&change), [(record, 1)]);
        assert!(!change.on_resolved(BrickId(1), ViewNumber(2), vec![(record, Fate::Committed)]));
        assert!(change.on_resolved(BrickId(2), ViewNumber(2), vec![(record, Fate::Refused)]));
        assert_eq!((change.decisions(), change.step), ((2, 0), Step::Activating));
    }
}
