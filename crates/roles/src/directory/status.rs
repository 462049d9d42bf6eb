//! The cluster at a glance.

use super::cluster::Cluster;
use super::desk::Desk;
use super::members::{Joins, full, fullness};
use super::records::VolumeRecord;
use base::{BrickId, GroupId, Time, VolumeId};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::directory::{BrickEntry, Counts, VolumeStatus};
use wire::{BrickStatus, ClusterStatus, GroupView, StatusPart, Wire};

/// The first of them, until they have so many bytes; one at least, if there is one.
pub(super) fn page<T: Wire>(all: impl Iterator<Item = T>, bytes: usize) -> Vec<T> {
    let mut length = 0;
    let fits = |one: &T| {
        let had = length;
        length += one.to_bytes().len();
        had == 0 || length <= bytes
    };
    all.take_while(fits).collect()
}

/// So many groups are looked at for who could take the place of a brick: it takes time with the number of bricks.
const LOOKED_MAX: usize = 1000;

/// In how many groups each brick is a member, as far as the index of members does not say it.
#[derive(Default)]
struct Memberships {
    /// Groups in which it has a place in the view to come alone.
    to_come: BTreeMap<BrickId, u32>,
    stale: BTreeMap<BrickId, u32>,
    joining: BTreeMap<BrickId, u32>,
    standing_in: BTreeMap<BrickId, u32>,
    /// Those in which it lost blocks that nobody else has.
    bare: BTreeMap<BrickId, Vec<GroupId>>,
}

impl Memberships {
    fn of(cluster: &Cluster, lacking: &BTreeSet<BrickId>) -> Memberships {
        let mut memberships = Memberships::default();
        let count = |of: &mut BTreeMap<BrickId, u32>, brick| *of.entry(brick).or_default() += 1;
        let groups = &cluster.records.groups;
        for record in groups.index().changing().filter_map(|group| groups.get(&group)) {
            let has_place =
                |brick: &BrickId| record.active.as_ref().is_some_and(|view| view.has_part(*brick));
            let next: BTreeSet<BrickId> = record.next.iter().flat_map(GroupView::parties).collect();
            next.into_iter()
                .filter(|brick| !has_place(brick))
                .for_each(|brick| count(&mut memberships.to_come, brick));
        }
        for view in groups.index().incomplete().filter_map(|group| cluster.active(group)) {
            for brick in view.parties().filter(|brick| !view.is_current(*brick)) {
                if view.stands_in(brick) {
                    count(&mut memberships.standing_in, brick);
                    continue;
                }
                count(&mut memberships.stale, brick);
                if view.is_joining(brick) {
                    count(&mut memberships.joining, brick);
                }
            }
        }
        for brick in lacking {
            let views = cluster.groups_of(*brick).filter_map(|group| cluster.active(group));
            views
                .filter(|view| view.is_current(*brick) && cluster.lacks(*brick, view.group))
                .for_each(|_| count(&mut memberships.stale, *brick));
        }
        for (group, slots) in &cluster.records.bare {
            let members = cluster.active(*group).map_or(&[][..], |view| &view.members);
            for slot in slots.iter().filter(|slot| usize::from(*slot) < members.len()) {
                memberships.bare.entry(members[usize::from(slot)]).or_default().push(*group);
            }
        }
        memberships
    }
}

impl Desk {
    /// What an operator sees, or a part of it.
    pub(super) fn cluster_status(&self, now: Time, part: StatusPart) -> ClusterStatus {
        let lacking = self.cluster.lacking();
        let volumes = |from| {
            let records = self.cluster.records.volumes.range(from..);
            records.map(|(_, record)| self.volume_status(now, record, &lacking))
        };
        match part {
            StatusPart::All => ClusterStatus {
                bricks: self.brick_entries(now, &lacking).collect(),
                gateways: self.cluster.gateways.status(now),
                volumes: volumes(VolumeId(0)).collect(),
                ..self.glance(now)
            },
            StatusPart::Gateways(volume) => {
                let record = volume.and_then(|volume| self.cluster.records.volumes.get(&volume));
                ClusterStatus {
                    gateways: self.cluster.gateways.status(now),
                    volumes: record
                        .map(|record| self.volume_status(now, record, &lacking))
                        .into_iter()
                        .collect(),
                    ..ClusterStatus::default()
                }
            }
            StatusPart::From(first) => {
                let page = page(volumes(first), self.cluster.page_bytes());
                let last = page.last().map(|last| last.volume.id.0);
                let behind =
                    last.and_then(|last| self.cluster.records.volumes.range(VolumeId(last + 1)..).next());
                let next = behind.map(|(next, _)| *next);
                match first {
                    VolumeId(0) => ClusterStatus {
                        bricks: self.brick_entries(now, &lacking).collect(),
                        gateways: self.cluster.gateways.status(now),
                        volumes: page,
                        next,
                        ..self.glance(now)
                    },
                    _ => ClusterStatus { volumes: page, next, ..ClusterStatus::default() },
                }
            }
            StatusPart::Summary { most } => self.summary(now, most as usize, &lacking),
        }
    }

