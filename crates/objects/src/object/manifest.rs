//! How an object is cut into segments, and where they are.

use super::access::Place;
use super::coding::{Coder, Coding, STORED_BLOCKS_MAX, enough};
use super::doubt::Expected;
use base::{BLOCK, Checksum, ObjectVersion, Payload};
use std::collections::BTreeMap;
use wire::{DecodeError, FragmentId, ObjectInfo, Reader, SegmentSpan, Share, Wire, Writer, wire_struct};

/// A segment has at most so many bytes: what is put or read is in memory a segment at a time.
pub const SEGMENT_BYTES: usize = 32 << 20;
/// Up to this size a segment is kept in copies: a code would cut it into pieces that cost a disk more than they save.
const COPIES_MAX_BYTES: usize = 512 << 10;
/// Larger segments have so many blocks at least, so that what is kept beyond them is a small part, and so many at most.
const BLOCKS: core::ops::RangeInclusive<usize> = 16..=STORED_BLOCKS_MAX as usize;
/// What a disk gives to a fragment at a time.
const SLOT_BYTES: usize = 64 << 10;

/// No object has more redundancy, in percent: where bricks were that different the slowest ones would hardly be of use.
pub const REDUNDANCY_MAX: u32 = 900;

/// No object is put to survive the loss of more bricks: a manifest that says so is damaged. What is left after losses is tried choice by choice, which
/// takes the longer the more may be lost.
pub const LOSSES_MAX: u32 = 100;

/// The most fragments of a segment. With [`LOSSES_MAX`] on as few bricks as that takes there are about 7,000, and as many again after many repairs.
const PLACES_MAX: usize = 1 << 14;

/// Where an object is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Manifest {
    pub segments: Vec<SegmentRecord>,
    /// So many bricks may be lost.
    pub losses: u32,
}

/// Where a segment is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentRecord {
    /// The version with which its fragments were put: that of the object, or an older one if the object was patched elsewhere.
    pub version: ObjectVersion,
    pub bytes: u32,
    /// The CRC-32C of its bytes. The first manifests did not say it.
    pub checksum: Option<Checksum>,
    pub coding: Coding,
    /// Blocks of 4 KiB in each symbol.
    pub symbol_blocks: u32,
    /// Who has which symbol.
    pub places: Vec<Place>,
    /// Another number whenever a brick is to give back what it has of the segment, as nobody is to look for it there any more. Zero at first.
    pub mark: u64,
}

/// What manifests begin with whose segments have versions and checksums. The first ones began with the number of segments.
const WITH_VERSIONS: u32 = u32::MAX;

/// What manifests begin with of which segments have marks, which stand behind all else.
const WITH_MARKS: u32 = u32::MAX - 1;

/// A segment in the first manifests.
struct FirstRecord {
    bytes: u32,
    coding: Coding,
    symbol_blocks: u32,
    places: Vec<Place>,
}

wire_struct!(FirstRecord { bytes, coding, symbol_blocks, places });

impl Wire for Manifest {
    fn encode(&self, out: &mut Writer<'_>) {
        let is_marked = self.segments.iter().any(|segment| segment.mark > 0);
        let is_first = self.segments.iter().all(|segment| segment.checksum.is_none());
        // One of before stays one, so that who knows no others can read it: nobody has patched it, or moved some of it.
        if is_first && !is_marked && !self.segments.is_empty() {
            (self.segments.len() as u32).encode(out);
            self.segments.iter().for_each(|segment| segment.as_first().encode(out));
            return self.losses.encode(out);
        }
        if is_marked { WITH_MARKS } else { WITH_VERSIONS }.encode(out);
        self.segments.encode(out);
        self.losses.encode(out);
        if is_marked {
            self.segments.iter().for_each(|segment| segment.mark.encode(out));
        }
    }
    /// Segments of the first manifests come with the version zero.
    fn decode(reader: &mut Reader<'_>) -> Result<Manifest, DecodeError> {
        let count = u32::decode(reader)?;
        if count == WITH_VERSIONS || count == WITH_MARKS {
            let mut segments: Vec<SegmentRecord> = Wire::decode(reader)?;
            let losses = Wire::decode(reader)?;
            for segment in segments.iter_mut().filter(|_| count == WITH_MARKS) {
                segment.mark = Wire::decode(reader)?;
            }
            return Manifest { segments, losses }.if_sound();
        }
        let mut segments = Vec::new();
        for _ in 0..count {
            let FirstRecord { bytes, coding, symbol_blocks, places } = Wire::decode(reader)?;
            let version = ObjectVersion::default();
            let checksum = None;
            let record = SegmentRecord { version, bytes, checksum, coding, symbol_blocks, places, mark: 0 };
            segments.push(record.if_sound()?);
        }
        let losses = if reader.left() > 0 { Wire::decode(reader)? } else { 0 };
        Manifest { segments, losses }.if_sound()
    }
}

