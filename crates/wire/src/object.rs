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

/// Of the addresses of a version, so many stretches are for each segment.
const STRETCHES_OF_SEGMENT: u64 =
    FragmentId::INDEXES as u64 * FragmentId::BLOCKS_MAX as u64 / Span::STRETCH_BLOCKS;

impl FragmentId {
    /// The most blocks of a fragment (1 MiB).
    pub const BLOCKS_MAX: u32 = Span::BLOCKS_MAX;
    /// The segments of a version have lower numbers. (The place behind the last one is for packs.)
    pub const SEGMENTS: u32 = (1 << 16) - 1;
    /// The fragments of a segment have lower numbers.
    pub const INDEXES: u32 = 1 << 20;

    /// Where a disk keeps the fragment, if it has that many blocks: a small one in a [`Pack`]. A place follows from the name, so that no
    /// table is needed.
    pub fn span(self, blocks: u32) -> Span {
        self.pack(blocks)
            .map_or_else(|| self.span_alone(blocks), |pack| Span { count: blocks, ..pack.room(self.version) })
    }

    /// Where a disk keeps a large fragment, and where earlier releases have put small ones: a version is to a disk what a volume is, and a
    /// fragment has a place of its own in it.
    pub fn span_alone(self, blocks: u32) -> Span {
        let place = u64::from(self.segment) * u64::from(FragmentId::INDEXES) + u64::from(self.index);
        let lba = place * u64::from(FragmentId::BLOCKS_MAX);
        Span { volume: FragmentId::volume(self.version), lba, count: blocks }
    }

    /// The pack that it is in, if it has so many blocks.
    fn pack(self, blocks: u32) -> Option<Pack> {
        let is_small =
            (1..=Pack::BLOCKS_MAX).contains(&blocks) && self.segment == 0 && self.index < Pack::INDEXES;
        let of = Pack::neighbours(self.version, blocks);
        is_small.then(|| Pack { of, room: blocks.next_power_of_two().ilog2(), index: self.index })
    }

    /// The segment whose fragments are in a stretch of a version.
    pub fn segment_of_stretch(stretch: u64) -> u64 {
        stretch / STRETCHES_OF_SEGMENT
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

/// Small fragments of versions whose numbers follow each other, beside each other on a disk: they share what a disk gives at a time (64 KiB,
/// and 4 KiB to say what is where), which each would take alone otherwise.
///
/// To a disk it is a stretch of its first version's volume, behind all segments of that. Each version has the same room in it, a
/// fragment's blocks as a power of two; fragments of other sizes and indexes are in other packs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pack {
    /// The first version whose fragments may be in it.
    of: ObjectVersion,
    /// The logarithm of how many blocks each has.
    room: u32,
    /// Which symbol they all are.
    index: u32,
}

impl Pack {
    /// Only fragments of so many blocks at most (32 KiB) are in packs: two of these share a slot.
    pub const BLOCKS_MAX: u32 = 8;
    /// The versions in a pack, with numbers that differ in the last bits only.
    pub const VERSIONS: u64 = 128;
    /// Only symbols with lower numbers are in packs: more copies are rare.
    const INDEXES: u32 = 16;
    /// Of a volume, the first stretch of packs.
    pub const FIRST_STRETCH: u64 = FragmentId::SEGMENTS as u64 * STRETCHES_OF_SEGMENT;

    /// What versions have in common whose fragments of so many blocks lie together: whoever draws bricks for them draws by this. Large ones lie alone,
    /// and are themselves.
    pub fn neighbours(version: ObjectVersion, blocks: u32) -> ObjectVersion {
        let is_small = blocks <= Pack::BLOCKS_MAX;
        if is_small { ObjectVersion(version.0 / Pack::VERSIONS * Pack::VERSIONS) } else { version }
    }

