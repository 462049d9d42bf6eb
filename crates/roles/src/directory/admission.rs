//! Whether bricks can meet the reservations that fall on them.
//!
//! *Where a reservation falls.* A stream's reservation is divided over its volumes by their sizes, and of each volume evenly over its groups, since
//! extents are placed on groups by hashing. In a group each member gets the part that it would get if there were nothing but the data: of a
//! mirror every copy gets all of it, as all reads may be asked of one; of a layout with *d* data members each member a *d*-th, also of its
//! parity. So the parts of a stream add up to more than its reservation, and what is admitted can be met with members away, wherever in a
//! volume the requests go by the mean. It cannot where they all go to one group. Snapshots lie where their volumes lie, and do not count.
//! Objects lie on all bricks. So a stream with buckets has its reservation evenly on all bricks that take more, beside what falls on its volumes.
//!
//! *What is refused.* A command that adds to a brick so that its reservations come to more than seven eighths of what it can serve
//! ([`BrickCapacity::reservable`]). A brick of which that is not known, or that is away, refuses nothing; nor does what a brick was promised before it
//! became slower. Rebuilds are never refused.

use super::cluster::Cluster;
use base::{BrickId, StreamId, Time, VolumeId};
use rules::counters::Counter;
use std::collections::BTreeMap;
use wire::{AdminError, BrickCapacity, GroupView, ReservedOn, StreamInfo, VolumeInfo};

