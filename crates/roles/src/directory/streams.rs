//! Streams: they are made, changed and deleted; bricks are told of them, and tell what they served.

use super::admission::Proposal;
use super::cluster::{Answered, Cluster};
use super::desk::Desk;
use super::event::{DirectoryEffect, Put};
use super::names::check_name;
use super::records::{Records, StreamRecord};
use super::store::{After, Asker};
use super::volumes::invalid;
use base::{BrickId, StreamId, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::{
    AdminError, AdminReply, AdminRequest, ReservedOn, StreamInfo, StreamReport, StreamStatus, StreamTable,
    StreamUse, StreamsStatus, TargetUse, VolumeInfo,
};

/// Rates are of this time at least: of two heartbeats or more, so that one that is late makes no rate wrong.
const INTERVAL: Duration = Duration::from_secs(1);
/// What a brick said counts for so long.
const SILENT_MAX: Duration = Duration::from_secs(5);
/// Of so many streams it is known what a brick served.
const USED_MAX: usize = 1024;
/// So many streams can be made: their table is one message to each brick, which takes 100 bytes a stream.
const STREAMS_MAX: usize = 10_000;

/// What is to change of a stream; `None` stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    pub(super) weight: Option<u32>,
    pub(super) minimum: Option<u32>,
    pub(super) reservation: Option<u64>,
    pub(super) limit: Option<u64>,
    pub(super) latency_us: Option<u32>,
}

impl Change {
    fn of(self, info: &StreamInfo) -> Result<StreamInfo, AdminError> {
        let Change { weight, minimum, reservation, limit, latency_us } = self;
        let weight = weight.unwrap_or(info.weight);
        if info.is_background() {
            if minimum.is_some() || reservation.is_some() || limit.is_some() || latency_us.is_some() {
                return Err(invalid(format!(
                    "'{}' is background work: only its weight can be set, and its minimum follows",
                    info.name
                )));
            }
            return Ok(StreamInfo { weight, minimum: weight, ..info.clone() });
        }
        Ok(StreamInfo {
            weight,
            minimum: minimum.unwrap_or(info.minimum),
            reservation: reservation.unwrap_or(info.reservation),
            limit: limit.unwrap_or(info.limit),
            latency_us: latency_us.unwrap_or(info.latency_us),
            ..info.clone()
        })
    }
}

/// What a brick did for a stream, by the second.
#[derive(Clone, Copy, Debug)]
struct Rate {
    served_per_second: u64,
    requests_per_second: u64,
    /// Over the whole interval.
    requests: u64,
    turn_us: u64,
}

/// What a brick says of streams: the latest, and what it said before by which rates are known.
#[derive(Debug)]
struct Uses {
    heard: Time,
    known: u64,
    /// By the brick's clock.
    sent: Time,
    /// What the brick can serve, in units a second; 0 as long as that is not known.
    capacity: u64,
    /// How targets were kept lately.
    targets: Vec<TargetUse>,
    latest: BTreeMap<StreamId, StreamUse>,
    base_sent: Time,
    base: BTreeMap<StreamId, StreamUse>,
    rates: BTreeMap<StreamId, Rate>,
}

/// The streams as they are told, and as they are used.
#[derive(Debug)]
pub(super) struct Streams {
    /// As a restart would not take it back.
    told: StreamTable,
    bricks: BTreeMap<BrickId, Uses>,
    /// Since the directory started.
    served: BTreeMap<StreamId, u64>,
    lies_on: LiesOn,
}

/// The bricks on which streams' volumes lie, by rising id. Gateways ask for that again and again: it is found out once for each version of the map.
#[derive(Debug, Default)]
struct LiesOn {
    version: u64,
    bricks: BTreeMap<StreamId, BTreeSet<BrickId>>,
}

impl Streams {
    pub(super) fn new(records: &Records) -> Streams {
        let (bricks, served) = (BTreeMap::new(), BTreeMap::new());
        Streams { told: table(records), bricks, served, lies_on: LiesOn::default() }
    }

    /// The streams are stored as they are here.
    pub(super) fn on_stored(&mut self, table: StreamTable) {
        self.told = table;
    }

    /// What a brick is to know of streams, that goes by this version of them.
    pub(super) fn told_to(&self, known: u64) -> Option<StreamTable> {
        (known != self.told.version).then(|| self.told.clone())
    }

