//! What was done to bricks that lasts: some never return, some have lost their disks, blocks of some rotted.

use crate::units::SECOND;
use base::{BrickId, GroupId};
use std::collections::{BTreeMap, BTreeSet};
use wire::GroupView;
use wire::directory::ScrubStatus;

/// So long after an outage a brick holds a lease again, and the views have settled: it may have to wait for the longest lease that
/// the process before had, which a directory that restarts takes to be 4 s.
pub(crate) const SETTLE_NS: u64 = 5 * SECOND;

/// So long after a brick was slow, or was out of reach while it ran, it may still be left out for it: reports age for some seconds,
/// and then a lease must end.
pub(crate) const LEAVING_NS: u64 = 2 * SETTLE_NS;

/// What was done to bricks that lasts.
#[derive(Default)]
pub(super) struct Harm {
    /// Bricks that never return.
    lost: BTreeSet<BrickId>,
    /// Members whose disks were exchanged or lost while a view counted on them, by group.
    wiped: BTreeSet<(GroupId, BrickId)>,
    /// Until when a brick was, or is, out of reach.
    unsettled: BTreeMap<BrickId, u64>,
}

impl Harm {
    /// The brick never returns.
    pub(super) fn lose(&mut self, brick: BrickId) {
        self.lost.insert(brick);
    }

    pub(super) fn is_lost(&self, brick: BrickId) -> bool {
        self.lost.contains(&brick)
    }

    /// The cluster has forgotten the brick.
    pub(super) fn forget(&mut self, brick: BrickId) {
        self.lost.remove(&brick);
        self.restore(brick);
    }

    /// How many bricks never return.
    pub(super) fn lost(&self) -> usize {
        self.lost.len()
    }

    /// The brick holds nothing any more of what these groups counted on.
    pub(super) fn wipe(&mut self, brick: BrickId, groups: Vec<GroupId>) {
        self.wiped.extend(groups.into_iter().map(|group| (group, brick)));
    }

    /// Whether some group counts on what the brick has lost.
    pub(super) fn has_lost(&self, brick: BrickId) -> bool {
        self.wiped.iter().any(|(_, of)| *of == brick)
    }

    /// The brick has all that it had.
    pub(super) fn restore(&mut self, brick: BrickId) {
        self.wiped.retain(|(_, of)| *of != brick);
    }

    /// Whether a group counts on what the brick has lost.
    pub(super) fn is_wiped(&self, group: GroupId, brick: BrickId) -> bool {
        self.wiped.contains(&(group, brick))
    }

    /// The groups that count on what some brick has lost.
    pub(super) fn wiped_groups(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.wiped.iter().map(|(group, _)| *group)
    }

    /// A view was seen: whoever it leaves out is not counted on any more.
    pub(super) fn forgive(&mut self, view: &GroupView) {
        self.wiped.retain(|(group, brick)| *group != view.group || view.is_writer(*brick));
    }

    /// Whether the brick is out of reach now.
    pub(super) fn is_unsettled(&self, brick: BrickId, now_ns: u64) -> bool {
        self.unsettled.get(&brick).is_some_and(|until_ns| *until_ns > now_ns)
    }

    /// The brick is out of reach until then.
    pub(super) fn unsettle(&mut self, brick: BrickId, until_ns: u64) {
        let known = self.unsettled.entry(brick).or_default();
        *known = until_ns.max(*known);
    }
}

/// Which pages rotted and were not written anew since.
#[derive(Default)]
pub(super) struct Rot {
    pages: BTreeMap<BrickId, Vec<(usize, u64)>>,
    /// Scrubs of a brick that began after its blocks rotted: how many it had completed before.
    scrubs: BTreeMap<BrickId, ScrubStatus>,
}

impl Rot {
    /// Whether a block of the brick may be rotten.
    pub(super) fn is_rotten(&self, brick: BrickId) -> bool {
        self.pages.contains_key(&brick)
    }

    /// The brick has checked all its blocks, and those that were rotten are repaired.
    pub(super) fn clear(&mut self, brick: BrickId) {
        self.pages.remove(&brick);
        self.scrubs.remove(&brick);
    }

    /// A page of one of the brick's disks rots.
    pub(super) fn add(&mut self, brick: BrickId, disk: usize, page: u64) {
        self.pages.entry(brick).or_default().push((disk, page));
        self.scrubs.remove(&brick);
    }

    /// Of the brick's pages (disk, page) only those are rotten still that `is_bad` names.
    pub(super) fn retain(&mut self, brick: BrickId, is_bad: impl Fn(&(usize, u64)) -> bool) {
        if let Some(pages) = self.pages.get_mut(&brick) {
            pages.retain(is_bad);
            if pages.is_empty() {
                self.clear(brick);
            }
        }
    }

    /// Learns how far a scrub of a rotten brick is; `is_out` is whether some group of the brick does without it, where a
    /// scrub passes over its blocks. Whether all its blocks are sound with that.
    pub(super) fn follow_scrub(&mut self, brick: BrickId, scrub: &ScrubStatus, is_out: bool) -> bool {
        if is_out {
            self.scrubs.remove(&brick);
            return false;
        }
        let Some(before) = self.scrubs.get(&brick) else {
            self.scrubs.insert(brick, *scrub);
            return false;
        };
        // One may have been under way when the blocks rotted.
        let wanted = before.completed + if before.running { 2 } else { 1 };
        if scrub.completed < before.completed {
            self.scrubs.insert(brick, *scrub);
            return false;
        }
        let is_clean =
            scrub.completed >= wanted && !scrub.running && scrub.found_blocks == scrub.repaired_blocks;
        if is_clean {
            self.clear(brick);
        }
        is_clean
    }

    /// A view was seen: the scrubs of whoever is not current in it are not complete.
    pub(super) fn doubt_scrubs(&mut self, view: &GroupView) {
        self.scrubs.retain(|brick, _| !view.has_part(*brick) || view.is_current(*brick));
    }
}
