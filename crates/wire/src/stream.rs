//! Streams: what they are entitled to, and what bricks served of them.
//!
//! Reading order: [`StreamInfo`], [`StreamTable`] (directory to brick), [`StreamReport`] (brick to directory), [`StreamsStatus`] (directory to
//! operator).

use crate::wire_struct;
use base::{BrickId, StreamId};

/// What a stream is entitled to where others want service too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamInfo {
    pub id: StreamId,
    /// Its name, unique in the cluster.
    pub name: String,
    /// Service is in proportion to weights: 1 to [`StreamInfo::WEIGHT_MAX`].
    pub weight: u32,
    /// For so much it counts at each disk at least, whatever it is served elsewhere; its weight at the most, 0 for no minimum.
    pub minimum: u32,
    /// Units of cost a second that come first, over all disks together; 0 for none.
    pub reservation: u64,
    /// The most units of cost a second, over all disks together; 0 for no limit.
    pub limit: u64,
    /// Within so many microseconds a request is to be served at a disk, from its arrival there to the disk's answer; 0 for no target.
    pub latency_us: u32,
}

impl StreamInfo {
    pub const WEIGHT_MAX: u32 = 1_000_000;
    /// What a stream has of which nothing is said.
    pub const WEIGHT: u32 = 100;
    /// Keeps a tenth of the usual share at each disk.
    pub const MINIMUM: u32 = 10;
    /// What a request for one block of 4 KiB costs: 8 for the access, 1 for the block.
    pub const BLOCK_UNITS: u64 = 9;

    /// A stream of which nothing is said.
    pub fn usual(id: StreamId, name: impl Into<String>) -> StreamInfo {
        StreamInfo {
            id,
            name: name.into(),
            weight: StreamInfo::WEIGHT,
            minimum: StreamInfo::MINIMUM,
            reservation: 0,
            limit: 0,
            latency_us: 0,
        }
    }

    /// The streams that every cluster has, as they are before anybody changes them. Background work is a share of each disk by itself: its minimum is
    /// its weight.
    pub fn built_in() -> [StreamInfo; 4] {
        let background = |id, name| StreamInfo { minimum: StreamInfo::WEIGHT, ..StreamInfo::usual(id, name) };
        [
            StreamInfo::usual(StreamId(0), "default"),
            background(StreamId::MAINTENANCE, "maintenance"),
            background(StreamId::REPAIR, "repair"),
            background(StreamId::DESTAGE, "destage"),
        ]
    }

    /// Whether no volume can belong to it, as it is for what the cluster does of its own.
    pub fn is_background(&self) -> bool {
        [StreamId::MAINTENANCE, StreamId::REPAIR, StreamId::DESTAGE].contains(&self.id)
    }
}

/// What bricks are told of streams.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamTable {
    /// Another one with each change; 0 as long as nothing was said of any stream.
    pub version: u64,
    /// How many requests a disk has at a time while streams share it.
    pub places: u32,
    /// Those that every cluster has, too.
    pub streams: Vec<StreamInfo>,
}

impl StreamTable {
    /// Enough to keep a drive's own queue busy, and few enough that what is beyond the fair queue delays nobody for long.
    pub const PLACES: u32 = 32;
    /// No drive has a longer queue.
    pub const PLACES_MAX: u32 = 4096;

    /// Whether requests are to take turns by weights: there are streams beside those that every cluster has, or one of these was changed.
    pub fn is_shared(&self) -> bool {
        let built_in = StreamInfo::built_in();
        self.streams.iter().any(|stream| !built_in.contains(stream))
    }

    /// A stream that is in the table.
    pub fn get(&self, id: StreamId) -> Option<&StreamInfo> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}

impl Default for StreamTable {
    fn default() -> StreamTable {
        StreamTable {
            version: 0,
            places: StreamTable::PLACES,
            streams: StreamInfo::built_in().into_iter().collect(),
        }
    }
}