    /// What is said of the cluster as a whole.
    fn glance(&self, now: Time) -> ClusterStatus {
        ClusterStatus {
            version: self.cluster.records.counts.version,
            care: self.cluster.care(),
            warnings: self.warnings(now),
            store: self.cluster.store.failure(now),
            ..ClusterStatus::default()
        }
    }

    /// Costs what is not well, the number of bricks and gateways, and `most`; not the number of volumes and groups.
    fn summary(&self, now: Time, most: usize, lacking: &BTreeSet<BrickId>) -> ClusterStatus {
        let (unwell, well): (Vec<_>, Vec<_>) = self.brick_entries(now, lacking).partition(is_unwell);
        let unwell_bricks = unwell.len() as u32;
        let bricks: Vec<BrickEntry> = unwell.into_iter().chain(well).collect();
        let mut gateways = self.cluster.gateways.status(now);
        let gateways_count = gateways.len() as u32;
        // Those that serve others, and those beside bricks, are what volumes may lack.
        gateways.sort_by_key(|gateway| (gateway.beside.is_none(), gateway.address.is_empty(), gateway.id));
        gateways.truncate(most);
        let (records, families) = (&self.cluster.records, self.unwell_families(now, lacking));
        let of_families = families.keys().flat_map(|family| records.volumes_of(*family));
        // A snapshot is as its volume is.
        let (snapshots, mut heads): (Vec<_>, Vec<_>) =
            of_families.partition(|record| record.info.is_snapshot);
        let unwell_volumes = heads.len() as u32;
        heads.sort_by_key(|record| !families[&record.info.family]);
        // Of blocks that a brick has lost a person is told the volume.
        let lost = bricks.iter().take(most).flat_map(|brick| &brick.status.rot.lost);
        let lost = lost.filter_map(|lost| records.volumes.get(&lost.volume));
        let unwell = heads.into_iter().chain(lost).chain(snapshots);
        let unwell: BTreeMap<VolumeId, &VolumeRecord> =
            unwell.take(most).map(|record| (record.info.id, record)).collect();
        let is_other =
            |record: &&VolumeRecord| !record.info.is_snapshot && !unwell.contains_key(&record.info.id);
        let others = records.volumes.values().filter(is_other).take(most - unwell.len());
        let shown = unwell.values().copied().chain(others);
        let counts = Counts {
            bricks: records.bricks.len() as u32,
            unwell_bricks,
            gateways: gateways_count,
            volumes: (records.volumes.len() - records.volumes.index().snapshots()) as u32,
            unwell_volumes,
            snapshots: records.volumes.index().snapshots() as u32,
            groups: records.groups.len() as u32,
        };
        let volumes: Vec<VolumeStatus> =
            shown.map(|record| self.volume_status(now, record, lacking)).collect();
        // What is said of a volume that waits for bricks depends on how these are.
        let waits_for: BTreeSet<BrickId> =
            volumes.iter().flat_map(|volume| volume.waits_for.clone()).collect();
        let is_waited_for = |brick: &&BrickEntry| waits_for.contains(&brick.id);
        let others = bricks.iter().filter(|brick| !is_waited_for(brick));
        let bricks = bricks.iter().filter(is_waited_for).chain(others).take(most).cloned().collect();
        let mut summary =
            ClusterStatus { bricks, gateways, volumes, counts: Some(counts), ..self.glance(now) };
        let more = summary.warnings.len().saturating_sub(most);
        if more > 0 {
            summary.warnings.truncate(most);
            summary.warnings.push(format!("{more} more warnings: `brickwork status --all` shows them"));
        }
        summary
    }

