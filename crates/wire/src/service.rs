//! For whom a request is, and what it met on its way to the disk.

use crate::wire_struct;
use base::StreamId;

/// For whom a request is. It travels with every request that leads to an access of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Service {
    pub stream: StreamId,
    /// What its stream was served elsewhere since its request before this one came here, in units of cost; as many as there are
    /// at the most.
    pub delay: u32,
}

/// What a request met at a disk. It travels with every answer to one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Wait {
    /// How long it waited for its turn, in microseconds: this says nothing of how fast the disk is.
    pub turn_us: u32,
    /// How long the disk took, in microseconds.
    pub disk_us: u32,
    /// How many are before a request of its stream that comes now: those of the stream that wait there, and all at the disk.
    pub queued: u32,
}

wire_struct!(Service { stream, delay });
wire_struct!(Wait { turn_us, disk_us, queued });
