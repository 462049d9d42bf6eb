//! The directory's part in view changes: how one is stored, made, repeated and published.
//!
//! Who is in the view to come is decided in [`super::members`], on which branches in [`super::snapshots`].

use super::change::{ASK_AGAIN, Change, STAND_IN_PATIENCE, Step};
use super::cluster::Cluster;
use super::cut;
use super::event::{DirectoryEffect, Put, send};
use super::news::{self, Move, Moves, News};
use super::store::After;
use base::{BrickId, GroupId, NodeId, Time, ViewNumber, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use std::collections::{BTreeMap, BTreeSet};
use volume::netraid::members::{participants, width_at};
use wire::{Decision, Fate, GroupView, Message, Slots, WriteId};

/// A member that is heard and has not answered for so long, several questions, is not about to.
const MUTE_AFTER: Duration = Duration::from_secs(5);

/// For so long the answer to a question for a record counts.
const RECORD_ANSWER: Duration = Duration::from_secs(10);

/// The changes of views that are under way.
#[derive(Default)]
pub(super) struct Views {
    changes: BTreeMap<GroupId, Change>,
    leavers: Leavers,
    /// What they do to bricks, as far as it is not told.
    moves: Moves,
    /// Groups of which it is told that members do not answer, and for which view.
    mute: BTreeMap<GroupId, ViewNumber>,
    /// Questions for records of other groups.
    asked: BTreeMap<u64, RecordAsked>,
    serial: u64,
}

/// Which bricks the changes under way leave out.
#[derive(Debug, Default)]
struct Leavers {
    of_group: BTreeMap<GroupId, Vec<BrickId>>,
    /// In how many groups each.
    counts: BTreeMap<BrickId, usize>,
}

impl Leavers {
    /// From now on the change of a group leaves out these, and no others.
    fn set(&mut self, group: GroupId, bricks: Vec<BrickId>) {
        bricks.iter().for_each(|brick| *self.counts.entry(*brick).or_default() += 1);
        for brick in self.of_group.remove(&group).unwrap_or_default() {
            let count = self.counts.entry(brick).or_default();
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&brick);
            }
        }
        if !bricks.is_empty() {
            self.of_group.insert(group, bricks);
        }
    }
}

/// A question to a member of another group, for a record.
#[derive(Debug)]
struct RecordAsked {
    at: Time,
    /// The group whose change waits for it.
    wanted_by: GroupId,
    record: WriteId,
    view: ViewNumber,
    slot: u8,
    brick: BrickId,
    /// All that are asked.
    all: Slots,
}

impl Views {
    pub(super) fn is_changing(&self, group: GroupId) -> bool {
        self.changes.contains_key(&group)
    }

    /// The groups of which a view is being made, or stored as the one in force.
    pub(super) fn changing(&self) -> impl Iterator<Item = GroupId> {
        self.changes.keys().copied()
    }

