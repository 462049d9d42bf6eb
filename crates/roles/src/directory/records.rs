//! What the directory keeps on stable storage: a record a brick, a volume, a family and a group, and one each of counters
//! and of how bricks look after their blocks, and one a brick that is or was slow.
//!
//! Keys: `b` + brick, `s` + brick (its slowness), `j` + brick (its run, and how far its journals are), `l` + group (its slots that lost all), `r` + group (the view to come that may be revoked), `v` + volume, `f` +
//! family, `g` + group, `d` + version (a deleted volume or branch), `m` (the counters), `o` (what an operator said of the
//! care; earlier stores kept all of it under `c`), `x` (commands that were refused), `t` + stream (one that was made or
//! changed), `p` (what holds for all streams), `k` + bucket (the stream to which it was given), `h` (the time of the cluster). Stores of before streams
//! have none of the last four. `e` + place (an event: [`super::events`]). What is under any other key is taken for damage.

use super::event::Put;
use super::events::{self, Events};
use super::indices::{FamilyIndex, GroupIndex, VolumeIndex};
use super::table::Table;
use base::{BrickId, ClusterTime, GatewayId, GroupId, Loan, StreamId, Time, ViewNumber, VolumeId};
use std::collections::BTreeMap;
use wire::{
    AdminError, BrickStatus, Care, DecodeError, GroupView, JournalReport, Lineage, Place, Reader, Slots,
    StreamInfo, StreamTable, Version, VolumeInfo, Wire, Writer, wire_struct,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BrickRecord {
    pub(super) nonce: u64,
    pub(super) address: String,
    pub(super) labels: Vec<(String, String)>,
    /// The identities of its disks.
    pub(super) disks: Vec<u64>,
    /// Groups whose blocks were on disks that it has no more, and that have yet to leave it out.
    pub(super) lost: Vec<GroupId>,
    /// It is to have no groups.
    pub(super) evicted: bool,
    /// Who is to get its groups, if that was said.
    pub(super) substitute: Option<BrickId>,
}

/// The run of a brick that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunRecord {
    /// Drawn by the brick.
    pub(super) number: u64,
    /// Its number among the brick's runs.
    pub(super) incarnation: u64,
    /// How far the journals of its disks were when it began, and are as far as is known.
    pub(super) journals: Vec<JournalReport>,
    /// Its disks lack what an earlier run took, and that has yet to be entered as lost.
    pub(super) is_behind: bool,
    /// Groups that are entered as lost for that: its disks have older blocks of them.
    pub(super) behind: Vec<GroupId>,
    /// Disks of earlier runs that were exchanged for others, the latest last: what was written since they lack.
    pub(super) former: Vec<u64>,
    /// The newest version of the map that its disks know of.
    pub(super) knew: u64,
    /// So often the brick came with an old disk: fragments of objects may have gone with what that lacks.
    pub(super) found_old: u64,
    /// Where it runs.
    pub(super) place: Place,
    /// It runs elsewhere than the one before, which may have served meanwhile: its disks may lack what that one took, and that has yet to be entered.
    pub(super) is_suspect: bool,
}

/// What is known of a brick that was left out for being slow, for as long as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlowRecord {
    /// Whether it is left out, or is to be.
    pub(super) is_out: bool,
    /// Since when it is, or is not any more.
    pub(super) since: Time,
    /// By what it was known.
    pub(super) why: String,
    /// How often it had been left out before, the last time that it was.
    pub(super) relapses: u32,
    /// Whether it stood still, and was left out although its groups kept no redundancy.
    pub(super) stands_still: bool,
}

/// A volume, snapshot or clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VolumeRecord {
    pub(super) info: VolumeInfo,
    pub(super) nonce: u64,
    /// All groups have begun a view that knows it.
    pub(super) ready: bool,
}

