//! What the parts of maintenance share: the time, the views under which the brick works, and the ways out.

use super::budget::Budget;
use super::disks::{Disks, Effect};
use super::members::Members;
use base::{BrickId, GroupId, Time};
use rules::counters::Counter;
use rules::layout::Geometry;
use std::collections::BTreeMap;
use wire::{Care, GroupView};

/// What a part may look at and ask.
pub(super) struct Context {
    me: BrickId,
    now: Time,
    views: BTreeMap<GroupId, GroupView>,
    disks: Disks,
    members: Members,
    budget: Budget,
    /// How often it was looked what became of a group.
    #[cfg(test)]
    pub(super) looked: usize,
}

impl Context {
    pub(super) fn new(me: BrickId, disks: usize, now: Time) -> Context {
        Context {
            me,
            now,
            views: BTreeMap::new(),
            disks: Disks::new(disks),
            members: Members::default(),
            budget: Budget::new(Care::default(), now),
            #[cfg(test)]
            looked: 0,
        }
    }

    pub(super) fn me(&self) -> BrickId {
        self.me
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    pub(super) fn set_now(&mut self, now: Time) {
        self.now = now;
        self.members.set_now(now);
    }

    pub(super) fn view(&self, group: GroupId) -> Option<&GroupView> {
        self.views.get(&group)
    }

    pub(super) fn views(&self) -> impl Iterator<Item = &GroupView> {
        self.views.values()
    }

    pub(super) fn set_view(&mut self, view: GroupView) {
        self.views.insert(view.group, view);
    }

    pub(super) fn forget_view(&mut self, group: GroupId) {
        self.views.remove(&group);
    }

    /// The groups of which there is a view.
    pub(super) fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.views.keys().copied()
    }

    pub(super) fn disks(&mut self) -> &mut Disks {
        &mut self.disks
    }

    pub(super) fn members(&mut self) -> &mut Members {
        &mut self.members
    }

    /// When an operation at the members has something to do.
    pub(super) fn operations_due(&self) -> Option<(Time, &'static str)> {
        self.members.deadline()
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    pub(super) fn budget_mut(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// The geometry of a group of which there is a view.
    pub(super) fn geometry_of(&self, group: GroupId) -> Geometry {
        self.members.geometry_of(group)
    }

    pub(super) fn is_fetching_open(&mut self) -> bool {
        self.budget.fetching().is_open(self.now)
    }

    pub(super) fn is_checking_open(&mut self) -> bool {
        self.budget.checking().is_open(self.now)
    }

    /// The directory is to hear of this soon.
    pub(super) fn report(&mut self) {
        self.disks.tell(Effect::Report);
    }

    pub(super) fn count(&mut self, counter: Counter) {
        self.members.counters().count(counter);
    }
}