/// What a command is about to change.
pub(super) enum Proposal<'a> {
    Nothing,
    /// A stream becomes this, or is made.
    Stream(&'a StreamInfo),
    /// Volumes become these, or are made in families that are there.
    Volumes(&'a [VolumeInfo]),
    /// A volume is made on groups of these members.
    NewVolume(&'a VolumeInfo, &'a [Vec<BrickId>]),
    /// A bucket is given to this stream.
    Bucket(&'a str, StreamId),
    /// A brick takes the place of another one in all groups.
    Replaced {
        brick: BrickId,
        by: BrickId,
    },
}

/// Parts of a reservation, or sums of these, by brick, in units of cost a second.
type Parts = BTreeMap<BrickId, f64>;

/// Parts are sums of fractions: less than this is no difference.
const UNIT: f64 = 0.5;

impl Cluster {
    /// Whether the bricks can meet the reservations once this is carried out.
    pub(super) fn may_reserve(&mut self, now: Time, proposal: &Proposal<'_>) -> Result<(), AdminError> {
        let can_meet = self.can_meet(now, proposal);
        if can_meet.is_err() {
            self.counters.count(Counter::ReservationRefused);
        }
        can_meet
    }

    fn can_meet(&self, now: Time, proposal: &Proposal<'_>) -> Result<(), AdminError> {
        let (before, after) = (self.reserved(&Proposal::Nothing), self.reserved(proposal));
        for (brick, units) in after {
            let had = before.get(&brick).copied().unwrap_or(0.0);
            let capacity = self.streams.capacity(now, brick);
            if capacity > 0 && units > had + UNIT && units > BrickCapacity::reservable(capacity) as f64 {
                return Err(AdminError::NotNow(refusal(brick, capacity, had, units - had)));
            }
        }
        match proposal {
            Proposal::Stream(stream) => self.can_meet_anywhere(now, stream),
            _ => Ok(()),
        }
    }

    /// Whether all bricks together could meet a stream's reservation, where they are all known: it may have no volumes yet.
    fn can_meet_anywhere(&self, now: Time, stream: &StreamInfo) -> Result<(), AdminError> {
        let had = self.records.streams.get(&stream.id).map_or(0, |record| record.info.reservation);
        let capacities = self.records.bricks.keys().map(|brick| self.streams.capacity(now, *brick));
        let capacities: Vec<u64> = capacities.collect();
        let all = capacities.iter().fold(0, |sum: u64, capacity| sum.saturating_add(*capacity));
        let is_met = stream.reservation <= BrickCapacity::reservable(all).max(had);
        if capacities.contains(&0) || is_met {
            return Ok(());
        }
        Err(AdminError::NotNow(format!(
            "the bricks cannot meet a reservation of {} for '{}': together they serve {} as measured, of which {} can be \
             reserved",
            iops(stream.reservation as f64),
            stream.name,
            iops(all as f64),
            iops(BrickCapacity::reservable(all) as f64)
        )))
    }

    /// What reservations come to at each brick.
    fn reserved(&self, proposal: &Proposal<'_>) -> Parts {
        let mut parts = Parts::new();
        for (stream, units) in self.reservations(proposal) {
            for (brick, part) in self.parts(stream, units, proposal) {
                *parts.entry(brick).or_default() += part;
            }
        }
        parts
    }

    fn reservations(&self, proposal: &Proposal<'_>) -> BTreeMap<StreamId, u64> {
        let known = self.records.streams.values().map(|record| &record.info);
        let proposed = match proposal {
            Proposal::Stream(stream) => Some(*stream),
            _ => None,
        };
        let all: BTreeMap<StreamId, u64> =
            known.chain(proposed).map(|info| (info.id, info.reservation)).collect();
        all.into_iter().filter(|(_, units)| *units > 0).collect()
    }

    /// The parts of one stream's reservation.
    fn parts(&self, stream: StreamId, units: u64, proposal: &Proposal<'_>) -> Parts {
        let volumes = self.volumes_of_stream(stream, proposal);
        let bytes: f64 = volumes.values().map(|info| info.size_bytes as f64).sum();
        let mut parts = Parts::new();
        for info in volumes.values() {
            let of_volume = units as f64 * info.size_bytes as f64 / bytes;
            let groups = self.members_of(info, proposal);
            let of_member = of_volume / groups.len().max(1) as f64 / data_members(info);
            for brick in groups.into_iter().flatten() {
                *parts.entry(brick).or_default() += of_member;
            }
        }
        if self.has_buckets(stream, proposal) {
            let takers: Vec<BrickId> =
                self.records.bricks.keys().copied().filter(|brick| self.takes_groups(*brick)).collect();
            for brick in &takers {
                *parts.entry(*brick).or_default() += units as f64 / takers.len() as f64;
            }
        }
        parts
    }

    fn has_buckets(&self, stream: StreamId, proposal: &Proposal<'_>) -> bool {
        let mut others = self.records.buckets.iter();
        match proposal {
            Proposal::Bucket(_, to) if *to == stream => true,
            Proposal::Bucket(bucket, _) => others.any(|(name, of)| name != bucket && *of == stream),
            _ => others.any(|(_, of)| *of == stream),
        }
    }

    /// The volumes that count for a stream.
    fn volumes_of_stream<'a>(
        &'a self,
        stream: StreamId,
        proposal: &Proposal<'a>,
    ) -> BTreeMap<VolumeId, &'a VolumeInfo> {
        let known = self.records.volumes.index().of_stream(stream);
        let known = known.filter_map(|id| Some(&self.records.volumes.get(&id)?.info));
        let proposed = match proposal {
            Proposal::Volumes(volumes) => *volumes,
            Proposal::NewVolume(volume, _) => core::slice::from_ref(*volume),
            _ => &[],
        };
        let all: BTreeMap<VolumeId, &VolumeInfo> =
            known.chain(proposed).map(|info| (info.id, info)).collect();
        all.into_iter().filter(|(_, info)| info.stream == stream && !info.is_snapshot).collect()
    }

    /// The members of each group of a volume.
    fn members_of(&self, info: &VolumeInfo, proposal: &Proposal<'_>) -> Vec<Vec<BrickId>> {
        if let Proposal::NewVolume(volume, groups) = proposal
            && volume.id == info.id
        {
            return groups.to_vec();
        }
        let family = self.records.families.get(&info.family);
        let groups = family.iter().flat_map(|family| &family.groups);
        let views = groups.filter_map(|group| self.latest_view(*group));
        let members = |view: &GroupView| {
            let mut members = view.members.clone();
            // A brick that is in the group already takes no second place.
            if let Proposal::Replaced { brick, by } = proposal
                && !members.contains(by)
                && let Some(slot) = view.place_of(*brick)
            {
                members[usize::from(slot)] = *by;
            }
            members
        };
        views.map(members).collect()
    }

    /// What each brick can serve, and what is reserved there.
    pub(super) fn capacities(&self, now: Time) -> Vec<BrickCapacity> {
        let reserved = self.reserved(&Proposal::Nothing);
        let of_brick = |brick: &BrickId| BrickCapacity {
            brick: *brick,
            capacity: self.streams.capacity(now, *brick),
            reserved: reserved.get(brick).map_or(0, |units| units.round() as u64),
        };
        self.records.bricks.keys().map(of_brick).collect()
    }

    /// Against which bricks a stream's reservation is checked.
    pub(super) fn reserved_on(&self, now: Time, stream: &StreamInfo) -> ReservedOn {
        if stream.reservation == 0 {
            return ReservedOn::default();
        }
        let bricks = self.parts(stream.id, stream.reservation, &Proposal::Nothing);
        let is_measured = |brick: &&BrickId| self.streams.capacity(now, **brick) > 0;
        let measured = bricks.keys().filter(is_measured).count() as u32;
        ReservedOn { bricks: bricks.len() as u32, measured }
    }
}

/// Over how many members of a group its data are divided.
fn data_members(info: &VolumeInfo) -> f64 {
    let layout = info.layout.parse::<rules::layout::Layout>();
    layout.map_or(1.0, |layout| f64::from(layout.data()))
}

fn refusal(brick: BrickId, capacity: u64, reserved: f64, added: f64) -> String {
    format!(
        "{brick} cannot meet this: it serves {} as measured, of which {} can be reserved; {} are reserved there and this would \
         add {}. Reserve less, or spread the data over more bricks",
        iops(capacity as f64),
        iops(BrickCapacity::reservable(capacity) as f64),
        iops(reserved),
        iops(added)
    )
}

/// A rate as operators write it: requests for 4 KiB a second.
fn iops(units: f64) -> String {
    format!("{:.0}iops", units / StreamInfo::BLOCK_UNITS as f64)
}