    /// The brick is no more.
    pub(super) fn forget_brick(&mut self, brick: BrickId) {
        self.bricks.remove(&brick);
    }

    pub(super) fn on_report(&mut self, now: Time, from: BrickId, sent: Time, report: StreamReport) {
        let StreamReport { known, mut uses, capacity, mut targets } = report;
        uses.truncate(StreamReport::USES_MAX);
        targets.truncate(StreamReport::USES_MAX);
        match self.bricks.get_mut(&from).filter(|of_brick| of_brick.sent <= sent) {
            Some(of_brick) => {
                (of_brick.heard, of_brick.known, of_brick.sent) = (now, known, sent);
                (of_brick.capacity, of_brick.targets) = (capacity, targets);
                for (stream, served) in of_brick.take_in(uses) {
                    let all = self.served.entry(stream).or_default();
                    *all = all.saturating_add(served);
                }
                of_brick.reckon();
            }
            None => {
                let latest: BTreeMap<_, _> = uses.into_iter().map(|used| (used.stream, used)).collect();
                let (base, rates) = (latest.clone(), BTreeMap::new());
                let uses =
                    Uses { heard: now, known, sent, capacity, targets, latest, base_sent: sent, base, rates };
                self.bricks.insert(from, uses);
            }
        }
    }

    /// What a brick can serve, in units of cost a second; 0 as long as it is not known, or the brick is silent.
    pub(super) fn capacity(&self, now: Time, brick: BrickId) -> u64 {
        let live = self.bricks.get(&brick).filter(|uses| now.since(uses.heard) < SILENT_MAX);
        live.map_or(0, |uses| uses.capacity)
    }

    fn live(&self, now: Time) -> impl Iterator<Item = &Uses> {
        self.bricks.values().filter(move |uses| now.since(uses.heard) < SILENT_MAX)
    }

    /// What is known of a stream over all bricks.
    fn status(&self, now: Time, stream: StreamId, volumes: Vec<String>) -> StreamStatus {
        let rates = || self.live(now).filter_map(|uses| uses.rates.get(&stream));
        let all_kept = || self.live(now).flat_map(|uses| &uses.targets);
        let kept = || all_kept().filter(|kept| kept.stream == stream);
        // Each brick says what it likes.
        let sum = |of: fn(&Rate) -> u64| rates().map(of).fold(0, u64::saturating_add);
        let (requests, turn_us) = (sum(|rate| rate.requests), sum(|rate| rate.turn_us));
        let waiting = self.live(now).filter_map(|uses| uses.latest.get(&stream)).map(|used| used.waiting);
        StreamStatus {
            stream,
            volumes,
            served_per_second: sum(|rate| rate.served_per_second),
            requests_per_second: sum(|rate| rate.requests_per_second),
            turn_us: turn_us.checked_div(requests).unwrap_or(0),
            waiting: waiting.fold(0, u32::saturating_add),
            served: self.served.get(&stream).copied().unwrap_or(0),
            reserved_on: ReservedOn::default(),
            timed: kept().map(|kept| kept.timed).fold(0, u32::saturating_add),
            late: kept().map(|kept| kept.late).fold(0, u32::saturating_add),
            buckets: Vec::new(),
        }
    }
}

impl Uses {
    /// A report: what was served of each stream since the one before. A stream that is not in it was not among the busiest, and nothing of it waits.
    fn take_in(&mut self, uses: Vec<StreamUse>) -> Vec<(StreamId, u64)> {
        self.latest.values_mut().for_each(|used| used.waiting = 0);
        let mut served = Vec::new();
        for used in uses {
            if self.latest.len() >= USED_MAX && !self.latest.contains_key(&used.stream) {
                continue;
            }
            let before = self.latest.insert(used.stream, used);
            // The brick began anew, or had forgotten the stream.
            let before = before.filter(|before| before.requests <= used.requests);
            if before.is_none() {
                self.base.remove(&used.stream);
            }
            served.push((used.stream, used.served.saturating_sub(before.map_or(0, |before| before.served))));
        }
        served
    }

