//! Leaving groups whose slot went to another brick, and giving back what no group needs.
//!
//! A brick that is told to leave a group first forgets its views, durably, so that it serves nothing of it whatever comes,
//! then gives back every stretch that none of its groups holds, and says so once that is durable. Only then may it take
//! another slot of the group: equal stamps in different slots do not mean equal content.
//!
//! The same pass gives back branches that nobody knows any more, and what an earlier pass did not get to before a crash:
//! it is made once after each start, too.

use super::{Job, Maintenance, NO_VIEW, Wish};
use crate::view::Families;
use crate::view::Groups;
use base::{GroupId, Time, ViewNumber, VolumeId};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::GroupView;
use wire::disk::{INVENTORY_MAX, StoreError};

const AGAIN: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Its views are being forgotten.
    Dropping,
    /// The next pass gives its space back.
    Waiting,
    /// This pass does.
    Passing,
    Left,
}

#[derive(Debug)]
enum Pass {
    Listing {
        disk: usize,
        after: Option<(VolumeId, u64)>,
        found: Vec<(VolumeId, u64)>,
        is_waiting: bool,
    },
    /// The disks that have still to say that all is durable.
    Settling(usize),
}

/// Groups that are being left, and the pass under way.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    groups: BTreeMap<GroupId, (GroupView, Stage)>,
    pass: Option<Pass>,
    is_wanted: bool,
    due: Option<Time>,
}

impl Leaving {
    pub(super) fn left(&self) -> Vec<(GroupId, ViewNumber)> {
        let left = self.groups.iter().filter(|(_, (_, stage))| *stage == Stage::Left);
        left.map(|(group, (view, _))| (*group, view.number)).collect()
    }

    pub(super) fn deadline(&self) -> Option<(Time, &'static str)> {
        self.due.map(|due| (due, "space is given back"))
    }

    pub(super) fn on_dropped(&mut self, group: GroupId) {
        if let Some((_, stage)) = self.groups.get_mut(&group)
            && *stage == Stage::Dropping
        {
            *stage = Stage::Waiting;
            self.is_wanted = true;
        }
    }

    pub(super) fn on_stretches(&mut self, now: Time, result: Result<Vec<(VolumeId, u64)>, StoreError>) {
        let Some(Pass::Listing { disk, after, found, is_waiting }) = &mut self.pass else { return };
        *is_waiting = false;
        let Ok(page) = result else { return self.pass_again(now) };
        match page.len() < INVENTORY_MAX {
            true => (*disk, *after) = (*disk + 1, None),
            false => *after = page.last().copied(),
        }
        found.extend(page);
    }

    fn end_pass(&mut self, stage: Stage) {
        self.pass = None;
        for (_, of) in self.groups.values_mut().filter(|(_, of)| *of == Stage::Passing) {
            *of = stage;
        }
    }

    /// A disk did not do its part: another pass sees to it.
    fn pass_again(&mut self, now: Time) {
        self.end_pass(Stage::Waiting);
        (self.is_wanted, self.due) = (true, Some(now + AGAIN));
    }
}

impl Maintenance {
    /// The groups that the directory has this brick leave.
    pub(crate) fn on_left(&mut self, views: Vec<GroupView>, groups: &Groups) {
        let named = |group: &GroupId| views.iter().any(|view| view.group == *group);
        self.leaving.groups.retain(|group, _| named(group));
        for view in views {
            let known =
                groups.promised(view.group).max(groups.active(view.group).map_or(NO_VIEW, |v| v.number));
            let is_member = view.slot_of(self.me).is_some();
            // It may have come back under a later view: then the order is an old one.
            let is_old = known > view.number;
            let again = self.leaving.groups.get(&view.group).is_some_and(|(of, _)| of.number >= view.number);
            if is_member || is_old || again {
                continue;
            }
            self.wishes.push(Wish::Drop(view.clone()));
            self.leaving.groups.insert(view.group, (view, Stage::Dropping));
        }
    }

    /// Space may be held for nobody: looks for it.
    pub(crate) fn give_back(&mut self) {
        self.leaving.is_wanted = true;
    }

    pub(super) fn leave(&mut self, groups: &Groups, families: &Families) {
        let leaving = &mut self.leaving;
        if leaving.pass.is_none() && leaving.is_wanted && leaving.due.is_none_or(|due| due <= self.now) {
            (leaving.is_wanted, leaving.due) = (false, None);
            for (_, stage) in leaving.groups.values_mut().filter(|(_, stage)| *stage == Stage::Waiting) {
                *stage = Stage::Passing;
            }
            let (after, found) = (None, Vec::new());
            leaving.pass = Some(Pass::Listing { disk: 0, after, found, is_waiting: false });
        }
        let Some(Pass::Listing { disk, after, found, is_waiting: is_waiting @ false }) = &mut leaving.pass
        else {
            return;
        };
        if *disk < self.disks {
            *is_waiting = true;
            let (disk, after) = (*disk, *after);
            let job = self.begin_job(Job::Leave);
            return self.wishes.push(Wish::Stretches { job, disk, after });
        }
        let found = core::mem::take(found);
        self.discard(found, groups, families);
    }

    fn discard(&mut self, found: Vec<(VolumeId, u64)>, groups: &Groups, families: &Families) {
        for (branch, stretch) in found {
            if !self.keeps(branch, stretch, groups, families) {
                self.coordinator.shared.counters.count("stretch given back");
                self.wishes.push(Wish::Discard { branch, stretch });
            }
        }
        self.leaving.pass = Some(Pass::Settling(self.disks));
        let job = self.begin_job(Job::Settle);
        self.wishes.push(Wish::Settle { job });
    }

    /// Whether a group of this brick holds the stretch. What cannot be told is kept.
    fn keeps(&self, branch: VolumeId, stretch: u64, groups: &Groups, families: &Families) -> bool {
        let left = self.leaving.groups.values().map(|(view, _)| view);
        let mut of_left = left.filter(|view| view.volume == branch || view.lineage.knows(branch));
        let family = groups.known_family(branch).or_else(|| of_left.next().map(|view| view.volume));
        let Some(family) = family else { return false };
        if !groups.states().any(|state| state.active.as_ref().is_some_and(|view| view.volume == family)) {
            return false;
        }
        let holders = families.groups_of_stretch(family, stretch);
        holders.is_empty() || holders.iter().any(|group| groups.has(*group))
    }

    pub(super) fn on_settled_disk(&mut self, job: u64, durable: bool) {
        let Some(Pass::Settling(left)) = &mut self.leaving.pass else { return };
        if !durable {
            self.jobs.remove(&job);
            return self.leaving.pass_again(self.now);
        }
        *left -= 1;
        if *left == 0 {
            self.jobs.remove(&job);
            self.leaving.end_pass(Stage::Left);
            self.wishes.push(Wish::Report);
        }
    }
}