/// All but its mark, which stands behind all segments of a manifest.
impl Wire for SegmentRecord {
    fn encode(&self, out: &mut Writer<'_>) {
        self.version.encode(out);
        self.bytes.encode(out);
        self.checksum.encode(out);
        self.coding.encode(out);
        self.symbol_blocks.encode(out);
        self.places.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<SegmentRecord, DecodeError> {
        let record = SegmentRecord {
            version: Wire::decode(reader)?,
            bytes: Wire::decode(reader)?,
            checksum: Wire::decode(reader)?,
            coding: Wire::decode(reader)?,
            symbol_blocks: Wire::decode(reader)?,
            places: Wire::decode(reader)?,
            mark: 0,
        };
        record.if_sound()
    }
}

/// How a segment is to be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    pub(super) coding: Coding,
    pub(super) symbol_blocks: u32,
    pub(super) symbols: u32,
    /// What the redundancy takes that was asked for.
    pub(super) least: u32,
}

impl Plan {
    /// Of so many bytes, on so many bricks, of which any `losses` may be lost, and as many silent while it is put. There have to be more
    /// than twice as many bricks as may be lost. Of more redundancy than that takes, in percent, there is as much as bricks take.
    pub(super) fn new(bytes: usize, bricks: usize, losses: u32, redundancy: u32) -> Plan {
        assert!(bricks > 2 * losses as usize && bytes > 0, "too few bricks for a plan");
        let bricks = bricks as u32;
        let symbols_of = |blocks: u32| (blocks * (100 + redundancy.min(REDUNDANCY_MAX))).div_ceil(100);
        if bytes <= COPIES_MAX_BYTES {
            let symbol_blocks = bytes.div_ceil(BLOCK) as u32;
            // No brick has two copies.
            let symbols = symbols_of(1).clamp(losses + 1, bricks - losses);
            return Plan { coding: Coding::Copies { blocks: 1 }, symbol_blocks, symbols, least: symbols };
        }
        let wanted = bytes.div_ceil(COPIES_MAX_BYTES).clamp(*BLOCKS.start(), *BLOCKS.end());
        let symbol_bytes = bytes.div_ceil(wanted).next_multiple_of(SLOT_BYTES);
        let blocks = bytes.div_ceil(symbol_bytes) as u32;
        // Without the share of those that may be lost the others have enough; and those that are not silent take all of it.
        let survives = (enough(blocks) * (bricks - losses)).div_ceil(bricks - 2 * losses) + losses;
        let (symbol_blocks, least) = ((symbol_bytes / BLOCK) as u32, symbols_of(blocks));
        Plan { coding: Coding::precoded(blocks), symbol_blocks, symbols: survives.max(least), least }
    }
}

impl Manifest {
    /// From the bytes that the index keeps of a version.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read(bytes: &[u8], of: ObjectVersion) -> Result<Manifest, DecodeError> {
        let mut manifest = Manifest::from_bytes(bytes)?;
        for segment in &mut manifest.segments {
            if segment.version == ObjectVersion::default() {
                segment.version = of;
            }
        }
        Ok(manifest)
    }

    /// What is decoded is checked here, and segment by segment: nobody who has a manifest need look again.
    fn if_sound(self) -> Result<Manifest, DecodeError> {
        match () {
            () if self.segments.len() > FragmentId::SEGMENTS as usize => {
                Err(DecodeError::OutOfRange { what: "the number of an object's segments" })
            }
            () if self.losses > LOSSES_MAX => {
                Err(DecodeError::OutOfRange { what: "the losses that an object survives" })
            }
            () => Ok(self),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.bytes)).sum()
    }

    /// What the index says of the version that this is the manifest of. The checksums of all segments have to be known.
    pub(crate) fn info(&self, version: ObjectVersion, put_ms: u64) -> ObjectInfo {
        let checksum = self.checksum().expect("only segments are kept whose checksums are known");
        ObjectInfo { version, bytes: self.bytes(), checksum, put_ms }
    }

    /// The checksum of all bytes; none where that of some segment is not known.
    pub(super) fn checksum(&self) -> Option<Checksum> {
        self.segments.iter().try_fold(0, |sum, segment| {
            Some(base::checksum::checksum_joined(sum, segment.checksum?, segment.bytes as usize))
        })
    }

    /// The versions of which it has fragments beside its own, and of which segments.
    pub(super) fn shares(&self, own: ObjectVersion) -> Vec<Share> {
        let mut of: BTreeMap<ObjectVersion, Vec<SegmentSpan>> = BTreeMap::new();
        for (number, segment) in (0..).zip(&self.segments).filter(|(_, segment)| segment.version != own) {
            let spans = of.entry(segment.version).or_default();
            match spans.last_mut() {
                Some(last) if last.to == number => last.to += 1,
                _ => spans.push(SegmentSpan { from: number, to: number + 1 }),
            }
        }
        of.into_iter().map(|(version, segments)| Share { version, segments }).collect()
    }

    /// How many bytes its fragments take on all bricks together.
    pub fn stored_bytes(&self) -> u64 {
        let of = |segment: &SegmentRecord| segment.places.len() as u64 * u64::from(segment.symbol_blocks);
        self.segments.iter().map(of).sum::<u64>() * BLOCK as u64
    }

    /// On how many bricks it has fragments.
    pub fn bricks(&self) -> usize {
        let places = self.segments.iter().flat_map(|segment| &segment.places);
        places.map(|(_, brick)| *brick).collect::<std::collections::BTreeSet<_>>().len()
    }
}