    /// Rates, once the interval is over.
    fn reckon(&mut self) {
        let over = self.sent.since(self.base_sent);
        if over < INTERVAL {
            return;
        }
        let per_second = |count: u64| (count as f64 / over.as_secs_f64()).round() as u64;
        let rate = |used: &StreamUse| {
            let base = self.base.get(&used.stream).copied().unwrap_or_default();
            let requests = used.requests.saturating_sub(base.requests);
            Rate {
                served_per_second: per_second(used.served.saturating_sub(base.served)),
                requests_per_second: per_second(requests),
                requests,
                turn_us: used.turn_us.saturating_sub(base.turn_us),
            }
        };
        self.rates = self.latest.iter().map(|(stream, used)| (*stream, rate(used))).collect();
        (self.base_sent, self.base) = (self.sent, self.latest.clone());
    }
}

impl Cluster {
    /// The bricks on which the volumes and objects of a stream lie. None where there is nothing to share, as nobody need hear of anything then.
    pub(super) fn bricks_of_stream(&mut self, stream: StreamId) -> Vec<BrickId> {
        if !self.streams.told.is_shared() {
            return Vec::new();
        }
        let version = self.records.counts.version;
        if self.streams.lies_on.version != version {
            let mut bricks: BTreeMap<StreamId, BTreeSet<BrickId>> = BTreeMap::new();
            for record in self.records.volumes.values() {
                let family = self.records.families.get(&record.info.family);
                let views = family.iter().flat_map(|family| &family.groups);
                let members =
                    views.filter_map(|group| self.latest_view(*group)).flat_map(|view| &view.members);
                bricks.entry(record.info.stream).or_default().extend(members);
            }
            self.streams.lies_on = LiesOn { version, bricks };
        }
        if self.records.buckets.values().any(|of_bucket| *of_bucket == stream) {
            // Objects lie on all of them.
            return self.records.bricks.keys().copied().collect();
        }
        self.streams.lies_on.bricks.get(&stream).into_iter().flatten().copied().collect()
    }
}

/// The streams as the records have them.
fn table(records: &Records) -> StreamTable {
    let mut streams: BTreeMap<StreamId, StreamInfo> =
        StreamInfo::built_in().into_iter().map(|info| (info.id, info)).collect();
    streams.extend(records.streams.iter().map(|(id, record)| (*id, record.info.clone())));
    let record = records.of_streams;
    StreamTable { version: record.version, places: record.places, streams: streams.into_values().collect() }
}

/// Streams to which volumes or buckets belong, and of which there is no record: the directory was made anew, or the stream was deleted while the volume was
/// made. They are there, under their numbers.
fn adopted(records: &Records) -> impl Iterator<Item = StreamInfo> {
    let built_in = StreamInfo::built_in();
    let unknown = records
        .in_use()
        .filter(move |id| !records.streams.contains_key(id) && built_in.iter().all(|info| info.id != *id));
    let unknown: BTreeSet<StreamId> = unknown.collect();
    unknown.into_iter().map(|id| StreamInfo::usual(id, id.to_string()))
}

fn check(info: &StreamInfo) -> Result<(), AdminError> {
    let StreamInfo { name, weight, minimum, reservation, limit, .. } = info;
    if !(1..=StreamInfo::WEIGHT_MAX).contains(weight) {
        return Err(invalid(format!(
            "the weight of stream '{name}' cannot be {weight}: 1 to {}",
            StreamInfo::WEIGHT_MAX
        )));
    }
    if minimum > weight {
        return Err(invalid(format!(
            "the minimum of stream '{name}' is {minimum} and its weight {weight}: a minimum is a part of the weight, set it as well"
        )));
    }
    if *limit > 0 && limit < reservation {
        return Err(invalid(format!(
            "the limit of stream '{name}' is {limit} units a second, less than the {reservation} that are reserved for it"
        )));
    }
    Ok(())
}