    /// The families of which groups lack redundancy, do not serve, or have lost blocks: each, and whether it is one of the latter two.
    fn unwell_families(&self, now: Time, lacking: &BTreeSet<BrickId>) -> BTreeMap<VolumeId, bool> {
        let records = &self.cluster.records;
        let bare = records.bare.iter().filter(|(_, slots)| !slots.is_empty()).map(|(group, _)| *group);
        let away = records.bricks.keys().filter(|brick| !self.cluster.leases.is_alive(now, **brick));
        let away = away.chain(lacking).flat_map(|brick| self.cluster.groups_of(*brick));
        let dead = away
            .filter(|group| self.cluster.active(*group).is_some_and(|view| self.is_dead(now, view, lacking)));
        let worse = self.views.changing().chain(bare).chain(dead).map(|group| (group, true));
        let lacked =
            lacking.iter().flat_map(|brick| self.cluster.groups_of(*brick).map(|group| (*brick, group)));
        let lacked =
            lacked.filter(|(brick, group)| self.cluster.lacks(*brick, *group)).map(|(_, group)| group);
        let incomplete = records.groups.index().incomplete().chain(lacked).map(|group| (group, false));
        let mut families = BTreeMap::new();
        for (group, is_worse) in worse.chain(incomplete) {
            let Some(record) = records.groups.get(&group) else { continue };
            *families.entry(record.volume).or_default() |= is_worse;
        }
        families
    }

