//! Leaving groups whose slot went to another brick, and giving back what no group needs.
//!
//! A brick that is told to leave a group first forgets its views, durably, so that it serves nothing of it whatever comes,
//! then gives back every stretch that none of its groups holds, and says so once that is durable. Only then may it take
//! another slot of the group: equal stamps in different slots do not mean equal content.
//!
//! A disk that is put back from an older copy may have blocks of a slot that its brick has left since, of a group in which it has another one
//! now. Nobody but the brick can tell: it leaves such a group of its own accord, and takes no part in it before it has. Nor does it before the
//! first pass after a start in a group of which it keeps a tombstone: that pass may have begun before a crash.
//!
//! The same pass gives back branches that nobody knows any more, and what an earlier pass did not get to before a crash:
//! it is made once after each start, too.

use super::context::Context;
use super::disks::Effect;
use super::job::Stretch;
use base::{GroupId, Time, ViewNumber, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use std::collections::BTreeMap;
use volume::view::{Families, Groups};
use wire::disk::{INVENTORY_MAX, StoreError};
use wire::{FragmentId, GroupView};

const AGAIN: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Its views are being forgotten.
    Dropping,
    /// The next pass gives its space back.
    Waiting,
    Passing,
    Left,
}

#[derive(Debug)]
enum Pass {
    Listing {
        disk: usize,
        after: Option<Stretch>,
        found: Vec<Stretch>,
        is_waiting: bool,
    },
    /// What was given back is becoming durable.
    Settling,
}

#[derive(Debug)]
struct Group {
    view: GroupView,
    stage: Stage,
    /// The directory knows nothing of it: the brick has another slot of the group now.
    is_own: bool,
}

/// Groups that are being left, and the pass under way.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    groups: BTreeMap<GroupId, Group>,
    pass: Option<Pass>,
    is_wanted: bool,
    due: Option<Time>,
    /// A pass has ended since the start.
    has_passed: bool,
}

impl Leaving {
    /// The groups that the directory has this brick leave.
    pub(super) fn on_left(&mut self, cx: &mut Context, views: Vec<GroupView>, groups: &Groups) {
        let named = |group: &GroupId| views.iter().any(|view| view.group == *group);
        self.groups.retain(|group, of| named(group) || of.is_own && of.stage != Stage::Left);
        for view in views {
            let active = groups.active(view.group).map_or(ViewNumber(0), |active| active.number);
            let known = groups.promised(view.group).max(active);
            let is_member = view.has_part(cx.me());
            // It may have come back under a later view: then the order is an old one.
            let is_old = known > view.number;
            let again = self.groups.get(&view.group).is_some_and(|of| of.view.number >= view.number);
            if is_member || is_old || again {
                continue;
            }
            self.leave(cx, view, false);
        }
    }

    fn leave(&mut self, cx: &mut Context, view: GroupView, is_own: bool) {
        cx.disks().tell(Effect::Drop(view.clone()));
        self.groups.insert(view.group, Group { view, stage: Stage::Dropping, is_own });
    }

    /// What the disks have of the group is of another slot than the one that `view` gives this brick.
    pub(super) fn leave_slot(&mut self, cx: &mut Context, view: &GroupView) {
        if self.has_left(view.group) {
            cx.count(Counter::BlocksOfAnotherSlotFound);
            // It may take part in this one once it has left those before.
            let view = GroupView { number: ViewNumber(view.number.0 - 1), ..view.clone() };
            self.leave(cx, view, true);
        }
    }

    /// Whether nothing of what this brick had of the group is on its disks, if it has no view of it.
    fn has_left(&self, group: GroupId) -> bool {
        self.groups.get(&group).is_none_or(|of| of.stage == Stage::Left)
    }

    /// The same, also of what was left before the start.
    pub(super) fn is_clean(&self, group: GroupId) -> bool {
        self.has_passed && self.has_left(group)
    }

    /// Space may be held for nobody: looks for it.
    pub(super) fn give_back(&mut self) {
        self.is_wanted = true;
    }

    pub(super) fn left(&self) -> Vec<(GroupId, ViewNumber)> {
        let left = self.groups.iter().filter(|(_, of)| of.stage == Stage::Left && !of.is_own);
        left.map(|(group, of)| (*group, of.view.number)).collect()
    }

