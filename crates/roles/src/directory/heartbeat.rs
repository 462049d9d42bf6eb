//! What a brick says of itself with each heartbeat, and what it is told.

use super::briefing::Briefing;
use super::cluster::Cluster;
use super::event::{DirectoryEffect, send};
use super::news::News;
use super::runs;
use super::views::Views;
use base::{BrickId, GroupId, NodeId, Time, ViewNumber};
use rules::counters::Counter;
use wire::{BrickStatus, GroupView, Message, Orders, Standing, StreamReport, Version};

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
    if !cluster.records.bricks.contains_key(&from) {
        return cluster.counters.count(Counter::HeartbeatOfABrickThatWasNeverAdmitted);
    }
    cluster.bricks_speak.insert(from, speaks);
    let knows = status.run.newest_known;
    let is_later = cluster.rules.refuses_as_old(knows > cluster.records.counts.version);
    cluster.age.hear(from, is_later.then_some(knows));
    if cluster.age.is_old() {
        dismiss(cluster, now, from, (sent, status.run.number), Standing::Waits, fx);
        return cluster.leases.on_heartbeat((now, sent), (from, speaks), status, false);
    }
    let verdict = runs::on_run(cluster, now, from, (&status.run, &status.address), fx);
    if !verdict.counts() {
        // Another process with its id waits for the end of its lease.
        if cluster.records.runs.get(&from).is_some_and(|record| record.number == status.run.number) {
            cluster.leases.end(from);
        }
        return dismiss(cluster, now, from, (sent, status.run.number), verdict.standing(Vec::new()), fx);
    }
    let Some(record) = cluster.records.bricks.get_mut(&from) else { return };
    if !record.fits(&status) {
        record.address.clone_from(&status.address);
        record.labels.clone_from(&status.labels);
        cluster.move_brick(from, fx);
    }
    let lags = on_behind(cluster, changes, now, from, fx);
    let has_lost = on_disks(cluster, changes, now, (from, &status.disks), fx) || lags;
    on_left(cluster, from, &status.groups.left, fx);
    let briefing = Briefing::new(cluster, from, known);
    // A brick may trust its views again once it knows of all that left it out, and only while none is being made
    // that will.
    let is_sound = !has_lost && status.failed.is_none();
    let grant = briefing.is_whole && is_sound && stays(cluster, changes, now, from);
    let run = status.run.number;
    cluster.leases.on_heartbeat((now, sent), (from, speaks), status, grant);
    cluster.leases.knows(from, known);
    let lease_ns = if grant { cluster.leases.length_ns(from) } else { 0 };
    let Briefing { version, left, views, deleted, gone, families, .. } = briefing;
    let mut orders = Box::new(orders(cluster, from, known));
    (orders.left, orders.gone, orders.families) = (left, gone, families);
    let standing = if lags { Standing::Waits } else { verdict.standing(behind(cluster, from)) };
    (orders.run, orders.standing) = (run, standing);
    orders.renew_ns = cluster.leases.renew_ns(speaks);
    orders.newest = cluster.store.durable();
    orders.streams = cluster.streams.told_to(streams.known);
    cluster.streams.on_report(now, from, sent, streams);
    let time = cluster.time.time(now);
    let told = Message::HeartbeatDone { sent, version, lease_ns, views, deleted, orders, time };
    send(fx, NodeId::Brick(from), told);
}

/// A brick wants more of the lease that its last heartbeat was answered with. It has it if it would have it with a heartbeat that says the same.
pub(super) fn on_renewal(
    cluster: &mut Cluster,
    changes: &Views,
    now: Time,
    (from, run): (BrickId, u64),
    (sent, known): (Time, u64),
    fx: &mut Vec<DirectoryEffect>,
) {
    let counts = cluster.records.runs.get(&from).is_some_and(|record| record.number == run);
    let is_granted = cluster.leases.get(from).is_some_and(|lease| lease.is_granted);
    if !counts || !is_granted || cluster.age.is_old() {
        return;
    }
    let has_lost =
        cluster.lags(from) || cluster.records.bricks.get(&from).is_none_or(|record| !record.lost.is_empty());
    let trusts = !has_lost && !has_left_since(cluster, from, known) && stays(cluster, changes, now, from);
    let lease_ns = cluster.leases.on_renewal((now, sent), (from, run), trusts);
    send(fx, NodeId::Brick(from), Message::Renewed { sent, run, lease_ns });
}

