//! What a brick says of itself with each heartbeat, and what it is told.

use super::cluster::Cluster;
use super::event::{DirectoryEffect, send};
use super::views::Views;
use crate::counters::Counter;
use base::{BrickId, GroupId, NodeId, Time, ViewNumber};
use std::collections::BTreeSet;
use wire::{BrickStatus, Family, GroupView, Message, Orders, StreamReport, Version};

pub(super) struct Heartbeat {
    pub(super) from: BrickId,
    /// When it was sent, by the brick's clock.
    pub(super) sent: Time,
    /// The map's version that the brick knows.
    pub(super) known: u64,
    pub(super) status: BrickStatus,
    pub(super) streams: StreamReport,
    /// The newest version that it speaks.
    pub(super) speaks: Version,
}

pub(super) fn on_heartbeat(
    cluster: &mut Cluster,
    changes: &Views,
    now: Time,
    heartbeat: Heartbeat,
    fx: &mut Vec<DirectoryEffect>,
) {
    let Heartbeat { from, sent, known, status, streams, speaks } = heartbeat;
    let Some(record) = cluster.records.bricks.get_mut(&from) else {
        return cluster.counters.count(Counter::HeartbeatOfABrickThatWasNeverAdmitted);
    };
    cluster.bricks_speak.insert(from, speaks);
    if !record.fits(&status) {
        record.address.clone_from(&status.address);
        record.labels.clone_from(&status.labels);
        let put = cluster.records.put_brick(from);
        cluster.put(vec![put], Vec::new(), fx);
        cluster.publish_addresses(fx);
    }
    let has_lost = on_disks(cluster, now, from, &status.disks, fx);
    on_left(cluster, from, &status.groups.left, fx);
    let views = cluster.records.groups.values().filter(|group| group.changed > known);
    let views: Vec<GroupView> =
        views.filter_map(|group| group.active.clone()).filter(|view| view.slot_of(from).is_some()).collect();
    let version = cluster.store.durable();
    let since = cluster.records.deleted.iter().filter(|(at, _)| (known + 1..version + 1).contains(at));
    let deleted = since.map(|(_, volume)| *volume).collect();
    // A brick may trust its views again once it knows of all that left it out, and only while none is being made
    // that will.
    let informed = views.iter().all(|view| view.is_writer(from));
    let left_out = changes.leave_out(cluster, from);
    let grant = informed && !left_out && !has_lost && status.failed.is_none() && cluster.takes_groups(from);
    cluster.leases.on_heartbeat((now, sent), from, status, grant);
    let lease_ns = if grant { cluster.leases.length_ns(from) } else { 0 };
    // Of views in which it takes part it hears when they are made.
    let is_told = |view: &GroupView| !view.is_writer(from) && cluster.is_durable(view.group);
    let views = views.into_iter().filter(is_told).collect();
    let mut orders = Box::new(orders(cluster, from, known));
    orders.streams = cluster.streams.told_to(streams.known);
    cluster.streams.on_report(now, from, sent, streams);
    let time = cluster.time.time(now);
    let told = Message::HeartbeatDone { sent, version, lease_ns, views, deleted, orders, time };
    send(fx, NodeId::Brick(from), told);
}

fn orders(cluster: &Cluster, to: BrickId, known: u64) -> Orders {
    let is_member = |group: &GroupId| {
        cluster.records.groups.get(group).is_some_and(|record| {
            record.active.iter().chain(&record.next).any(|view| view.slot_of(to).is_some())
        })
    };
    // A brick that is new in a group may have missed its family, however old.
    let has_changed = |group: &GroupId| cluster.records.groups[group].changed > known;
    let families = cluster.records.families.iter().filter(|(_, record)| {
        let mut of_brick = record.groups.iter().filter(|group| is_member(group)).peekable();
        let concerns = of_brick.peek().is_some() && (record.changed > known || of_brick.any(has_changed));
        concerns && record.changed <= cluster.store.durable()
    });
    let families = families.map(|(family, record)| Family {
        number: record.changed,
        volumes: cluster.records.volumes_of(*family).map(|volume| volume.info.clone()).collect(),
        groups: record.groups.clone(),
    });
    let left = cluster.records.groups.values().filter(|record| {
        record.changed <= cluster.store.durable() && record.former.iter().any(|(brick, _)| *brick == to)
    });
    let left = left.filter_map(|record| record.active.clone()).filter(|view| view.slot_of(to).is_none());
    Orders {
        families: families.collect(),
        left: left.collect(),
        bricks: cluster.addresses(),
        care: cluster.care(),
        is_slow: cluster.is_slow(to),
        streams: None,
    }
}

/// Bricks that say that they have left groups are no longer asked to.
fn on_left(
    cluster: &mut Cluster,
    brick: BrickId,
    left: &[(GroupId, ViewNumber)],
    fx: &mut Vec<DirectoryEffect>,
) {
    for (group, number) in left {
        let Some(record) = cluster.records.groups.get_mut(group) else { continue };
        let before = record.former.len();
        record.former.retain(|(of, since)| *of != brick || since > number);
        if record.former.len() < before {
            let put = cluster.records.put_group(*group);
            cluster.put(vec![put], Vec::new(), fx);
        }
    }
}

/// A brick came with other disks than it is known with. While it may still believe in its views it gets no lease;
/// then it counts as having lost its blocks in all groups that it writes. True as long as it gets no lease.
fn on_disks(
    cluster: &mut Cluster,
    now: Time,
    brick: BrickId,
    disks: &[u64],
    fx: &mut Vec<DirectoryEffect>,
) -> bool {
    let Some(record) = cluster.records.bricks.get(&brick) else { return true };
    if disks.is_empty() || record.disks == disks {
        // Until it has left the groups whose blocks it lost, nothing that it says of them can be trusted.
        return !record.lost.is_empty();
    }
    let is_first = record.disks.is_empty();
    if !is_first && !cluster.leases.has_ended(now, brick) {
        return true;
    }
    let groups = cluster.records.groups.keys().copied();
    let writes: BTreeSet<GroupId> = groups
        .filter(|group| {
            let record = &cluster.records.groups[group];
            record.active.iter().chain(&record.next).any(|view| view.is_writer(brick))
        })
        .collect();
    let record = cluster.records.bricks.get_mut(&brick).expect("looked up above");
    record.disks = disks.to_vec();
    if !is_first {
        record.lost = writes.into_iter().collect();
        cluster.counters.count(Counter::BrickCameWithOtherDisks);
    }
    let has_lost = !record.lost.is_empty();
    let put = cluster.records.put_brick(brick);
    cluster.put(vec![put], Vec::new(), fx);
    has_lost
}
