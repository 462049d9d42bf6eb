//! What may go wrong at the same time: whose copies are needed, so that what happens never exceeds what a layout promises
//! to survive.
//!
//! A member *fails* a group while it is not in the current set, while it has lost what it held and no view has left it out
//! for that yet, and while a block of it may be rotten. One that is only out of reach for a moment, or is told to leave,
//! fails it too where another one is about to lose something for good: nobody can tell the two apart.

use super::Faults;
use crate::world::World;
use base::{BrickId, GroupId};
use std::collections::BTreeSet;
use wire::{GroupView, Slots};

impl World {
    /// The brick holds nothing any more of what it held.
    pub(crate) fn note_wiped(&mut self, brick: BrickId) {
        let groups = self.judges.views().groups();
        let counts_on = |group: &GroupId| self.views_of(*group).iter().any(|view| view.is_writer(brick));
        let wiped: Vec<GroupId> = groups.into_iter().filter(counts_on).collect();
        self.faults.harm.wipe(brick, wiped);
    }

    /// A view was seen: whoever it leaves out is not counted on any more.
    pub(crate) fn forgive(&mut self, view: &GroupView) {
        self.doubt_scrubs(view);
        self.faults.harm.forgive(view);
    }

    /// Whether bricks may be out of reach for a while: not where one was lost for good that a view still counts on, and
    /// the directory could not tell which of them is the one to do without; nor where one runs twice, or its blocks may be rotten:
    /// who is out of reach may be left out, and miss what nobody can make out any more.
    pub(crate) fn may_disturb(&self, bricks: &[BrickId]) -> bool {
        let Faults { harm, rot, .. } = &self.faults;
        let is_bad = |brick: &BrickId| rot.is_rotten(*brick) || self.faults.runs_twice(*brick);
        let mut groups: BTreeSet<GroupId> = harm.wiped_groups().collect();
        let is_hurt = |view: &&GroupView| view.members.iter().any(is_bad);
        groups.extend(self.judges.views().newest().values().filter(is_hurt).map(|view| view.group));
        groups.into_iter().all(|group| self.failing(group, bricks, true).len() <= self.tolerates(group))
    }

    /// Whether every group of this brick survives that it loses what it holds.
    pub(crate) fn may_lose(&self, brick: BrickId) -> bool {
        let is_calm = self.physics.net().config().loss_ppm == 0 && self.nodes[0].runs();
        let survives = |group| {
            let is_member = self.views_of(group).iter().any(|view| view.is_writer(brick));
            !is_member || self.failing(group, &[brick], true).len() <= self.tolerates(group)
        };
        is_calm && self.knows_all_changes() && self.judges.views().groups().into_iter().all(survives)
    }

    /// Whether more is gone from a group than its layout survives, be it for a moment.
    pub(crate) fn is_beyond(&self, group: GroupId) -> bool {
        self.failing(group, &[], false).len() > self.tolerates(group)
    }

    pub(crate) fn tolerates(&self, group: GroupId) -> u8 {
        let family = self.views_of(group).first().map(|view| view.volume);
        let plan = family.and_then(|family| self.workload.plan_of(family));
        plan.map_or(0, |plan| plan.layout.tolerates())
    }

    /// The slots that fail a group, with those of `more` bricks; with or without those that are out of reach for a moment.
    fn failing(&self, group: GroupId, more: &[BrickId], with_unsettled: bool) -> Slots {
        let Faults { harm, rot, .. } = &self.faults;
        let fails = |brick: BrickId| {
            more.contains(&brick)
                || harm.is_lost(brick)
                || harm.is_wiped(group, brick)
                || rot.is_rotten(brick)
                || self.faults.runs_twice(brick)
                || with_unsettled && harm.is_unsettled(brick, self.time.now_ns())
                || with_unsettled && (!self.is_leased(brick) || self.administrator.has_evicted(brick))
        };
        let of_view = |view: &GroupView| {
            let out = (0..).zip(&view.members).filter(|&(slot, _)| !view.current.has(slot));
            let bad = (0..).zip(&view.members).filter(|&(_, brick)| fails(*brick));
            out.chain(bad).fold(Slots::default(), |slots, (slot, _)| slots.with(slot))
        };
        self.views_of(group).into_iter().fold(Slots::default(), |sum, view| Slots(sum.0 | of_view(view).0))
    }

    /// The view in force and the newest of a group.
    pub(super) fn views_of(&self, group: GroupId) -> Vec<&GroupView> {
        [self.judges.views().in_force(group), self.judges.views().newest().get(&group)]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Whether it runs and has a lease. One that has none may be about to be left out for good, and repairs nobody: its process may have to wait until the
    /// directory knows that the one before it has no lease any more. (Seed 3001703.)
    fn is_leased(&self, brick: BrickId) -> bool {
        let node = self.nodes.slot(base::NodeId::Brick(brick)).map(|node| &self.nodes[node]);
        node.is_some_and(|node| node.runs() && node.is_leased(self.time.now_ns()))
    }

    /// Whether the views that are being made were seen: one that is only on its way to the directory's disk was not.
    fn knows_all_changes(&self) -> bool {
        let is_changing = self.nodes[0].is_changing();
        let seen =
            || self.judges.views().newest().values().any(|view| !self.judges.views().is_in_force(view));
        !is_changing || seen()
    }
}
