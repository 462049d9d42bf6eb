//! By what volumes, families and groups are found: see [`super::table`].

use super::records::{FamilyRecord, GroupRecord, VolumeRecord};
use super::table::{Index, Places};
use base::{BrickId, GroupId, StreamId, VolumeId};
use core::ops::RangeInclusive;
use std::collections::BTreeSet;
use wire::GroupView;

#[derive(Debug, Default, PartialEq)]
pub(super) struct VolumeIndex {
    by_name: Places<String, VolumeId>,
    by_family: Places<VolumeId, VolumeId>,
    by_stream: Places<StreamId, VolumeId>,
    snapshots: usize,
}

impl VolumeIndex {
    pub(super) fn named(&self, name: &str) -> Option<VolumeId> {
        self.by_name.at(name).next()
    }

    pub(super) fn of_family(&self, family: VolumeId) -> impl Iterator<Item = VolumeId> + use<'_> {
        self.by_family.at(&family)
    }

    pub(super) fn of_stream(&self, stream: StreamId) -> impl Iterator<Item = VolumeId> + use<'_> {
        self.by_stream.at(&stream)
    }

    /// How many of them are snapshots.
    pub(super) fn snapshots(&self) -> usize {
        self.snapshots
    }

    /// The streams to which volumes belong.
    pub(super) fn streams(&self) -> impl Iterator<Item = StreamId> {
        self.by_stream.places().copied()
    }
}

impl Index for VolumeIndex {
    type Key = VolumeId;
    type Record = VolumeRecord;

    fn enter(&mut self, id: VolumeId, record: &VolumeRecord) {
        self.by_name.enter(record.info.name.clone(), id);
        self.by_family.enter(record.info.family, id);
        self.by_stream.enter(record.info.stream, id);
        self.snapshots += usize::from(record.info.is_snapshot);
    }

    fn take_out(&mut self, id: VolumeId, record: &VolumeRecord) {
        self.by_name.take_out(record.info.name.as_str(), id);
        self.by_family.take_out(&record.info.family, id);
        self.by_stream.take_out(&record.info.stream, id);
        self.snapshots -= usize::from(record.info.is_snapshot);
    }
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct FamilyIndex {
    by_change: Places<u64, VolumeId>,
    busy: BTreeSet<VolumeId>,
}

impl FamilyIndex {
    /// Those that changed last at one of these versions of the map.
    pub(super) fn changed(
        &self,
        versions: RangeInclusive<u64>,
    ) -> impl Iterator<Item = (u64, VolumeId)> + use<'_> {
        self.by_change.within(versions)
    }

    /// Those that are on the way to another lineage, or have a branch that is to go.
    pub(super) fn busy(&self) -> impl Iterator<Item = VolumeId> + use<'_> {
        self.busy.iter().copied()
    }
}

impl Index for FamilyIndex {
    type Key = VolumeId;
    type Record = FamilyRecord;

    fn enter(&mut self, id: VolumeId, record: &FamilyRecord) {
        self.by_change.enter(record.changed, id);
        if record.next.is_some() || !record.doomed.is_empty() {
            self.busy.insert(id);
        }
    }

    fn take_out(&mut self, id: VolumeId, record: &FamilyRecord) {
        self.by_change.take_out(&record.changed, id);
        self.busy.remove(&id);
    }
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct GroupIndex {
    by_change: Places<u64, GroupId>,
    by_member: Places<BrickId, GroupId>,
    by_writer: Places<BrickId, GroupId>,
    by_outsider: Places<BrickId, GroupId>,
    by_former: Places<BrickId, GroupId>,
    by_catching_up: Places<BrickId, GroupId>,
    incomplete: BTreeSet<GroupId>,
    joining: BTreeSet<GroupId>,
    changing: BTreeSet<GroupId>,
}

impl GroupIndex {
    /// Those whose view in force began at one of these versions of the map.
    pub(super) fn changed(
        &self,
        versions: RangeInclusive<u64>,
    ) -> impl Iterator<Item = (u64, GroupId)> + use<'_> {
        self.by_change.within(versions)
    }

