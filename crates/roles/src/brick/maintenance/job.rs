//! What maintenance works on, by name.

use base::{GroupId, VolumeId};

/// Names a span that is being looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct SpanId(pub(super) u64);

/// For whom a span is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    CatchUp(GroupId),
    Scrub,
}

/// A stretch of a branch, by its number.
pub(super) type Stretch = (VolumeId, u64);

/// A block of a branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    pub(super) branch: VolumeId,
    pub(super) lba: u64,
}

/// A branch of a group that merges into its child.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Merge {
    pub(super) group: GroupId,
    pub(super) branch: VolumeId,
}
