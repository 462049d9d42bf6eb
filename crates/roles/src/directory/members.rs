//! Who is in a group and in what capacity: who is left out, who may join and is promoted, who takes the place of a brick
//! that stays away.
//!
//! Who dies is left out on top of whatever change is under way. Everything else begins only from a view in force, so
//! that `current` grows only by members that took every write of the view before.

use super::cluster::Cluster;
use super::event::{DirectoryEffect, Put, send};
use super::returns::Returns;
use super::substitutes::Spares;
use super::views::{Views, following};
use base::{BrickId, GroupId, NodeId, Time};
use core::cell::OnceCell;
use core::ops::RangeInclusive;
use core::time::Duration;
use rules::counters::Counter;
use std::collections::{BTreeMap, BTreeSet};
use wire::{BrickStatus, GroupView, Message, Slots};

/// In so many groups a brick catches up at a time: 4, so that each of them is soon redundant, and one more with each that it was
/// done with within [`SOON`], as with groups that have little to catch up on. One that takes longer begins with 4 again.
const JOINS: RangeInclusive<usize> = 4..=64;
const SOON: Duration = Duration::from_millis(1500);
/// What is known of that is forgotten when nothing was caught up with for so long.
const PACE_KEPT: Duration = Duration::from_secs(10);

/// Beside those in which members catch up, so many groups that are not complete are looked at in each tick: for each of them all bricks may have to
/// be considered.
pub(super) const LOOKS_MAX: usize = 256;

/// For how long a change waits for members that join, and how long one that did not answer may not.
const JOINER_PATIENCE: Duration = Duration::from_secs(4);
const REFUSED: Duration = Duration::from_secs(30);

/// How full a disk may be, in percent of its capacity.
///
/// Above `WARN` an operator is warned, and a brick gets no groups of others, and none of new volumes where other bricks
/// suffice; above `JOIN` it may not join groups that it left; above `DROP` it stops catching up. The store itself refuses
/// writes above 95.
pub(super) mod full {
    pub(crate) const WARN: u64 = 85;
    pub(crate) const JOIN: u64 = 90;
    pub(crate) const DROP: u64 = 93;
}

/// How full a brick's fullest disk is, in percent: any block may have to go there.
pub(super) fn fullness(status: &BrickStatus) -> u64 {
    u64::from(status.space.fullest_percent)
}

/// In how many groups a brick may catch up at a time, and when it was last done with one.
#[derive(Debug)]
struct JoinPace {
    at_once: usize,
    at: Time,
}

/// What is known of members beside the records and leases.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// Since when bricks have been away, as far as is known since the start.
    away: BTreeMap<BrickId, Time>,
    /// Bricks that did not answer when they were to join a group, and until when they may not.
    refused: BTreeMap<(GroupId, BrickId), Time>,
    /// How fast bricks catch up that did so lately.
    paces: BTreeMap<BrickId, JoinPace>,
    /// With which group the next look at groups that are not complete begins.
    looks_from: GroupId,
    /// How far those are that lack something.
    returns: Returns,
    /// Since when bricks have been catching up, as far as is known since the start.
    catching_up: BTreeMap<(BrickId, GroupId), Time>,
}

impl Members {
    /// Looks at all groups: who must leave, and who may come.
    pub(super) fn keep(
        &mut self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        self.note_absences(cluster, now);
        ask_leases_back(cluster, now, fx);
        self.forget_what_was_left(cluster, fx);
        let mut joins = Joins::default();
        self.leave_out_the_dead(cluster, views, now, &joins.spares, fx);
        self.give_up_what_is_lost(cluster, views, now, fx);
        self.leave_out_the_slow(cluster, views, now, &joins.spares, fx);
        self.go_on_without_joiners(cluster, views, now, fx);
        self.forget_who_caught_up(cluster, now);
        let away = &self.away;
        self.returns.note(cluster, |brick| !away.contains_key(&brick));
        for group in self.next_looks(cluster) {
            if views.is_changing(group) {
                continue;
            }
            let Some(view) = cluster.active(group).cloned() else { continue };
            let is_changed = self.promote(cluster, views, now, &view, fx)
                || self.drop_the_full(cluster, views, now, &view, fx)
                || self.let_join(cluster, views, now, (&view, &joins), fx)
                || self.place_elsewhere(cluster, views, now, (&view, &joins), fx)
                || self.let_stand_in(cluster, views, now, (&view, &joins.spares), fx);
            if is_changed {
                let next = cluster.latest_view(group);
                joins.change(&view, next);
                for brick in next.into_iter().flat_map(GroupView::catching_up_bricks) {
                    self.catching_up.entry((brick, group)).or_insert(now);
                }
            }
        }
    }