    pub(super) fn brick_entries(
        &self,
        now: Time,
        lacking: &BTreeSet<BrickId>,
    ) -> impl Iterator<Item = BrickEntry> + use<'_> {
        let memberships = Memberships::of(&self.cluster, lacking);
        self.cluster.records.bricks.keys().map(move |brick| self.brick_entry(now, *brick, &memberships))
    }

    fn brick_entry(&self, now: Time, id: BrickId, memberships: &Memberships) -> BrickEntry {
        let lease = self.cluster.leases.get(id);
        let mut status = lease.map(|lease| lease.status.clone()).unwrap_or_default();
        if let Some(record) = self.cluster.records.bricks.get(&id).filter(|_| lease.is_none()) {
            status.address.clone_from(&record.address);
            status.labels.clone_from(&record.labels);
        }
        // Who lost what is the directory's to know: a brick says so only with its next heartbeat.
        status.groups.bare = memberships.bare.get(&id).cloned().unwrap_or_default();
        let of = |counts: &BTreeMap<BrickId, u32>| counts.get(&id).copied().unwrap_or_default();
        let groups = self.cluster.records.groups.index().count_of_member(id) as u32;
        BrickEntry {
            id,
            alive: self.cluster.leases.is_alive(now, id),
            silent_ms: lease.map(|lease| now.since(lease.heard).as_millis() as u64),
            groups: groups - of(&memberships.to_come) - of(&memberships.standing_in),
            stale_groups: of(&memberships.stale),
            joining_groups: of(&memberships.joining),
            evicted: self.cluster.records.bricks.get(&id).is_some_and(|record| record.evicted),
            slow: self.slow.entry(&self.cluster, now, id),
            status,
            version: lease.map_or(0, |lease| lease.known),
            stand_in_groups: of(&memberships.standing_in),
            caught_up_percent: self.members.caught_up_percent(id).filter(|_| of(&memberships.stale) > 0),
        }
    }

    /// Whether a group lost too many at once for a view to be made: it is not changing, and serves nobody.
    fn is_dead(&self, now: Time, view: &GroupView, lacking: &BTreeSet<BrickId>) -> bool {
        let tolerates =
            self.cluster.geometry(view.volume).map_or(0, |geometry| geometry.layout().tolerates());
        // Who lost the group's blocks, and has yet to be left out, serves nothing of it.
        let lacks = |brick: &BrickId| lacking.contains(brick) && self.cluster.lacks(*brick, view.group);
        let serves = |slot: &u8| {
            let brick = view.members[usize::from(*slot)];
            self.cluster.leases.is_alive(now, brick) && !lacks(&brick)
        };
        let serving = view.current.iter().filter(serves).count() as u8;
        view.members.len() as u8 - serving > tolerates
    }

    fn volume_status(&self, now: Time, record: &VolumeRecord, lacking: &BTreeSet<BrickId>) -> VolumeStatus {
        let tolerates =
            self.cluster.geometry(record.info.family).map_or(0, |geometry| geometry.layout().tolerates());
        let groups =
            self.cluster.records.families.get(&record.info.family).map_or(&[][..], |family| &family.groups);
        let views: Vec<&GroupView> = groups.iter().filter_map(|group| self.cluster.active(*group)).collect();
        let has = |view: &GroupView, slot: &u8| {
            let brick = view.members[usize::from(*slot)];
            !lacking.contains(&brick) || !self.cluster.lacks(brick, view.group)
        };
        let lost = |view: &GroupView| {
            view.members.len() as u8 - view.current.iter().filter(|slot| has(view, slot)).count() as u8
        };
        let count = |is: &dyn Fn(&GroupView) -> bool| views.iter().filter(|view| is(view)).count() as u32;
        let has_lost =
            |group: &GroupId| self.cluster.records.bare.get(group).is_some_and(|slots| !slots.is_empty());
        let dead: BTreeMap<GroupId, &GroupView> = views
            .iter()
            .filter(|view| self.is_dead(now, view, lacking))
            .map(|view| (view.group, *view))
            .collect();
        let is_unavailable = |group: &&GroupId| self.views.is_changing(**group) || dead.contains_key(*group);
        let waits_for = |group: &GroupId| -> Vec<BrickId> {
            // What a stand-in has helps nobody without what is older.
            let members = |view: &&GroupView| {
                view.members.iter().copied().filter(|brick| !view.stands_in(*brick)).collect::<Vec<BrickId>>()
            };
            let away = dead.get(group).map(members).unwrap_or_default().into_iter();
            let away = away.filter(|brick| !self.cluster.leases.is_alive(now, *brick));
            self.views.waits_for(*group).into_iter().chain(away).collect()
        };
        let waits_for: BTreeSet<BrickId> = groups.iter().flat_map(waits_for).collect();
        let joins = Joins::none();
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
            rebuilding: count(&|view| !view.catching_up().is_empty()),
            covered: count(&|view| {
                lost(view) > 0 && view.writers() == wire::Slots::all(view.members.len() as u8)
            }),
            lost: groups.iter().filter(|group| has_lost(group)).count() as u32,
            unplaced: count(&|view| self.members.is_unplaced(&self.cluster, now, (view, &joins))),
            waits_for: waits_for.into_iter().collect(),
        }
    }

    /// Bricks and gateways whose clocks are far from the directory's.
    fn clocks_apart(&self) -> Vec<String> {
        let bricks = self.cluster.records.bricks.keys().filter_map(|brick| {
            let lease = self.cluster.leases.get(*brick)?;
            clock_apart(&brick.to_string(), lease.sent, lease.heard)
        });
        let gateways = self.cluster.gateways.clocks();
        let gateways =
            gateways.filter_map(|(gateway, sent, heard)| clock_apart(&gateway.to_string(), sent, heard));
        bricks.chain(gateways).collect()
    }

    /// Groups that cannot do without a brick whose disk is old.
    fn stuck_for_an_old_disk(&self, now: Time) -> Vec<String> {
        let bricks = self.cluster.records.bricks.iter().filter(|(_, record)| !record.lost.is_empty());
        let told = bricks.filter(|(brick, _)| self.cluster.leases.is_alive(now, **brick));
        told.map(|(brick, record)| {
            let family = record.lost.iter().find_map(|group| self.cluster.records.groups.get(group));
            let volume = family.and_then(|group| self.cluster.records.volumes_of(group.volume).next());
            let name = volume.map_or("", |volume| volume.info.name.as_str());
            format!(
                "{brick} lacks the latest writes of {} groups (of volume '{name}' and others that share them), and these cannot do \
                 without it now: start the bricks that are away. Only if none of them has these blocks: delete the volume; or, if \
                 it keeps one copy of its blocks (RAID-0), stop {brick}, format each of its disks (`brickwork brick format --disk PATH --force`), \
                 which gives up all that is on them, and start it",
                record.lost.len()
            )
        })
        .collect()
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
        warnings.extend(self.slow.warnings(now));
        warnings.extend(self.clocks_apart());
        warnings.extend(self.cluster.age.warning(self.cluster.records.counts.version));
        warnings.extend(self.cluster.runs.warnings(now));
        warnings.extend(self.stuck_for_an_old_disk(now));
        let joins = Joins::none();
        let index = self.cluster.records.groups.index();
        let at_least = if index.incomplete().nth(LOOKED_MAX).is_some() { "at least " } else { "" };
        let incomplete = index.incomplete().take(LOOKED_MAX);
        let views = incomplete.filter_map(|group| self.cluster.active(group));
        let is_unplaced = |view: &&GroupView| self.members.is_unplaced(&self.cluster, now, (view, &joins));
        let mut unplaced: BTreeMap<VolumeId, usize> = BTreeMap::new();
        views.filter(is_unplaced).for_each(|view| *unplaced.entry(view.volume).or_default() += 1);
        warnings.extend(unplaced.into_iter().map(|(family, groups)| {
            let volume = self.cluster.records.volumes_of(family).next();
            let name = volume.map_or("", |volume| volume.info.name.as_str());
            format!(
                "{at_least}{groups} groups of volume '{name}' have lost a brick and no other can take its place: \
                 add bricks or room"
            )
        }));
        warnings
    }
}

