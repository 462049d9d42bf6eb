//! A range of a volume's blocks, cut as bricks take it: into pieces on one slot, and into whole rows, whose parity
//! needs no read.

use super::extent::Geometry;
use core::ops::Range;

/// Blocks that follow each other in the volume and on one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The first block, in the volume.
    pub volume_block: u64,
    /// How many blocks.
    pub count: u32,
    /// The extent they are in.
    pub extent: u64,
    /// The address of the first one on the member.
    pub lba: u64,
    /// Which data shard of their rows they are.
    pub data_index: u8,
    /// The slot of the member that has them; 0 when they are mirrored, as all have them.
    pub slot: u8,
}

/// A part of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Rows of which it covers every data shard. They are in one stripe, so that each shard is on one slot; block `i` of
    /// data shard `d` is block [`Geometry::volume_block`]`(lba + i, d)` of the volume.
    Rows {
        /// The extent they are in.
        extent: u64,
        /// The address of the first row, on all members.
        lba: u64,
        count: u32,
    },
    /// Blocks in rows of which it covers only some data shards.
    Piece(Piece),
}

impl Geometry {
    /// The longest piece where nothing else ends it: 1 MiB, so that one request keeps no brick for long.
    pub const PIECE_BLOCKS: u32 = 256;

    /// Cuts `count` blocks of the volume from `offset` on into pieces, in order. A piece ends with its stripe unit; where
    /// all blocks of an extent follow each other on its members (one brick, or mirrors), with the extent or after
    /// [`Geometry::PIECE_BLOCKS`].
    pub fn pieces(&self, offset: u64, count: u64) -> impl Iterator<Item = Piece> + use<> {
        self.pieces_within(Geometry::PIECE_BLOCKS, offset, count)
    }

    /// The same, with pieces of at most `longest` blocks where there are two or more such: a little more than one is left whole, as each
    /// piece is an access of a disk.
    pub fn pieces_within(
        &self,
        longest: u32,
        offset: u64,
        count: u64,
    ) -> impl Iterator<Item = Piece> + use<> {
        let (geometry, end, longest) = (*self, offset + count, u64::from(longest));
        let mut at = offset;
        core::iter::from_fn(move || {
            let until = if end - at >= 2 * longest { at + longest } else { end };
            let piece = (at < end).then(|| geometry.piece(at..until))?;
            at += u64::from(piece.count);
            Some(piece)
        })
    }

    /// Cuts `count` blocks of the volume from `offset` on into whole rows, as far as there are any, and pieces. Stripes
    /// come in order; in each, its rows come before its pieces. Without parity there are only pieces.
    pub fn split_rows(&self, offset: u64, count: u64) -> Vec<Part> {
        if self.shape.parity == 0 {
            return self.pieces(offset, count).map(Part::Piece).collect();
        }
        let mut parts = Vec::new();
        let (mut at, end) = (offset, offset + count);
        while at < end {
            let next = ((at / self.stripe_blocks() + 1) * self.stripe_blocks()).min(end);
            self.split_stripe(at..next, &mut parts);
            at = next;
        }
        parts
    }

    /// Whether a write of these blocks is one at every member, and so takes effect as a whole or not at all: within a stripe unit, or of
    /// whole rows of one stripe; of copies, up to [`Geometry::PIECE_BLOCKS`] within an extent.
    pub fn is_one_write(&self, offset: u64, count: u64) -> bool {
        self.split_rows(offset, count).len() == 1
    }

    /// Cuts a range within one stripe.
    fn split_stripe(&self, range: Range<u64>, parts: &mut Vec<Part>) {
        let unit = u64::from(self.stripe_unit_blocks());
        let stripe = range.start - range.start % self.stripe_blocks();
        // A range that reaches from the first unit to the last has all of those between: its whole rows are bounded by
        // where it begins in the first and where it ends in the last.
        let first = range.start - stripe;
        let end = (range.end - stripe).saturating_sub(self.stripe_blocks() - unit);
        let rows = if first < end { first..end } else { 0..0 };
        if !rows.is_empty() {
            let place = self.locate(stripe + rows.start);
            let count = (rows.end - rows.start) as u32;
            parts.push(Part::Rows { extent: place.extent, lba: place.lba, count });
        }
        for start in (stripe..range.end).step_by(unit as usize) {
            let covered = range.start.max(start)..range.end.min(start + unit);
            let before = covered.start..covered.end.min(start + rows.start);
            let after = covered.start.max(start + rows.end)..covered.end;
            let rest = [before, after].into_iter().filter(|rest| !rest.is_empty());
            parts.extend(rest.map(|rest| Part::Piece(self.piece(rest))));
        }
    }