impl Desk {
    pub(super) fn create_stream(
        &mut self,
        now: Time,
        asker: Asker,
        request: AdminRequest,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        let AdminRequest::CreateStream { name, weight, minimum, reservation, limit, nonce, latency_us } =
            request
        else {
            return None;
        };
        let records = &mut self.cluster.records;
        if let Ok(known) = named(records, &name) {
            let is_same = records.streams.get(&known.id).is_some_and(|record| record.nonce == nonce);
            return Some(match is_same {
                true => Ok(AdminReply::Stream(known)),
                false => Err(invalid(format!("a stream named '{name}' exists already"))),
            });
        }
        if records.counts.recent.contains(&nonce) {
            return Some(Err(AdminError::NotNow(format!(
                "stream '{name}' was made by this request and is deleted since"
            ))));
        }
        if records.streams.len() >= STREAMS_MAX {
            return Some(Err(invalid(format!("there are {STREAMS_MAX} streams already: delete some first"))));
        }
        let in_use = records.in_use().map(|stream| stream.0);
        let next = in_use.chain([records.of_streams.next.saturating_sub(1)]).max().unwrap_or(0) + 1;
        let minimum = minimum.unwrap_or((weight / 10).max(1));
        let info = StreamInfo { id: StreamId(next), name, weight, minimum, reservation, limit, latency_us };
        let valid = check_name(&info.name, "stream").and_then(|()| check(&info));
        let may_be = valid.and_then(|()| self.cluster.may_reserve(now, &Proposal::Stream(&info)));
        if let Err(error) = may_be {
            return Some(Err(error));
        }
        let records = &mut self.cluster.records;
        records.of_streams.next = next + 1;
        records.note_nonce(nonce);
        records.streams.insert(info.id, StreamRecord { info: info.clone(), nonce });
        let puts = vec![records.put_counts()];
        self.store_stream(asker, info.id, puts, AdminReply::Stream(info), fx);
        None
    }

    pub(super) fn set_stream(
        &mut self,
        now: Time,
        asker: Asker,
        name: &str,
        change: Change,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        let changed = named(&self.cluster.records, name).and_then(|before| {
            let info = change.of(&before)?;
            check(&info)?;
            self.cluster.may_reserve(now, &Proposal::Stream(&info))?;
            Ok((before != info, info))
        });
        let info = match changed {
            Err(error) => return Some(Err(error)),
            Ok((false, info)) => return Some(Ok(AdminReply::Stream(info))),
            Ok((true, info)) => info,
        };
        let records = &mut self.cluster.records;
        let nonce = records.streams.get(&info.id).map_or(0, |record| record.nonce);
        records.streams.insert(info.id, StreamRecord { info: info.clone(), nonce });
        self.store_stream(asker, info.id, Vec::new(), AdminReply::Stream(info), fx);
        None
    }

    pub(super) fn delete_stream(
        &mut self,
        asker: Asker,
        name: &str,
        nonce: u64,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        let records = &mut self.cluster.records;
        if records.counts.recent.contains(&nonce) {
            return Some(Ok(AdminReply::Done));
        }
        let id = match named(records, name) {
            Err(error) => return Some(Err(error)),
            Ok(info) => info.id,
        };
        if StreamInfo::built_in().iter().any(|info| info.id == id) {
            return Some(Err(invalid(format!(
                "every cluster has the stream '{name}': it can be set, not deleted"
            ))));
        }
        let (volumes, buckets) = (volumes_of(records, id), records.buckets_of(id));
        if !buckets.is_empty() {
            return Some(Err(AdminError::NotNow(format!(
                "stream '{name}' has buckets: give {} another one first (`brickwork bucket set BUCKET --stream default`)",
                buckets.join(", ")
            ))));
        }
        if !volumes.is_empty() {
            return Some(Err(AdminError::NotNow(format!(
                "stream '{name}' has volumes: give {} another one first (`brickwork volume set VOLUME --stream default`)",
                volumes.join(", ")
            ))));
        }
        records.streams.remove(&id);
        records.note_nonce(nonce);
        let puts = vec![records.put_counts()];
        self.store_stream(asker, id, puts, AdminReply::Done, fx);
        None
    }