    /// The groups in which members catch up, and of the others that are not complete as many as one look has time for, in turn.
    fn next_looks(&mut self, cluster: &Cluster) -> BTreeSet<GroupId> {
        let index = cluster.records.groups.index();
        let some: Vec<GroupId> = index.some_incomplete(self.looks_from, LOOKS_MAX).collect();
        self.looks_from = match some.last() {
            Some(last) if some.len() == LOOKS_MAX => GroupId(last.0 + 1),
            _ => GroupId(0),
        };
        // A brick that returns does not wait for its groups' turn.
        let bricks = cluster.records.bricks.keys().filter(|brick| !self.away.contains_key(brick));
        let waiting = bricks.flat_map(|brick| index.of_outsider(*brick).take(*JOINS.end()));
        waiting.chain(some).chain(index.joining()).collect()
    }

    /// Of those that catch up no more nothing is known, and of no brick that was done with nothing lately.
    fn forget_who_caught_up(&mut self, cluster: &Cluster, now: Time) {
        self.catching_up.retain(|(brick, group), _| {
            cluster.latest_view(*group).is_some_and(|view| view.is_catching_up(*brick))
        });
        self.paces.retain(|_, pace| now.since(pace.at) <= PACE_KEPT);
    }

    /// A brick has caught up in a group: whether that took long says in how many it may at a time.
    fn note_caught_up(&mut self, now: Time, group: GroupId, brick: BrickId) {
        let since = self.catching_up.remove(&(brick, group));
        let is_soon = since.is_some_and(|since| now.since(since) <= SOON);
        let pace = self.paces.entry(brick).or_insert(JoinPace { at_once: *JOINS.start(), at: now });
        pace.at_once = if is_soon { (pace.at_once + 1).min(*JOINS.end()) } else { *JOINS.start() };
        pace.at = now;
    }

    /// Whether a brick may begin to catch up in one more group: not beyond its pace, nor where it takes long in as many as it begins with.
    pub(super) fn may_begin(&self, cluster: &Cluster, now: Time, brick: BrickId, joins: &Joins) -> bool {
        let count = joins.of(cluster, now, brick);
        if count < *JOINS.start() {
            return true;
        }
        let of_brick = self.catching_up.range((brick, GroupId(0))..=(brick, GroupId(u64::MAX)));
        let late = of_brick.filter(|((_, group), since)| {
            now.since(**since) > SOON
                && cluster.latest_view(*group).is_some_and(|view| can_go_on(cluster, now, view))
        });
        self.paces.get(&brick).is_some_and(|pace| count < pace.at_once) && late.count() < *JOINS.start()
    }

    /// Who is left out for being slow is away like one that is silent: the redundancy that it cost is made good elsewhere
    /// when it lasts. Who is heard and waits for nothing but the end of the lease of the process before is there.
    fn note_absences(&mut self, cluster: &Cluster, now: Time) {
        for brick in cluster.records.bricks.keys() {
            let is_heard =
                cluster.leases.is_alive(now, *brick) || cluster.runs.is_about_to_count(now, *brick);
            if is_heard && !cluster.is_slow(*brick) {
                self.away.remove(brick);
            } else {
                self.away.entry(*brick).or_insert(now);
            }
        }
    }

    /// How much of what a brick lacked when it came it has by now, in percent.
    pub(super) fn caught_up_percent(&self, brick: BrickId) -> Option<u8> {
        self.returns.percent(brick)
    }

    /// Whether the brick is away, as far as is known since the start.
    pub(super) fn is_away(&self, brick: BrickId) -> bool {
        self.away.contains_key(&brick)
    }