/// What a brick, or one of its disks, did for a stream since it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamUse {
    pub stream: StreamId,
    /// In units of cost.
    pub served: u64,
    /// Requests that had their turn.
    pub requests: u64,
    /// For how long these waited for it, all together, in microseconds.
    pub turn_us: u64,
    /// Requests that wait for it now.
    pub waiting: u32,
}

/// What a brick says of streams with each heartbeat.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamReport {
    /// The version of the table that it goes by; 0 if it was told none.
    pub known: u64,
    /// The busiest streams since its last report, [`StreamReport::USES_MAX`] at the most.
    pub uses: Vec<StreamUse>,
    /// What its disks can serve, in units of cost a second, as far as they were seen to; 0 as long as that is not known.
    pub capacity: u64,
    /// How targets were kept lately, [`StreamReport::USES_MAX`] streams at the most.
    pub targets: Vec<TargetUse>,
}

/// How a stream's latency target was kept lately at a brick. A request counts that came while nobody of its stream waited for a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TargetUse {
    pub stream: StreamId,
    /// The latest requests that count, 128 a disk at the most.
    pub timed: u32,
    /// Those of them that took longer than the target.
    pub late: u32,
}

impl StreamReport {
    /// So that a heartbeat stays small, however many streams there are.
    pub const USES_MAX: usize = 64;
}

/// What is known of a stream over all bricks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamStatus {
    pub stream: StreamId,
    /// The volumes and snapshots that belong to it, by name.
    pub volumes: Vec<String>,
    /// Units of cost a second, over the last second or so.
    pub served_per_second: u64,
    /// Requests a second, over the same time.
    pub requests_per_second: u64,
    /// How long one of these waited for its turn, in the mean, in microseconds.
    pub turn_us: u64,
    /// Requests that wait for their turn now.
    pub waiting: u32,
    /// Units of cost since the directory started.
    pub served: u64,
    /// Against what its reservation is checked; nothing where it has none.
    pub reserved_on: ReservedOn,
    /// How its latency target was kept lately: as in [`TargetUse`], over all bricks.
    pub timed: u32,
    pub late: u32,
    /// The buckets that were given to it, by name.
    pub buckets: Vec<String>,
}

/// The bricks on which a reservation falls, as its stream's volumes and the objects of its buckets lie on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReservedOn {
    pub bricks: u32,
    /// Those of which it is known what they can serve: the reservation is checked against these.
    pub measured: u32,
}

/// What a brick can serve, and what of it is promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BrickCapacity {
    pub brick: BrickId,
    /// In units of cost a second; 0 as long as it is not known, or the brick is away.
    pub capacity: u64,
    /// What reservations come to there at the most, in units of cost a second.
    pub reserved: u64,
}

impl BrickCapacity {
    /// How much of its capacity can be reserved, in units of cost a second: of eight requests in a row one at least leaves by weight.
    pub fn reservable(capacity: u64) -> u64 {
        capacity - capacity.div_ceil(8)
    }
}

/// The streams at a glance.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamsStatus {
    pub table: StreamTable,
    /// One for each stream of the table, in the same order.
    pub streams: Vec<StreamStatus>,
    /// Live bricks that report, and how many of these go by this version of the table.
    pub bricks: u32,
    pub bricks_informed: u32,
    /// Of all bricks, by their numbers.
    pub capacities: Vec<BrickCapacity>,
}

