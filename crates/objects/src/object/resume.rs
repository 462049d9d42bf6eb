//! Puts and patches that go on after they were interrupted: what was stored by then is held, and need not be sent again.
//!
//! Each try has a version of its own, so that nothing which a try of before still has on its way can end up in this one. The object then has segments of
//! several versions, as one that was patched. A segment is taken over only if its content is still the same, and survives what the object is to survive.

use super::hold::Hold;
use super::manifest::SegmentRecord;
use super::objects::Step;
use base::{BrickId, Digest, ObjectVersion, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::object::VERSIONS_MAX;
use wire::{DecodeError, FragmentId, Reader, Wire, Writer};

/// A put or patch that can go on later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resumable {
    /// For so long what is stored is held when nobody goes on.
    pub keep: Duration,
    /// What earlier tries have stored.
    pub stored: PutProgress,
}

/// Which segments of an object are stored, and where.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PutProgress {
    segments: BTreeMap<u32, StoredSegment>,
}

/// A segment that is stored. Whether what is to be put is this very content its digest says: the record's checksum finds damage, and is shared by many contents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredSegment {
    pub record: SegmentRecord,
    pub content: Digest,
}

impl PutProgress {
    /// One more segment is stored, or again.
    pub fn note(&mut self, segment: u32, stored: StoredSegment) {
        self.segments.insert(segment, stored);
    }

    /// Whether the segment is stored, and there.
    pub fn has(&self, segment: u32, stored: &StoredSegment) -> bool {
        self.segments.get(&segment) == Some(stored)
    }

    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub fn bytes(&self) -> u64 {
        self.segments.values().map(|segment| u64::from(segment.record.bytes)).sum()
    }

    fn versions(&self) -> BTreeSet<ObjectVersion> {
        self.segments.values().map(|segment| segment.record.version).collect()
    }
}

impl Wire for PutProgress {
    fn encode(&self, out: &mut Writer<'_>) {
        (self.segments.len() as u32).encode(out);
        for (segment, StoredSegment { record, content }) in &self.segments {
            segment.encode(out);
            record.encode(out);
            content.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<PutProgress, DecodeError> {
        let mut progress = PutProgress::default();
        for _ in 0..u32::decode(reader)? {
            let (segment, record) = (u32::decode(reader)?, SegmentRecord::decode(reader)?);
            if segment >= FragmentId::SEGMENTS {
                return Err(DecodeError::OutOfRange { what: "segment of an object" });
            }
            progress.note(segment, StoredSegment { record, content: Wire::decode(reader)? });
        }
        Ok(progress)
    }
}

/// What is left of earlier tries while another one goes on.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    stored: PutProgress,
    holds: Vec<Hold>,
}

impl Earlier {
    pub(super) fn new(mut stored: PutProgress) -> Earlier {
        // So many can be held on to with one question. The last tries will have most of it.
        let versions = stored.versions();
        if let Some(oldest) = versions.iter().rev().nth(VERSIONS_MAX - 1) {
            stored.segments.retain(|_, segment| segment.record.version >= *oldest);
        }
        Earlier { stored, holds: Vec::new() }
    }

    /// The versions of them.
    pub(super) fn versions(&self) -> Vec<ObjectVersion> {
        self.stored.versions().into_iter().collect()
    }

    /// Of these versions nothing is left. All others are held from now on.
    pub(super) fn are_gone(&mut self, gone: &[ObjectVersion], held_ns: u64, now: Time) {
        self.stored.segments.retain(|_, segment| !gone.contains(&segment.record.version));
        self.holds = self.versions().into_iter().map(|version| Hold::new(version, held_ns, now)).collect();
    }

    /// The versions that are held, whether or not anything of them is taken over.
    pub(super) fn held(&self) -> impl Iterator<Item = ObjectVersion> {
        self.holds.iter().map(Hold::version)
    }

    /// Whether one of these was held.
    pub(super) fn had(&self, versions: &[ObjectVersion]) -> bool {
        self.holds.iter().any(|hold| versions.contains(&hold.version()))
    }

    /// The segment, if it is stored with this content, no brick that has some of it is away, and any so many bricks may be lost.
    pub(super) fn take(
        &mut self,
        segment: usize,
        content: Digest,
        is_away: impl Fn(BrickId) -> bool,
        losses: u32,
    ) -> Option<SegmentRecord> {
        let StoredSegment { record, content: stored } = self.stored.segments.remove(&(segment as u32))?;
        let is_there = stored == content && !record.places.iter().any(|(_, brick)| is_away(*brick));
        (is_there && record.coder(&[]).survives(&record.places, losses)).then_some(record)
    }