    /// Those in which the brick has a place, in the view in force or in one to come.
    pub(super) fn of_member(&self, brick: BrickId) -> impl Iterator<Item = GroupId> + use<'_> {
        self.by_member.at(&brick)
    }

    /// How many these are.
    pub(super) fn count_of_member(&self, brick: BrickId) -> usize {
        self.by_member.count(&brick)
    }

    /// Those in which the brick takes writes, in the view in force or in one to come.
    pub(super) fn of_writer(&self, brick: BrickId) -> impl Iterator<Item = GroupId> + use<'_> {
        self.by_writer.at(&brick)
    }

    /// Those in which the brick has a place and takes no writes, in the view in force.
    pub(super) fn of_outsider(&self, brick: BrickId) -> impl Iterator<Item = GroupId> + use<'_> {
        self.by_outsider.at(&brick)
    }

    /// How many these are.
    pub(super) fn count_of_outsider(&self, brick: BrickId) -> usize {
        self.by_outsider.count(&brick)
    }

    /// In how many the brick catches up, in the view in force.
    pub(super) fn count_of_catching_up(&self, brick: BrickId) -> usize {
        self.by_catching_up.count(&brick)
    }

    /// Those in which the brick lost its place to another.
    pub(super) fn of_former(&self, brick: BrickId) -> impl Iterator<Item = GroupId> + use<'_> {
        self.by_former.at(&brick)
    }

    /// Those with a member that is not current, in the view in force.
    pub(super) fn incomplete(&self) -> impl Iterator<Item = GroupId> + use<'_> {
        self.incomplete.iter().copied()
    }

    /// How many these are.
    pub(super) fn count_of_incomplete(&self) -> usize {
        self.incomplete.len()
    }

    /// The same, so many at most, from this one on and then from the first.
    pub(super) fn some_incomplete(&self, from: GroupId, most: usize) -> impl Iterator<Item = GroupId> {
        self.incomplete.range(from..).chain(self.incomplete.range(..from)).take(most).copied()
    }

    /// Those with a member that catches up, in the view in force or in one to come.
    pub(super) fn joining(&self) -> impl Iterator<Item = GroupId> + use<'_> {
        self.joining.iter().copied()
    }

    /// Those of which a view is being made.
    pub(super) fn changing(&self) -> impl Iterator<Item = GroupId> + use<'_> {
        self.changing.iter().copied()
    }
}

fn members(record: &GroupRecord) -> impl Iterator<Item = BrickId> {
    record.active.iter().chain(&record.next).flat_map(GroupView::parties)
}

fn writers(record: &GroupRecord) -> impl Iterator<Item = BrickId> {
    record.active.iter().chain(&record.next).flat_map(|view| view.writing_bricks().map(|(_, brick)| brick))
}

fn outsiders(record: &GroupRecord) -> impl Iterator<Item = BrickId> {
    record.active.iter().flat_map(|view| view.parties().filter(|brick| !view.is_writer(*brick)))
}

fn catching_up(record: &GroupRecord) -> impl Iterator<Item = BrickId> {
    record.active.iter().flat_map(GroupView::catching_up_bricks)
}

fn has_joiners(record: &GroupRecord) -> bool {
    record.active.iter().chain(&record.next).any(|view| !view.catching_up().is_empty())
}

fn is_incomplete(view: &GroupView) -> bool {
    usize::from(view.current.len()) < view.members.len()
}

impl Index for GroupIndex {
    type Key = GroupId;
    type Record = GroupRecord;

    fn enter(&mut self, id: GroupId, record: &GroupRecord) {
        self.by_change.enter(record.changed, id);
        members(record).for_each(|brick| self.by_member.enter(brick, id));
        writers(record).for_each(|brick| self.by_writer.enter(brick, id));
        outsiders(record).for_each(|brick| self.by_outsider.enter(brick, id));
        record.former.iter().for_each(|(brick, _)| self.by_former.enter(*brick, id));
        catching_up(record).for_each(|brick| self.by_catching_up.enter(brick, id));
        if has_joiners(record) {
            self.joining.insert(id);
        }
        if record.active.as_ref().is_some_and(is_incomplete) {
            self.incomplete.insert(id);
        }
        if record.next.is_some() {
            self.changing.insert(id);
        }
    }

    fn take_out(&mut self, id: GroupId, record: &GroupRecord) {
        self.by_change.take_out(&record.changed, id);
        members(record).for_each(|brick| self.by_member.take_out(&brick, id));
        writers(record).for_each(|brick| self.by_writer.take_out(&brick, id));
        outsiders(record).for_each(|brick| self.by_outsider.take_out(&brick, id));
        record.former.iter().for_each(|(brick, _)| self.by_former.take_out(brick, id));
        catching_up(record).for_each(|brick| self.by_catching_up.take_out(&brick, id));
        self.joining.remove(&id);
        self.incomplete.remove(&id);
        self.changing.remove(&id);
    }
}
