//! What one of the protocol's blocks stands for on a measured disk.
//!
//! Machines speak in blocks of 4 KiB. Papers have requests of any number of sectors, and traces name sectors. Where a load does,
//! a block of the protocol stands for one sector: 4096 bytes of a message are 512 of the disk, of the wires and of the memories, and
//! machines do the same work for as many blocks. Content is then zeros, so that no checker can watch. Where objects are a gigabyte, a
//! block stands for many instead, so that a run does not add up gigabytes.

use super::conditions::Conditions;
use super::workload::{Shape, Sizes, Workload};
use base::{BLOCK_U64, SECTOR_BYTES};
use wire::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Grain {
    /// Whole blocks of 4 KiB, as on real bricks.
    Block,
    /// A block of the protocol is one sector.
    Sector,
    /// A block of the protocol is so many of the disk: where objects are large, a fragment of one block stands for a large fragment. Its content
    /// is what was put.
    Blocks(u32),
}

impl Grain {
    /// What requests of this load need.
    pub(super) fn of(workload: &Workload, conditions: &Conditions) -> Grain {
        match workload {
            _ if conditions.are_blocks => Grain::Block,
            Workload::Closed { mix, .. } | Workload::Open { mix, .. }
                if matches!(mix.sizes, Sizes::Blocks(_) | Sizes::Chunks(_) | Sizes::Spaced { .. }) =>
            {
                Grain::Block
            }
            Workload::Closed { .. }
            | Workload::Open { .. }
            | Workload::Threads(_)
            | Workload::Stream(_)
            | Workload::Replayed { .. } => Grain::Sector,
        }
    }

    /// Bytes of the disk that a block stands for.
    pub(crate) fn block_bytes(self) -> u64 {
        match self {
            Grain::Block => BLOCK_U64,
            Grain::Sector => SECTOR_BYTES,
            Grain::Blocks(count) => u64::from(count) * BLOCK_U64,
        }
    }

    /// The block in which a sector of the disk lies.
    pub(super) fn block_of(self, sector: u64) -> u64 {
        sector / self.block_sectors()
    }

    /// How many blocks so many sectors are.
    pub(super) fn blocks(self, sectors: u32) -> u64 {
        u64::from(sectors).div_ceil(self.block_sectors())
    }

    /// Whether blocks hold what was written, and not zeros.
    pub(crate) fn keeps_content(self) -> bool {
        self != Grain::Sector
    }

    /// Sectors of the disk that a block stands for.
    pub(crate) fn block_sectors(self) -> u64 {
        self.block_bytes() / SECTOR_BYTES
    }

    /// A request as machines are asked for it: of blocks, whole ones. Machines cut what crosses the end of a stretch, which of sectors comes every 512 KiB and of
    /// blocks every 4 MiB: a study's request is moved back before such an end, by whole blocks of 4 KiB, so that it stays one access.
    /// One that is longer than the longest span (128 KiB) is cut all the same.
    pub(super) fn fit(self, shape: Shape) -> Shape {
        if self != Grain::Sector {
            return shape.in_blocks();
        }
        let (stretch, end) = (Span::STRETCH_BLOCKS, shape.sector + u64::from(shape.count));
        let over = end % stretch;
        let is_moved = shape.count <= Span::BLOCKS_MAX && shape.sector / stretch < (end - 1) / stretch;
        let back = over.next_multiple_of(Grain::Block.block_sectors());
        Shape { sector: shape.sector - if is_moved { back } else { 0 }, ..shape }
    }

    /// What so many bytes of the protocol are on the disk.
    pub(crate) fn on_disk(self, bytes: u64) -> u64 {
        match self {
            Grain::Block => bytes,
            Grain::Sector => bytes / (BLOCK_U64 / SECTOR_BYTES),
            Grain::Blocks(count) => bytes * u64::from(count),
        }
    }

    /// What so many bytes of the disk are in the protocol.
    pub(crate) fn in_protocol(self, bytes: u64) -> u64 {
        match self {
            Grain::Block => bytes,
            Grain::Sector => bytes * (BLOCK_U64 / SECTOR_BYTES),
            Grain::Blocks(count) => bytes / u64::from(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_crosses_a_stretch_is_moved_back_by_whole_blocks() {
        let fit = |sector, count| Grain::Sector.fit(Shape { sector, count, is_write: false }).sector;
        assert_eq!((fit(1016, 8), fit(1024, 8)), (1016, 1024));
        assert_eq!((fit(1017, 8), fit(1023, 8), fit(1020, 21)), (1009, 1015, 996));
        assert_eq!(fit(1000, 257), 1000, "it is cut all the same");
    }

    #[test]
    fn what_a_block_stands_for_and_back() {
        for (grain, on_disk) in [(Grain::Block, 8192), (Grain::Sector, 1024), (Grain::Blocks(256), 2 << 20)] {
            assert_eq!((grain.on_disk(8192), grain.in_protocol(on_disk)), (on_disk, 8192), "{grain:?}");
            assert_eq!(grain.block_bytes(), on_disk / 2, "{grain:?}");
        }
    }

    #[test]
    fn a_request_for_parts_of_blocks_is_one_for_all_blocks_that_it_touches() {
        let fit = |sector, count| {
            let fit = Grain::Block.fit(Shape { sector, count, is_write: true });
            (fit.sector, fit.count)
        };
        assert_eq!((fit(1017, 8), fit(8, 1), fit(15, 1)), ((1016, 16), (8, 8), (8, 8)));
        assert_eq!(fit(1016, 24), (1016, 24), "whole blocks are what they are");
    }
}