    pub(super) fn deadline(&self) -> Option<(Time, &'static str)> {
        self.due.map(|due| (due, "space is given back"))
    }

    pub(super) fn on_dropped(&mut self, group: GroupId) {
        if let Some(of) = self.groups.get_mut(&group).filter(|of| of.stage == Stage::Dropping) {
            of.stage = Stage::Waiting;
            self.is_wanted = true;
        }
    }

    pub(super) fn advance(&mut self, cx: &mut Context, groups: &Groups, families: &Families) {
        if self.pass.is_none() && self.is_wanted && self.due.is_none_or(|due| due <= cx.now()) {
            self.begin_pass();
        }
        let Some(Pass::Listing { disk, after, found, is_waiting: is_waiting @ false }) = &mut self.pass
        else {
            return;
        };
        if *disk < cx.disks().count() {
            *is_waiting = true;
            return cx.disks().list(*disk, *after);
        }
        let found = core::mem::take(found);
        self.discard(cx, found, groups, families);
    }

    fn begin_pass(&mut self) {
        (self.is_wanted, self.due) = (false, None);
        for of in self.groups.values_mut().filter(|of| of.stage == Stage::Waiting) {
            of.stage = Stage::Passing;
        }
        self.pass = Some(Pass::Listing { disk: 0, after: None, found: Vec::new(), is_waiting: false });
    }

    pub(super) fn on_stretches(&mut self, now: Time, result: Result<Vec<Stretch>, StoreError>) {
        let Some(Pass::Listing { disk, after, found, is_waiting }) = &mut self.pass else { return };
        *is_waiting = false;
        let Ok(page) = result else { return self.pass_again(now) };
        // Versions of objects come behind all volumes, and no group has any: whether one is of use is for its name's index to say.
        let of_volumes = page.partition_point(|(branch, _)| FragmentId::version_of(*branch).is_none());
        if of_volumes < INVENTORY_MAX {
            (*disk, *after) = (*disk + 1, None);
        } else {
            *after = page.last().copied();
        }
        found.extend(&page[..of_volumes]);
    }

    fn discard(&mut self, cx: &mut Context, found: Vec<Stretch>, groups: &Groups, families: &Families) {
        for (branch, stretch) in found {
            if !self.keeps(branch, stretch, groups, families) {
                cx.count(Counter::StretchGivenBack);
                cx.disks().tell(Effect::Discard { branch, stretch });
            }
        }
        self.pass = Some(Pass::Settling);
        cx.disks().settle();
    }

    /// Whether a group of this brick holds the stretch. What cannot be told is kept.
    fn keeps(&self, branch: VolumeId, stretch: u64, groups: &Groups, families: &Families) -> bool {
        let left = self.groups.values().map(|of| &of.view);
        let mut of_left = left.filter(|view| view.volume == branch || view.lineage.knows(branch));
        let family = groups.known_family(branch).or_else(|| of_left.next().map(|view| view.volume));
        let Some(family) = family else { return false };
        if !groups.states().any(|state| state.active.as_ref().is_some_and(|view| view.volume == family)) {
            return false;
        }
        let holders = families.groups_of_stretch(family, stretch);
        holders.is_empty() || holders.iter().any(|group| groups.has(*group))
    }

    /// All that was given back is gone for good, or a disk did not do its part: then another pass sees to it.
    pub(super) fn on_settled(&mut self, cx: &mut Context, durable: bool) {
        if !matches!(self.pass, Some(Pass::Settling)) {
            return;
        }
        if !durable {
            return self.pass_again(cx.now());
        }
        self.end_pass(Stage::Left);
        self.has_passed = true;
        cx.report();
    }

    fn end_pass(&mut self, stage: Stage) {
        self.pass = None;
        for of in self.groups.values_mut().filter(|of| of.stage == Stage::Passing) {
            of.stage = stage;
        }
    }

    fn pass_again(&mut self, now: Time) {
        self.end_pass(Stage::Waiting);
        (self.is_wanted, self.due) = (true, Some(now + AGAIN));
    }
}
