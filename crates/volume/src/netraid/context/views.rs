//! The views of groups as far as they are known here, and what belongs to them.

use base::{BrickId, GroupId, VolumeId};
use core::time::Duration;
use rules::layout::Geometry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use wire::{GroupView, Slots};

/// How long an operation waits for a view that knows its volume.
pub(crate) const UNKNOWN_VOLUME: Duration = Duration::from_millis(50);
/// The most volumes, snapshots and parents that a view may speak of: what is shown beyond is no view of ours.
const LINEAGE_MAX: usize = 1 << 14;

/// Views and geometries, who can be reached, which groups are stale.
#[derive(Debug, Default)]
pub struct Views {
    views: BTreeMap<GroupId, Arc<GroupView>>,
    /// Geometries of the families of which a volume is open: a volume's snapshots and clones share its groups, and so
    /// its geometry.
    geometries: BTreeMap<VolumeId, Geometry>,
    up: BTreeSet<BrickId>,
    /// Groups whose view is out of date: the directory is to be asked.
    stale: BTreeSet<GroupId>,
    /// Groups whose view was replaced, until their operations are told.
    adopted: Vec<GroupId>,
}

impl Views {
    /// The view of a group; operations are begun only for groups that are known.
    pub(crate) fn view(&self, group: GroupId) -> Arc<GroupView> {
        self.views.get(&group).cloned().expect("an operation is on a known group")
    }

    /// The view of a group, where one is known.
    pub(crate) fn known(&self, group: GroupId) -> Option<&GroupView> {
        self.views.get(&group).map(|view| &**view)
    }

    /// The geometry of a group: of all branches in it. A view is taken only where its family's geometry is known.
    pub fn geometry(&self, group: GroupId) -> Geometry {
        self.geometries[&self.views[&group].volume]
    }

    /// Whether no view is known.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// The geometry of a family of which a volume is open.
    pub fn geometry_of_family(&self, family: VolumeId) -> Option<Geometry> {
        self.geometries.get(&family).copied()
    }

    /// A volume of the family is open; views of its groups are taken from now on.
    pub(crate) fn open_family(&mut self, family: VolumeId, geometry: Geometry) {
        self.geometries.insert(family, geometry);
    }

    /// No volume of the family is open any more.
    pub(crate) fn close_family(&mut self, family: VolumeId) {
        self.geometries.remove(&family);
        self.views.retain(|_, view| view.volume != family);
    }

    /// The groups of a family whose views are known.
    pub(crate) fn groups_of(&self, family: VolumeId) -> BTreeSet<GroupId> {
        self.views.values().filter(|view| view.volume == family).map(|view| view.group).collect()
    }

    /// A brick can be reached.
    pub(crate) fn on_up(&mut self, brick: BrickId) {
        self.up.insert(brick);
    }

    /// A brick cannot be reached.
    pub(crate) fn on_down(&mut self, brick: BrickId) {
        self.up.remove(&brick);
    }

    /// Whether a brick can be reached.
    pub(crate) fn is_up(&self, brick: BrickId) -> bool {
        self.up.contains(&brick)
    }

    /// The directory is to be asked for a newer view.
    pub(crate) fn is_stale(&mut self, group: GroupId) {
        self.stale.insert(group);
    }

    /// Whether the directory is to be asked for views.
    pub fn has_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// Those groups for whose view the directory is to be asked; once.
    pub(crate) fn take_stale(&mut self) -> BTreeSet<GroupId> {
        core::mem::take(&mut self.stale)
    }

    /// A group whose view was replaced, for its operations to be told; the latest first.
    pub(crate) fn take_adopted(&mut self) -> Option<GroupId> {
        self.adopted.pop()
    }

    /// Takes a view if it is newer than the one known, and one that can be. Whether it did.
    pub(crate) fn adopt(&mut self, view: GroupView) -> bool {
        let known = self.views.get(&view.group);
        let follows = known.is_none_or(|known| known.number < view.number && known.volume == view.volume);
        if !follows || !self.is_sound(&view) {
            return false;
        }
        if known.is_some() {
            self.adopted.push(view.group);
        }
        self.views.insert(view.group, Arc::new(view));
        true
    }

    /// Whether a stranger's view makes sense in itself, and is of a family that is open here.
    fn is_sound(&self, view: &GroupView) -> bool {
        let slots = Slots::all(view.members.len() as u8);
        let lineage = &view.lineage;
        self.geometries.get(&view.volume).is_some_and(|geometry| {
            view.members.len() == usize::from(geometry.layout().width())
                && view.members.len() <= Slots::MAX
                && view.writers().and(slots) == view.writers()
                && view.joining.and(view.current).is_empty()
                && view.stand_ins().len() as usize == view.sealed.len()
                && view.sealed.iter().all(|(_, member)| view.slot_of(*member).is_none())
                && lineage.heads.len() + lineage.parents.len() + lineage.merging.len() <= LINEAGE_MAX
        })
    }
}