    /// The brick is no more.
    pub(super) fn forget(&mut self, brick: BrickId) {
        self.away.remove(&brick);
        self.refused.retain(|(_, of), _| *of != brick);
    }

    // ---- leaving ----

    /// Begins changes to leave out bricks that cannot believe in their views any more.
    fn leave_out_the_dead(
        &mut self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        spares: &Spares,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let bricks = &cluster.records.bricks;
        let is_evicted = |brick| bricks.get(&brick).is_some_and(|record| record.evicted);
        // Who is back and waited for nothing but the end of its lease counts with its next word, and has all that it had.
        let waits = |brick: &BrickId| cluster.runs.is_about_to_count(now, *brick);
        let absent = bricks.keys().copied().filter(|brick| !waits(brick));
        let dead = cluster.leases.dead(now, absent, is_evicted);
        let evicted: BTreeSet<BrickId> =
            dead.iter().copied().filter(|brick| cluster.leases.is_alive(now, *brick)).collect();
        let lost: BTreeSet<(BrickId, GroupId)> = bricks
            .iter()
            .flat_map(|(brick, record)| record.lost.iter().map(|group| (*brick, *group)))
            .collect();
        // Who is held for slow begins no group without a lease, and gets none while it is to leave: a first view does not wait for it.
        let held = bricks
            .keys()
            .copied()
            .filter(|brick| cluster.is_slow(*brick) && cluster.leases.has_ended(now, *brick));
        let held: BTreeSet<BrickId> = held.collect();
        if dead.is_empty() && lost.is_empty() && held.is_empty() {
            return;
        }
        let index = cluster.records.groups.index();
        let concerned = dead.iter().flat_map(|brick| index.of_writer(*brick));
        let concerned = concerned.chain(lost.iter().map(|(_, group)| *group));
        let yet_to_begin = |group: &GroupId| cluster.active(*group).is_none();
        let held_up = held.iter().flat_map(|brick| index.of_writer(*brick)).filter(yet_to_begin);
        let mut tries = LOOKS_MAX;
        for group in concerned.chain(held_up).collect::<BTreeSet<GroupId>>() {
            let Some(from) = cluster.latest_view(group).cloned() else { continue };
            let is_first = cluster.active(group).is_none();
            let goes = |brick| {
                dead.contains(&brick) || lost.contains(&(brick, group)) || is_first && held.contains(&brick)
            };
            let must_go = |brick| goes(brick) && !evicted.contains(&brick);
            // Who is evicted goes only if the group can bear it beside those that are lost.
            let next = [without(&from, goes), without(&from, must_go)];
            let is_better =
                |next: &GroupView| next.writers() != from.writers() && self.is_viable(cluster, next);
            let Some(mut next) = next.into_iter().find(is_better) else {
                if is_first && tries > 0 {
                    tries -= 1;
                    self.begin_elsewhere(cluster, views, now, (&from, &without(&from, goes)), spares, fx);
                }
                continue;
            };
            // From a view in force it is sure to come only once all that remain have promised: one of them may be lost before, and who is
            // left out be back by then.
            let may_revoke = cluster.active(group) == Some(&from);
            if may_revoke {
                self.name_stand_ins(cluster, now, &mut next, spares);
            }
            if may_revoke && cluster.is_under_way(&next) {
                continue;
            }
            cluster.counters.count(Counter::ViewChangeBegun);
            if from.joining_bricks().any(|(_, brick)| !next.is_writer(brick)) {
                cluster.counters.count(Counter::JoiningBrickLost);
            }
            if may_revoke {
                views.begin_revocable(cluster, now, next, fx);
                continue;
            }
            let mut puts = Vec::new();
            for (_, brick) in from.writing_bricks().filter(|(_, brick)| !next.is_writer(*brick)) {
                if lost.contains(&(brick, group)) {
                    puts.extend(self.forget_lost(cluster, brick, &[group].into()));
                }
            }
            views.begin_change(cluster, now, next, puts, fx);
        }
    }