    pub(super) fn wake(&mut self, step: &mut Step<'_>) {
        self.holds.iter_mut().for_each(|hold| hold.wake(step));
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.holds.iter().map(Hold::deadline).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Coding;
    use base::Payload;

    fn digest(content: &[u8]) -> Digest {
        Payload::from(content.to_vec()).digest()
    }

    fn segment(version: u64, content: &[u8]) -> StoredSegment {
        StoredSegment { record: record(version, content), content: digest(content) }
    }

    fn record(version: u64, content: &[u8]) -> SegmentRecord {
        SegmentRecord {
            version: ObjectVersion(version),
            bytes: content.len() as u32,
            checksum: Some(base::checksum(content)),
            coding: Coding::Copies { blocks: 1 },
            symbol_blocks: 1,
            places: vec![(0, BrickId(1)), (1, BrickId(2))],
            mark: 0,
        }
    }

    fn stored() -> PutProgress {
        let mut stored = PutProgress::default();
        [(0, 7, b"ab"), (1, 7, b"cd"), (4, 9, b"ef")].into_iter().for_each(|(number, version, content)| {
            stored.note(number, segment(version, content));
        });
        stored
    }

    #[test]
    fn what_is_held_and_the_same_and_whole_is_taken_over() {
        let mut earlier = Earlier::new(stored());
        assert_eq!(earlier.versions(), [ObjectVersion(7), ObjectVersion(9)]);
        earlier.are_gone(&[ObjectVersion(9)], 1000, Time(5));
        assert_eq!(earlier.versions(), [ObjectVersion(7)]);
        assert!(earlier.had(&[ObjectVersion(7)]) && !earlier.had(&[ObjectVersion(9)]));
        let content = |content: &[u8; 2]| digest(content);
        assert_eq!(earlier.take(0, content(b"aX"), |_| false, 1), None, "it has changed");
        assert_eq!(earlier.take(4, content(b"ef"), |_| false, 1), None, "it is gone");
        let taken =
            |away, losses| Earlier::new(stored()).take(1, content(b"cd"), |brick| brick.0 == away, losses);
        assert_eq!(taken(3, 1), Some(record(7, b"cd")));
        assert_eq!(taken(2, 1), None, "a brick that has some of it is away");
        assert_eq!(taken(3, 2), None, "there are two copies, and the object has to survive two losses");
    }

    /// Eight bytes other than zeros, with their checksum: CRC-32C is linear, so that anybody finds some.
    fn same_checksum_as_zeros() -> [u8; 8] {
        let of_zeros = base::checksum(&[0; 8]);
        let mut pivots: Vec<(u32, u64)> = Vec::new();
        for bit in 0..64 {
            let (mut sum, mut bits) =
                (base::checksum(&(1_u64 << bit).to_le_bytes()) ^ of_zeros, 1_u64 << bit);
            for (pivot, of) in &pivots {
                if sum ^ pivot < sum {
                    (sum, bits) = (sum ^ pivot, bits ^ of);
                }
            }
            if sum == 0 {
                return bits.to_le_bytes();
            }
            pivots.push((sum, bits));
            pivots.sort_unstable_by(|left, right| right.cmp(left));
        }
        unreachable!("of 33 sums of 32 bits some give zero")
    }

    /// What was taken over was told from other content by a checksum of 32 bits.
    #[test]
    fn content_with_the_same_length_and_checksum_is_not_taken_over() {
        let (stored, other) = ([0; 8], same_checksum_as_zeros());
        assert!(base::checksum(&stored) == base::checksum(&other) && stored != other);
        let mut progress = PutProgress::default();
        progress.note(0, segment(7, &stored));
        let take = |content| Earlier::new(progress.clone()).take(0, digest(content), |_| false, 1);
        assert_eq!((take(&other), take(&stored)), (None, Some(record(7, &stored))));
    }

    #[test]
    fn it_is_read_back_as_it_was_written_and_wild_bytes_are_refused() {
        assert_eq!(PutProgress::from_bytes(&stored().to_bytes()), Ok(stored()));
        let mut wild = PutProgress::default();
        wild.note(FragmentId::SEGMENTS, segment(7, b"ab"));
        assert!(PutProgress::from_bytes(&wild.to_bytes()).is_err());
    }

    #[test]
    fn of_too_many_tries_the_last_ones_count() {
        let mut stored = PutProgress::default();
        (0..300).for_each(|try_| stored.note(try_, segment(u64::from(try_) + 1, b"ab")));
        let versions = Earlier::new(stored).versions();
        assert_eq!(
            (versions.len(), versions[0], versions.last()),
            (256, ObjectVersion(45), Some(&ObjectVersion(300)))
        );
    }
}