    /// The longest piece at the start of a range.
    fn piece(&self, range: Range<u64>) -> Piece {
        let place = self.locate(range.start);
        let one_run = self.shape.data == 1 && self.shape.parity == 0;
        let run = if one_run {
            (self.lbas(place.extent).end - place.lba).min(u64::from(Geometry::PIECE_BLOCKS))
        } else {
            let unit = u64::from(self.stripe_unit_blocks());
            unit - place.lba % unit
        };
        Piece {
            volume_block: range.start,
            // A run is no longer than a stripe unit or PIECE_BLOCKS.
            count: run.min(range.end - range.start) as u32,
            extent: place.extent,
            lba: place.lba,
            data_index: place.data_index,
            slot: place.slot,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::extent::tests::any_geometry;
    use super::*;
    use crate::layout::Layout;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn usual(name: &str) -> Geometry {
        Geometry::usual(name.parse::<Layout>().expect(name)).expect(name)
    }

    #[test]
    fn what_is_one_write_is_a_unit_whole_rows_or_a_run_of_copies() {
        let (raid5, copies) = (usual("raid5-4+1"), usual("raid1x3"));
        let unit = u64::from(raid5.stripe_unit_blocks());
        assert!(raid5.is_one_write(1, unit - 1) && !raid5.is_one_write(1, unit));
        assert!(raid5.is_one_write(4 * unit, 4 * unit), "a stripe");
        assert!(!raid5.is_one_write(0, 8 * unit), "two stripes");
        let longest = u64::from(Geometry::PIECE_BLOCKS);
        assert!(copies.is_one_write(7, longest) && !copies.is_one_write(7, longest + 1));
        let extent = u64::from(Geometry::COLUMN_BLOCKS);
        assert!(!copies.is_one_write(extent - 1, 2), "two extents");
    }

    #[test]
    fn runs_on_one_brick_are_long() {
        let counts =
            |name, offset, count| usual(name).pieces(offset, count).map(|p| p.count).collect::<Vec<_>>();
        assert_eq!(counts("raid1x3", 1000, 400), [24, 256, 120]);
        assert_eq!(counts("raid0x1", 0, 600), [256, 256, 88]);
        assert_eq!(counts("raid0x2", 10, 40), [6, 16, 16, 2]);
        assert_eq!(counts("raid5-1+1", 10, 20), [6, 14]);
        assert_eq!(counts("raid1x3", 5, 0), []);
    }

    #[test]
    fn what_is_planned_is_cut_where_two_can_be_had() {
        let counts = |name, offset, count| {
            usual(name).pieces_within(16, offset, count).map(|piece| piece.count).collect::<Vec<_>>()
        };
        assert_eq!(counts("raid1x3", 3, 16), [16]);
        assert_eq!(counts("raid1x3", 3, 31), [31]);
        assert_eq!(counts("raid1x3", 3, 32), [16, 16]);
        assert_eq!(counts("raid1x3", 3, 50), [16, 16, 18]);
        assert_eq!(counts("rs-4+2", 3, 32), [13, 16, 3], "stripe units end pieces all the same");
        assert_eq!(counts("raid1x3", 1024 - 8, 64), [8, 16, 16, 24], "and extents");
    }

    #[test]
    fn rows_by_hand() {
        let geometry = usual("raid5-4+1");
        let split = |offset, count| {
            let show = |part: Part| match part {
                Part::Rows { lba, count, .. } => format!("rows {lba}+{count}"),
                Part::Piece(piece) => format!("{}+{}", piece.volume_block, piece.count),
            };
            geometry.split_rows(offset, count).into_iter().map(show).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(split(64, 128), "rows 16+16 rows 32+16");
        assert_eq!(split(63, 66), "63+1 rows 16+16 128+1");
        // From row 4 of the first unit to row 10 of the last.
        assert_eq!(split(4, 54), "rows 4+6 10+6 16+4 26+6 32+4 42+6 48+4");
        assert_eq!(split(10, 48), "10+6 16+16 32+16 48+10");
    }

    proptest! {
        #[test]
        fn pieces_tile_the_range(geometry in any_geometry(), offset in 0..1_u64 << 40, count in 0..3000_u64) {
            let mut at = offset;
            for piece in geometry.pieces(offset, count) {
                prop_assert_eq!(piece.volume_block, at);
                prop_assert!(piece.count > 0);
                prop_assert_eq!(is_one_run(&geometry, &piece), Ok(()));
                at += u64::from(piece.count);
            }
            prop_assert_eq!(at, offset + count);
        }

        #[test]
        fn rows_and_pieces_tile_the_range(geometry in any_geometry(), offset in 0..1_u64 << 40, count in 0..1500_u64) {
            let mut left: BTreeSet<u64> = (offset..offset + count).collect();
            let (mut whole, mut partial) = (BTreeSet::new(), BTreeSet::new());
            for part in geometry.split_rows(offset, count) {
                match part {
                    Part::Rows { extent, lba, count } => {
                        prop_assert_eq!(geometry.extent_of_lba(lba), extent);
                        prop_assert_eq!(geometry.stripe(lba), geometry.stripe(lba + u64::from(count) - 1));
                        for lba in lba..lba + u64::from(count) {
                            whole.insert(lba);
                            for data in 0..geometry.layout().data() {
                                prop_assert!(left.remove(&geometry.volume_block(lba, data)));
                            }
                        }
                    }
                    Part::Piece(piece) => {
                        prop_assert_eq!(is_one_run(&geometry, &piece), Ok(()));
                        for i in 0..u64::from(piece.count) {
                            partial.insert(piece.lba + i);
                            prop_assert!(left.remove(&(piece.volume_block + i)));
                        }
                    }
                }
            }
            prop_assert!(left.is_empty());
            prop_assert!(whole.is_disjoint(&partial));
            // No whole row is left among the pieces.
            let range = offset..offset + count;
            let covers = |lba: u64| (0..geometry.layout().data()).all(|data| range.contains(&geometry.volume_block(lba, data)));
            prop_assert!(geometry.layout().parity() == 0 || !partial.into_iter().any(covers));
        }
    }

    /// Whether each block of the piece is where the piece says.
    fn is_one_run(geometry: &Geometry, piece: &Piece) -> Result<(), String> {
        let strays = (0..u64::from(piece.count)).find(|i| {
            let place = geometry.locate(piece.volume_block + i);
            (place.extent, place.data_index, place.slot, place.lba)
                != (piece.extent, piece.data_index, piece.slot, piece.lba + i)
        });
        strays.map_or(Ok(()), |i| Err(format!("block {i} of {piece:?} is elsewhere")))
    }
}