    /// A group that has had no view yet, and whose first one cannot begin without those that are gone. Nobody has written there: a member that is
    /// there begins with whatever disks it has, and others take the places of the rest.
    fn begin_elsewhere(
        &mut self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        (from, left): (&GroupView, &GroupView),
        spares: &Spares,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let mut next = left.clone();
        for slot in (0..from.members.len() as u8).filter(|slot| !left.writers().has(*slot)) {
            if !can_begin(cluster, now, from.members[usize::from(slot)], from.group) {
                let Some(taker) = self.taker(cluster, now, (&next, slot), spares, |_| true) else {
                    return;
                };
                next.members[usize::from(slot)] = taker;
            }
            next.current = next.current.with(slot);
        }
        let (members, group) = (next.members.clone(), from.group);
        if members.iter().any(|brick| !can_begin(cluster, now, *brick, group)) {
            return;
        }
        cluster.counters.count(Counter::FirstViewBegunElsewhere);
        let puts =
            members.iter().filter_map(|brick| self.forget_lost(cluster, *brick, &[group].into())).collect();
        views.begin_change(cluster, now, next, puts, fx);
    }

    /// Groups without redundancy of which bricks came with other disks: what these had is lost for good, as nobody else has
    /// it. They go on as members that have nothing, so that the rest is served and what is lost can be written again. Copies and
    /// parity say of blocks what they were: where too many of these are gone the group waits for a person to decide.
    fn give_up_what_is_lost(
        &mut self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let lost = cluster.records.bricks.values().flat_map(|record| record.lost.iter().copied());
        let begun = |group: &GroupId| cluster.active(*group).is_some();
        for group in lost.filter(begun).collect::<BTreeSet<GroupId>>() {
            let Some(from) = cluster.latest_view(group).cloned() else { continue };
            let has_lost = |brick: BrickId| {
                cluster.records.bricks.get(&brick).is_some_and(|record| record.lost.contains(&group))
            };
            let lost: Vec<(u8, BrickId)> =
                from.current_bricks().filter(|(_, brick)| has_lost(*brick)).collect();
            let has_one_copy =
                cluster.geometry(from.volume).is_some_and(|geometry| geometry.layout().tolerates() == 0);
            if lost.is_empty()
                || !has_one_copy
                || !lost.iter().all(|(_, brick)| is_empty(cluster, now, *brick, group))
            {
                continue;
            }
            cluster.counters.count(Counter::GroupWentOnWithoutBlocksThatAreLost);
            let slots = lost.iter().fold(Slots::default(), |slots, (slot, _)| slots.with(*slot));
            let bare = cluster.records.bare.entry(group).or_default();
            *bare = Slots(bare.0 | slots.0);
            let mut puts = vec![cluster.records.put_bare(group)];
            puts.extend(
                lost.iter().filter_map(|(_, brick)| self.forget_lost(cluster, *brick, &[group].into())),
            );
            views.begin_without(cluster, now, (following(&from, |_| {}), slots), puts, fx);
        }
    }

    /// Begins changes to leave out bricks that are slow and have no lease any more. They are alive and have every write: so
    /// each such change waits until no other is under way, and may be revoked until those that remain have promised.
    fn leave_out_the_slow(
        &mut self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        spares: &Spares,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let bricks = cluster.records.bricks.keys().copied();
        let slow: BTreeSet<BrickId> =
            bricks.filter(|brick| cluster.is_slow(*brick) && cluster.leases.has_ended(now, *brick)).collect();
        let concerned = slow.iter().flat_map(|brick| cluster.records.groups.index().of_writer(*brick));
        let concerned: BTreeSet<GroupId> = concerned.collect();
        for group in concerned {
            let Some(from) = cluster.active(group).filter(|_| !views.is_changing(group)) else {
                continue;
            };
            let mut next = without(from, |brick| slow.contains(&brick));
            if next.writers() == from.writers() || !self.is_viable(cluster, &next) {
                continue;
            }
            self.name_stand_ins(cluster, now, &mut next, spares);
            cluster.counters.count(Counter::ViewChangeBegun);
            views.begin_revocable(cluster, now, next, fx);
        }
    }

    /// Whether any brick was to join the group lately, and did not answer.
    pub(super) fn was_refused(&self, group: GroupId) -> bool {
        let all = (group, BrickId(0))..=(group, BrickId(u32::MAX));
        self.refused.range(all).next().is_some()
    }

