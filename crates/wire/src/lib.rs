//! Messages between nodes, and the words in which a brick's participant speaks to its disk: encode and decode,
//! nothing else.
//!
//! Reading order: [`view`] (what a group is), [`write`](mod@write) (what names a write), [`message`] (who says what to whom),
//! [`disk`] (participant and store), then [`codec`] and [`frame`] (bytes).
//!
//! Deliberately absent: sockets, retries, state. A [`Packet`] is a plain value.

pub mod admin;
pub mod choice;
pub mod codec;
pub mod directory;
pub mod disk;
pub mod event;
pub mod frame;
pub mod index;
mod io;
pub mod known;
pub mod message;
pub mod object;
pub mod policy;
pub mod protocol;
pub mod service;
pub mod stream;
mod timeout;
pub mod version;
pub mod view;
pub mod write;

pub use admin::{AdminError, AdminReply, AdminRequest, StatusPart};
pub use choice::UnknownName;
pub use codec::{DecodeError, Reader, Wire, Writer};
pub use directory::{
    BrickStatus, Care, CatchUp, ClusterStatus, DISK_FULL, Durability, Family, GatewayStatus, GroupProgress,
    GroupState, Health, JournalReport, LostBlocks, Observed, OpenCount, Orders, Place, RecountFrom, Rot, Run,
    ScrubStatus, SlowEntry, Space, Standing, StoreFailure, VolumeInfo, VolumeMap,
};
pub use event::{Event, Events};
pub use index::{
    Condition, IndexError, IndexReply, IndexRequest, ObjectInfo, ObjectName, SegmentSpan, Share,
};
pub use io::{Io, IoError, IoReply};
pub use message::{
    CLAIMS_MAX, COMPLETIONS_MAX, Claim, Contest, Inventory, LockOutcome, Message, OPERATIONS_MAX, Packet,
    PrepareOutcome, ReadOutcome, RepairOutcome, Sight,
};
pub use object::{BrickPlace, FragmentId, FragmentOutcome};
pub use policy::ReadPolicy;
pub use protocol::{Atomicity, DataPath, NoProtocol, Order, Placement, Protocol, Reads, SmallWrites};
pub use service::{Service, Wait};
pub use stream::{
    BrickCapacity, ReservedOn, StreamInfo, StreamReport, StreamStatus, StreamTable, StreamUse, StreamsStatus,
    TargetUse,
};
pub use timeout::IoTimeout;
pub use version::{Spoken, Version};
pub use view::{GroupView, Lineage, Slots};
pub use write::{Change, Completion, Decision, Fate, Link, Scope, Span, WriteId};
