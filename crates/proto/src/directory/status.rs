//! The cluster at a glance.

use super::desk::Desk;
use super::members::{Joins, full, fullness};
use super::records::VolumeRecord;
use base::{BrickId, GroupId, Time};
use wire::directory::{BrickEntry, VolumeStatus};
use wire::{BrickStatus, ClusterStatus, GroupView};

impl Desk {
    /// What an operator sees.
    pub(super) fn cluster_status(&self, now: Time) -> ClusterStatus {
        ClusterStatus {
            bricks: self.cluster.records.bricks.keys().map(|brick| self.brick_entry(now, *brick)).collect(),
            gateways: self.cluster.gateways.status(now),
            volumes: self
                .cluster
                .records
                .volumes
                .values()
                .map(|record| self.volume_status(now, record))
                .collect(),
            version: self.cluster.records.counts.version,
            care: self.cluster.care(),
            warnings: self.warnings(now),
            store: self.cluster.store.failure(now),
        }
    }

    fn brick_entry(&self, now: Time, id: BrickId) -> BrickEntry {
        let lease = self.cluster.leases.get(id);
        let views = || self.cluster.views().filter(|view| view.slot_of(id).is_some());
        let mut status = lease.map(|lease| lease.status.clone()).unwrap_or_default();
        if let Some(record) = self.cluster.records.bricks.get(&id).filter(|_| lease.is_none()) {
            status.address.clone_from(&record.address);
            status.labels.clone_from(&record.labels);
        }
        BrickEntry {
            id,
            alive: self.cluster.leases.is_alive(now, id),
            silent_ms: lease.map(|lease| now.since(lease.heard).as_millis() as u64),
            groups: views().count() as u32,
            stale_groups: views().filter(|view| !view.is_current(id)).count() as u32,
            joining_groups: views().filter(|view| view.is_joining(id)).count() as u32,
            evicted: self.cluster.records.bricks.get(&id).is_some_and(|record| record.evicted),
            slow: self.slow.entry(&self.cluster, now, id),
            status,
        }
    }

    fn volume_status(&self, now: Time, record: &VolumeRecord) -> VolumeStatus {
        let tolerates =
            self.cluster.geometry(record.info.family).map_or(0, |geometry| geometry.layout().tolerates());
        let groups =
            self.cluster.records.families.get(&record.info.family).map_or(&[][..], |family| &family.groups);
        let views: Vec<&GroupView> = groups.iter().filter_map(|group| self.cluster.active(*group)).collect();
        let lost = |view: &GroupView| view.members.len() as u8 - view.current.len();
        let count = |is: &dyn Fn(&GroupView) -> bool| views.iter().filter(|view| is(view)).count() as u32;
        // Of a group that lost too many at once no view can be made: it is not changing, and serves nobody.
        let is_dead = |view: &GroupView| {
            let serves = |slot: &u8| self.cluster.leases.is_alive(now, view.members[usize::from(*slot)]);
            let serving = view.current.iter().filter(serves).count() as u8;
            view.members.len() as u8 - serving > tolerates
        };
        let is_unavailable = |group: &&GroupId| {
            self.views.is_changing(**group) || self.cluster.active(**group).is_some_and(is_dead)
        };
        let joins = Joins::default();
        VolumeStatus {
            volume: self.cluster.shown(&record.info).clone(),
            groups: groups.len() as u32,
            degraded: count(&|view| lost(view) > 0),
            unavailable: groups.iter().filter(is_unavailable).count() as u32,
            can_lose: views
                .iter()
                .map(|view| tolerates.saturating_sub(lost(view)))
                .min()
                .unwrap_or(tolerates),
            rebuilding: count(&|view| !view.joining.is_empty()),
            unplaced: count(&|view| self.members.is_unplaced(&self.cluster, now, (view, &joins))),
        }
    }

    /// What an operator should know, in words.
    fn warnings(&self, now: Time) -> Vec<String> {
        let bricks = self
            .cluster
            .records
            .bricks
            .keys()
            .filter_map(|brick| Some((*brick, self.cluster.status(*brick)?)));
        let mut warnings: Vec<String> =
            bricks.flat_map(|(brick, status)| warnings_of(brick, status)).collect();
        let joins = Joins::default();
        for (family, record) in &self.cluster.records.families {
            let views = record.groups.iter().filter_map(|group| self.cluster.active(*group));
            let is_unplaced =
                |view: &&GroupView| self.members.is_unplaced(&self.cluster, now, (view, &joins));
            let unplaced = views.filter(is_unplaced).count();
            let name = self
                .cluster
                .records
                .volumes_of(*family)
                .next()
                .map_or("", |volume| volume.info.name.as_str());
            if unplaced > 0 {
                warnings.push(format!(
                    "{unplaced} groups of volume '{name}' have lost a brick and no other can take its place: \
                     add bricks or room"
                ));
            }
        }
        warnings
    }
}

fn warnings_of(brick: BrickId, status: &BrickStatus) -> Vec<String> {
    let mut warnings = Vec::new();
    let percent = fullness(status);
    match percent {
        full::JOIN.. => warnings.push(format!(
            "{brick} is {percent}% full: nothing is rebuilt on it, and above 95% writes fail with ENOSPC; add \
             bricks or delete volumes or snapshots"
        )),
        full::WARN.. => warnings.push(format!("{brick} is {percent}% full: new volumes go to other bricks if these suffice")),
        _ => {}
    }
    if let Some(why) = &status.failed {
        warnings.push(format!("{brick} has failed: {why}"));
    }
    if status.rot.lost_blocks > 0 {
        warnings.push(format!(
            "{brick} has {} blocks that no brick can read; reading them fails with EIO, and writing them again repairs them",
            status.rot.lost_blocks
        ));
    }
    warnings
}