wire_struct!(StreamInfo { id, name, weight, minimum, reservation, limit; since 6: latency_us });
wire_struct!(StreamTable { version, places, streams });
wire_struct!(StreamUse { stream, served, requests, turn_us, waiting });
wire_struct!(StreamReport { known, uses; since 6: capacity, targets });
wire_struct!(TargetUse { stream, timed, late });
wire_struct!(StreamStatus {
    stream,
    volumes,
    served_per_second,
    requests_per_second,
    turn_us,
    waiting,
    served;
    since 6: reserved_on, timed, late;
    since 18: buckets
});
wire_struct!(ReservedOn { bricks, measured });
wire_struct!(BrickCapacity { brick, capacity, reserved });
wire_struct!(StreamsStatus { table, streams, bricks, bricks_informed; since 6: capacities });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AdminReply, AdminRequest, BrickStatus, Message, Orders, Reader, Version, Wire, Writer};
    use base::{BrickId, Time};

    fn bytes_for(version: u32, message: &Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.encode(&mut Writer::of(Version(version), &mut bytes));
        bytes
    }

    fn read_as(version: u32, bytes: &[u8]) -> Message {
        let mut reader = Reader::of(Version(version), bytes);
        let message = Message::decode(&mut reader).expect("a message");
        reader.end().expect("nothing behind it");
        message
    }

    fn heartbeat(streams: StreamReport) -> Message {
        let status = Box::new(BrickStatus::default());
        Message::Heartbeat {
            speaks: crate::Version::default(),
            brick: BrickId(1),
            sent: Time(2),
            known: 3,
            status,
            streams,
            time: Default::default(),
        }
    }

    fn answer(streams: Option<StreamTable>) -> Message {
        let orders = Box::new(Orders { is_slow: true, streams, ..Orders::default() });
        let (views, deleted) = (Vec::new(), Vec::new());
        Message::HeartbeatDone {
            sent: Time(2),
            version: 3,
            lease_ns: 4,
            views,
            deleted,
            orders,
            time: Default::default(),
        }
    }

    fn table() -> StreamTable {
        let mut table = StreamTable { version: 7, places: 4, ..StreamTable::default() };
        table.streams.push(StreamInfo { limit: 9000, ..StreamInfo::usual(StreamId(1), "gold") });
        table
    }

    #[test]
    fn what_is_said_of_streams_comes_back() {
        let used = StreamUse { stream: StreamId(1), served: 2, requests: 3, turn_us: 4, waiting: 5 };
        let report = StreamReport { known: 7, uses: vec![used], ..StreamReport::default() };
        for message in [heartbeat(report), answer(Some(table())), answer(None)] {
            assert_eq!(read_as(5, &bytes_for(5, &message)), message);
        }
        let name = || "gold".to_owned();
        for request in [
            AdminRequest::CreateStream {
                name: name(),
                weight: 300,
                minimum: Some(30),
                reservation: 4500,
                limit: 9000,
                nonce: 1,
                latency_us: 0,
            },
            AdminRequest::SetStream {
                name: name(),
                weight: Some(3),
                minimum: None,
                reservation: Some(9),
                limit: None,
                latency_us: None,
            },
            AdminRequest::DeleteStream { name: name(), nonce: 2 },
            AdminRequest::ListStreams,
            AdminRequest::SetVolumeStream { volume: "v".to_owned(), stream: name() },
            AdminRequest::SetPlaces { places: 8 },
        ] {
            let message = Message::Admin { operation: 1, request };
            assert_eq!(read_as(5, &bytes_for(5, &message)), message);
            assert_eq!(message.since(), Version(5), "a directory of before is not asked");
        }
        let status = StreamsStatus { table: table(), ..StreamsStatus::default() };
        let result = Ok(AdminReply::Streams(Box::new(status)));
        let message = Message::AdminDone { operation: 1, result };
        assert_eq!(read_as(5, &bytes_for(5, &message)), message);
    }

    #[test]
    fn who_does_not_say_what_it_speaks_speaks_nothing_that_came_since() {
        let said = Message::Heartbeat {
            brick: BrickId(1),
            sent: Time(2),
            known: 3,
            status: Box::default(),
            streams: StreamReport::default(),
            time: Default::default(),
            speaks: Version::CURRENT,
        };
        for (version, speaks) in [(10, Version::default()), (11, Version::CURRENT)] {
            let mut bytes = Vec::new();
            said.encode(&mut Writer::of(Version(version), &mut bytes));
            let heard = Message::decode(&mut Reader::of(Version(version), &bytes));
            assert!(
                matches!(heard, Ok(Message::Heartbeat { speaks: heard, .. }) if heard == speaks),
                "{heard:?}"
            );
        }
    }

    #[test]
    fn the_release_before_neither_says_nor_hears_anything_of_streams() {
        let report = StreamReport { known: 7, uses: vec![StreamUse::default()], ..StreamReport::default() };
        for (said, heard) in
            [(heartbeat(report), heartbeat(StreamReport::default())), (answer(Some(table())), answer(None))]
        {
            for version in [3, 4] {
                let bytes = bytes_for(version, &said);
                assert_eq!(bytes, bytes_for(version, &heard), "no new field");
                assert_eq!(read_as(version, &bytes), heard);
            }
        }
    }

    #[test]
    fn what_disks_can_serve_and_latency_targets_are_said_from_version_6_on() {
        let report =
            |capacity, targets| heartbeat(StreamReport { known: 7, uses: Vec::new(), capacity, targets });
        let status = |status: StreamStatus, capacities| {
            let streams = vec![status];
            let status = StreamsStatus { table: table(), streams, capacities, ..StreamsStatus::default() };
            Message::AdminDone { operation: 1, result: Ok(AdminReply::Streams(Box::new(status))) }
        };
        let of_brick = BrickCapacity { brick: BrickId(1), capacity: 9000, reserved: 4500 };
        let reserved_on = ReservedOn { bricks: 3, measured: 2 };
        let of_stream = StreamStatus { reserved_on, timed: 128, late: 3, ..StreamStatus::default() };
        let mut timed = table();
        timed.streams.iter_mut().for_each(|stream| stream.latency_us = 5000);
        let kept = TargetUse { stream: StreamId(1), timed: 128, late: 3 };
        for (said, heard) in [
            (report(9000, vec![kept]), report(0, Vec::new())),
            (answer(Some(timed)), answer(Some(table()))),
            (status(of_stream, vec![of_brick]), status(StreamStatus::default(), Vec::new())),
        ] {
            assert_eq!(read_as(6, &bytes_for(6, &said)), said);
            for version in [3, 4, 5] {
                assert_eq!(bytes_for(version, &said), bytes_for(version, &heard), "no new field");
            }
            assert_eq!(read_as(5, &bytes_for(5, &said)), heard);
        }
    }

    /// A directory that knows no targets would set everything else, and say that it is done.
    #[test]
    fn a_directory_that_knows_no_latency_targets_is_not_asked_for_one() {
        let name = || "gold".to_owned();
        let create = |latency_us| AdminRequest::CreateStream {
            name: name(),
            weight: 300,
            minimum: None,
            reservation: 0,
            limit: 0,
            nonce: 1,
            latency_us,
        };
        let set = |latency_us| AdminRequest::SetStream {
            name: name(),
            weight: None,
            minimum: None,
            reservation: None,
            limit: None,
            latency_us,
        };
        assert_eq!((create(0).since(), set(None).since()), (Version(5), Version(5)));
        for request in [create(5000), set(Some(5000)), set(Some(0))] {
            assert_eq!(request.since(), Version(6));
            let message = Message::Admin { operation: 1, request };
            assert_eq!(read_as(6, &bytes_for(6, &message)), message);
        }
    }

    #[test]
    fn an_eighth_of_what_a_brick_can_serve_is_not_reserved() {
        let reservable = [0, 1, 8, 9000, u64::MAX].map(BrickCapacity::reservable);
        assert_eq!(reservable, [0, 0, 7, 7875, u64::MAX / 8 * 7 + 6]);
    }

    #[test]
    fn disks_are_shared_once_anything_is_said_of_streams() {
        assert!(!StreamTable::default().is_shared());
        assert!(table().is_shared());
        let mut changed = StreamTable::default();
        changed.streams[1].weight = 5;
        assert!(changed.is_shared());
    }
}