impl SegmentRecord {
    fn as_first(&self) -> FirstRecord {
        let SegmentRecord { bytes, coding, symbol_blocks, ref places, .. } = *self;
        FirstRecord { bytes, coding, symbol_blocks, places: places.clone() }
    }

    /// What it takes in a manifest.
    pub(super) fn recorded_bytes(&self) -> usize {
        const BESIDE_PLACES: usize = 64;
        BESIDE_PLACES + self.places.len() * core::mem::size_of::<Place>()
    }

    /// Its content, of all its blocks.
    pub(super) fn content(&self, blocks: &[Payload]) -> Payload {
        let mut content = Payload::new();
        blocks.iter().for_each(|block| content.append(block));
        content.slice(0, self.bytes as usize)
    }

    /// What is to come of its blocks, as far as that is known.
    pub fn expected(&self) -> Option<Expected> {
        self.checksum.map(|checksum| Expected { bytes: self.bytes, checksum })
    }

    /// Whether bricks have brought some of it elsewhere, or back, since it was as it is here.
    pub(super) fn is_elsewhere(&self, before: &SegmentRecord) -> bool {
        (&self.places, self.mark) != (&before.places, before.mark)
    }

    pub(super) fn symbol_bytes(&self) -> usize {
        self.symbol_blocks as usize * BLOCK
    }

    /// Its code, for its symbols and those below these.
    pub(super) fn coder(&self, symbols: &[u32]) -> Coder {
        let own = self.places.iter().map(|(symbol, _)| symbol + 1);
        self.coding.coder(own.chain(symbols.iter().copied()).max().unwrap_or(0))
    }

    fn if_sound(self) -> Result<SegmentRecord, DecodeError> {
        if self.is_sound() { Ok(self) } else { Err(DecodeError::OutOfRange { what: "segment of an object" }) }
    }

    /// Whether no brick has the same fragment twice.
    fn has_each_place_once(&self) -> bool {
        let mut places = self.places.clone();
        places.sort_unstable();
        places.is_sorted_by(|left, right| left < right)
    }