    /// A change that waits for nobody but members that join goes on without them: whoever cannot promise holds up all.
    fn go_on_without_joiners(
        &mut self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        self.refused.retain(|_, until| *until > now);
        let stuck = views.stuck_for_joiners(now, JOINER_PATIENCE);
        for (view, missing) in stuck {
            cluster.counters.count(Counter::ViewChangeWentOnWithoutAJoiningBrick);
            for slot in missing.iter() {
                self.refused.insert((view.group, view.members[usize::from(slot)]), now + REFUSED);
            }
            let is_revocable = cluster.is_revocable(view.group);
            let is_new = |slot| {
                let brick = view.members[usize::from(slot)];
                cluster.active(view.group).is_none_or(|active| !active.is_writer(brick))
            };
            if is_revocable && missing.and(view.stand_ins()) == missing && missing.iter().all(is_new) {
                let next = following(&view, |next| next.close(missing));
                views.begin_revocable(cluster, now, next, fx);
                continue;
            }
            // A change that is revoked for that begins again by itself.
            let from = if is_revocable { cluster.active(view.group).cloned() } else { None };
            let from = from.unwrap_or(view);
            let next = following(&from, |next| next.close(from.joining.and(missing)));
            views.begin_change(cluster, now, next, Vec::new(), fx);
        }
    }

    /// What a brick has lost is forgotten once no view counts on it there any more.
    fn forget_what_was_left(&mut self, cluster: &mut Cluster, fx: &mut Vec<DirectoryEffect>) {
        let has_left = |brick: BrickId, group: &GroupId| {
            cluster.latest_view(*group).is_none_or(|view| !view.is_writer(brick))
        };
        let mut all = Vec::new();
        for (brick, record) in cluster.records.bricks.iter().filter(|(_, record)| !record.lost.is_empty()) {
            let left = record.lost.iter().copied().filter(|group| has_left(*brick, group));
            all.push((*brick, left.collect::<BTreeSet<GroupId>>()));
        }
        for (brick, left) in all.into_iter().filter(|(_, left)| !left.is_empty()) {
            let puts = self.forget_lost(cluster, brick, &left).into_iter().collect();
            cluster.put(puts, Vec::new(), fx);
        }
    }

    /// The brick with the exchanged disks is no writer of these groups any more.
    fn forget_lost(
        &mut self,
        cluster: &mut Cluster,
        brick: BrickId,
        groups: &BTreeSet<GroupId>,
    ) -> Option<Put> {
        let record = cluster.records.bricks.get_mut(&brick)?;
        let before = record.lost.len();
        record.lost.retain(|of| !groups.contains(of));
        if record.lost.len() == before {
            return None;
        }
        if let Some(run) = cluster.records.runs.get_mut(&brick) {
            run.behind.retain(|of| !groups.contains(of));
        }
        Some(cluster.records.put_brick(brick))
    }

    /// Whether the members left hold every acknowledged write.
    fn is_viable(&self, cluster: &Cluster, view: &GroupView) -> bool {
        cluster.geometry(view.volume).is_some_and(|geometry| {
            let lost = view.members.len() as u8 - view.current.len();
            lost <= geometry.layout().tolerates()
        })
    }

    /// Whether the groups of a brick could bear its leaving beside those that are silent; if not, one that could not.
    pub(super) fn group_that_needs(&self, cluster: &Cluster, now: Time, brick: BrickId) -> Option<GroupId> {
        let goes = |of| of == brick || !cluster.leases.is_alive(now, of);
        cluster.groups_of(brick).find(|group| {
            cluster
                .latest_view(*group)
                .is_some_and(|view| view.is_current(brick) && !self.is_viable(cluster, &without(view, goes)))
        })
    }

    /// Stops catching up where that would fill the disk.
    fn drop_the_full(
        &mut self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        view: &GroupView,
        fx: &mut Vec<DirectoryEffect>,
    ) -> bool {
        let is_full = |brick| cluster.status(brick).is_some_and(|status| fullness(status) >= full::DROP);
        let full = view.joining.iter().filter(|slot| is_full(view.members[usize::from(*slot)]));
        let full = full.fold(Slots::default(), Slots::with);
        let next = following(view, |next| next.close(full));
        change_joining(cluster, views, now, (view, next), Counter::CatchingUpStoppedForLackOfRoom, fx)
    }

