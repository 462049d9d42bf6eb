//! Which branch to look at instead of one that is merging into its child.
//!
//! Nothing is added to a branch that is merging: whoever catches up or scrubs looks at the child instead, which inherits
//! from it. So a branch that was empty once stays so, and saying that it is needs no view.

use base::VolumeId;
use wire::Lineage;

/// The only child of a branch that is merging.
pub(super) fn child_of(lineage: &Lineage, branch: VolumeId) -> Option<VolumeId> {
    let mut children = lineage.children_of(branch);
    let child = children.next().filter(|_| lineage.merging.contains(&branch))?;
    children.next().is_none().then_some(child)
}

/// The branch to look at instead of `branch`; itself where it is not merging.
pub(super) fn heir(lineage: &Lineage, branch: VolumeId) -> VolumeId {
    let mut heir = branch;
    // Bounded: a lineage has no circle, and a stranger's may have one.
    for _ in 0..lineage.parents.len() {
        match child_of(lineage, heir) {
            Some(child) => heir = child,
            None => break,
        }
    }
    heir
}
