//! What a put changes of an object that is there: the version that it takes the place of, and where its content goes.
//!
//! A patch is a version that shares all segments that it leaves as they are. A segment that it changes is read, and put anew.

use super::hold::Hold;
use super::manifest::{Manifest, SegmentRecord};
use super::objects::{ObjectError, Step};
use super::parts::Parts;
use super::resume::Resumable;
use base::{Checksum, ObjectVersion, Payload, Time};
use wire::{ObjectInfo, ObjectName};

/// A part of an object that is to be replaced, or what is to be appended to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectPatch {
    pub name: ObjectName,
    /// From this byte on, at most the object's size; from its end on where it is none.
    pub at: Option<u64>,
    /// Only if this version is visible.
    pub of: Option<ObjectVersion>,
    /// As in [`NewObject`](super::NewObject), of the segments that it changes or adds.
    pub redundancy: u32,
    /// By the putter's clock, in milliseconds since 1970.
    pub put_ms: u64,
    /// How much is in a new segment: at most [`SEGMENT_BYTES`](super::SEGMENT_BYTES), which is usual.
    pub segment_bytes: usize,
    /// As in [`NewObject`](super::NewObject).
    pub resumable: Option<Resumable>,
}

/// The version that a patch takes the place of.
#[derive(Debug)]
pub(super) struct Base {
    info: ObjectInfo,
    hold: Hold,
    manifest: Manifest,
    /// The checksum of the manifest as the index has it.
    was: Checksum,
}

/// Where content goes: to a segment, from a byte of it on, and so many bytes at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Gap {
    pub(super) segment: usize,
    pub(super) from: usize,
    pub(super) most: usize,
}

impl Base {
    pub(super) fn new(
        (info, held_ns): (ObjectInfo, u64),
        manifest: &[u8],
        now: Time,
    ) -> Result<Base, ObjectError> {
        let was = base::checksum(manifest);
        let manifest = read(manifest, info.version)?;
        if manifest.bytes() != info.bytes {
            return Err(ObjectError::Manifest(format!("its segments do not have its {} bytes", info.bytes)));
        }
        if manifest.checksum().is_none() {
            return Err(ObjectError::TooOld);
        }
        Ok(Base { info, hold: Hold::new(info.version, held_ns, now), manifest, was })
    }

    pub(super) fn info(&self) -> ObjectInfo {
        self.info
    }

    pub(super) fn was(&self) -> Checksum {
        self.was
    }

    pub(super) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its fragments were moved: what is shared of it is where this manifest says.
    pub(super) fn is_marked(&mut self, manifest: &[u8], segments: &mut Parts) -> Result<(), ObjectError> {
        let was = base::checksum(manifest);
        let manifest = read(manifest, self.info.version)?;
        segments.follow(&manifest);
        (self.manifest, self.was) = (manifest, was);
        Ok(())
    }

    pub(super) fn wake(&mut self, step: &mut Step<'_>) {
        self.hold.wake(step);
    }

    pub(super) fn deadline(&self) -> Time {
        self.hold.deadline()
    }
}

fn read(manifest: &[u8], of: ObjectVersion) -> Result<Manifest, ObjectError> {
    Manifest::read(manifest, of).map_err(|why| ObjectError::Manifest(why.to_string()))
}

impl Gap {
    /// Where the byte at `at` goes of an object that has these segments, or will have further ones. The last one may become as long as all new ones.
    pub(super) fn at(at: u64, segments: &[SegmentRecord], segment_bytes: usize) -> Gap {
        let mut begin = 0;
        for (segment, record) in segments.iter().enumerate() {
            let is_last = segment + 1 == segments.len();
            let bytes =
                if is_last { segment_bytes.max(record.bytes as usize) } else { record.bytes as usize };
            if at < begin + bytes as u64 {
                let from = (at - begin) as usize;
                return Gap { segment, from, most: bytes - from };
            }
            begin += bytes as u64;
        }
        let behind = at - begin;
        let segment = segments.len() + (behind / segment_bytes as u64) as usize;
        let from = (behind % segment_bytes as u64) as usize;
        Gap { segment, from, most: segment_bytes - from }
    }

    /// Whether nothing is left of such a segment, if so much is put there.
    pub(super) fn replaces(&self, old: &SegmentRecord, bytes: usize) -> bool {
        self.from == 0 && bytes >= old.bytes as usize
    }

    /// A segment's content, with a part of it replaced.
    pub(super) fn merge(&self, old: &Payload, content: &Payload) -> Payload {
        let mut merged = old.slice(0, self.from);
        merged.append(content);
        let end = self.from + content.len();
        if end < old.len() {
            merged.append(&old.slice(end, old.len() - end));
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Coding;

    fn segment(bytes: u32) -> SegmentRecord {
        SegmentRecord {
            version: ObjectVersion(7),
            bytes,
            checksum: Some(0),
            coding: Coding::Copies { blocks: 1 },
            symbol_blocks: 1,
            places: Vec::new(),
            mark: 0,
        }
    }

    #[test]
    fn content_goes_where_the_object_has_it_and_then_behind_its_end() {
        let gap = |at| {
            let Gap { segment, from, most } = Gap::at(at, &[segment(10), segment(4)], 10);
            (segment, from, most)
        };
        assert_eq!([gap(0), gap(9), gap(10)], [(0, 0, 10), (0, 9, 1), (1, 0, 10)]);
        assert_eq!([gap(14), gap(19), gap(20), gap(30)], [(1, 4, 6), (1, 9, 1), (2, 0, 10), (3, 0, 10)]);
        assert_eq!(Gap::at(0, &[], 10), Gap { segment: 0, from: 0, most: 10 });
        // It was put with longer segments than are put now.
        assert_eq!(Gap::at(12, &[segment(10), segment(14)], 10), Gap { segment: 1, from: 2, most: 12 });
    }

    #[test]
    fn a_part_is_replaced_and_the_rest_stays() {
        let merged = |from, content: &[u8]| {
            let gap = Gap { segment: 0, from, most: 100 };
            let old = Payload::from(b"0123456789".to_vec());
            gap.merge(&old, &Payload::from(content.to_vec())).to_vec()
        };
        assert_eq!(merged(0, b"ab"), b"ab23456789");
        assert_eq!(merged(4, b"ab"), b"0123ab6789");
        assert_eq!(merged(8, b"abcd"), b"01234567abcd");
        assert_eq!(merged(10, b"ab"), b"0123456789ab");
    }
}