    // ---- coming ----

    /// Members that have caught up under this very view become current.
    fn promote(
        &mut self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        view: &GroupView,
        fx: &mut Vec<DirectoryEffect>,
    ) -> bool {
        let is_done = |brick: BrickId| {
            cluster.leases.is_alive(now, brick)
                && cluster.knows_what_is_lost(brick)
                && cluster.status(brick).is_some_and(|status| {
                    let fits = |known: &&wire::CatchUp| known.group == view.group;
                    let known = status.groups.catching_up.iter().find(fits);
                    known.is_some_and(|known| known.number == view.number && known.done)
                })
        };
        // A stand-in of an earlier release does not know that it is one, and catches up.
        let done = view.catching_up();
        let done = done.iter().filter(|slot| is_done(view.members[usize::from(*slot)]));
        let done = done.fold(Slots::default(), Slots::with);
        if done.is_empty() {
            return false;
        }
        cluster.counters.count(Counter::BrickCaughtUpAndBecameCurrent);
        for slot in done.iter() {
            self.note_caught_up(now, view.group, view.members[usize::from(slot)]);
        }
        let next = following(view, |next| {
            next.current = Slots(next.current.0 | done.0);
            next.joining = Slots(next.joining.0 & !done.0);
        });
        views.begin_change(cluster, now, next, Vec::new(), fx);
        true
    }

    /// Members that are there again catch up.
    fn let_join(
        &mut self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        (view, joins): (&GroupView, &Joins),
        fx: &mut Vec<DirectoryEffect>,
    ) -> bool {
        if !can_go_on(cluster, now, view) {
            return false;
        }
        let (writers, stand_ins) = (view.writers(), view.stand_ins());
        let outside =
            (0..view.members.len() as u8).filter(|slot| !writers.has(*slot) || stand_ins.has(*slot));
        let may = |slot: &u8| {
            let member = view.member_at(*slot);
            member.is_some_and(|member| self.may_join(cluster, now, (view.group, joins), member))
        };
        let may = outside.filter(may).fold(Slots::default(), Slots::with);
        let next = following(view, |next| {
            next.close(may);
            next.joining = Slots(next.joining.0 | may.0);
        });
        change_joining(cluster, views, now, (view, next), Counter::BrickLetsItselfBeCaughtUp, fx)
    }

    fn may_join(
        &self,
        cluster: &Cluster,
        now: Time,
        (group, joins): (GroupId, &Joins),
        brick: BrickId,
    ) -> bool {
        self.is_able(cluster, now, brick)
            && cluster.records.bricks.get(&brick).is_some_and(|record| !record.lost.contains(&group))
            && !self.refuses(group, brick)
            && self.may_begin(cluster, now, brick, joins)
    }

    /// Whether a brick may join groups, whichever.
    pub(super) fn is_able(&self, cluster: &Cluster, now: Time, brick: BrickId) -> bool {
        let Some(record) = cluster.records.bricks.get(&brick) else { return false };
        let Some(lease) = cluster.leases.get(brick) else { return false };
        cluster.leases.is_alive(now, brick)
            && !record.evicted
            && !cluster.is_slow(brick)
            && !cluster.lags(brick)
            && record.disks == lease.status.disks
            && fullness(&lease.status) < full::JOIN
    }

    /// Whether the brick was to join the group lately, and did not answer.
    pub(super) fn refuses(&self, group: GroupId, brick: BrickId) -> bool {
        self.refused.contains_key(&(group, brick))
    }

    // ---- another brick in the slot ----