/// A family of volumes: what shares groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FamilyRecord {
    pub(super) groups: Vec<GroupId>,
    /// Where its volumes have their blocks: as in the view of every group, unless `next` is there.
    pub(super) lineage: Lineage,
    /// The lineage that is being brought into all views.
    pub(super) next: Option<Lineage>,
    /// Branches whose volume or snapshot is deleted and that have yet to go.
    pub(super) doomed: Vec<VolumeId>,
    /// The map's version at which anything of it or its volumes changed last.
    pub(super) changed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupRecord {
    pub(super) volume: VolumeId,
    /// The view in force; `None` before the first.
    pub(super) active: Option<GroupView>,
    /// The view that is being made.
    pub(super) next: Option<GroupView>,
    /// Slots that had the same brick as a writer in `active` and in every view that was to come since, `next` among them: who may speak of writes in doubt.
    pub(super) voters: Slots,
    /// The map's version at which `active` began.
    pub(super) changed: u64,
    /// Bricks that had a part in the group, have none by `next` or `active`, and may still hold blocks: with the view that left them out.
    pub(super) former: Vec<(BrickId, ViewNumber)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// The map's version: grows with every change that bricks or gateways must learn of.
    pub(super) version: u64,
    pub(super) next_brick: u32,
    pub(super) next_volume: u64,
    pub(super) next_group: u64,
    pub(super) next_writer: u16,
    /// Nonces of the latest requests that made volumes or rolled them back.
    pub(super) recent: Vec<u64>,
}

/// What is not remembered of deletions any more ([`super::deletions`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForgottenRecord {
    /// Deletions up to this version of the map may be forgotten.
    pub(super) version: u64,
    /// From this id on one that names nothing was deleted.
    pub(super) counts_from: VolumeId,
}

/// A number of stamps that is lent, or a run of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoanRecord {
    pub(super) gateway: GatewayId,
    /// How many numbers.
    pub(super) count: u16,
    pub(super) loan: Loan,
}

/// A stream that was made, or one that every cluster has and that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StreamRecord {
    pub(super) info: StreamInfo,
    /// Of the command that made it; 0 where every cluster has it.
    pub(super) nonce: u64,
}

/// What holds for all streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamsRecord {
    /// Of what bricks are told: another one with each change.
    pub(super) version: u64,
    pub(super) places: u32,
    /// The number of the next stream that is made. No number is given twice.
    pub(super) next: u32,
}

impl Default for StreamsRecord {
    fn default() -> StreamsRecord {
        StreamsRecord { version: 0, places: StreamTable::PLACES, next: 1 }
    }
}

/// The time of the cluster, as it was a few minutes ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeRecord {
    pub(super) time: ClusterTime,
    /// For how long directories have counted it, in ticks.
    pub(super) counted: u64,
    /// By how many ticks gateways and bricks have taken it forward.
    pub(super) taken_forward: u64,
}

impl TimeRecord {
    /// Nobody has counted yet.
    pub(super) fn begins_at(time: ClusterTime) -> TimeRecord {
        TimeRecord { time, counted: 0, taken_forward: 0 }
    }
}

const RECENT_MAX: usize = 256;

/// A command that was refused: a copy of it that comes late is refused as well, whatever has become possible since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    nonce: u64,
    why: AdminError,
}

/// What an operator said of how bricks look after their blocks; the directory's configuration says the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CareRecord {
    /// The number of the latest scrub that was asked for.
    pub(super) scrub: u64,
    pub(super) rebuild_bytes_per_second: Option<u64>,
    pub(super) scrub_bytes_per_second: Option<u64>,
    pub(super) scrub_interval_s: Option<u64>,
    pub(super) rebuild_after_s: Option<u64>,
}

wire_struct!(CareRecord {
    scrub,
    rebuild_bytes_per_second,
    scrub_bytes_per_second,
    scrub_interval_s,
    rebuild_after_s
});
wire_struct!(Refusal { nonce, why });
wire_struct!(StreamsRecord { version, places, next });
wire_struct!(TimeRecord { time, counted, taken_forward });
wire_struct!(BrickRecord { nonce, address, labels, disks, lost, evicted, substitute });
wire_struct!(VolumeRecord { info, nonce, ready });
wire_struct!(FamilyRecord { groups, lineage, next, doomed, changed });
wire_struct!(ForgottenRecord { version, counts_from });
wire_struct!(LoanRecord { gateway, count, loan });
wire_struct!(Counts { version, next_brick, next_volume, next_group, next_writer, recent });

