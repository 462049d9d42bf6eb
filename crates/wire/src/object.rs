//! What is said of large objects: fragments, and what becomes of them.

use crate::{Span, wire_enum, wire_struct};
use base::{BrickId, ObjectVersion, VolumeId};

/// A coded piece of an object. It is written once: what it holds follows from its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FragmentId {
    pub version: ObjectVersion,
    /// Which part of the object, each coded apart.
    pub segment: u32,
    /// Which symbol of the segment's code.
    pub index: u32,
}

/// Of addresses of blocks, what tells versions of objects from volumes.
const OBJECTS: u64 = 1 << 63;

impl FragmentId {
    /// The most blocks of a fragment (1 MiB).
    pub const BLOCKS_MAX: u32 = Span::BLOCKS_MAX;
    /// The segments of a version have lower numbers.
    pub const SEGMENTS: u32 = 1 << 16;
    /// The fragments of a segment have lower numbers.
    pub const INDEXES: u32 = 1 << 20;

    /// Where a disk keeps the fragment, if it has that many blocks. A version is to a disk what a volume is, and a fragment has a place
    /// of its own in it, so that no table is needed.
    pub fn span(self, blocks: u32) -> Span {
        let place = u64::from(self.segment) * u64::from(FragmentId::INDEXES) + u64::from(self.index);
        let lba = place * u64::from(FragmentId::BLOCKS_MAX);
        Span { volume: FragmentId::volume(self.version), lba, count: blocks }
    }

    /// The segment whose fragments are in a stretch of a version.
    pub fn segment_of_stretch(stretch: u64) -> u64 {
        const STRETCHES: u64 =
            FragmentId::INDEXES as u64 * FragmentId::BLOCKS_MAX as u64 / Span::STRETCH_BLOCKS;
        stretch / STRETCHES
    }

    /// What a version is to a disk.
    pub fn volume(version: ObjectVersion) -> VolumeId {
        VolumeId(OBJECTS | version.0)
    }

    /// The version that a disk keeps under this name; `None` for what is a volume.
    pub fn version_of(volume: VolumeId) -> Option<ObjectVersion> {
        (volume.0 & OBJECTS != 0).then_some(ObjectVersion(volume.0 & !OBJECTS))
    }

    /// Whether a stranger's version is one that may be.
    pub fn is_version(version: ObjectVersion) -> bool {
        version.0 & OBJECTS == 0
    }

    /// Whether a stranger's fragment is one that a brick may keep.
    pub fn is_valid(&self) -> bool {
        FragmentId::is_version(self.version)
            && self.segment < FragmentId::SEGMENTS
            && self.index < FragmentId::INDEXES
    }
}

/// What became of the wish to put or to get a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FragmentOutcome {
    /// It is on stable storage, or its content comes along.
    Done,
    /// It is not here.
    Missing,
    /// Some of it does not match its checksums.
    Unreadable,
    /// The disk has no room for it.
    NoSpace,
    /// Too much is waiting here: try again later.
    Busy,
    /// The disk failed.
    Failed,
}

/// A brick on which fragments may be put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrickPlace {
    pub brick: BrickId,
    /// Where it is reached.
    pub address: String,
    /// Whether new fragments may go there: it is heard, is not to be emptied, and is not left out for being slow.
    pub takes_more: bool,
    pub free_bytes: u64,
    /// Whether the directory hears it.
    pub is_heard: bool,
    /// Whether it is to be emptied.
    pub is_evicted: bool,
    /// Whether what it has is to be made again elsewhere: it is to be emptied, or has been away for long.
    pub is_lost: bool,
    /// Another number when it comes with other disks.
    pub disks: u64,
    /// Of its disks; zero where some daemon does not know yet that fragments are moved.
    pub capacity_bytes: u64,
}

/// The most versions that one message names.
pub const VERSIONS_MAX: usize = 256;

wire_struct!(FragmentId { version, segment, index });
wire_struct!(BrickPlace { brick, address, takes_more, free_bytes; since 14: is_heard, is_evicted, is_lost, disks; since 17: capacity_bytes });
wire_enum!(FragmentOutcome { 0 => Done, 1 => Missing, 2 => Unreadable, 3 => NoSpace, 4 => Busy, 5 => Failed });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fragment_has_a_place_of_its_own_that_no_volume_has() {
        let fragment =
            |version, segment, index| FragmentId { version: ObjectVersion(version), segment, index };
        let last = fragment(7, FragmentId::SEGMENTS - 1, FragmentId::INDEXES - 1);
        for blocks in [1, FragmentId::BLOCKS_MAX] {
            assert!(last.span(blocks).is_valid() && fragment(7, 0, 1).span(blocks).is_valid());
        }
        assert_eq!(fragment(7, 0, 0).span(256).end(), fragment(7, 0, 1).span(1).lba);
        assert_eq!(fragment(7, 0, FragmentId::INDEXES - 1).span(256).end(), fragment(7, 1, 0).span(1).lba);
        assert_eq!(FragmentId::version_of(last.span(1).volume), Some(ObjectVersion(7)));
        for segment in [0, 1, FragmentId::SEGMENTS - 1] {
            for index in [0, FragmentId::INDEXES - 1] {
                let stretch = fragment(7, segment, index).span(256).lba / Span::STRETCH_BLOCKS;
                assert_eq!(FragmentId::segment_of_stretch(stretch), u64::from(segment));
            }
        }
        assert_eq!(FragmentId::version_of(VolumeId(7)), None);
        assert!(
            last.is_valid()
                && !fragment(OBJECTS, 0, 0).is_valid()
                && !fragment(1, FragmentId::SEGMENTS, 0).is_valid()
        );
    }
}
