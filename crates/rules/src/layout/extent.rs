//! The address of a block: from the volume's block number to extent, slot and block on the brick, and back.
//!
//! All addresses count blocks of 4096 bytes. A member of a group stores the blocks of one volume under `lba =
//! extent * column_blocks + offset in the column`; so all shards of a row have the same `lba`, and an `lba` belongs to
//! one extent.

use super::rotation::Shape;
use super::{Layout, LayoutError};
use core::ops::Range;
use thiserror::Error;
use wire::VolumeInfo;

/// A layout with its measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    layout: Layout,
    stripe_unit_blocks: u32,
    column_blocks: u32,
    /// The layout's, kept at hand because every address needs it.
    pub(super) shape: Shape,
}

/// Why measures are refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum GeometryError {
    /// The layout's numbers are out of bounds.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A column is not a whole number of stripe units.
    #[error(
        "a column of {column_blocks} blocks cannot be cut into stripe units of {stripe_unit_blocks}; \
         it must be a multiple of the stripe unit, and both more than zero"
    )]
    Column {
        /// Blocks of a column.
        column_blocks: u32,
        /// Blocks of a stripe unit.
        stripe_unit_blocks: u32,
    },
}

/// Where a block of a volume lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location {
    /// The number of the extent.
    pub extent: u64,
    /// Which data shard of its row it is.
    pub data_index: u8,
    /// The slot of the member that has it; 0 when it is mirrored, as all have it.
    pub slot: u8,
    /// Its address on the member, in blocks.
    pub lba: u64,
}

impl Geometry {
    /// The usual stripe unit: 64 KiB.
    pub const STRIPE_UNIT_BLOCKS: u32 = VolumeInfo::STRIPE_UNIT_BLOCKS;
    /// The usual column: 4 MiB on each member.
    pub const COLUMN_BLOCKS: u32 = VolumeInfo::COLUMN_BLOCKS;

    /// A layout with a stripe unit and a column of so many blocks of 4 KiB.
    pub fn new(
        layout: Layout,
        stripe_unit_blocks: u32,
        column_blocks: u32,
    ) -> Result<Geometry, GeometryError> {
        layout.check()?;
        if stripe_unit_blocks == 0 || column_blocks == 0 || !column_blocks.is_multiple_of(stripe_unit_blocks)
        {
            return Err(GeometryError::Column { column_blocks, stripe_unit_blocks });
        }
        Ok(Geometry { layout, stripe_unit_blocks, column_blocks, shape: layout.shape() })
    }