/// As in stores of before there were stand-ins; the members for which some stand in follow.
impl Wire for GroupRecord {
    fn encode(&self, out: &mut Writer<'_>) {
        let GroupRecord { volume, active, next, voters, changed, former } = self;
        volume.encode(out);
        active.encode(&mut out.as_of(Version::BEFORE_STAND_INS));
        next.encode(&mut out.as_of(Version::BEFORE_STAND_INS));
        voters.encode(out);
        changed.encode(out);
        former.encode(out);
        let sealed = |view: &Option<GroupView>| view.as_ref().map_or(Vec::new(), |view| view.sealed.clone());
        let sealed = [sealed(active), sealed(next)];
        if sealed.iter().any(|sealed| !sealed.is_empty()) {
            sealed.iter().for_each(|sealed| sealed.encode(out));
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<GroupRecord, DecodeError> {
        let mut record = GroupRecord {
            volume: Wire::decode(reader)?,
            active: reader.decode_as_of(Version::BEFORE_STAND_INS)?,
            next: reader.decode_as_of(Version::BEFORE_STAND_INS)?,
            voters: Wire::decode(reader)?,
            changed: Wire::decode(reader)?,
            former: Wire::decode(reader)?,
        };
        if reader.left() > 0 {
            for view in [&mut record.active, &mut record.next] {
                let sealed = Wire::decode(reader)?;
                view.iter_mut().for_each(|view| view.sealed = Vec::clone(&sealed));
            }
        }
        Ok(record)
    }
}

/// As in stores of before places were known; one that is follows.
impl Wire for RunRecord {
    fn encode(&self, out: &mut Writer<'_>) {
        let RunRecord {
            number,
            incarnation,
            journals,
            is_behind,
            behind,
            former,
            knew,
            found_old,
            place,
            is_suspect,
        } = self;
        number.encode(out);
        incarnation.encode(out);
        journals.encode(out);
        is_behind.encode(out);
        behind.encode(out);
        former.encode(out);
        knew.encode(out);
        found_old.encode(out);
        if *place != Place::default() {
            place.encode(out);
            is_suspect.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<RunRecord, DecodeError> {
        let mut run = RunRecord {
            number: Wire::decode(reader)?,
            incarnation: Wire::decode(reader)?,
            journals: Wire::decode(reader)?,
            is_behind: Wire::decode(reader)?,
            behind: Wire::decode(reader)?,
            former: Wire::decode(reader)?,
            knew: Wire::decode(reader)?,
            found_old: Wire::decode(reader)?,
            place: Place::default(),
            is_suspect: false,
        };
        if reader.left() > 0 {
            (run.place, run.is_suspect) = (Wire::decode(reader)?, Wire::decode(reader)?);
        }
        Ok(run)
    }
}

/// As in stores of before bricks were known to stand still; that one does follows.
impl Wire for SlowRecord {
    fn encode(&self, out: &mut Writer<'_>) {
        let SlowRecord { is_out, since, why, relapses, stands_still } = self;
        is_out.encode(out);
        since.encode(out);
        why.encode(out);
        relapses.encode(out);
        if *stands_still {
            stands_still.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<SlowRecord, DecodeError> {
        Ok(SlowRecord {
            is_out: Wire::decode(reader)?,
            since: Wire::decode(reader)?,
            why: Wire::decode(reader)?,
            relapses: Wire::decode(reader)?,
            stands_still: if reader.left() > 0 { Wire::decode(reader)? } else { false },
        })
    }
}

/// As in stores of version 5, which know no latency target; one that there is follows.
impl Wire for StreamRecord {
    fn encode(&self, out: &mut Writer<'_>) {
        let StreamInfo { id, name, weight, minimum, reservation, limit, latency_us } = &self.info;
        id.encode(out);
        name.encode(out);
        weight.encode(out);
        minimum.encode(out);
        reservation.encode(out);
        limit.encode(out);
        self.nonce.encode(out);
        if *latency_us > 0 {
            latency_us.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<StreamRecord, DecodeError> {
        let info = StreamInfo {
            id: Wire::decode(reader)?,
            name: Wire::decode(reader)?,
            weight: Wire::decode(reader)?,
            minimum: Wire::decode(reader)?,
            reservation: Wire::decode(reader)?,
            limit: Wire::decode(reader)?,
            latency_us: 0,
        };
        let nonce = Wire::decode(reader)?;
        let latency_us = if reader.left() > 0 { Wire::decode(reader)? } else { 0 };
        Ok(StreamRecord { info: StreamInfo { latency_us, ..info }, nonce })
    }
}

impl CareRecord {
    /// Everything was said, as stores kept it before.
    fn all_of(care: Care) -> CareRecord {
        CareRecord {
            scrub: care.scrub,
            rebuild_bytes_per_second: Some(care.rebuild_bytes_per_second),
            scrub_bytes_per_second: Some(care.scrub_bytes_per_second),
            scrub_interval_s: Some(care.scrub_interval_s),
            rebuild_after_s: Some(care.rebuild_after_s),
        }
    }

    /// The care, where the configuration says `usual`.
    pub(super) fn over(&self, usual: Care) -> Care {
        Care {
            scrub: self.scrub,
            rebuild_bytes_per_second: self.rebuild_bytes_per_second.unwrap_or(usual.rebuild_bytes_per_second),
            scrub_bytes_per_second: self.scrub_bytes_per_second.unwrap_or(usual.scrub_bytes_per_second),
            scrub_interval_s: self.scrub_interval_s.unwrap_or(usual.scrub_interval_s),
            rebuild_after_s: self.rebuild_after_s.unwrap_or(usual.rebuild_after_s),
        }
    }
}

impl BrickRecord {
    pub(super) fn new(nonce: u64) -> BrickRecord {
        BrickRecord {
            nonce,
            address: String::new(),
            labels: Vec::new(),
            disks: Vec::new(),
            lost: Vec::new(),
            evicted: false,
            substitute: None,
        }
    }

    /// Whether it has ever been heard: a brick names its disks with its first heartbeat.
    pub(super) fn has_come(&self) -> bool {
        !self.disks.is_empty() || !self.address.is_empty()
    }

    pub(super) fn fits(&self, status: &BrickStatus) -> bool {
        self.address == status.address && self.labels == status.labels
    }
}

#[derive(Debug)]
pub(super) struct Records {
    pub(super) bricks: BTreeMap<BrickId, BrickRecord>,
    pub(super) slow: BTreeMap<BrickId, SlowRecord>,
    pub(super) runs: BTreeMap<BrickId, RunRecord>,
    /// Slots of groups whose blocks of before are lost for good; none of them once an operator said that this is over.
    pub(super) bare: BTreeMap<GroupId, Slots>,
    /// Views to come that no member can have begun.
    pub(super) revocable: BTreeMap<GroupId, ViewNumber>,
    pub(super) volumes: Table<VolumeIndex>,
    pub(super) families: Table<FamilyIndex>,
    pub(super) groups: Table<GroupIndex>,
    /// Deleted volumes and branches, by the version at which they were.
    pub(super) deleted: BTreeMap<u64, VolumeId>,
    pub(super) forgotten: ForgottenRecord,
    /// Whether that was stored ever.
    pub(super) forgotten_is_kept: bool,
    pub(super) counts: Counts,
    /// What is lent of the numbers of stamps, by the first number.
    pub(super) loans: BTreeMap<u16, LoanRecord>,
    /// How bricks look after their blocks.
    pub(super) care: CareRecord,
    pub(super) streams: BTreeMap<StreamId, StreamRecord>,
    pub(super) of_streams: StreamsRecord,
    /// Those that were given to a stream of their own.
    pub(super) buckets: BTreeMap<String, StreamId>,
    /// None where there was no time of the cluster before.
    pub(super) time: Option<TimeRecord>,
    pub(super) events: Events,
    refusals: Vec<Refusal>,
}

const COUNTS_KEY: &[u8] = b"m";
const FORGOTTEN_KEY: &[u8] = b"y";
const CARE_KEY: &[u8] = b"o";
const FORMER_CARE_KEY: &[u8] = b"c";
const REFUSALS_KEY: &[u8] = b"x";
const OF_STREAMS_KEY: &[u8] = b"p";
const TIME_KEY: &[u8] = b"h";

fn key(prefix: u8, id: &impl Wire) -> Vec<u8> {
    let mut key = vec![prefix];
    id.append(&mut key);
    key
}

impl Records {
    /// What the store holds.
    pub(super) fn load(contents: &[(Vec<u8>, Vec<u8>)]) -> Result<Records, String> {
        let counts = Counts {
            version: 1,
            next_brick: 1,
            next_volume: 1,
            next_group: 1,
            next_writer: 1,
            recent: Vec::new(),
        };
        let mut records = Records {
            bricks: BTreeMap::new(),
            slow: BTreeMap::new(),
            runs: BTreeMap::new(),
            bare: BTreeMap::new(),
            revocable: BTreeMap::new(),
            volumes: Table::default(),
            families: Table::default(),
            groups: Table::default(),
            deleted: BTreeMap::new(),
            forgotten: ForgottenRecord { version: 0, counts_from: VolumeId(0) },
            forgotten_is_kept: false,
            counts,
            loans: BTreeMap::new(),
            care: CareRecord::default(),
            streams: BTreeMap::new(),
            of_streams: StreamsRecord::default(),
            buckets: BTreeMap::new(),
            time: None,
            events: Events::default(),
            refusals: Vec::new(),
        };
        for (key, value) in contents {
            records
                .take_in(key, value)
                .map_err(|why| format!("the directory's record {key:02x?} is corrupt: {why}"))?;
        }
        if !records.forgotten_is_kept {
            records.forgotten.counts_from = VolumeId(records.counts.next_volume);
        }
        Ok(records)
    }

    /// Volumes whose groups have all begun are ready. Those whose making stopped before all their groups were stored are
    /// forgotten: nobody was told that they exist.
    pub(super) fn finish_or_drop_volumes(&mut self) {
        let groups = &self.groups;
        self.families.retain(|_, record| record.groups.iter().all(|group| groups.contains_key(group)));
        let families = &self.families;
        self.volumes.retain(|_, record| families.contains_key(&record.info.family));
        self.groups.retain(|_, record| families.contains_key(&record.volume));
        for family in self.families.keys().copied().collect::<Vec<_>>() {
            if !self.finish_family(family) {
                self.keep_volumes(family);
            }
        }
    }

    /// While a lineage is being brought into all views, the volumes that were there before it are served.
    fn keep_volumes(&mut self, family: VolumeId) {
        let Some(FamilyRecord { lineage, next: Some(_), .. }) = self.families.get(&family) else { return };
        let was_there = |info: &VolumeInfo| match info.is_snapshot {
            true => !lineage.is_head(info.id),
            false => lineage.heads.iter().any(|(volume, _)| *volume == info.id),
        };
        let were_there =
            self.volumes_of(family).filter(|volume| was_there(&volume.info)).map(|volume| volume.info.id);
        let were_there: Vec<VolumeId> = were_there.collect();
        were_there.iter().for_each(|id| self.set_ready(id));
    }

    /// Whether all groups of the family have begun a view with the lineage to come, or their first one; if so, its
    /// volumes are ready.
    pub(super) fn finish_family(&mut self, family: VolumeId) -> bool {
        let Some(record) = self.families.get(&family) else { return false };
        let lineage = record.next.as_ref().unwrap_or(&record.lineage);
        let has_begun = |group| {
            let active = self.groups.get(group).and_then(|record| record.active.as_ref());
            active.is_some_and(|view| *view.lineage == *lineage)
        };
        if !record.groups.iter().all(has_begun) {
            return false;
        }
        self.families.change(&family, |record| {
            if let Some(next) = record.next.take() {
                record.lineage = next;
            }
        });
        let ids: Vec<VolumeId> = self.volumes.index().of_family(family).collect();
        ids.iter().for_each(|id| self.set_ready(id));
        true
    }

    fn set_ready(&mut self, volume: &VolumeId) {
        self.volumes.change(volume, |volume| volume.ready = true);
    }

    /// The volumes of a family that are there.
    pub(super) fn volumes_of(&self, family: VolumeId) -> impl Iterator<Item = &VolumeRecord> {
        self.volumes.index().of_family(family).filter_map(|id| self.volumes.get(&id))
    }

    fn take_in(&mut self, key: &[u8], value: &[u8]) -> Result<(), wire::DecodeError> {
        let Some((prefix, id)) = key.split_first() else { return Ok(()) };
        match prefix {
            b'b' => drop(self.bricks.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            b's' => drop(self.slow.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            b'j' => drop(self.runs.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            b'l' => drop(self.bare.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            b'r' => drop(self.revocable.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            b'v' => self.volumes.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?),
            b'f' => self.families.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?),
            b'g' => self.groups.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?),
            b'd' => drop(self.deleted.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            b'y' => (self.forgotten, self.forgotten_is_kept) = (Wire::from_bytes(value)?, true),
            b'w' => drop(self.loans.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            b'm' => self.counts = Wire::from_bytes(value)?,
            b'o' => self.care = Wire::from_bytes(value)?,
            b'c' => self.care = CareRecord::all_of(Wire::from_bytes(value)?),
            b'x' => self.refusals = Wire::from_bytes(value)?,
            b't' => drop(self.streams.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            b'p' => self.of_streams = Wire::from_bytes(value)?,
            b'h' => self.time = Some(Wire::from_bytes(value)?),
            &events::PREFIX => self.events.take_in(value),
            b'k' => drop(self.buckets.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            _ => return Err(wire::DecodeError::OutOfRange { what: "key of a record" }),
        }
        Ok(())
    }

    /// The put that makes a brick's record durable.
    pub(super) fn put_brick(&self, id: BrickId) -> Put {
        (key(b'b', &id), self.bricks.get(&id).map(Wire::to_bytes))
    }

    /// The put that makes durable what a group has lost.
    pub(super) fn put_bare(&self, id: GroupId) -> Put {
        (key(b'l', &id), self.bare.get(&id).map(Wire::to_bytes))
    }

    /// Whether those that have a say are enough for a current set: whoever lost its blocks says nothing of writes before.
    pub(super) fn is_heard(&self, view: &GroupView, voters: Slots) -> bool {
        let bare = self.bare.get(&view.group).copied().unwrap_or_default();
        view.current.0 & !voters.0 & !bare.0 == 0
    }

    /// The put that makes durable which run of a brick counts.
    pub(super) fn put_run(&self, id: BrickId) -> Put {
        (key(b'j', &id), self.runs.get(&id).map(Wire::to_bytes))
    }

    /// The put that makes durable which view to come of a group may be revoked, or that none may.
    pub(super) fn put_revocable(&self, id: GroupId) -> Put {
        (key(b'r', &id), self.revocable.get(&id).map(Wire::to_bytes))
    }

    /// The put that makes durable that a brick is slow, or not any more.
    pub(super) fn put_slow(&self, id: BrickId) -> Put {
        (key(b's', &id), self.slow.get(&id).map(Wire::to_bytes))
    }

    pub(super) fn volume_key(id: VolumeId) -> Vec<u8> {
        key(b'v', &id)
    }

    /// The put that makes a volume's record, or its absence, durable.
    pub(super) fn put_volume(&self, id: VolumeId) -> Put {
        (Records::volume_key(id), self.volumes.get(&id).map(Wire::to_bytes))
    }

    pub(super) fn family_key(id: VolumeId) -> Vec<u8> {
        key(b'f', &id)
    }

    /// The put that makes a family's record, or its absence, durable.
    pub(super) fn put_family(&self, id: VolumeId) -> Put {
        (Records::family_key(id), self.families.get(&id).map(Wire::to_bytes))
    }

    /// The puts that make the care durable, and take away what stores kept before.
    pub(super) fn put_care(&self) -> Vec<Put> {
        vec![(CARE_KEY.to_vec(), Some(self.care.to_bytes())), (FORMER_CARE_KEY.to_vec(), None)]
    }

    /// The put that makes a group's record, or its absence, durable.
    pub(super) fn put_group(&self, id: GroupId) -> Put {
        (key(b'g', &id), self.groups.get(&id).map(Wire::to_bytes))
    }

    /// The put that makes a deletion durable.
    pub(super) fn put_deleted(&self, version: u64) -> Put {
        (key(b'd', &version), self.deleted.get(&version).map(Wire::to_bytes))
    }

    /// The put that makes durable what is forgotten of deletions.
    pub(super) fn put_forgotten(&self) -> Put {
        (FORGOTTEN_KEY.to_vec(), Some(self.forgotten.to_bytes()))
    }

    /// The put that makes durable what is lent from a number on.
    pub(super) fn put_loan(&self, first: u16) -> Put {
        (key(b'w', &first), self.loans.get(&first).map(Wire::to_bytes))
    }

    /// The put that makes the counters durable.
    pub(super) fn put_counts(&self) -> Put {
        (COUNTS_KEY.to_vec(), Some(self.counts.to_bytes()))
    }

    /// The put that makes a stream's record, or its absence, durable.
    pub(super) fn put_stream(&self, id: StreamId) -> Put {
        (key(b't', &id), self.streams.get(&id).map(Wire::to_bytes))
    }

    /// The put that makes durable what holds for all streams.
    pub(super) fn put_of_streams(&self) -> Put {
        (OF_STREAMS_KEY.to_vec(), Some(self.of_streams.to_bytes()))
    }

    /// The put that makes the time of the cluster durable.
    pub(super) fn put_time(&self) -> Put {
        (TIME_KEY.to_vec(), self.time.as_ref().map(Wire::to_bytes))
    }

    /// From what time of the cluster a directory that starts at `now` goes on: `first` in a new cluster. One of before there was such a time goes
    /// on from the stamps that its gateways drew.
    pub(super) fn time_at_start(&self, now: Time, first: ClusterTime) -> TimeRecord {
        let is_new = self.bricks.is_empty();
        let begins = || if is_new { first } else { ClusterTime::of_earlier_builds(now) };
        self.time.unwrap_or_else(|| TimeRecord::begins_at(begins()))
    }

    /// The streams to which volumes and buckets belong, some of them several times.
    pub(super) fn in_use(&self) -> impl Iterator<Item = StreamId> {
        self.volumes.index().streams().chain(self.buckets.values().copied())
    }

    /// The put that makes durable to which stream a bucket was given, or that it was given to none.
    pub(super) fn put_bucket(&self, bucket: &String) -> Put {
        (key(b'k', bucket), self.buckets.get(bucket).map(Wire::to_bytes))
    }

    /// The next version of the map.
    pub(super) fn bump(&mut self) -> u64 {
        self.counts.version += 1;
        self.counts.version
    }

    /// A request was carried out: it is not again, should it come again.
    pub(super) fn note_nonce(&mut self, nonce: u64) {
        self.counts.recent.push(nonce);
        if self.counts.recent.len() > RECENT_MAX {
            self.counts.recent.remove(0);
        }
    }

    /// Why the command of this nonce was refused, if it was.
    pub(super) fn refusal(&self, nonce: u64) -> Option<&AdminError> {
        self.refusals.iter().find(|refusal| refusal.nonce == nonce).map(|refusal| &refusal.why)
    }

    /// The command of this nonce is refused for good; the put that makes that durable.
    pub(super) fn refuse(&mut self, nonce: u64, why: AdminError) -> Put {
        self.refusals.push(Refusal { nonce, why });
        if self.refusals.len() > RECENT_MAX {
            self.refusals.remove(0);
        }
        (REFUSALS_KEY.to_vec(), Some(self.refusals.to_bytes()))
    }

    /// Removes a brick, and what others' records say of it; the puts that make that durable.
    pub(super) fn forget_brick(&mut self, brick: BrickId) -> Vec<Put> {
        self.bricks.remove(&brick);
        self.slow.remove(&brick);
        self.runs.remove(&brick);
        let mut puts = vec![self.put_brick(brick), self.put_slow(brick), self.put_run(brick)];
        let of_others = self.bricks.iter_mut().filter(|(_, record)| record.substitute == Some(brick));
        let of_others: Vec<BrickId> =
            of_others.map(|(of, record)| (*of, record.substitute = None).0).collect();
        puts.extend(of_others.into_iter().map(|of| self.put_brick(of)));
        // What it was to give back went with it.
        for group in self.groups.index().of_former(brick).collect::<Vec<_>>() {
            self.groups.change(&group, |record| record.former.retain(|(of, _)| *of != brick));
            puts.push(self.put_group(group));
        }
        puts
    }

    pub(super) fn volume_named(&self, name: &str) -> Option<&VolumeRecord> {
        self.volumes.get(&self.volumes.index().named(name)?)
    }
}
