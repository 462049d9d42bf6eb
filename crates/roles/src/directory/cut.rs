//! A cut: the moment at which a snapshot, clone or rollback is drawn through all writes of a family of volumes.
//!
//! A cut is one view change of all groups of the family to a new lineage ([`super::snapshots`] plans it). A group that has
//! fenced takes no write under its old view. No group goes on from there before all have fenced ([`super::views`] holds
//! them): so a write that was begun after another was acknowledged is not in the snapshot without it. At a brick, writes
//! to the old head end where the participant fences (`netraid::participant::writes`, `fence`).

use super::cluster::Cluster;
use super::records::FamilyRecord;
use base::GroupId;

/// Whether all groups of the family have fenced, so that they may go on. `has_fenced` tells it of a group that is on its way.
pub(super) fn is_through(
    cluster: &Cluster,
    family: &FamilyRecord,
    has_fenced: impl Fn(&GroupId) -> bool,
) -> bool {
    // Who has come to the lineage had fenced on the way there, whatever is being changed since.
    let is_there = |group: &GroupId| {
        cluster.active(*group).is_some_and(|view| Some(&*view.lineage) == family.next.as_ref())
    };
    family.groups.iter().all(|group| is_there(group) || has_fenced(group))
}
