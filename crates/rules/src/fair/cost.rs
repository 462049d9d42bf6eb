//! What requests cost.

/// The cost of a request: so much for an access, and so much for each block of 4 KiB. All of a cluster have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    access: u32,
    block: u32,
}

impl Cost {
    /// About the time of a disk, in units of the transfer of a block.
    pub const DEVICE_TIME: Cost = Cost { access: 8, block: 1 };
    /// What is moved, in blocks.
    pub const BYTES: Cost = Cost { access: 0, block: 1 };
    /// Requests, whatever their sizes.
    pub const REQUESTS: Cost = Cost { access: 1, block: 0 };

    /// Of a request for so many blocks.
    pub fn of(self, blocks: u32) -> u32 {
        self.access.saturating_add(self.block.saturating_mul(blocks))
    }
}

impl Default for Cost {
    fn default() -> Cost {
        Cost::DEVICE_TIME
    }
}
