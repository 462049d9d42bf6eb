//! The directory's part in view changes: who is left out and when, and what a group may not be left without.

use super::{ASK_AGAIN, After, Directory, DirectoryEffect, send};
use crate::layout::{Geometry, Layout};
use crate::member::change::{Change, Step};
use base::{BrickId, GroupId, Time, ViewNumber};
use std::collections::BTreeSet;
use wire::{GroupView, Slots};

impl Directory {
    /// Changes that were under way when the directory stopped begin again.
    pub(super) fn resume_changes(&mut self, now: Time) {
        let resumed: Vec<(GroupId, Change)> = self
            .records
            .groups
            .iter()
            .filter_map(|(group, record)| {
                let geometry = self.geometry(record.volume)?;
                let mut change = Change::new(record.next.clone()?, geometry, record.active.is_some(), now);
                change.on_stored();
                Some((*group, change))
            })
            .collect();
        if !resumed.is_empty() {
            self.counters.count("directory restarted inside a view change");
        }
        self.changes.extend(resumed);
    }

    pub(super) fn geometry(&self, volume: base::VolumeId) -> Option<Geometry> {
        let info = &self.records.volumes.get(&volume)?.info;
        let layout: Layout = info.layout.parse().ok()?;
        Geometry::new(layout, info.stripe_unit_blocks, info.column_blocks).ok()
    }

    /// Begins changes to leave out bricks that cannot believe in their views any more.
    pub(super) fn leave_out_the_dead(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        let dead = self.leases.dead(now, self.records.bricks.keys().copied());
        if dead.is_empty() {
            return;
        }
        for group in self.records.groups.keys().copied().collect::<Vec<_>>() {
            let Some(from) = self.latest_view(group) else { continue };
            let current = without(&from, &dead);
            if current == from.current || !self.is_viable(&from, current) {
                continue;
            }
            self.counters.count("view change begun");
            let next = GroupView { number: ViewNumber(from.number.0 + 1), current, ..from };
            self.begin_change(now, next, fx);
        }
    }

    /// The view that is being made, or else the one in force.
    fn latest_view(&self, group: GroupId) -> Option<GroupView> {
        let record = self.records.groups.get(&group)?;
        record.next.clone().or_else(|| record.active.clone())
    }

    /// Whether the members left hold every acknowledged write.
    fn is_viable(&self, view: &GroupView, current: Slots) -> bool {
        self.geometry(view.volume).is_some_and(|geometry| {
            let lost = view.members.len() as u8 - current.len();
            lost <= geometry.layout().tolerates()
        })
    }

    /// Stores a view to come and then makes it.
    pub(super) fn begin_change(&mut self, now: Time, next: GroupView, fx: &mut Vec<DirectoryEffect>) {
        let (group, number) = (next.group, next.number);
        let Some(geometry) = self.geometry(next.volume) else { return };
        let Some(record) = self.records.groups.get_mut(&group) else { return };
        record.next = Some(next.clone());
        let fences = record.active.is_some();
        let put = self.records.put_group(group);
        self.changes.insert(group, Change::new(next, geometry, fences, now));
        self.store(vec![put], vec![After::Change(group, number)], fx);
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

    fn ask(&mut self, now: Time, group: GroupId, fx: &mut Vec<DirectoryEffect>) {
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
        if change.step == Step::Finishing { self.finish(group, fx) } else { self.ask(now, group, fx) }
    }

    fn finish(&mut self, group: GroupId, fx: &mut Vec<DirectoryEffect>) {
        let Some(change) = self.changes.get(&group) else { return };
        let (committed, aborted) = change.decisions();
        (0..committed).for_each(|_| self.counters.count("write decided by a view change"));
        (0..aborted).for_each(|_| self.counters.count("write aborted by a view change"));
        let version = self.records.bump();
        let next = change.next.clone();
        let Some(record) = self.records.groups.get_mut(&group) else { return };
        record.active = Some(next);
        record.next = None;
        record.changed = version;
        let puts = vec![self.records.put_group(group), self.records.put_counts()];
        self.store(puts, vec![After::Publish(group)], fx);
    }

    /// The new view is in force.
    pub(super) fn on_active_stored(&mut self, group: GroupId, fx: &mut Vec<DirectoryEffect>) {
        // A further change may have begun meanwhile.
        if self.changes.get(&group).is_some_and(|change| change.step == Step::Finishing) {
            self.changes.remove(&group);
        }
        self.publish(group, None, fx);
        if let Some(volume) = self.records.groups.get(&group).map(|record| record.volume) {
            self.on_group_ready(volume, fx);
        }
    }
}

fn without(view: &GroupView, dead: &BTreeSet<BrickId>) -> Slots {
    view.current_bricks()
        .filter(|(_, brick)| dead.contains(brick))
        .fold(view.current, |current, (slot, _)| current.without(slot))
}
