//! What the directory keeps and says of the cluster.

use crate::{GroupView, wire_enum, wire_struct};
use base::{BrickId, GatewayId, VolumeId};

/// A volume as its users see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeInfo {
    /// Its id.
    pub id: VolumeId,
    /// Its name, unique in the cluster.
    pub name: String,
    /// Its size in bytes, a multiple of 4096.
    pub size_bytes: u64,
    /// Its layout, as written: `raid1x3`, `raid5-4+1`, `rs-4+2`.
    pub layout: String,
    /// Blocks of 4 KiB in a stripe unit.
    pub stripe_unit_blocks: u32,
    /// Blocks of 4 KiB that one extent takes on one member.
    pub column_blocks: u32,
    /// Whether writes are refused.
    pub read_only: bool,
}

/// All that a gateway needs to serve a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeMap {
    /// The volume.
    pub volume: VolumeInfo,
    /// Its groups, in the order by which extents are placed on them.
    pub groups: Vec<GroupView>,
    /// Where bricks are reached.
    pub bricks: Vec<(BrickId, String)>,
}

/// What a brick says of itself with each heartbeat.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BrickStatus {
    /// Where gateways reach it.
    pub address: String,
    /// Room for data, in bytes, over all its disks.
    pub capacity_bytes: u64,
    /// Of which taken.
    pub used_bytes: u64,
    /// Writes that are prepared and not decided.
    pub in_doubt: u32,
    /// Blocks found unreadable since it started.
    pub unreadable_blocks: u64,
    /// Failure-domain labels, such as `("host", "a")`, `("rack", "2")`.
    pub labels: Vec<(String, String)>,
    /// A disk of it failed or is corrupt: why.
    pub failed: Option<String>,
}

/// A brick as the directory sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrickEntry {
    /// Its id.
    pub id: BrickId,
    /// Whether its lease is in force.
    pub alive: bool,
    /// Milliseconds since its last heartbeat, if there was one since the directory started.
    pub silent_ms: Option<u64>,
    /// Groups in which it is a member.
    pub groups: u32,
    /// Groups in which it is a member and not in the current set.
    pub stale_groups: u32,
    /// What it said last.
    pub status: BrickStatus,
}

/// A gateway as the directory sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GatewayStatus {
    /// Its id.
    pub id: GatewayId,
    /// Where clients reach it.
    pub address: String,
    /// Milliseconds since it registered last.
    pub silent_ms: u64,
}

/// The cluster at a glance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterStatus {
    /// All bricks.
    pub bricks: Vec<BrickEntry>,
    /// Gateways heard of lately.
    pub gateways: Vec<GatewayStatus>,
    /// All volumes.
    pub volumes: Vec<VolumeStatus>,
    /// Version of the cluster's map.
    pub version: u64,
}

/// A volume's health.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeStatus {
    /// The volume.
    pub volume: VolumeInfo,
    /// All its groups.
    pub groups: u32,
    /// Groups with fewer current members than slots.
    pub degraded: u32,
    /// Groups that cannot serve now.
    pub unavailable: u32,
    /// How many further members the worst group can lose.
    pub can_lose: u8,
}

/// A command to the directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdminRequest {
    /// Makes a volume; fails if the name is taken, unless it is the same request come again (same `nonce`).
    CreateVolume {
        /// Its name: 1 to 63 of `a-z 0-9 - _ .`, beginning with a letter or digit.
        name: String,
        /// Its size in bytes; rounded up to a block.
        size_bytes: u64,
        /// Its layout.
        layout: String,
        /// Blocks in a stripe unit; 0 for the default.
        stripe_unit_blocks: u32,
        /// Number of groups; 0 for the default.
        groups: u32,
        /// Tells a retry from a second command.
        nonce: u64,
    },
    /// Deletes a volume and all its data.
    DeleteVolume {
        /// Its name.
        name: String,
    },
    /// Makes a volume larger.
    ResizeVolume {
        /// Its name.
        name: String,
        /// Its new size.
        size_bytes: u64,
    },
    /// Makes a volume read-only, or writable again.
    SetReadOnly {
        /// Its name.
        name: String,
        /// Which.
        read_only: bool,
    },
    /// All volumes.
    ListVolumes,
    /// One volume with its groups.
    VolumeMap {
        /// Its name.
        name: String,
    },
    /// The cluster at a glance.
    Status,
    /// Gives a new brick its id. Only the directory's own join service asks this.
    AdmitBrick {
        /// Tells a retry from a second brick.
        nonce: u64,
    },
}

/// What a command gives back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdminReply {
    /// Done.
    Done,
    /// A volume.
    Volume(VolumeInfo),
    /// Volumes.
    Volumes(Vec<VolumeInfo>),
    /// A volume and its groups.
    Map(VolumeMap),
    /// The cluster.
    Status(ClusterStatus),
    /// The new brick's id.
    Brick(BrickId),
}

/// Why a command failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AdminError {
    /// No such volume.
    #[error("no volume named '{0}'; `brickwork volume list` shows those there are")]
    NoVolume(String),
    /// The name is taken.
    #[error("a volume named '{0}' exists already")]
    Exists(String),
    /// A value that cannot be.
    #[error("{0}")]
    Invalid(String),
    /// Not enough bricks.
    #[error("the layout needs {needed} live bricks, {available} are there")]
    TooFewBricks {
        /// By the layout.
        needed: u32,
        /// Alive.
        available: u32,
    },
    /// The directory's own disk failed.
    #[error("the directory could not store the change: {0}")]
    Storage(String),
    /// Not now.
    #[error("the directory is busy with another change of this volume; try again")]
    Busy,
}

wire_struct!(VolumeInfo { id, name, size_bytes, layout, stripe_unit_blocks, column_blocks, read_only });
wire_struct!(VolumeMap { volume, groups, bricks });
wire_struct!(BrickStatus {
    address,
    capacity_bytes,
    used_bytes,
    in_doubt,
    unreadable_blocks,
    labels,
    failed
});
wire_struct!(BrickEntry { id, alive, silent_ms, groups, stale_groups, status });
wire_struct!(GatewayStatus { id, address, silent_ms });
wire_struct!(ClusterStatus { bricks, gateways, volumes, version });
wire_struct!(VolumeStatus { volume, groups, degraded, unavailable, can_lose });
wire_enum!(AdminRequest {
    0 => CreateVolume { name, size_bytes, layout, stripe_unit_blocks, groups, nonce },
    1 => DeleteVolume { name },
    2 => ResizeVolume { name, size_bytes },
    3 => SetReadOnly { name, read_only },
    4 => ListVolumes,
    5 => VolumeMap { name },
    6 => Status,
    7 => AdmitBrick { nonce },
});
wire_enum!(AdminReply {
    0 => Done, 1 => Volume(volume), 2 => Volumes(volumes), 3 => Map(map), 4 => Status(status), 5 => Brick(id),
});
wire_enum!(AdminError {
    0 => NoVolume(name), 1 => Exists(name), 2 => Invalid(why), 3 => TooFewBricks { needed, available },
    4 => Storage(why), 5 => Busy,
});
