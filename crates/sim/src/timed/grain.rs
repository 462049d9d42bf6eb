//! What one of the protocol's blocks stands for on a measured disk.
//!
//! Machines speak in blocks of 4 KiB. Papers have requests of any number of sectors, and traces name sectors. Where a load does,
//! a block of the protocol stands for one sector: 4096 bytes of a message are 512 of the disk, of the wires and of the memories, and
//! machines do the same work for as many blocks. Content is then not what clients wrote, so that no checker can watch.

use super::workload::{Sizes, Workload};
use base::{BLOCK_U64, SECTOR_BYTES};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Grain {
    /// Whole blocks of 4 KiB, as on real bricks.
    Block,
    /// A block of the protocol is one sector.
    Sector,
}

impl Grain {
    /// What requests of this load need.
    pub(super) fn of(workload: &Workload) -> Grain {
        match workload {
            Workload::Closed { mix, .. } | Workload::Open { mix, .. }
                if matches!(mix.sizes, Sizes::Blocks(_)) =>
            {
                Grain::Block
            }
            Workload::Closed { .. } | Workload::Open { .. } | Workload::Stream(_) => Grain::Sector,
        }
    }

    /// Bytes of the disk that a block stands for.
    pub(crate) fn block_bytes(self) -> u64 {
        match self {
            Grain::Block => BLOCK_U64,
            Grain::Sector => SECTOR_BYTES,
        }
    }

    /// Sectors of the disk that a block stands for.
    pub(crate) fn block_sectors(self) -> u64 {
        self.block_bytes() / SECTOR_BYTES
    }

    /// What so many bytes of the protocol are on the disk.
    pub(crate) fn on_disk(self, bytes: u64) -> u64 {
        bytes / (BLOCK_U64 / self.block_bytes())
    }

    /// What so many bytes of the disk are in the protocol.
    pub(crate) fn in_protocol(self, bytes: u64) -> u64 {
        bytes * (BLOCK_U64 / self.block_bytes())
    }
}