/// Whether an operator is told something of a brick.
fn is_unwell(brick: &BrickEntry) -> bool {
    let status = &brick.status;
    let is_evicted = brick.evicted && brick.groups > 0;
    let has_rot = status.unreadable_blocks > 0 || status.rot.lost_blocks > 0;
    let is_full = fullness(status) >= full::WARN;
    (!brick.alive && !brick.evicted)
        || is_evicted
        || brick.slow.is_some()
        || status.failed.is_some()
        || brick.stale_groups > 0
        || has_rot
        || is_full
        || status.groups.unnoted > 0
}

/// A clock that is further from the directory's than this is wrong: machines whose clocks are set by NTP differ by less than a second.
const CLOCKS_APART: Duration = Duration::from_secs(5);

/// What is said of a machine's clock that showed `sent` when the directory's showed `heard`, if they are far apart.
fn clock_apart(machine: &str, sent: Time, heard: Time) -> Option<String> {
    let (apart, side) = match sent > heard {
        true => (sent.since(heard), "ahead of"),
        false => (heard.since(sent), "behind"),
    };
    (apart > CLOCKS_APART).then(|| {
        format!(
            "the clock of {machine} is {} {side} the directory's, as both stood when their daemons started: reads and writes go on all \
             the same, but times in its log and of objects are wrong; set it (NTP) and restart the daemon",
            in_words(apart)
        )
    })
}

/// In the two largest of its units.
fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} days {} h", hours % 24),
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
    if status.groups.unnoted > 0 {
        warnings.push(format!(
            "{brick} has no room on its first disk to note {} changes of groups and volumes, and does not serve what they say: delete volumes or \
             snapshots, or exchange the disk for a larger one",
            status.groups.unnoted
        ));
    }
    if status.rot.lost_blocks > 0 {
        warnings.push(format!(
            "{brick} has {} blocks that no brick can read; reading them fails with EIO, and writing them again repairs them",
            status.rot.lost_blocks
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brick_that_finds_no_room_for_its_notes_is_told_of() {
        let mut status = BrickStatus::default();
        assert!(warnings_of(BrickId(3), &status).is_empty());
        status.groups.unnoted = 7;
        assert!(
            warnings_of(BrickId(3), &status)[0]
                .starts_with("brick-3 has no room on its first disk to note 7 changes")
        );
    }

    #[test]
    fn a_clock_far_from_the_directorys_is_told_in_words() {
        let noon = Time(1_796_000_000_000_000_000);
        let said = |sent| clock_apart("brick-3", sent, noon).unwrap_or_default();
        assert_eq!(said(noon - Duration::from_secs(4)), "");
        assert!(
            said(noon - Duration::from_secs(3720)).starts_with("the clock of brick-3 is 1 h 2 min behind")
        );
        assert!(said(noon + Duration::from_secs(80 * 365 * 86_400)).contains("29200 days 0 h ahead of"));
    }
}
