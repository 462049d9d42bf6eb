//! What operators and clients ask of the directory, and what it answers.

use crate::directory::{ClusterStatus, VolumeInfo, VolumeMap};
use crate::{
    Events, IoTimeout, Placement, Protocol, ReadPolicy, Reads, StreamInfo, StreamsStatus, Version, wire_enum,
};
use base::{BrickId, StreamId, VolumeId};

/// A command to the directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdminRequest {
    /// Makes a volume; fails if the name is taken, unless it is the same request come again (same `nonce`).
    CreateVolume {
        /// Its name: 1 to 63 of `a-z 0-9 - _ .`, beginning with a letter or digit.
        name: String,
        /// Its size in bytes; rounded up to a block.
        size_bytes: u64,
        layout: String,
        /// Blocks in a stripe unit; 0 for the default.
        stripe_unit_blocks: u32,
        /// Number of groups; 0 for the default.
        groups: u32,
        /// Who serves its reads.
        read_policy: ReadPolicy,
        /// After how long its requests end with an error.
        io_timeout: IoTimeout,
        /// Tells a retry from a second command.
        nonce: u64,
        /// What its writes and reads go by.
        protocol: Protocol,
        /// How its groups are made of bricks, and which of them gets an extent.
        placement: Placement,
        /// To which its requests belong.
        stream: StreamId,
        /// What its reads count on.
        reads: Reads,
    },
    /// Deletes a volume and all its data.
    DeleteVolume {
        name: String,
        /// Tells a retry from a second command.
        nonce: u64,
    },
    /// Makes a volume larger.
    ResizeVolume {
        name: String,
        size_bytes: u64,
    },
    /// Makes a volume read-only, or writable again.
    SetReadOnly {
        name: String,
        read_only: bool,
    },
    /// Says who serves a volume's reads from now on.
    SetReadPolicy {
        name: String,
        read_policy: ReadPolicy,
    },
    /// Says what a volume's reads count on from now on.
    SetReads {
        name: String,
        reads: Reads,
    },
    /// Says after how long a volume's requests end with an error from now on.
    SetIoTimeout {
        name: String,
        io_timeout: IoTimeout,
    },
    /// All volumes, or a page of them: from this id on, in the order of their ids. Directories of before version 20 answer with all.
    ListVolumes {
        from: Option<VolumeId>,
    },
    /// One volume with its groups.
    VolumeMap {
        name: String,
    },
    /// The cluster at a glance.
    Status {
        part: StatusPart,
    },
    /// What happened to bricks after the event of number `after`, in that order: so many events at most, and no more than have room in a
    /// page. Who wants all goes on after the last one.
    ListEvents {
        after: u64,
        most: u32,
    },
    /// Takes a snapshot of a volume: `volume@snapshot`.
    Snapshot {
        volume: String,
        /// The snapshot's: as a volume's.
        snapshot: String,
        /// Tells a retry from a second command.
        nonce: u64,
    },
    /// Makes a volume out of a snapshot.
    Clone {
        /// The snapshot, `volume@snapshot`.
        snapshot: String,
        /// The new volume's name.
        name: String,
        /// Tells a retry from a second command.
        nonce: u64,
    },
    /// Makes a volume what its snapshot is; what was written since is dropped.
    Rollback {
        /// The snapshot, `volume@snapshot`.
        snapshot: String,
        /// Tells a retry from a second command.
        nonce: u64,
    },
    /// Takes a brick out of all its groups, and keeps it out: its blocks are rebuilt onto others.
    EvictBrick {
        brick: BrickId,
    },
    /// Whether other bricks could take all places of a brick, should it be evicted: done, or refused with what would stay.
    MayEvict {
        brick: BrickId,
    },
    /// Removes the record of a brick that is gone for good.
    ForgetBrick {
        brick: BrickId,
    },
    /// What a volume lost for good, and what of it was not written again, reads as zeros from now on.
    ForgetLost {
        name: String,
    },
    /// Lets an evicted brick take part again.
    ReadmitBrick {
        brick: BrickId,
    },
    /// Rebuilds the blocks of a brick onto another one, now.
    ReplaceBrick {
        brick: BrickId,
        /// Onto which; the directory chooses for each group where there is none.
        by: Option<BrickId>,
    },
    /// Changes how bricks look after their blocks; `None` stays as it is.
    SetCare {
        /// Bytes a second of rebuilding.
        rebuild_bytes_per_second: Option<u64>,
        /// Bytes a second of scrubbing.
        scrub_bytes_per_second: Option<u64>,
        /// Seconds between scrubs.
        scrub_interval_s: Option<u64>,
        /// Seconds for which a brick may be away.
        rebuild_after_s: Option<u64>,
    },
    /// Every brick checks all its blocks now. Answered by [`AdminReply::Status`] once that is stored.
    Scrub,
    /// Gives a new brick its id. Only the directory's own join service asks this.
    AdmitBrick {
        /// Tells a retry from a second brick.
        nonce: u64,
    },
    /// Makes a stream; fails if the name is taken, unless it is the same request come again (same `nonce`). Rates are in units of cost a second, 0
    /// for none.
    CreateStream {
        /// As a volume's.
        name: String,
        weight: u32,
        /// A tenth of the weight where there is none.
        minimum: Option<u32>,
        reservation: u64,
        limit: u64,
        /// Tells a retry from a second command.
        nonce: u64,
        /// As in [`StreamInfo::latency_us`].
        latency_us: u32,
    },
    /// Changes a stream; `None` stays as it is.
    SetStream {
        name: String,
        weight: Option<u32>,
        minimum: Option<u32>,
        reservation: Option<u64>,
        limit: Option<u64>,
        latency_us: Option<u32>,
    },
    /// Deletes a stream to which no volume belongs.
    DeleteStream {
        name: String,
        /// Tells a retry from a second command.
        nonce: u64,
    },
    ListStreams,
    /// Says to which stream a volume and its snapshots belong from now on.
    SetVolumeStream {
        volume: String,
        /// The stream's name.
        stream: String,
    },
    /// Says to which stream a bucket belongs from now on: all that is put into it and read from it. The bucket need not be there yet.
    SetBucketStream {
        bucket: String,
        /// The stream's name.
        stream: String,
    },
    /// Says how many requests a disk has at a time while streams share it.
    SetPlaces {
        places: u32,
    },
}