    /// The blocks of a brick that stays away are rebuilt onto another one.
    fn place_elsewhere(
        &mut self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        (view, joins): (&GroupView, &Joins),
        fx: &mut Vec<DirectoryEffect>,
    ) -> bool {
        if !can_go_on(cluster, now, view) {
            return false;
        }
        if let Some(next) = self.replace_sealed(cluster, now, (view, joins)) {
            cluster.counters.count(Counter::SlotGivenToAnotherBrick);
            views.begin_change(cluster, now, next, Vec::new(), fx);
            return true;
        }
        let outside = (0..view.members.len() as u8).filter(|slot| !view.writers().has(*slot));
        let is_gone = |slot: &u8| self.is_given_up(cluster, now, view.members[usize::from(*slot)]);
        let gone: Vec<u8> = outside.filter(is_gone).collect();
        for slot in gone {
            let Some(substitute) = self.substitute(cluster, now, (view, joins), slot) else { continue };
            cluster.counters.count(Counter::SlotGivenToAnotherBrick);
            let next = following(view, |next| {
                next.members[usize::from(slot)] = substitute;
                next.joining = next.joining.with(slot);
            });
            views.begin_change(cluster, now, next, Vec::new(), fx);
            return true;
        }
        false
    }

    /// Whether what a brick has is to be kept elsewhere.
    pub(super) fn is_given_up(&self, cluster: &Cluster, now: Time, brick: BrickId) -> bool {
        let after = Duration::from_secs(cluster.care().rebuild_after_s);
        let is_evicted = cluster.records.bricks.get(&brick).is_none_or(|record| record.evicted);
        is_evicted || self.away.get(&brick).is_some_and(|since| now.since(*since) >= after)
    }

    /// Who could take the slot for good, and has time to catch up.
    pub(super) fn substitute(
        &self,
        cluster: &Cluster,
        now: Time,
        (view, joins): (&GroupView, &Joins),
        slot: u8,
    ) -> Option<BrickId> {
        let has_time = |brick| self.may_begin(cluster, now, brick, joins);
        self.taker(cluster, now, (view, slot), &joins.spares, has_time)
    }

    /// Groups in which no other brick could take this one's place, however long it is waited for those that are busy.
    pub(super) fn without_taker(&self, cluster: &Cluster, now: Time, brick: BrickId) -> Vec<GroupId> {
        let joins = Joins::none();
        let is_stuck = |group: &GroupId| {
            let Some(view) = cluster.latest_view(*group).filter(|view| !view.stands_in(brick)) else {
                return false;
            };
            let Some(slot) = view.place_of(brick) else { return false };
            if view.sealed_at(slot).is_some() {
                return self.taker_of_sealed(cluster, now, (view, &joins), slot).is_none();
            }
            let left = without(view, |of| of == brick);
            self.substitute(cluster, now, (&left, &joins), slot).is_none()
        };
        cluster.groups_of(brick).filter(is_stuck).collect()
    }

    /// Whether a slot of the group is empty, or has a stand-in that cannot keep it, and nobody can take it.
    pub(super) fn is_unplaced(
        &self,
        cluster: &Cluster,
        now: Time,
        (view, joins): (&GroupView, &Joins),
    ) -> bool {
        let is_empty = (0..view.members.len() as u8).filter(|slot| !view.writers().has(*slot)).any(|slot| {
            self.is_given_up(cluster, now, view.members[usize::from(slot)])
                && self.substitute(cluster, now, (view, joins), slot).is_none()
        });
        let is_over = |(_, member): &(u8, BrickId)| self.is_given_up(cluster, now, *member);
        is_empty
            || view.sealed.iter().any(is_over) && self.replace_sealed(cluster, now, (view, joins)).is_none()
    }
}

/// In how many groups each brick catches up, or is about to: counted when it is first asked, and kept up with each change of a
/// view from then on. It is asked for each group that waits and each brick that could help; counting for each would take time
/// in proportion to the square of the groups.
#[derive(Default)]
pub(super) struct Joins {
    counts: OnceCell<BTreeMap<BrickId, usize>>,
    spares: Spares,
}

impl Joins {
    /// As if nobody caught up.
    pub(super) fn none() -> Joins {
        Joins { counts: OnceCell::from(BTreeMap::new()), spares: Spares::default() }
    }

    fn of(&self, cluster: &Cluster, now: Time, brick: BrickId) -> usize {
        self.counts.get_or_init(|| Joins::count(cluster, now)).get(&brick).copied().unwrap_or(0)
    }

