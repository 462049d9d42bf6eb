//! What became of each request: when it was asked and answered, and which disk it waited for.

use base::Time;

/// A request from the moment at which it was asked until its client was answered. Times count from the beginning of the load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestRecord {
    pub asked: Time,
    pub answered: Time,
    /// The bricks that hold it, and where in their common addresses it begins, in sectors of 512 bytes.
    pub group: u32,
    pub sector: u64,
    /// How many sectors it has.
    pub count: u32,
    pub is_write: bool,
    pub served_by: ServedBy,
}

/// What a request's client waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServedBy {
    /// An access of a disk.
    Disk(DiskAccess),
    /// A cache that had what was read, or a journal that took what was written.
    Memory,
    /// Several accesses together: layouts with parity, and volumes in stripes.
    Several,
}

/// An access of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskAccess {
    pub brick: u32,
    /// The first sector, on that disk.
    pub sector: u64,
    /// How many accesses waited for that disk when this one was begun; not known of devices that choose by themselves.
    pub waiting: Option<u32>,
    pub begun: Time,
    pub done: Time,
}

impl RequestRecord {
    pub fn response_ns(&self) -> u64 {
        self.answered.0 - self.asked.0
    }

    /// Whether it is a read for which a disk was needed; unknown where several accesses made one.
    pub fn is_disk_read(&self) -> bool {
        !self.is_write && matches!(self.served_by, ServedBy::Disk(_))
    }
}