/// What of the cluster's status is asked for. Directories of before version 20 answer with all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StatusPart {
    #[default]
    All,
    /// The gateways, and this volume where it exists: what who is attached to it needs.
    Gateways(Option<VolumeId>),
    /// A page of the volumes, from this id on in the order of their ids; and where that is the first one, all else.
    From(VolumeId),
    /// What a person looks at, however large the cluster is: counts, and so many bricks, gateways and volumes at most, those first that are
    /// not well.
    Summary { most: u32 },
}

impl AdminRequest {
    /// The whole status.
    pub const STATUS: AdminRequest = AdminRequest::Status { part: StatusPart::All };

    /// The version with which it came.
    pub fn since(&self) -> Version {
        match self {
            AdminRequest::CreateStream { latency_us: 1.., .. }
            | AdminRequest::SetStream { latency_us: Some(_), .. } => Version(6),
            AdminRequest::CreateVolume { placement, protocol, reads, .. } => {
                placement.since().max(protocol.since()).max(reads.since())
            }
            AdminRequest::CreateStream { .. }
            | AdminRequest::SetStream { .. }
            | AdminRequest::DeleteStream { .. }
            | AdminRequest::ListStreams
            | AdminRequest::SetVolumeStream { .. }
            | AdminRequest::SetPlaces { .. } => Version(5),
            AdminRequest::SetBucketStream { .. } => Version(18),
            AdminRequest::ForgetBrick { .. }
            | AdminRequest::MayEvict { .. }
            | AdminRequest::SetReads { .. }
            | AdminRequest::ForgetLost { .. } => Version(20),
            AdminRequest::ListEvents { .. } => Version(22),
            _ => Version::OLDEST,
        }
    }
}