    pub(super) fn are_changing(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Whether a view is being made that leaves out this brick.
    pub(super) fn leave_out(&self, brick: BrickId) -> bool {
        self.leavers.counts.contains_key(&brick)
    }

    fn enter(&mut self, cluster: &Cluster, group: GroupId, change: Change) {
        let active = cluster.active(group);
        // Who only joins answers no reads, and may have a lease for its other groups.
        let current = active.into_iter().flat_map(GroupView::current_bricks).map(|(_, brick)| brick);
        self.leavers.set(group, current.filter(|brick| !change.next.is_writer(*brick)).collect());
        self.changes.insert(group, change);
    }

    /// The change of a group is over, or there is none any more.
    fn remove(&mut self, group: GroupId) {
        self.leavers.set(group, Vec::new());
        self.changes.remove(&group);
    }

    /// Whether the group's first view is being made, and the brick has not said that it began: then it can have nothing to lose there.
    pub(super) fn is_yet_to_begin(&self, group: GroupId, brick: BrickId) -> bool {
        self.changes.get(&group).is_some_and(|change| change.is_first() && !change.has_answer_of(brick))
    }

    /// The members whose answers the change of a group waits for.
    pub(super) fn waits_for(&self, group: GroupId) -> Vec<BrickId> {
        self.changes.get(&group).map(Change::waits_for).unwrap_or_default()
    }

    /// Members that are heard and do not answer are a line in the log, once a change: a group that waits for one serves nobody.
    pub(super) fn note_the_mute(&mut self, cluster: &Cluster, now: Time) {
        self.mute.retain(|group, number| {
            self.changes.get(group).is_some_and(|change| change.next.number == *number)
        });
        let is_late = |change: &&Change| now.since(change.began) > MUTE_AFTER;
        for change in self.changes.values().filter(is_late) {
            let GroupView { group, number, .. } = change.next;
            let missing = change.waits_for();
            let missing = missing.into_iter().filter(|brick| cluster.leases.is_alive(now, *brick));
            let missing: Vec<BrickId> = missing.collect();
            if !missing.is_empty() && self.mute.insert(group, number).is_none() {
                missing.into_iter().for_each(|brick| self.moves.add(brick, Move::DoesNotAnswer));
            }
        }
    }

    /// What changes have done to bricks since the last call.
    pub(super) fn take_news(&mut self) -> impl Iterator<Item = News> + use<> {
        self.moves.take()
    }

    /// Views to come that have waited too long for nobody but members that join, and for which: `patience` in all, or [`STAND_IN_PATIENCE`] for new
    /// stand-ins alone.
    pub(super) fn stuck_for_joiners(&mut self, now: Time, patience: Duration) -> Vec<(GroupView, Slots)> {
        let is_stuck = |change: &mut Change| match change.waits_for_joiners(now) {
            Some((true, waited)) => waited > STAND_IN_PATIENCE,
            Some((false, waited)) => waited > patience,
            None => false,
        };
        let stuck = self.changes.values_mut().filter_map(|change| is_stuck(change).then_some(&*change));
        stuck.map(|change| (change.next.clone(), change.missing())).collect()
    }

    /// A group is deleted.
    pub(super) fn forget(&mut self, group: GroupId) {
        self.remove(group);
    }

    /// Changes that were under way when the directory stopped begin again.
    pub(super) fn resume(&mut self, cluster: &mut Cluster, now: Time) {
        let resumed: Vec<(GroupId, Change)> = cluster
            .records
            .groups
            .iter()
            .filter_map(|(group, record)| {
                let geometry = cluster.geometry(record.volume)?;
                let voters = record.active.as_ref().map(|_| record.voters);
                let next = record.next.clone()?;
                let holds = cluster.moves_branches(&next);
                let is_revocable = cluster.records.revocable.get(group) == Some(&next.number);
                assert!(
                    voters.is_none_or(|voters| cluster.records.is_heard(&next, voters)),
                    "{next:?}, {voters:?}"
                );
                let bare = cluster.records.bare.get(group).copied();
                let mut change = Change::new(next, geometry, voters, holds, now).telling(bare);
                if is_revocable {
                    change = change.revocable();
                }
                change.on_stored();
                Some((*group, change))
            })
            .collect();
        if !resumed.is_empty() {
            cluster.counters.count(Counter::DirectoryRestartedInsideAViewChange);
        }
        for (group, change) in resumed {
            self.enter(cluster, group, change);
        }
    }

    /// Leaves out members of a view in force: who remains must promise before it is sure to come.
    pub(super) fn begin_revocable(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        next: GroupView,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        self.begin(cluster, now, (next, Slots::default(), true), Vec::new(), fx);
    }

    /// All that remain have promised, so all of them are there: from now on the change is not revoked.
    fn confirm(&mut self, cluster: &mut Cluster, group: GroupId, fx: &mut Vec<DirectoryEffect>) {
        let Some(number) = cluster.records.revocable.remove(&group) else { return };
        // A store from before would revoke what members have begun.
        cluster.records.bump();
        let puts = vec![cluster.records.put_revocable(group), cluster.records.put_counts()];
        cluster.put(puts, vec![After::Confirmed(group, number)], fx);
    }

    pub(super) fn on_confirmed(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        group: GroupId,
        number: ViewNumber,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let Some(change) = self.changes.get_mut(&group) else { return };
        if change.next.number == number && change.step == Step::Confirming {
            change.on_confirmed();
            self.ask(cluster, now, group, fx);
        }
    }

    /// Stores a view to come, together with `puts`, and then makes it.
    pub(super) fn begin_change(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        next: GroupView,
        puts: Vec<Put>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        self.begin_without(cluster, now, (next, Slots::default()), puts, fx);
    }

    /// The same. Of the writers those that are `silent` know nothing of writes before.
    pub(super) fn begin_without(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        (next, silent): (GroupView, Slots),
        puts: Vec<Put>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        self.begin(cluster, now, (next, silent, false), puts, fx);
    }

    fn begin(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        (mut next, silent, is_revocable): (GroupView, Slots, bool),
        mut puts: Vec<Put>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let group = next.group;
        if let Some(before) = cluster.latest_view(group) {
            let pending = cluster.records.groups.get(&group).and_then(|record| record.next.as_ref());
            let revoked = pending.filter(|_| cluster.is_revocable(group));
            let slow = self.moves.note(cluster, now, before, &next, revoked);
            let (named, returned) = news::named_and_relieved(revoked.unwrap_or(before), &next);
            (0..slow).for_each(|_| cluster.counters.count(Counter::SlowMemberLeftOut));
            (0..named).for_each(|_| cluster.counters.count(Counter::StandInNamed));
            (0..returned).for_each(|_| cluster.counters.count(Counter::SealedMemberReturned));
        }
        // Of a change that is revoked members may have promised the number, and nothing else has come of it.
        let is_revoked = cluster.is_revocable(group);
        if let Some(pending) = cluster.records.groups.get(&group).and_then(|record| record.next.as_ref())
            && is_revoked
        {
            cluster.counters.count(Counter::ViewChangeRevoked);
            next.number = next.number.max(ViewNumber(pending.number.0 + 1));
            cluster.records.revocable.remove(&group);
        }
        let number = next.number;
        if is_revocable {
            cluster.records.revocable.insert(group, number);
        }
        if is_revocable || is_revoked {
            puts.push(cluster.records.put_revocable(group));
        }
        let Some(geometry) = cluster.geometry(next.volume) else { return };
        let holds = cluster.moves_branches(&next);
        let entered = cluster.records.groups.change(&group, |record| {
            let voters = record.active.as_ref().map(|active| {
                let pending = record.next.as_ref().filter(|_| !is_revoked);
                let (before, view) =
                    pending.map_or((active.writers(), active), |pending| (record.voters, pending));
                // Who has a slot that was another brick's has not heard of the writes before.
                let is_same =
                    |slot: &u8| view.members.get(usize::from(*slot)) == next.members.get(usize::from(*slot));
                let stay = before.iter().filter(is_same).fold(Slots::default(), Slots::with);
                Slots(stay.and(next.writers()).0 & !silent.0)
            });
            record.voters = voters.unwrap_or_default();
            // Who has no part in the group any more may have blocks of it, or a promise.
            let parties = record.active.iter().chain(&record.next).flat_map(GroupView::parties);
            let gone: BTreeSet<BrickId> = parties.filter(|brick| !next.has_part(*brick)).collect();
            for brick in gone {
                record.former.retain(|(of, _)| *of != brick);
                record.former.push((brick, next.number));
            }
            record.next = Some(next.clone());
            voters
        });
        let Some(voters) = entered else { return };
        // Bricks act on it before anybody is told that it is done: a store from before must be known as old.
        cluster.records.bump();
        puts.push(cluster.records.put_counts());
        puts.push(cluster.records.put_group(group));
        assert!(
            voters.is_none_or(|voters| cluster.records.is_heard(&next, voters)),
            "who is to be current has a say: {next:?}, voters {voters:?}"
        );
        let bare = cluster.records.bare.get(&group).copied();
        let change = Change::new(next, geometry, voters, holds, now).telling(bare);
        self.enter(cluster, group, if is_revocable { change.revocable() } else { change });
        cluster.put(puts, vec![After::Change(group, number)], fx);
    }

    pub(super) fn on_change_stored(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        group: GroupId,
        number: ViewNumber,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let Some(change) = self.changes.get_mut(&group) else { return };
        if change.next.number == number && change.step == Step::Storing {
            change.on_stored();
            self.ask(cluster, now, group, fx);
        }
    }

    fn ask(&mut self, cluster: &mut Cluster, now: Time, group: GroupId, fx: &mut Vec<DirectoryEffect>) {
        let Some(change) = self.changes.get_mut(&group) else { return };
        change.due = now + cluster.rules.repeats_after(ASK_AGAIN, change.next_wait());
        change
            .questions(|brick| cluster.run_of(brick))
            .into_iter()
            .for_each(|(to, message)| send(fx, to, message));
        self.ask_for_records(cluster, now, group, fx);
    }

    /// Asks for the records of other groups, as far as these are in force.
    fn ask_for_records(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        group: GroupId,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        // A late answer is as good as one to a question that was repeated.
        self.asked.retain(|_, asked| asked.wanted_by != group || now.since(asked.at) < RECORD_ANSWER);
        let Some(change) = self.changes.get(&group) else { return };
        let geometry = *change.geometry();
        for record in change.open_records().copied().collect::<Vec<_>>() {
            let view = cluster.active(record.group).filter(|_| !self.changes.contains_key(&record.group));
            let Some(view) = view.cloned() else { continue };
            cluster.counters.count(Counter::RecordAskedByAViewChange);
            let all = participants(&geometry, view.writers(), &record);
            for (slot, brick) in view.writing_bricks().filter(|(slot, _)| all.has(*slot)) {
                // Later than all numbers of an earlier run: what answers that one names nothing here.
                self.serial = now.0.max(self.serial + 1);
                let (operation, number) = (self.serial, view.number);
                self.asked.insert(
                    operation,
                    RecordAsked { at: now, wanted_by: group, record, view: number, slot, brick, all },
                );
                let width = width_at(&geometry, record.span.lba, slot);
                let question =
                    Message::Query { operation, view: number, write: record, width, only_looks: false };
                send(fx, NodeId::Brick(brick), question);
            }
        }
    }

    /// A member of another group said what it knows of a record.
    pub(super) fn on_record(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        (from, operation, fate): (BrickId, u64, Fate),
        fx: &mut Vec<DirectoryEffect>,
    ) {
        if self.asked.get(&operation).is_none_or(|asked| asked.brick != from) {
            return;
        }
        let Some(RecordAsked { wanted_by, record, view, slot, all, .. }) = self.asked.remove(&operation)
        else {
            return;
        };
        // What was said under a view that is no more may not be all that there is.
        let is_in_force = |active: &GroupView| active.number == view;
        if self.changes.contains_key(&record.group) || !cluster.active(record.group).is_some_and(is_in_force)
        {
            return;
        }
        self.advance(cluster, now, wanted_by, fx, |change| {
            change.on_record(&record, (view, all), slot, fate)
        });
        let have = self.changes.get(&wanted_by).map(|change| change.to_clear(&record)).unwrap_or_default();
        let Some(active) = cluster.active(record.group) else { return };
        for (_, brick) in active.writing_bricks().filter(|(slot, _)| have.has(*slot)) {
            let aborts = vec![Decision::from(&record)];
            send(fx, NodeId::Brick(brick), Message::Decide { commits: Vec::new(), aborts });
        }
    }

    /// A brick has writes that go by records of other groups, and no gateway settles them. A view of the same members does.
    pub(super) fn settle_doubts(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        from: BrickId,
        writes: &[WriteId],
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let groups: BTreeSet<GroupId> =
            writes.iter().filter(|write| write.link.is_some()).map(|write| write.group).collect();
        for group in groups.into_iter().filter(|group| !self.changes.contains_key(group)).collect::<Vec<_>>()
        {
            let Some(view) = cluster.active(group).filter(|view| view.is_writer(from)).cloned() else {
                continue;
            };
            cluster.counters.count(Counter::ViewChangeForWritesInDoubt);
            self.begin_change(cluster, now, following(&view, |_| {}), Vec::new(), fx);
        }
    }

    /// Repeats what members have not answered.
    pub(super) fn ask_again(&mut self, cluster: &mut Cluster, now: Time, fx: &mut Vec<DirectoryEffect>) {
        let due: Vec<GroupId> =
            self.changes.iter().filter(|(_, change)| change.due <= now).map(|(group, _)| *group).collect();
        due.into_iter().for_each(|group| self.ask(cluster, now, group, fx));
    }

    /// Another process of the brick counts now: nobody has asked it yet. Where its disk is not the same, it may not know what the one before promised.
    pub(super) fn on_new_run(&mut self, cluster: &Cluster, now: Time, brick: BrickId, is_same_disk: bool) {
        for (group, change) in &mut self.changes {
            if !is_same_disk {
                change.forget_answer(brick, cluster.active(*group).is_none());
            }
            if change.waits_for().contains(&brick) {
                change.due = now;
            }
        }
    }

    /// A member answered; when that completes a step, the next one begins.
    pub(super) fn advance(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        group: GroupId,
        fx: &mut Vec<DirectoryEffect>,
        answer: impl FnOnce(&mut Change) -> bool,
    ) {
        let Some(change) = self.changes.get_mut(&group) else { return };
        if !answer(change) {
            return;
        }
        match change.step {
            Step::Finishing => self.finish(cluster, group, fx),
            Step::Held => self.release_family(cluster, now, group, fx),
            Step::Confirming => self.confirm(cluster, group, fx),
            _ => self.ask(cluster, now, group, fx),
        }
    }

    fn finish(&mut self, cluster: &mut Cluster, group: GroupId, fx: &mut Vec<DirectoryEffect>) {
        let Some(change) = self.changes.get(&group) else { return };
        let (committed, aborted) = change.decisions();
        (0..committed).for_each(|_| cluster.counters.count(Counter::WriteDecidedByAViewChange));
        (0..aborted).for_each(|_| cluster.counters.count(Counter::WriteAbortedByAViewChange));
        let version = cluster.records.bump();
        let next = change.next.clone();
        cluster.records.groups.change(&group, |record| {
            record.voters = next.writers();
            record.active = Some(next);
            record.next = None;
            record.changed = version;
        });
        let puts = vec![cluster.records.put_group(group), cluster.records.put_counts()];
        cluster.put(puts, vec![After::Publish(group)], fx);
    }

    /// The new view is in force. Gives the family of its group.
    pub(super) fn on_active_stored(
        &mut self,
        cluster: &Cluster,
        group: GroupId,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Option<VolumeId> {
        // A further change may have begun meanwhile.
        if self.changes.get(&group).is_some_and(|change| change.step == Step::Finishing) {
            self.remove(group);
        }
        cluster.publish(group, None, fx);
        cluster.records.groups.get(&group).map(|record| record.volume)
    }

    // ---- the groups of a family fence together ----

    /// A group of the family has fenced: if all have, they go on.
    fn release_family(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        group: GroupId,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let family = cluster.records.groups.get(&group).map(|record| record.volume);
        let record = family.and_then(|family| cluster.records.families.get(&family)).cloned();
        let Some(record) = record else { return };
        let has_fenced = |group: &GroupId| {
            let change = self.changes.get(group);
            change.is_some_and(|change| !matches!(change.step, Step::Storing | Step::Fencing))
        };
        if !cut::is_through(cluster, &record, has_fenced) {
            return;
        }
        for group in record.groups {
            if let Some(change) = self.changes.get_mut(&group).filter(|change| change.step == Step::Held) {
                change.release();
                self.ask(cluster, now, group, fx);
            }
        }
    }

    /// What holds a group may have ended while another one was busy with a change of its own.
    pub(super) fn release_held(&mut self, cluster: &mut Cluster, now: Time, fx: &mut Vec<DirectoryEffect>) {
        let held = self.changes.iter().filter(|(_, change)| change.step == Step::Held);
        // One group speaks for all of its family.
        let held: BTreeMap<VolumeId, GroupId> =
            held.map(|(group, change)| (change.next.volume, *group)).collect();
        for group in held.into_values() {
            self.release_family(cluster, now, group, fx);
        }
    }
}

/// The view that follows on `view`, with a change.
pub(super) fn following(view: &GroupView, change: impl FnOnce(&mut GroupView)) -> GroupView {
    let mut next = view.clone();
    next.number = ViewNumber(view.number.0 + 1);
    change(&mut next);
    next
}
