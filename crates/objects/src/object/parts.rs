//! The segments of an object while it is put: a manifest can be made of them only when each one is known, and all bytes are accounted for.

use super::manifest::{Manifest, SegmentRecord};
use base::ObjectVersion;
use thiserror::Error;

/// What is known of each segment, in order.
#[derive(Debug, Default)]
pub(super) struct Parts {
    segments: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    /// Its content has not come, or is on its way to bricks.
    Awaited,
    Stored(SegmentRecord),
}

/// Why no manifest can be made. Whoever puts counts segments and bytes apart, so that a mistake in either fails the put, and leaves no hole in an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Incomplete {
    #[error("segment {0} is not stored")]
    Segment(u32),
    #[error("its segments have {stored} bytes, and {received} came")]
    Bytes { stored: u64, received: u64 },
}

impl Parts {
    /// Those of a version that is there.
    pub(super) fn of(manifest: &Manifest) -> Parts {
        Parts { segments: manifest.segments.iter().cloned().map(Part::Stored).collect() }
    }

    /// The segment is to be stored, or stored anew.
    pub(super) fn awaits(&mut self, segment: usize) {
        self.set(segment, Part::Awaited);
    }

    pub(super) fn is_stored(&mut self, segment: usize, record: SegmentRecord) {
        self.set(segment, Part::Stored(record));
    }

    fn set(&mut self, segment: usize, part: Part) {
        let count = self.segments.len().max(segment + 1);
        self.segments.resize(count, Part::Awaited);
        self.segments[segment] = part;
    }

    /// Those that are stored, with their numbers.
    pub(super) fn stored(&self) -> impl Iterator<Item = (usize, &SegmentRecord)> {
        let numbered = self.segments.iter().enumerate();
        numbered.filter_map(|(number, part)| match part {
            Part::Stored(record) => Some((number, record)),
            Part::Awaited => None,
        })
    }

    /// Those that are of this manifest's versions are where it says.
    pub(super) fn follow(&mut self, moved: &Manifest) {
        for (part, moved) in self.segments.iter_mut().zip(&moved.segments) {
            if let Part::Stored(kept) = part
                && kept.version == moved.version
            {
                kept.places.clone_from(&moved.places);
                kept.mark = moved.mark;
            }
        }
    }

    /// Whether some segment was put with this version.
    pub(super) fn has_some_of(&self, version: ObjectVersion) -> bool {
        self.stored().any(|(_, segment)| segment.version == version)
    }

    /// All of an object that has so many bytes.
    ///
    /// # Errors
    /// If a segment is missing, or the segments have more or fewer bytes.
    pub(super) fn manifest(&self, received: u64, losses: u32) -> Result<Manifest, Incomplete> {
        let record = |(number, part): (u32, &Part)| match part {
            Part::Stored(record) => Ok(record.clone()),
            Part::Awaited => Err(Incomplete::Segment(number)),
        };
        let segments = (0..).zip(&self.segments).map(record).collect::<Result<_, _>>()?;
        let manifest = Manifest { segments, losses };
        let stored = manifest.bytes();
        if stored == received { Ok(manifest) } else { Err(Incomplete::Bytes { stored, received }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Coding;

    fn record(bytes: u32) -> SegmentRecord {
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
    fn no_manifest_has_a_hole_or_other_bytes_than_came() {
        let mut parts = Parts::default();
        assert_eq!(parts.manifest(0, 1), Ok(Manifest { segments: Vec::new(), losses: 1 }));
        parts.is_stored(2, record(5));
        parts.is_stored(0, record(10));
        assert_eq!(parts.manifest(15, 1), Err(Incomplete::Segment(1)), "the others have all bytes that came");
        parts.is_stored(1, record(10));
        assert_eq!(parts.manifest(24, 1), Err(Incomplete::Bytes { stored: 25, received: 24 }));
        assert_eq!(parts.manifest(25, 1).map(|manifest| manifest.bytes()), Ok(25));
        parts.awaits(2);
        assert_eq!(parts.manifest(25, 1), Err(Incomplete::Segment(2)));
    }
}