/// What a command gives back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdminReply {
    Done,
    Volume(VolumeInfo),
    Volumes(Vec<VolumeInfo>),
    /// A volume and its groups.
    Map(Box<VolumeMap>),
    /// Boxed, so that what is said seldom does not make packets large.
    Status(Box<ClusterStatus>),
    /// The new brick's id.
    Brick(BrickId),
    /// A stream as it is now.
    Stream(StreamInfo),
    /// All streams.
    Streams(Box<StreamsStatus>),
    Events(Box<Events>),
}

/// Why a command failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AdminError {
    /// No such brick.
    #[error("there is no {0}; `brickwork brick list` shows those there are")]
    NoBrick(BrickId),
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
    TooFewBricks { needed: u32, available: u32 },
    /// The directory's own disk failed.
    #[error("the directory could not store the change: {0}")]
    Storage(String),
    /// Not in this state of the cluster.
    #[error("{0}")]
    NotNow(String),
    /// Nothing is done, and an earlier copy of the command may have been carried out.
    #[error(
        "{0}. Whether the command was carried out before that is not known: look when the directory is in order again"
    )]
    Unknown(String),
    /// Not now.
    #[error("the directory is busy with another change of this volume; try again")]
    Busy,
}

wire_enum!(AdminRequest {
    0 => CreateVolume {
        name, size_bytes, layout, stripe_unit_blocks, groups, read_policy, io_timeout, nonce;
        since 4: protocol, placement, stream; since 20: reads
    },
    1 => DeleteVolume { name, nonce },
    2 => ResizeVolume { name, size_bytes },
    3 => SetReadOnly { name, read_only },
    4 => ListVolumes { ; since 20: from },
    5 => VolumeMap { name },
    6 => Status { ; since 20: part },
    7 => AdmitBrick { nonce },
    8 => Snapshot { volume, snapshot, nonce },
    9 => Clone { snapshot, name, nonce },
    10 => Rollback { snapshot, nonce },
    11 => EvictBrick { brick },
    12 => ReadmitBrick { brick },
    13 => ReplaceBrick { brick, by },
    14 => SetCare { rebuild_bytes_per_second, scrub_bytes_per_second, scrub_interval_s, rebuild_after_s },
    15 => Scrub,
    16 => SetReadPolicy { name, read_policy },
    17 => SetIoTimeout { name, io_timeout },
    18 => CreateStream { name, weight, minimum, reservation, limit, nonce; since 6: latency_us },
    19 => SetStream { name, weight, minimum, reservation, limit; since 6: latency_us },
    20 => DeleteStream { name, nonce },
    21 => ListStreams,
    22 => SetVolumeStream { volume, stream },
    23 => SetPlaces { places }, 24 => SetBucketStream { bucket, stream },
    30 => ForgetBrick { brick }, 31 => MayEvict { brick }, 32 => ForgetLost { name },
    33 => SetReads { name, reads }, 34 => ListEvents { after, most },
});
wire_enum!(StatusPart { 0 => All, 1 => Gateways(volume), 2 => From(first), 3 => Summary { most } });
wire_enum!(AdminReply {
    0 => Done, 1 => Volume(volume), 2 => Volumes(volumes), 3 => Map(map), 4 => Status(status), 5 => Brick(id),
    6 => Stream(stream), 7 => Streams(streams), 8 => Events(events),
});
wire_enum!(AdminError {
    0 => NoVolume(name), 1 => Exists(name), 2 => Invalid(why), 3 => TooFewBricks { needed, available },
    4 => Storage(why), 5 => Busy, 6 => NoBrick(brick), 7 => NotNow(why),
    8 => Unknown(why; before 20: 7),
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, Version, Wire, Writer};

    #[test]
    fn who_does_not_know_an_error_is_told_the_nearest_that_it_knows() {
        let error = AdminError::Unknown("a store from before".to_owned());
        for (speaks, told) in
            [(20, error.clone()), (19, AdminError::NotNow("a store from before".to_owned()))]
        {
            let mut bytes = Vec::new();
            error.encode(&mut Writer::of(Version(speaks), &mut bytes));
            assert_eq!(AdminError::decode(&mut Reader::of(Version(speaks), &bytes)), Ok(told));
        }
        assert!(AdminError::decode(&mut Reader::of(Version(19), &error.to_bytes())).is_err());
    }
}