    /// The pack that a stretch of a volume is.
    pub fn of_stretch((volume, stretch): (VolumeId, u64)) -> Option<Pack> {
        let of = FragmentId::version_of(volume)?;
        let number = u32::try_from(stretch.checked_sub(Pack::FIRST_STRETCH)?).ok()?;
        let pack = Pack { of, room: number / Pack::INDEXES, index: number % Pack::INDEXES };
        let is_one = of.0.is_multiple_of(Pack::VERSIONS) && pack.room <= Pack::BLOCKS_MAX.ilog2();
        is_one.then_some(pack)
    }

    /// All its blocks.
    pub fn span(self) -> Span {
        let number = u64::from(self.room * Pack::INDEXES + self.index);
        let lba = (Pack::FIRST_STRETCH + number) * Span::STRETCH_BLOCKS;
        Span {
            volume: FragmentId::volume(self.of),
            lba,
            count: self.blocks_of_each() * Pack::VERSIONS as u32,
        }
    }

    /// Where a version's fragment is.
    pub fn room(self, version: ObjectVersion) -> Span {
        let (all, count) = (self.span(), self.blocks_of_each());
        Span { lba: all.lba + version.0 % Pack::VERSIONS * u64::from(count), count, ..all }
    }

    /// The versions whose fragments may be in it.
    pub fn versions(self) -> impl Iterator<Item = ObjectVersion> {
        (self.of.0..self.of.0 + Pack::VERSIONS).map(ObjectVersion)
    }

    /// Whether a version's volume holds packs, of others as well.
    pub fn begins_with(version: ObjectVersion) -> bool {
        version.0.is_multiple_of(Pack::VERSIONS)
    }

    fn blocks_of_each(self) -> u32 {
        1 << self.room
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
    /// Another number when it comes with other disks, or with an older copy of one.
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
    fn small_fragments_of_neighbours_lie_beside_each_other_and_share_nothing() {
        let mut taken = std::collections::BTreeSet::new();
        for version in (250..400).map(ObjectVersion) {
            for (segment, index) in [(0, 0), (0, 1), (0, 15), (0, 16), (1, 0)] {
                for blocks in [1, 2, 3, 8, 9] {
                    let span = FragmentId { version, segment, index }.span(blocks);
                    assert!(span.is_valid(), "{span:?}");
                    let pack = Pack::of_stretch((span.volume, span.lba / Span::STRETCH_BLOCKS));
                    assert_eq!(pack.is_some(), blocks <= 8 && segment == 0 && index < 16, "{span:?}");
                    let Some(pack) = pack else { continue };
                    let (all, room) = (pack.span(), pack.room(version));
                    assert_eq!((room.lba, room.count), (span.lba, blocks.next_power_of_two()));
                    for lba in room.lba..room.end() {
                        assert!(taken.insert((room.volume, lba)), "{lba} of {room:?} twice");
                    }
                    assert!(pack.versions().any(|of| of == version));
                    assert!(all.lba <= room.lba && room.end() <= all.end());
                    assert_eq!(all.lba % Span::STRETCH_BLOCKS, 0);
                }
            }
        }
        let one = |version| FragmentId { version: ObjectVersion(version), segment: 0, index: 0 }.span(1);
        assert_eq!((one(256).end(), one(256).volume), (one(257).lba, one(257).volume));
        assert_ne!(one(255).volume, one(256).volume);
        let wild = (FragmentId::volume(ObjectVersion(257)), Pack::FIRST_STRETCH);
        assert_eq!(Pack::of_stretch(wild), None, "no pack begins there");
        assert_eq!(Pack::of_stretch((wild.0, u64::MAX)), None);
    }

    #[test]
    fn every_fragment_has_a_place_of_its_own_that_no_volume_has() {
        let fragment =
            |version, segment, index| FragmentId { version: ObjectVersion(version), segment, index };
        let last = fragment(7, FragmentId::SEGMENTS - 1, FragmentId::INDEXES - 1);
        for blocks in [1, FragmentId::BLOCKS_MAX] {
            assert!(last.span(blocks).is_valid() && fragment(7, 0, 1).span(blocks).is_valid());
        }
        assert_eq!(fragment(7, 0, 0).span(256).end(), fragment(7, 0, 1).span_alone(1).lba);
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
