//! Messages between nodes, and the words in which a brick's participant speaks to its disk: encode and decode,
//! nothing else.
//!
//! Reading order: [`view`] (what a group is), [`write`](mod@write) (what names a write), [`message`] (who says what to whom),
//! [`disk`] (participant and store), then [`codec`] and [`frame`] (bytes).
//!
//! Deliberately absent: sockets, retries, state. A [`Packet`] is a plain value.

pub mod codec;
pub mod directory;
pub mod disk;
pub mod frame;
pub mod message;
pub mod policy;
mod timeout;
pub mod view;
pub mod write;

pub use codec::{DecodeError, Reader, Wire};
pub use directory::{
    AdminError, AdminReply, AdminRequest, BrickStatus, Care, CatchUp, ClusterStatus, DISK_FULL, Durability,
    Family, GatewayStatus, GroupProgress, GroupState, Health, LostBlocks, Observed, Orders, Rot, ScrubStatus,
    SlowEntry, Space, StoreFailure, VolumeInfo, VolumeMap,
};
pub use message::{
    CLAIMS_MAX, COMPLETIONS_MAX, Claim, Contest, Inventory, Io, IoError, IoReply, Message, Packet,
    PrepareOutcome, ReadOutcome, RepairOutcome,
};
pub use policy::{ReadPolicy, UnknownPolicy};
pub use timeout::IoTimeout;
pub use view::{GroupView, Lineage, Slots};
pub use write::{Change, Completion, Decision, Fate, Scope, Span, WriteId};
