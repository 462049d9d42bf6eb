//! The directory's part in view changes: how one is stored, made, repeated and published.
//!
//! Who is in the view to come is decided in [`super::members`], on which branches in [`super::families`].

use super::event::send;
use super::store::After;
use super::{ASK_AGAIN, Directory, DirectoryEffect, Put};
use crate::layout::{Geometry, Layout};
use crate::member::change::{Change, Step};
use base::{GroupId, Time, ViewNumber, VolumeId};
use wire::GroupView;

impl Directory {
    /// Changes that were under way when the directory stopped begin again.
    pub(super) fn resume_changes(&mut self, now: Time) {
        let resumed: Vec<(GroupId, Change)> = self
            .records
            .groups
            .iter()
            .filter_map(|(group, record)| {
                let geometry = self.geometry(record.volume)?;
                let voters = record.active.as_ref().map(|_| record.voters);
                let next = record.next.clone()?;
                let holds = self.moves_branches(&next);
                let is_revocable = self.records.revocable.get(group) == Some(&next.number);
                let mut change = Change::new(next, geometry, voters, holds, now);
                if is_revocable {
                    change = change.revocable();
                }
                change.on_stored();
                Some((*group, change))
            })
            .collect();
        if !resumed.is_empty() {
            self.counters.count("directory restarted inside a view change");
        }
        self.changes.extend(resumed);
    }

    /// Of the volumes of a family: they all have the same.
    pub(super) fn geometry(&self, family: VolumeId) -> Option<Geometry> {
        let info = &self.records.volumes_of(family).next()?.info;
        let layout: Layout = info.layout.parse().ok()?;
        Geometry::new(layout, info.stripe_unit_blocks, info.column_blocks).ok()
    }

    /// The view that is being made, or else the one in force. One that may be revoked is not sure to come: the one in
    /// force counts.
    pub(super) fn latest_view(&self, group: GroupId) -> Option<&GroupView> {
        let record = self.records.groups.get(&group)?;
        record.next.as_ref().filter(|_| !self.is_revocable(group)).or(record.active.as_ref())
    }

    /// Whether the view to come may be revoked: no member can have begun it.
    pub(super) fn is_revocable(&self, group: GroupId) -> bool {
        let next = self.records.groups.get(&group).and_then(|record| record.next.as_ref());
        next.is_some_and(|next| self.records.revocable.get(&group) == Some(&next.number))
    }

    /// Leaves out members that are alive, from a view in force: who remains must promise before it is sure to come.
    pub(super) fn begin_revocable(&mut self, now: Time, next: GroupView, fx: &mut Vec<DirectoryEffect>) {
        let group = next.group;
        self.records.revocable.insert(group, next.number);
        let put = self.records.put_revocable(group);
        self.begin_change(now, next, vec![put], fx);
        if let Some(change) = self.changes.remove(&group) {
            self.changes.insert(group, change.revocable());
        }
    }

    /// All that remain have promised, so all of them are there: from now on the change is not revoked.
    fn confirm(&mut self, group: GroupId, fx: &mut Vec<DirectoryEffect>) {
        let Some(number) = self.records.revocable.remove(&group) else { return };
        let put = self.records.put_revocable(group);
        self.put(vec![put], vec![After::Confirmed(group, number)], fx);
    }

    pub(super) fn on_confirmed(
        &mut self,
        now: Time,
        group: GroupId,
        number: ViewNumber,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let Some(change) = self.changes.get_mut(&group) else { return };
        if change.next.number == number && change.step == Step::Confirming {
            change.on_confirmed();
            self.ask(now, group, fx);
        }
    }

    /// Stores a view to come, together with `puts`, and then makes it.
    pub(super) fn begin_change(
        &mut self,
        now: Time,
        mut next: GroupView,
        mut puts: Vec<Put>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let group = next.group;
        // Of a change that is revoked members may have promised the number, and nothing else has come of it.
        let is_revoked = self.is_revocable(group);
        if let Some(pending) = self.records.groups.get(&group).and_then(|record| record.next.as_ref())
            && is_revoked
        {
            self.counters.count("view change revoked");
            next.number = next.number.max(ViewNumber(pending.number.0 + 1));
            self.records.revocable.remove(&group);
            puts.push(self.records.put_revocable(group));
        }
        let number = next.number;
        let Some(geometry) = self.geometry(next.volume) else { return };
        let holds = self.moves_branches(&next);
        let Some(record) = self.records.groups.get_mut(&group) else { return };
        let voters = record.active.as_ref().map(|active| {
            let before = if record.next.is_some() && !is_revoked { record.voters } else { active.writers() };
            before.and(next.writers())
        });
        record.voters = voters.unwrap_or_default();
        record.next = Some(next.clone());
        puts.push(self.records.put_group(group));
        self.changes.insert(group, Change::new(next, geometry, voters, holds, now));
        self.put(puts, vec![After::Change(group, number)], fx);
    }

    pub(super) fn on_change_stored(
        &mut self,
        now: Time,
        group: GroupId,
        number: ViewNumber,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let Some(change) = self.changes.get_mut(&group) else { return };
        if change.next.number == number && change.step == Step::Storing {
            change.on_stored();
            self.ask(now, group, fx);
        }
    }

    pub(super) fn ask(&mut self, now: Time, group: GroupId, fx: &mut Vec<DirectoryEffect>) {
        let Some(change) = self.changes.get_mut(&group) else { return };
        change.due = now + ASK_AGAIN;
        change.questions().into_iter().for_each(|(to, message)| send(fx, to, message));
    }

    /// Repeats what members have not answered.
    pub(super) fn ask_again(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        let due: Vec<GroupId> =
            self.changes.iter().filter(|(_, change)| change.due <= now).map(|(group, _)| *group).collect();
        due.into_iter().for_each(|group| self.ask(now, group, fx));
    }

    /// A member answered; when that completes a step, the next one begins.
    pub(super) fn advance(
        &mut self,
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
            Step::Finishing => self.finish(group, fx),
            Step::Held => self.release_family(now, group, fx),
            Step::Confirming => self.confirm(group, fx),
            _ => self.ask(now, group, fx),
        }
    }

    fn finish(&mut self, group: GroupId, fx: &mut Vec<DirectoryEffect>) {
        let Some(change) = self.changes.get(&group) else { return };
        let (committed, aborted) = change.decisions();
        (0..committed).for_each(|_| self.counters.count("write decided by a view change"));
        (0..aborted).for_each(|_| self.counters.count("write aborted by a view change"));
        let version = self.records.bump();
        let next = change.next.clone();
        let Some(record) = self.records.groups.get_mut(&group) else { return };
        record.voters = next.writers();
        record.active = Some(next);
        record.next = None;
        record.changed = version;
        let puts = vec![self.records.put_group(group), self.records.put_counts()];
        self.put(puts, vec![After::Publish(group)], fx);
    }

    /// The new view is in force.
    pub(super) fn on_active_stored(&mut self, group: GroupId, fx: &mut Vec<DirectoryEffect>) {
        // A further change may have begun meanwhile.
        if self.changes.get(&group).is_some_and(|change| change.step == Step::Finishing) {
            self.changes.remove(&group);
        }
        self.publish(group, None, fx);
        if let Some(family) = self.records.groups.get(&group).map(|record| record.volume) {
            self.on_family_advanced(family, fx);
        }
    }
}