/// Whether the brick may trust its views at all: not while one is being made that leaves it out.
fn stays(cluster: &Cluster, changes: &Views, now: Time, brick: BrickId) -> bool {
    !cluster.holds_still(now) && !changes.leave_out(brick) && cluster.takes_groups(brick)
}

/// Whether a view has left the brick out, or given its place to another, since the map's version that it knows.
fn has_left_since(cluster: &Cluster, brick: BrickId, known: u64) -> bool {
    let groups = &cluster.records.groups;
    let mut left = groups.index().of_outsider(brick).chain(groups.index().of_former(brick));
    left.any(|group| groups.get(&group).is_some_and(|record| record.changed > known))
}

/// Answers a run of a brick that does not count, or not yet: nothing that it says is taken in.
fn dismiss(
    cluster: &Cluster,
    now: Time,
    from: BrickId,
    (sent, run): (Time, u64),
    standing: Standing,
    fx: &mut Vec<DirectoryEffect>,
) {
    let orders = Box::new(Orders { care: cluster.care(), run, standing, ..Orders::default() });
    let (views, deleted) = (Vec::new(), Vec::new());
    let time = cluster.time.time(now);
    let answer = Message::HeartbeatDone { sent, version: 0, lease_ns: 0, views, deleted, orders, time };
    send(fx, NodeId::Brick(from), answer);
}

/// The groups whose latest writes the brick lacks, with the latest views that count on it.
fn behind(cluster: &Cluster, brick: BrickId) -> Vec<(GroupId, ViewNumber)> {
    let lost = cluster.records.bricks.get(&brick).map_or(&[][..], |record| &record.lost);
    let views = |group: &GroupId| {
        let record = cluster.records.groups.get(group)?;
        let numbers = record.active.iter().chain(&record.next).map(|view| view.number);
        Some((*group, numbers.max()?))
    };
    lost.iter().filter_map(views).collect()
}

fn orders(cluster: &Cluster, to: BrickId, known: u64) -> Orders {
    Orders {
        bricks: cluster.addresses_since(known),
        care: cluster.care(),
        is_slow: cluster.is_slow(to),
        asks_held: known < cluster.records.forgotten.version,
        ..Orders::default()
    }
}

/// A brick's disks know of groups as they were at version `knew`: it may have left groups since, and takes itself for a member
/// again.
fn have_leave(cluster: &mut Cluster, brick: BrickId, knew: u64, fx: &mut Vec<DirectoryEffect>) {
    let mut puts = Vec::new();
    let versions = knew.saturating_add(1)..=cluster.records.counts.version;
    for (_, group) in cluster.records.groups.index().changed(versions).collect::<Vec<_>>() {
        let Some(record) = cluster.records.groups.get(&group) else { continue };
        let is_outside = |view: &GroupView| !view.has_part(brick);
        let Some(view) = record.active.as_ref().filter(|view| is_outside(view)) else { continue };
        if record.next.as_ref().is_none_or(is_outside) {
            let number = view.number;
            cluster.records.groups.change(&group, |record| {
                record.former.retain(|(of, _)| *of != brick);
                record.former.push((brick, number));
            });
            puts.push(cluster.records.put_group(group));
        }
    }
    if !puts.is_empty() {
        cluster.put(puts, Vec::new(), fx);
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
        let was_former = |(of, since): &(BrickId, ViewNumber)| *of == brick && since <= number;
        let record = cluster.records.groups.get(group);
        if record.is_some_and(|record| record.former.iter().any(was_former)) {
            cluster.records.groups.change(group, |record| record.former.retain(|of| !was_former(of)));
            let put = cluster.records.put_group(*group);
            cluster.put(vec![put], Vec::new(), fx);
        }
    }
}