    /// Groups that cannot go on before somebody is back do not count: they would keep the others waiting for ever.
    fn count(cluster: &Cluster, now: Time) -> BTreeMap<BrickId, usize> {
        // Who is to join by a view to come may be none of the view in force.
        let groups = cluster.records.groups.index().joining();
        let views = groups.filter_map(|group| cluster.latest_view(group));
        let joining =
            views.filter(|view| can_go_on(cluster, now, view)).flat_map(GroupView::catching_up_bricks);
        joining.fold(BTreeMap::new(), |mut counts, brick| {
            *counts.entry(brick).or_default() += 1;
            counts
        })
    }

    /// Another view of a group follows on this one.
    fn change(&mut self, before: &GroupView, next: Option<&GroupView>) {
        let Some(counts) = self.counts.get_mut() else { return };
        before.catching_up_bricks().for_each(|brick| {
            let count = counts.entry(brick).or_default();
            *count = count.saturating_sub(1);
        });
        let joining = next.into_iter().flat_map(GroupView::catching_up_bricks);
        joining.for_each(|brick| *counts.entry(brick).or_default() += 1);
    }
}

/// Whether the brick is there with other disks, which have nothing of the group: not with old ones, whose blocks would pass for
/// what is lost.
fn is_empty(cluster: &Cluster, now: Time, brick: BrickId, group: GroupId) -> bool {
    let Some(record) = cluster.records.bricks.get(&brick) else { return false };
    let run = cluster.records.runs.get(&brick);
    cluster.leases.is_alive(now, brick)
        && cluster.status(brick).is_some_and(|status| record.disks == status.disks)
        && run.is_some_and(|run| !run.is_behind && !run.behind.contains(&group))
}

/// Whether the brick is there, gets a lease, and has lost nothing but what it may have had of a group in which nobody has written.
fn can_begin(cluster: &Cluster, now: Time, brick: BrickId, group: GroupId) -> bool {
    let lost = cluster.records.bricks.get(&brick).map_or(&[][..], |record| &record.lost);
    cluster.leases.is_alive(now, brick)
        && cluster.takes_groups(brick)
        && cluster.knows_what_is_lost(brick)
        && lost.iter().all(|of| *of == group)
}

/// Whether the members that have every acknowledged write are all there: without one of them nobody can join.
pub(super) fn can_go_on(cluster: &Cluster, now: Time, view: &GroupView) -> bool {
    view.current_bricks().all(|(_, brick)| cluster.leases.is_alive(now, brick))
}

/// Begins `next`, in which others join than in `view`, and counts it as `counter`. Whether there is such a change.
fn change_joining(
    cluster: &mut Cluster,
    views: &mut Views,
    now: Time,
    (view, next): (&GroupView, GroupView),
    counter: Counter,
    fx: &mut Vec<DirectoryEffect>,
) -> bool {
    if (next.joining, &next.members) == (view.joining, &view.members) {
        return false;
    }
    cluster.counters.count(counter);
    views.begin_change(cluster, now, next, Vec::new(), fx);
    true
}

/// Writes wait for who is heard and is to leave: it leaves as soon as it has no lease.
fn ask_leases_back(cluster: &mut Cluster, now: Time, fx: &mut Vec<DirectoryEffect>) {
    let has_failed = |brick| cluster.status(brick).is_some_and(|status| status.failed.is_some());
    let is_to_leave = |brick: &BrickId| !cluster.takes_groups(*brick) || has_failed(*brick);
    let bricks: Vec<BrickId> = cluster.records.bricks.keys().copied().filter(is_to_leave).collect();
    for brick in bricks {
        if let Some(run) = cluster.leases.take_back(now, brick) {
            send(fx, NodeId::Brick(brick), Message::Yield { run });
        }
    }
}

/// The view that follows on `view` without the writers that go.
fn without(view: &GroupView, goes: impl Fn(BrickId) -> bool) -> GroupView {
    let gone = view.writing_bricks().filter(|(_, brick)| goes(*brick));
    let gone = gone.fold(Slots::default(), |gone, (slot, _)| gone.with(slot));
    following(view, |next| next.close(gone))
}