    /// A layout with the usual measures.
    pub fn usual(layout: Layout) -> Result<Geometry, GeometryError> {
        Geometry::new(layout, Geometry::STRIPE_UNIT_BLOCKS, Geometry::COLUMN_BLOCKS)
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Blocks of a stripe unit.
    pub fn stripe_unit_blocks(&self) -> u32 {
        self.stripe_unit_blocks
    }

    /// Blocks of an extent on one member.
    pub fn column_blocks(&self) -> u32 {
        self.column_blocks
    }

    /// Blocks of the volume in one extent.
    pub fn extent_blocks(&self) -> u64 {
        u64::from(self.shape.data) * u64::from(self.column_blocks)
    }

    /// Blocks of the volume in one stripe.
    pub fn stripe_blocks(&self) -> u64 {
        u64::from(self.shape.data) * u64::from(self.stripe_unit_blocks)
    }

    /// How many extents a volume of so many blocks has.
    pub fn extents(&self, volume_blocks: u64) -> u64 {
        volume_blocks.div_ceil(self.extent_blocks())
    }

    /// The extent of a block of the volume.
    pub fn extent_of(&self, volume_block: u64) -> u64 {
        volume_block / self.extent_blocks()
    }

    /// The extent that an address on a member belongs to.
    pub fn extent_of_lba(&self, lba: u64) -> u64 {
        lba / u64::from(self.column_blocks)
    }

    /// An extent's addresses on each member.
    pub fn lbas(&self, extent: u64) -> Range<u64> {
        let column = u64::from(self.column_blocks);
        extent * column..(extent + 1) * column
    }

    /// Where a block of the volume lies.
    pub fn locate(&self, volume_block: u64) -> Location {
        let unit = u64::from(self.stripe_unit_blocks);
        let stripe = volume_block / self.stripe_blocks();
        let data_index = (volume_block / unit % u64::from(self.shape.data)) as u8;
        // A column is a whole number of stripe units, so stripes can be counted through all extents.
        let lba = stripe * unit + volume_block % unit;
        Location {
            extent: self.extent_of_lba(lba),
            data_index,
            slot: self.shape.slot(stripe, data_index),
            lba,
        }
    }

    /// The block of the volume that is data shard `data_index` at `lba`: the inverse of [`Geometry::locate`].
    pub fn volume_block(&self, lba: u64, data_index: u8) -> u64 {
        assert!(data_index < self.shape.data, "{} has no data shard {data_index}", self.layout);
        let unit = u64::from(self.stripe_unit_blocks);
        lba / unit * self.stripe_blocks() + u64::from(data_index) * unit + lba % unit
    }

    /// The slot of data shard `data_index` at `lba`; 0 when it is mirrored, as all have it.
    pub fn slot_of(&self, lba: u64, data_index: u8) -> u8 {
        assert!(data_index < self.shape.data, "{} has no data shard {data_index}", self.layout);
        self.slot_of_shard(lba, data_index)
    }

    /// The slot of a shard at `lba`, where parity shards are numbered after the data shards.
    pub fn slot_of_shard(&self, lba: u64, shard: u8) -> u8 {
        assert!(shard < self.shape.data + self.shape.parity, "{} has no shard {shard}", self.layout);
        self.shape.slot(self.stripe(lba), shard)
    }

    /// Which shard a slot has at `lba`, where parity shards are numbered after the data shards.
    pub fn shard_at(&self, lba: u64, slot: u8) -> u8 {
        assert!(slot < self.shape.width(), "{} has no slot {slot}", self.layout);
        self.shape.shard(self.stripe(lba), slot)
    }

    /// Which data shard a slot has at `lba`; none where it has parity.
    pub fn data_index_at(&self, lba: u64, slot: u8) -> Option<u8> {
        Some(self.shard_at(lba, slot)).filter(|shard| *shard < self.shape.data)
    }

    /// Each parity shard's index, from 0, and its slot at `lba`.
    pub fn parity_slots(&self, lba: u64) -> impl Iterator<Item = (u8, u8)> + use<> {
        let (shape, stripe) = (self.shape, self.stripe(lba));
        (0..shape.parity)
            .map(move |parity_index| (parity_index, shape.slot(stripe, shape.data + parity_index)))
    }

    /// The stripe of an address on a member, counted through all extents. Slots change only between stripes.
    pub fn stripe(&self, lba: u64) -> u64 {
        lba / u64::from(self.stripe_unit_blocks)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    pub(in super::super) fn any_layout() -> impl Strategy<Value = Layout> {
        prop_oneof![
            (1..=16_u8).prop_map(|width| Layout::Raid0 { width }),
            (1..=8_u8).prop_map(|copies| Layout::Raid1 { copies }),
            (1..=16_u8).prop_map(|data| Layout::Raid4 { data }),
            (1..=16_u8).prop_map(|data| Layout::Raid5 { data }),
            (1..=16_u8, 1..=4_u8).prop_map(|(data, parity)| Layout::Rs { data, parity }),
        ]
    }

    pub(in super::super) fn any_geometry() -> impl Strategy<Value = Geometry> {
        (any_layout(), 1..=16_u32, 1..=8_u32).prop_map(|(layout, unit, units)| {
            Geometry::new(layout, unit, unit * units).expect("good measures")
        })
    }

    #[test]
    fn measures_that_do_not_fit_are_refused() {
        let layout = Layout::Raid1 { copies: 2 };
        for (unit, column) in [(0, 16), (16, 0), (16, 24), (32, 16)] {
            let refusal = Geometry::new(layout, unit, column).expect_err("bad measures").to_string();
            assert!(refusal.contains("multiple of the stripe unit"), "{refusal}");
        }
        assert!(Geometry::usual(Layout::Rs { data: 4, parity: 9 }).is_err());
    }

    #[test]
    fn a_raid5_address_by_hand() {
        let geometry = Geometry::usual(Layout::Raid5 { data: 4 }).expect("good measures");
        // Extent 1, stripe 64 + 1, third unit, block 3.
        let block = 4096 + 64 + 2 * 16 + 3;
        // 65 stripes are a multiple of the width of 5: no turn.
        let expected = Location { extent: 1, data_index: 2, slot: 2, lba: 1024 + 16 + 3 };
        assert_eq!(geometry.locate(block), expected);
        assert_eq!(geometry.parity_slots(expected.lba).collect::<Vec<_>>(), [(0, 4)]);
        assert_eq!(geometry.parity_slots(expected.lba + 16).collect::<Vec<_>>(), [(0, 3)]);
    }

    proptest! {
        #[test]
        fn locating_is_invertible(geometry in any_geometry(), volume_block in 0..1_u64 << 50) {
            let place = geometry.locate(volume_block);
            prop_assert_eq!(geometry.volume_block(place.lba, place.data_index), volume_block);
            prop_assert_eq!(geometry.slot_of(place.lba, place.data_index), place.slot);
            prop_assert_eq!(geometry.data_index_at(place.lba, place.slot), Some(place.data_index));
            prop_assert_eq!(geometry.extent_of(volume_block), place.extent);
            prop_assert!(geometry.lbas(place.extent).contains(&place.lba));
        }

        #[test]
        fn no_two_blocks_share_a_place(geometry in any_geometry(), from in 0..1_u64 << 40) {
            let mut places = BTreeMap::new();
            for block in from..from + 2 * geometry.extent_blocks() {
                let place = geometry.locate(block);
                prop_assert_eq!(places.insert((place.slot, place.lba), block), None);
                prop_assert!(geometry.parity_slots(place.lba).all(|(_, slot)| slot != place.slot));
            }
        }

        #[test]
        fn the_shards_of_a_row_cover_the_group(geometry in any_geometry(), lba in 0..1_u64 << 50) {
            let layout = geometry.layout();
            let parity = geometry.parity_slots(lba).map(|(_, slot)| slot);
            let mut slots: Vec<u8> = (0..layout.data()).map(|data| geometry.slot_of(lba, data)).chain(parity).collect();
            slots.sort();
            let expected = if layout.copies() > 1 { 1 } else { layout.width() };
            prop_assert_eq!(slots, (0..expected).collect::<Vec<_>>());
            for slot in 0..layout.width() {
                let shard = geometry.shard_at(lba, slot);
                prop_assert!(layout.copies() > 1 && shard == 0 || geometry.slot_of_shard(lba, shard) == slot);
                prop_assert_eq!(geometry.data_index_at(lba, slot).is_some(), shard < layout.data());
            }
        }

        #[test]
        fn rotation_gives_each_slot_its_share_of_parity(data in 1..=16_u8, parity in 1..=4_u8, from in 0..1_u64 << 40) {
            let geometry = Geometry::usual(Layout::Rs { data, parity }).expect("good measures");
            let width = u64::from(data + parity);
            let mut shares = BTreeMap::new();
            for stripe in from..from + 3 * width {
                let lba = stripe * u64::from(Geometry::STRIPE_UNIT_BLOCKS);
                geometry.parity_slots(lba).for_each(|(index, slot)| *shares.entry((index, slot)).or_insert(0) += 1);
            }
            prop_assert_eq!(shares.len() as u64, u64::from(parity) * width);
            prop_assert!(shares.values().all(|share| *share == 3));
        }
    }
}
