//! What a brick may say of where fragments are: the record of a version changes only by what follows from the record before.
//!
//! A brick moves fragments of its own, and makes again what bricks have lost that are away or take no more. So it says nothing of what a brick that
//! is there has, and nothing of versions of which it has no part. What it says of others is not believed to be there: whoever gives fragments
//! back asks those first that are named instead.

use super::manifest::{Manifest, SegmentRecord};
use base::BrickId;
use std::collections::BTreeSet;

/// A brick that says where fragments are from now on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mover {
    pub(crate) brick: BrickId,
    /// The bricks that are there and take fragments: what these have, only they move.
    pub(crate) staying: BTreeSet<BrickId>,
}

impl Mover {
    /// Why this brick may not put `after` in the place of `before`, if so.
    pub(crate) fn what_is_wrong(&self, before: &Manifest, after: &Manifest) -> Option<&'static str> {
        if before.losses != after.losses || before.segments.len() != after.segments.len() {
            return Some("a version stays as it was put: so many segments, and what it survives");
        }
        let segments = || before.segments.iter().zip(&after.segments);
        if !segments().all(|(before, after)| has_same_content(before, after)) {
            return Some("a segment stays as it was put: its content, its code, and with which version");
        }
        let mut moved = segments().filter(|(before, after)| before.places != after.places);
        moved.find_map(|(was, is)| match self.has_part(before, was) {
            true => self.what_is_wrong_with_places(was, is),
            false => Some("a brick moves fragments of versions only of which it has some"),
        })
    }

    /// Whether it has any fragment that was put with the segment's version.
    fn has_part(&self, manifest: &Manifest, of: &SegmentRecord) -> bool {
        let mut its = manifest.segments.iter().filter(|segment| segment.version == of.version);
        its.any(|segment| segment.places.iter().any(|(_, brick)| *brick == self.brick))
    }

    fn what_is_wrong_with_places(&self, was: &SegmentRecord, is: &SegmentRecord) -> Option<&'static str> {
        let may_move = |brick: BrickId| brick == self.brick || !self.staying.contains(&brick);
        let pairs = || was.places.iter().zip(&is.places);
        match () {
            () if is.places.len() < was.places.len() => Some("no fragment is left out"),
            () if pairs().any(|((was, _), (is, _))| was != is) => Some("a fragment is replaced by itself"),
            () if !pairs().all(|(was, is)| was == is || may_move(was.1)) => {
                Some("what a brick has that is there only it moves")
            }
            () => None,
        }
    }
}

/// All but where its fragments are.
fn has_same_content(before: &SegmentRecord, after: &SegmentRecord) -> bool {
    let SegmentRecord { version, bytes, checksum, coding, symbol_blocks, places: _, mark: _ } = *before;
    (version, bytes, checksum) == (after.version, after.bytes, after.checksum)
        && (coding, symbol_blocks) == (after.coding, after.symbol_blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Coding;
    use base::ObjectVersion;

    fn segment(version: u64, places: &[(u32, u32)]) -> SegmentRecord {
        SegmentRecord {
            version: ObjectVersion(version),
            bytes: 9,
            checksum: Some(version as u32),
            coding: Coding::precoded(4),
            symbol_blocks: 1,
            places: places.iter().map(|(symbol, brick)| (*symbol, BrickId(*brick))).collect(),
            mark: 0,
        }
    }

    fn of(segments: &[SegmentRecord]) -> Manifest {
        Manifest { segments: segments.to_vec(), losses: 1 }
    }

    /// Says brick 1, of bricks 1, 2, 3 and 5, which are there, and 4, which is lost.
    fn may(before: &Manifest, after: &Manifest) -> bool {
        let mover = Mover { brick: BrickId(1), staying: [1, 2, 3, 5].map(BrickId).into() };
        mover.what_is_wrong(before, after).is_none()
    }

    #[test]
    fn a_brick_moves_what_it_has_and_makes_again_what_is_lost() {
        let before = of(&[segment(7, &[(0, 1), (1, 2), (2, 4)])]);
        let may_be = |places: &[(u32, u32)]| may(&before, &of(&[segment(7, places)]));
        assert!(may_be(&[(0, 3), (1, 2), (2, 4)]), "its own, elsewhere");
        assert!(may_be(&[(0, 1), (1, 2), (2, 3)]), "of the lost one");
        assert!(may_be(&[(0, 1), (1, 2), (2, 4), (3, 3), (4, 5)]), "further ones");
        assert!(!may_be(&[(0, 1), (1, 3), (2, 4)]), "of one that is there");
        assert!(!may_be(&[(0, 1), (1, 2)]) && !may_be(&[]), "forgotten");
        assert!(!may_be(&[(5, 3), (1, 2), (2, 4)]), "another fragment");
    }

    #[test]
    fn a_stranger_to_a_version_moves_nothing_of_it() {
        let before = of(&[segment(7, &[(0, 2), (1, 4)]), segment(8, &[(0, 1)])]);
        let after = of(&[segment(7, &[(0, 2), (1, 1)]), segment(8, &[(0, 1)])]);
        assert!(!may(&before, &after), "of an older version it has no part");
        let marked =
            of(&[SegmentRecord { mark: 5, ..before.segments[0].clone() }, before.segments[1].clone()]);
        assert!(may(&before, &marked), "it may have what nobody looks for there, and give it back");
    }

    #[test]
    fn what_an_object_holds_stays() {
        let places = [(0, 1), (1, 4)];
        let sound = segment(7, &places);
        let before = of(std::slice::from_ref(&sound));
        let other = |other: SegmentRecord| !may(&before, &of(&[other]));
        assert!(other(SegmentRecord { bytes: 8, ..sound.clone() }));
        assert!(other(SegmentRecord { checksum: Some(1), ..sound.clone() }));
        assert!(other(SegmentRecord { coding: Coding::precoded(5), ..sound.clone() }));
        assert!(other(SegmentRecord { symbol_blocks: 2, ..sound.clone() }));
        assert!(other(SegmentRecord { version: ObjectVersion(6), ..sound.clone() }));
        assert!(!may(&before, &of(&[])) && !may(&before, &of(&[sound.clone(), sound.clone()])));
        assert!(!may(&before, &Manifest { losses: 0, ..before.clone() }));
    }
}