    /// Whether there can be such a segment.
    fn is_sound(&self) -> bool {
        let room = u64::from(self.coding.blocks()) * u64::from(self.symbol_blocks) * BLOCK as u64;
        let is_symbol = |(symbol, _): &Place| *symbol < FragmentId::INDEXES;
        self.coding.is_valid()
            && FragmentId::is_version(self.version)
            && self.places.len() <= PLACES_MAX
            && self.places.iter().all(is_symbol)
            && (1..=FragmentId::BLOCKS_MAX).contains(&self.symbol_blocks)
            && (1..=SEGMENT_BYTES as u32).contains(&self.bytes)
            && u64::from(self.bytes) <= room
            && room <= 2 * SEGMENT_BYTES as u64
            && self.has_each_place_once()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BrickId;
    use proptest::prelude::*;

    const V: ObjectVersion = ObjectVersion(7);

    #[test]
    fn the_first_manifests_are_read() {
        let coding = Coding::Copies { blocks: 1 };
        let first = FirstRecord { bytes: 9, coding, symbol_blocks: 1, places: Vec::new() };
        let segment = SegmentRecord {
            version: V,
            bytes: 9,
            checksum: None,
            coding,
            symbol_blocks: 1,
            places: Vec::new(),
            mark: 0,
        };
        let mut bytes = vec![first].to_bytes();
        let read = Manifest { segments: vec![segment], losses: 0 };
        assert_eq!(Manifest::read(&bytes, V), Ok(read.clone()), "it said nothing of losses");
        bytes.extend_from_slice(&2_u32.to_bytes());
        let read = Manifest { losses: 2, ..read };
        assert_eq!(Manifest::read(&bytes, V), Ok(read.clone()));
        assert_eq!((read.checksum(), read.to_bytes()), (None, bytes), "it stays one of the first");
    }

    proptest! {
        /// Found from outside: a manifest named a code that does not give its blocks back, and whoever made a fragment of it again ended there, at each start.
        #[test]
        fn what_is_read_can_be_worked_with(blocks in 1..=64_u32, bends in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
            let places = (0..blocks + 9).map(|symbol| (symbol, BrickId(symbol % 5))).collect();
            let segment = SegmentRecord {
                version: V,
                bytes: blocks * 4096,
                checksum: Some(1),
                coding: Coding::precoded(blocks),
                symbol_blocks: 1,
                places,
                mark: 3,
            };
            let mut bytes = Manifest { segments: vec![segment], losses: 1 }.to_bytes();
            bends.iter().for_each(|(at, to)| *at.get_mut(&mut bytes) = *to);
            // What says how many bytes there are, and which code: this is where most of it is.
            bends.iter().for_each(|(at, to)| bytes[at.index(40)] ^= to & 3);
            let Ok(read) = Manifest::read(&bytes, V) else { return Ok(()) };
            for segment in &read.segments {
                let coder = segment.coder(&[]);
                let have: Vec<u32> = segment.places.iter().map(|(symbol, _)| *symbol).collect();
                prop_assert!(coder.encode(&[0, segment.coding.blocks(), 5000]).is_none_or(|made| made.outputs() == 3));
                let _ = (coder.decode(&have).is_ok(), coder.survives(&segment.places, read.losses));
            }
        }
    }

    #[test]
    fn what_is_shared_is_told_in_spans() {
        let segment = |version| SegmentRecord {
            version: ObjectVersion(version),
            bytes: 9,
            checksum: Some(base::checksum(b"ninebytes")),
            coding: Coding::Copies { blocks: 1 },
            symbol_blocks: 1,
            places: Vec::new(),
            mark: 0,
        };
        let manifest = Manifest { segments: [3, 3, 7, 5, 3].map(segment).into(), losses: 1 };
        let span = |from, to| SegmentSpan { from, to };
        assert_eq!(
            manifest.shares(V),
            [
                Share { version: ObjectVersion(3), segments: vec![span(0, 2), span(4, 5)] },
                Share { version: ObjectVersion(5), segments: vec![span(3, 4)] },
            ]
        );
        assert_eq!(manifest.checksum(), Some(base::checksum(&b"ninebytes".repeat(5))));
    }

    #[test]
    fn a_plan_holds_its_bytes_and_costs_little_where_there_are_many_bricks() {
        for bytes in [1, 4096, COPIES_MAX_BYTES, COPIES_MAX_BYTES + 1, 1 << 20, 3_000_001, SEGMENT_BYTES] {
            for (bricks, losses) in [(1, 0), (3, 1), (8, 1), (8, 2), (30, 2)] {
                let plan = Plan::new(bytes, bricks, losses, 0);
                let room = plan.coding.blocks() as usize * plan.symbol_blocks as usize * BLOCK;
                assert!(room >= bytes && room - bytes < room / 8 + SLOT_BYTES, "{bytes}: {plan:?}");
                assert!(plan.symbol_blocks <= wire::FragmentId::BLOCKS_MAX);
            }
        }
        let segment = |bytes, symbol_blocks| SegmentRecord {
            version: V,
            bytes,
            checksum: Some(1),
            coding: Coding::Copies { blocks: 1 },
            symbol_blocks,
            places: Vec::new(),
            mark: 0,
        };
        let read =
            |segment| Manifest::read(&Manifest { segments: vec![segment], losses: 1 }.to_bytes(), V).is_ok();
        assert!(read(segment(4097, 2)), "a block more than it needs");
        assert!(
            !read(segment(4097, 1))
                && !read(segment(0, 1))
                && !read(segment(1, 0))
                && !read(segment(1, 9999))
        );
        let symbols = |bytes, redundancy| {
            let plan = Plan::new(bytes, 8, 1, redundancy);
            (plan.coding.blocks(), plan.symbols)
        };
        assert_eq!([0, 28, 60, 900].map(|more| symbols(SEGMENT_BYTES, more).1), [82, 82, 103, 640]);
        assert_eq!([0, 100, 200, 900].map(|more| symbols(9, more)), [(1, 2), (1, 2), (1, 3), (1, 7)]);
    }
}
