//! What every other room stands on: [`Time`], identifiers, [`Payload`], checksums, seeded randomness and
//! the [`Machine`] trait.
//!
//! Reading order: [`machine`], [`time`], [`id`], [`cluster_time`], [`stamp`], [`payload`], [`mechanics`],
//! [`octaves`].
//!
//! Deliberately absent: clocks, sockets, files, threads. A value here never changes because of the world.

pub mod checksum;
pub mod cluster_time;
pub mod digest;
pub mod id;
pub mod machine;
pub mod mechanics;
mod named;
pub mod octaves;
pub mod payload;
pub mod stamp;
pub mod time;

pub use checksum::{Checksum, checksum};
pub use cluster_time::{ClusterClock, ClusterTime};
pub use digest::Digest;
pub use id::{
    BrickId, ClientId, ClusterId, GatewayId, GroupId, NodeId, ObjectVersion, RequestId, StreamId, ViewNumber,
    VolumeId,
};
pub use machine::{Depth, Machine};
pub use mechanics::{Access, Device, Mechanics, Position, SECTOR_BYTES};
pub use payload::Payload;
pub use stamp::{Loan, Stamp, StampClock};
pub use time::Time;

/// Seeded randomness. It enters a pure crate once, as a seed; the same seed draws the same numbers everywhere.
pub use fastrand::Rng;

/// A hash map for places where its order is never seen. Its hash has no random key, so that runs repeat.
pub type HashMap<K, V> = rustc_hash::FxHashMap<K, V>;
/// A hash set for places where its order is never seen.
pub type HashSet<K> = rustc_hash::FxHashSet<K>;

/// The unit of linearizability, of checksums and of timestamps: 4096 bytes.
pub const BLOCK: usize = 4096;
/// [`BLOCK`] as `u64`, for addresses.
pub const BLOCK_U64: u64 = BLOCK as u64;