/// A brick came with other disks than it is known with. While it may still believe in its views it gets no lease;
/// then it counts as having lost its blocks in all groups that it writes. True as long as it gets no lease.
fn on_disks(
    cluster: &mut Cluster,
    changes: &Views,
    now: Time,
    (brick, disks): (BrickId, &[u64]),
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
    let writes = written_by(cluster, changes, brick);
    let record = cluster.records.bricks.get_mut(&brick).expect("looked up above");
    let before = core::mem::replace(&mut record.disks, disks.to_vec());
    let news = match is_first {
        true => News::Came { brick, address: record.address.clone() },
        false => News::OtherDisks { brick, before, now: disks.to_vec(), groups: writes.len() },
    };
    if !is_first {
        record.lost = writes;
        cluster.counters.count(Counter::BrickCameWithOtherDisks);
    }
    let has_lost = !record.lost.is_empty();
    let put = cluster.records.put_brick(brick);
    cluster.put_news(now, vec![put], Vec::new(), news, fx);
    has_lost
}

/// The groups that a brick writes, or is to write by the view to come; without those of which it has yet to begin the first view.
fn written_by(cluster: &Cluster, changes: &Views, brick: BrickId) -> Vec<GroupId> {
    let is_writer = |group: &GroupId| {
        let record = cluster.records.groups.get(group);
        record.is_some_and(|of| of.active.iter().chain(&of.next).any(|view| view.is_writer(brick)))
    };
    let has_begun = |group: &GroupId| !changes.is_yet_to_begin(*group, brick);
    cluster.groups_of(brick).filter(is_writer).filter(has_begun).collect()
}

/// Whether a group has all of its content without this brick, on bricks that are there.
fn bears_loss(cluster: &Cluster, now: Time, group: GroupId, brick: BrickId) -> bool {
    let Some(record) = cluster.records.groups.get(&group) else { return false };
    let has_all = |view: &GroupView| {
        let tolerates = cluster.geometry(view.volume).map_or(0, |geometry| geometry.layout().tolerates());
        let is_there = |of: &BrickId| {
            *of != brick
                && view.is_current(*of)
                && cluster.leases.is_alive(now, *of)
                && !cluster.lacks(*of, group)
        };
        let there = view.members.iter().filter(|of| is_there(of)).count();
        // Nothing counts on what a brick has that is not current.
        !view.is_current(brick) || view.members.len() - there <= usize::from(tolerates)
    };
    // A view that may be revoked is not sure to come.
    let next = record.next.iter().filter(|_| !cluster.is_revocable(group));
    record.active.iter().chain(next).all(has_all)
}

/// A brick's disks lack what it promised, or may lack it as they are elsewhere. While an earlier run of it may still believe in its views this one waits; then
/// it counts as having lost its blocks, as with other disks. True as long as it waits.
fn on_behind(
    cluster: &mut Cluster,
    changes: &Views,
    now: Time,
    brick: BrickId,
    fx: &mut Vec<DirectoryEffect>,
) -> bool {
    if !cluster.lags(brick) {
        return false;
    }
    if !cluster.leases.has_ended(now, brick) {
        return true;
    }
    let mut writes = written_by(cluster, changes, brick);
    if cluster.records.runs.get(&brick).is_some_and(|run| !run.is_behind) {
        writes.retain(|group| bears_loss(cluster, now, *group, brick));
    }
    let mut knew = 0;
    if let Some(run) = cluster.records.runs.get_mut(&brick) {
        (run.is_behind, run.is_suspect) = (false, false);
        let more = writes.iter().copied().filter(|group| !run.behind.contains(group)).collect::<Vec<_>>();
        run.behind.extend(more);
        knew = run.knew;
    }
    have_leave(cluster, brick, knew, fx);
    if let Some(record) = cluster.records.bricks.get_mut(&brick) {
        let more = writes.into_iter().filter(|group| !record.lost.contains(group)).collect::<Vec<_>>();
        record.lost.extend(more);
    }
    let puts = vec![cluster.records.put_brick(brick), cluster.records.put_run(brick)];
    cluster.put(puts, Vec::new(), fx);
    false
}
