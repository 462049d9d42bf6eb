//! What a brick is told of the map: what has changed since the version that it knows, a page at a time.
//!
//! Changes come in the order of their versions. A page that is full ends at a version, which the brick confirms with its next
//! heartbeat; it may trust its views with the last page, and once it has heard of all groups that it is to give back.

use super::cluster::Cluster;
use base::{BrickId, GroupId, VolumeId};
use std::collections::BTreeSet;
use wire::{Family, GroupView, Wire};

#[derive(Debug, Default)]
pub(super) struct Briefing {
    /// What the brick knows once it has taken this in.
    pub(super) version: u64,
    /// Whether it knew of all that left it out already or hears of it here, and this is the last page.
    pub(super) is_whole: bool,
    /// Views of groups that it is to give back: its places there are others'. It names those that it gave back, and is told others.
    pub(super) left: Vec<GroupView>,
    /// Views in which it takes no part any more. Of those in which it does it hears when they are made.
    pub(super) views: Vec<GroupView>,
    /// Volumes and branches that are no more.
    pub(super) deleted: Vec<VolumeId>,
    /// Of these the ones that name no family any more.
    pub(super) gone: Vec<VolumeId>,
    pub(super) families: Vec<Family>,
}

enum Change {
    Group(GroupId),
    Family(VolumeId),
    Deleted(VolumeId),
}

impl Briefing {
    pub(super) fn new(cluster: &Cluster, brick: BrickId, known: u64) -> Briefing {
        let durable = cluster.store.durable();
        let mut briefing = Briefing { version: durable, is_whole: true, ..Briefing::default() };
        let page_bytes = cluster.page_bytes();
        let mut bytes = briefing.take_left(cluster, brick, page_bytes);
        let mut told = BTreeSet::new();
        let mut changes = changes_since(cluster, known).peekable();
        while let Some((version, change)) = changes.next() {
            let family = match change {
                Change::Group(group) => {
                    let view = cluster.active(group).filter(|view| view.has_part(brick));
                    if let Some(view) = view.filter(|view| !view.is_writer(brick)) {
                        briefing.is_whole = false;
                        if version <= durable {
                            bytes += view.to_bytes().len();
                            briefing.views.push(view.clone());
                        }
                    }
                    // One that is new in a group may have missed its family, however old. Of what is not stored yet it hears later: no page
                    // ends in there, however much it is.
                    view.filter(|_| version <= durable).map(|view| view.volume)
                }
                Change::Family(family) => Some(family),
                Change::Deleted(volume) => {
                    if version <= durable {
                        bytes += size_of_val(&volume);
                        briefing.deleted.push(volume);
                        briefing.gone.extend(Some(volume).filter(|family| cluster.is_gone(*family)));
                    }
                    None
                }
            };
            if let Some(family) = family.filter(|family| told.insert(*family))
                && let Some(family) = of_brick(cluster, brick, family)
            {
                bytes += family.to_bytes().len();
                briefing.families.push(family);
            }
            let ends_a_version = changes.peek().is_some_and(|(next, _)| *next > version);
            if bytes >= page_bytes && ends_a_version && version < durable {
                briefing.is_whole = false;
                briefing.version = version;
                return briefing;
            }
        }
        briefing
    }

    /// Takes in the groups that the brick is to give back; how many bytes they take.
    fn take_left(&mut self, cluster: &Cluster, brick: BrickId, page_bytes: usize) -> usize {
        let (groups, mut bytes) = (&cluster.records.groups, 0);
        for group in groups.index().of_former(brick) {
            let Some(record) = groups.get(&group) else { continue };
            let Some(view) = record.active.as_ref().filter(|view| !view.has_part(brick)) else {
                continue;
            };
            if record.changed > cluster.store.durable() || bytes >= page_bytes {
                self.is_whole = false;
                continue;
            }
            bytes += view.to_bytes().len();
            self.left.push(view.clone());
        }
        bytes
    }
}

/// What has changed since a version, by the version at which it did.
fn changes_since(cluster: &Cluster, known: u64) -> impl Iterator<Item = (u64, Change)> {
    let records = &cluster.records;
    let news = || known.saturating_add(1)..=records.counts.version;
    let mut groups = records.groups.index().changed(news()).peekable();
    let mut families = records.families.index().changed(news()).peekable();
    let deleted = (known < records.counts.version).then(|| records.deleted.range(news()));
    let mut deleted = deleted.into_iter().flatten().map(|(version, volume)| (*version, *volume)).peekable();
    core::iter::from_fn(move || {
        let version = |next: Option<u64>| next.unwrap_or(u64::MAX);
        let of_groups = version(groups.peek().map(|(version, _)| *version));
        let of_families = version(families.peek().map(|(version, _)| *version));
        let of_deleted = version(deleted.peek().map(|(version, _)| *version));
        if of_groups <= of_families.min(of_deleted) {
            groups.next().map(|(version, group)| (version, Change::Group(group)))
        } else if of_families <= of_deleted {
            families.next().map(|(version, family)| (version, Change::Family(family)))
        } else {
            deleted.next().map(|(version, volume)| (version, Change::Deleted(volume)))
        }
    })
}

/// A family, if the brick has groups of it and its latest change is stored.
fn of_brick(cluster: &Cluster, brick: BrickId, family: VolumeId) -> Option<Family> {
    let records = &cluster.records;
    let record = records.families.get(&family).filter(|record| record.changed <= cluster.store.durable())?;
    let has_place = |view: &GroupView| view.has_part(brick);
    let is_member = |group: &GroupId| {
        records
            .groups
            .get(group)
            .is_some_and(|record| record.active.iter().chain(&record.next).any(has_place))
    };
    record.groups.iter().any(is_member).then(|| Family {
        number: record.changed,
        volumes: records.volumes_of(family).map(|volume| volume.info.clone()).collect(),
        groups: record.groups.clone(),
    })
}