    /// A volume and its snapshots belong to another stream from now on.
    pub(super) fn set_volume_stream(
        &mut self,
        now: Time,
        asker: Asker,
        volume: &str,
        stream: &str,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        let records = &mut self.cluster.records;
        let stream = match named(records, stream).and_then(|info| may_be_given(&info).map(|()| info.id)) {
            Err(error) => return Some(Err(error)),
            Ok(id) => id,
        };
        let Some(mut info) = records.volume_named(volume).map(|record| record.info.clone()) else {
            return Some(Err(AdminError::NoVolume(volume.to_owned())));
        };
        if info.is_snapshot {
            return Some(Err(invalid(format!(
                "'{volume}' is a snapshot: it belongs to the stream of its volume"
            ))));
        }
        let of_it =
            |other: &VolumeInfo| other.id == info.id || (other.is_snapshot && other.origin == Some(info.id));
        let (mut puts, mut after) = (Vec::new(), Vec::new());
        let meant = records.volumes_of(info.family).map(|record| record.info.clone()).filter(of_it);
        let meant: Vec<VolumeInfo> = meant.map(|info| VolumeInfo { stream, ..info }).collect();
        if let Err(error) = self.cluster.may_reserve(now, &Proposal::Volumes(&meant)) {
            return Some(Err(error));
        }
        for changed in meant {
            let id = changed.id;
            self.cluster.set_volume(changed.clone());
            puts.push(self.cluster.records.put_volume(id));
            after.extend([After::Settled(Box::new(changed)), After::Changed(id)]);
        }
        info.stream = stream;
        puts.extend(self.cluster.touch_family(info.family));
        after.push(After::Answer(asker, Ok(AdminReply::Volume(info))));
        self.cluster.put(puts, after, fx);
        None
    }

    pub(super) fn set_places(
        &mut self,
        asker: Asker,
        places: u32,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        if !(1..=StreamTable::PLACES_MAX).contains(&places) {
            return Some(Err(invalid(format!(
                "a disk cannot have {places} requests at a time: 1 to {}",
                StreamTable::PLACES_MAX
            ))));
        }
        self.cluster.records.of_streams.places = places;
        self.store_streams(asker, Vec::new(), AdminReply::Done, fx);
        None
    }

    fn store_stream(
        &mut self,
        asker: Asker,
        id: StreamId,
        mut puts: Vec<Put>,
        reply: AdminReply,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        puts.push(self.cluster.records.put_stream(id));
        self.store_streams(asker, puts, reply, fx);
    }

    /// Bricks are told, and whoever asked is answered, once it is stored.
    fn store_streams(
        &mut self,
        asker: Asker,
        mut puts: Vec<Put>,
        reply: AdminReply,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        self.cluster.records.of_streams.version += 1;
        puts.push(self.cluster.records.put_of_streams());
        let told = After::Streams(Box::new(table(&self.cluster.records)));
        self.cluster.put(puts, vec![told, After::Answer(asker, Ok(reply))], fx);
    }

    /// The streams at a glance.
    pub(super) fn streams_status(&self, now: Time) -> StreamsStatus {
        let (records, streams) = (&self.cluster.records, &self.cluster.streams);
        let mut table = streams.told.clone();
        table
            .streams
            .extend(adopted(records).filter(|info| table.get(info.id).is_none()).collect::<Vec<_>>());
        table.streams.sort_by_key(|info| info.id);
        let of_stream = |info: &StreamInfo| StreamStatus {
            reserved_on: self.cluster.reserved_on(now, info),
            buckets: records.buckets_of(info.id),
            ..streams.status(now, info.id, volumes_of(records, info.id))
        };
        let informed = |uses: &&Uses| uses.known == table.version;
        StreamsStatus {
            streams: table.streams.iter().map(of_stream).collect(),
            bricks: streams.live(now).count() as u32,
            bricks_informed: streams.live(now).filter(informed).count() as u32,
            capacities: self.cluster.capacities(now),
            table,
        }
    }
}

/// Whether volumes and buckets can belong to a stream.
pub(super) fn may_be_given(info: &StreamInfo) -> Result<(), AdminError> {
    match info.is_background() {
        true => {
            Err(invalid(format!("'{}' is background work: no volume or bucket can belong to it", info.name)))
        }
        false => Ok(()),
    }
}

pub(super) fn named(records: &Records, name: &str) -> Result<StreamInfo, AdminError> {
    let known = table(records).streams.into_iter().chain(adopted(records)).find(|info| info.name == name);
    known.ok_or_else(|| {
        invalid(format!("no stream named '{name}'; `brickwork stream list` shows those there are"))
    })
}

fn volumes_of(records: &Records, stream: StreamId) -> Vec<String> {
    let of_stream = records.volumes.index().of_stream(stream).filter_map(|id| records.volumes.get(&id));
    let mut names: Vec<String> = of_stream.map(|record| record.info.name.clone()).collect();
    names.sort();
    names
}
