//! Who is in a group and in what capacity: who is left out, who may join and is promoted, who takes the place of a brick
//! that stays away.
//!
//! Who dies is left out on top of whatever change is under way. Everything else begins only from a view in force, so
//! that `current` grows only by members that took every write of the view before.

use super::{Directory, DirectoryEffect, Put};
use crate::layout::placement::{self, Candidate};
use base::{BrickId, GroupId, Time, ViewNumber};
use core::time::Duration;
use std::collections::BTreeSet;
use wire::{BrickStatus, GroupView, Slots};

/// The most groups in which a brick catches up at a time.
const JOINS_MAX: usize = 4;

/// For how many lengths of a lease a change waits for members that join, and how long one that did not answer may not.
const JOINER_LEASES: u64 = 2;
const REFUSED: Duration = Duration::from_secs(30);

/// How full a disk may be, in percent of its capacity.
///
/// An operator is warned above `WARN`, and above it a brick gets no further groups; above `JOIN` it may not join groups
/// that it left; above `DROP` it stops catching up. The store itself refuses writes above 95.
pub(super) mod full {
    pub(crate) const WARN: u64 = 85;
    pub(crate) const JOIN: u64 = 90;
    pub(crate) const DROP: u64 = 93;
}

/// How full a brick's fullest disk is, in percent: any block may have to go there.
pub(super) fn fullness(status: &BrickStatus) -> u64 {
    u64::from(status.fullest_percent)
}

impl Directory {
    /// Looks at all groups: who must leave, and who may come.
    pub(super) fn keep_members(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        self.keep_slow(now, fx);
        self.note_absences(now);
        self.forget_what_was_left(fx);
        self.leave_out_the_dead(now, fx);
        self.leave_out_the_slow(now, fx);
        self.go_on_without_joiners(now, fx);
        for group in self.records.groups.keys().copied().collect::<Vec<_>>() {
            if self.changes.contains_key(&group) {
                continue;
            }
            let Some(view) = self.active(group).cloned() else { continue };
            let _ = self.promote(now, &view, fx)
                || self.drop_the_full(now, &view, fx)
                || self.let_join(now, &view, fx)
                || self.place_elsewhere(now, &view, fx);
        }
    }

    /// Who is left out for being slow is away like one that is silent: the redundancy that it cost is made good elsewhere
    /// when it lasts.
    fn note_absences(&mut self, now: Time) {
        for brick in self.records.bricks.keys() {
            if self.leases.is_alive(now, *brick) && !self.is_slow(*brick) {
                self.away.remove(brick);
            } else {
                self.away.entry(*brick).or_insert(now);
            }
        }
    }

    // ---- leaving ----

    /// Begins changes to leave out bricks that cannot believe in their views any more.
    fn leave_out_the_dead(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        let bricks = &self.records.bricks;
        let is_evicted = |brick| bricks.get(&brick).is_some_and(|record| record.evicted);
        let dead = self.leases.dead(now, bricks.keys().copied(), is_evicted);
        let evicted: BTreeSet<BrickId> =
            dead.iter().copied().filter(|brick| self.leases.is_alive(now, *brick)).collect();
        let lost: Vec<(BrickId, GroupId)> = bricks
            .iter()
            .flat_map(|(brick, record)| record.lost.iter().map(|group| (*brick, *group)))
            .collect();
        if dead.is_empty() && lost.is_empty() {
            return;
        }
        for group in self.records.groups.keys().copied().collect::<Vec<_>>() {
            let Some(from) = self.latest_view(group).cloned() else { continue };
            let goes = |brick| dead.contains(&brick) || lost.contains(&(brick, group));
            let must_go = |brick| goes(brick) && !evicted.contains(&brick);
            // Who is evicted goes only if the group can bear it beside those that are lost.
            let next = [without(&from, goes), without(&from, must_go)];
            let is_better = |next: &GroupView| next.writers() != from.writers() && self.is_viable(next);
            let Some(next) = next.into_iter().find(is_better) else { continue };
            self.counters.count("view change begun");
            if !from.joining.is_empty() && next.joining != from.joining {
                self.counters.count("joining brick lost");
            }
            let mut puts = Vec::new();
            for (brick, _) in lost.iter().filter(|(brick, of)| *of == group && !next.is_writer(*brick)) {
                puts.extend(self.forget_lost(*brick, group));
            }
            self.begin_change(now, next, puts, fx);
        }
    }

    /// Begins changes to leave out bricks that are slow and have no lease any more. They are alive and have every write: so
    /// each such change waits until no other is under way, and may be revoked until those that remain have promised.
    fn leave_out_the_slow(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        let bricks = self.records.bricks.keys().copied();
        let slow: BTreeSet<BrickId> =
            bricks.filter(|brick| self.is_slow(*brick) && self.leases.has_ended(now, *brick)).collect();
        if slow.is_empty() {
            return;
        }
        for group in self.records.groups.keys().copied().collect::<Vec<_>>() {
            let Some(from) = self.active(group).filter(|_| !self.changes.contains_key(&group)) else {
                continue;
            };
            let next = without(from, |brick| slow.contains(&brick));
            if next.writers() == from.writers() || !self.is_viable(&next) {
                continue;
            }
            self.counters.count("view change begun");
            self.counters.count("slow member left out");
            self.begin_revocable(now, next, fx);
        }
    }

    /// A change that waits for nobody but members that join goes on without them: whoever cannot promise holds up all.
    fn go_on_without_joiners(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        let patience = Duration::from_nanos(JOINER_LEASES * self.config.lease_ns);
        self.refused.retain(|_, until| *until > now);
        let stuck: Vec<(GroupView, Slots)> = self
            .changes
            .values()
            .filter(|change| now.since(change.began) > patience)
            .map(|change| (change.next.clone(), change.missing()))
            .filter(|(next, missing)| !missing.is_empty() && missing.and(next.joining) == *missing)
            .collect();
        for (view, missing) in stuck {
            self.counters.count("view change went on without a joining brick");
            for slot in missing.iter() {
                self.refused.insert((view.group, view.members[usize::from(slot)]), now + REFUSED);
            }
            // A change that is revoked for that begins again by itself.
            let from = if self.is_revocable(view.group) { self.active(view.group).cloned() } else { None };
            let from = from.unwrap_or(view);
            let next = following(&from, |next| next.joining = Slots(from.joining.0 & !missing.0));
            self.begin_change(now, next, Vec::new(), fx);
        }
    }

    /// A brick with exchanged disks may have been on its way out of a group already, for another reason.
    fn forget_what_was_left(&mut self, fx: &mut Vec<DirectoryEffect>) {
        let lost =
            self.records.bricks.iter().flat_map(|(brick, record)| {
                record.lost.iter().map(|group| (*brick, *group)).collect::<Vec<_>>()
            });
        let has_left = |(brick, group): &(BrickId, GroupId)| {
            self.latest_view(*group).is_none_or(|view| !view.is_writer(*brick))
        };
        for (brick, group) in lost.filter(has_left).collect::<Vec<_>>() {
            let puts = self.forget_lost(brick, group).into_iter().collect();
            self.put(puts, Vec::new(), fx);
        }
    }

    /// The brick with the exchanged disks is no writer of the group any more.
    fn forget_lost(&mut self, brick: BrickId, group: GroupId) -> Option<Put> {
        self.records.bricks.get_mut(&brick)?.lost.retain(|of| *of != group);
        Some(self.records.put_brick(brick))
    }

    /// Whether the members left hold every acknowledged write.
    fn is_viable(&self, view: &GroupView) -> bool {
        self.geometry(view.volume).is_some_and(|geometry| {
            let lost = view.members.len() as u8 - view.current.len();
            lost <= geometry.layout().tolerates()
        })
    }

    /// Whether the groups of a brick could bear its leaving beside those that are silent; if not, one that could not.
    pub(super) fn group_that_needs(&self, now: Time, brick: BrickId) -> Option<GroupId> {
        let goes = |of| of == brick || !self.leases.is_alive(now, of);
        self.records.groups.keys().copied().find(|group| {
            self.latest_view(*group)
                .is_some_and(|view| view.is_current(brick) && !self.is_viable(&without(view, goes)))
        })
    }

    /// Stops catching up where that would fill the disk.
    fn drop_the_full(&mut self, now: Time, view: &GroupView, fx: &mut Vec<DirectoryEffect>) -> bool {
        let is_full = |brick| self.status(brick).is_some_and(|status| fullness(status) >= full::DROP);
        let joining = view.joining.iter().filter(|slot| is_full(view.members[usize::from(*slot)]));
        let joining = joining.fold(view.joining, Slots::without);
        if joining == view.joining {
            return false;
        }
        self.counters.count("catching up stopped for lack of room");
        self.begin_change(now, following(view, |next| next.joining = joining), Vec::new(), fx);
        true
    }

    // ---- coming ----

    /// Members that have caught up under this very view become current.
    fn promote(&mut self, now: Time, view: &GroupView, fx: &mut Vec<DirectoryEffect>) -> bool {
        let is_done = |brick: BrickId| {
            self.leases.is_alive(now, brick)
                && self.status(brick).is_some_and(|status| {
                    let fits = |known: &&wire::CatchUp| known.group == view.group;
                    let known = status.catching_up.iter().find(fits);
                    known.is_some_and(|known| known.number == view.number && known.done)
                })
        };
        let done = view.joining.iter().filter(|slot| is_done(view.members[usize::from(*slot)]));
        let done = done.fold(Slots::default(), Slots::with);
        if done.is_empty() {
            return false;
        }
        self.counters.count("brick caught up and became current");
        let next = following(view, |next| {
            next.current = Slots(next.current.0 | done.0);
            next.joining = Slots(next.joining.0 & !done.0);
        });
        self.begin_change(now, next, Vec::new(), fx);
        true
    }

    /// Members that are there again catch up.
    fn let_join(&mut self, now: Time, view: &GroupView, fx: &mut Vec<DirectoryEffect>) -> bool {
        let outside = (0..view.members.len() as u8).filter(|slot| !view.writers().has(*slot));
        let may = outside.filter(|slot| self.may_join(now, view.group, view.members[usize::from(*slot)]));
        let joining = may.fold(view.joining, Slots::with);
        if joining == view.joining {
            return false;
        }
        self.counters.count("brick lets itself be caught up");
        self.begin_change(now, following(view, |next| next.joining = joining), Vec::new(), fx);
        true
    }

    fn may_join(&self, now: Time, group: GroupId, brick: BrickId) -> bool {
        let Some(record) = self.records.bricks.get(&brick) else { return false };
        let Some(lease) = self.leases.get(brick) else { return false };
        self.leases.is_alive(now, brick)
            && !record.evicted
            && !self.is_slow(brick)
            && record.disks == lease.status.disks
            && !record.lost.contains(&group)
            && fullness(&lease.status) < full::JOIN
            && !self.refused.contains_key(&(group, brick))
            && self.joins(brick) < JOINS_MAX
    }

    /// In how many groups the brick catches up, or is about to.
    fn joins(&self, brick: BrickId) -> usize {
        let groups = self.records.groups.keys();
        groups.filter_map(|group| self.latest_view(*group)).filter(|view| view.is_joining(brick)).count()
    }

    // ---- another brick in the slot ----

    /// The blocks of a brick that stays away are rebuilt onto another one.
    fn place_elsewhere(&mut self, now: Time, view: &GroupView, fx: &mut Vec<DirectoryEffect>) -> bool {
        let outside = (0..view.members.len() as u8).filter(|slot| !view.writers().has(*slot));
        let gone: Vec<u8> = outside.filter(|slot| self.is_given_up(now, view, *slot)).collect();
        for slot in gone {
            let Some(substitute) = self.substitute(now, view, slot) else { continue };
            let former = view.members[usize::from(slot)];
            self.counters.count("slot given to another brick");
            let next = following(view, |next| {
                next.members[usize::from(slot)] = substitute;
                next.joining = next.joining.with(slot);
            });
            if let Some(record) = self.records.groups.get_mut(&view.group) {
                record.former.push((former, next.number));
            }
            self.begin_change(now, next, Vec::new(), fx);
            return true;
        }
        false
    }

    fn is_given_up(&self, now: Time, view: &GroupView, slot: u8) -> bool {
        let brick = view.members[usize::from(slot)];
        let after = Duration::from_secs(self.care().rebuild_after_s);
        let is_evicted = self.records.bricks.get(&brick).is_none_or(|record| record.evicted);
        is_evicted || self.away.get(&brick).is_some_and(|since| now.since(*since) >= after)
    }

    /// Who could take the slot.
    pub(super) fn substitute(&self, now: Time, view: &GroupView, slot: u8) -> Option<BrickId> {
        let former = self.records.groups.get(&view.group).map(|record| record.former.as_slice())?;
        let may = |brick: BrickId, status: &BrickStatus| {
            !view.members.contains(&brick)
                && former.iter().all(|(of, _)| *of != brick)
                && fullness(status) < full::WARN
                && self.may_join(now, view.group, brick)
        };
        let wanted = self.records.bricks.get(&view.members[usize::from(slot)]);
        if let Some(wanted) = wanted.and_then(|record| record.substitute) {
            if self.status(wanted).is_some_and(|status| may(wanted, status)) {
                return Some(wanted);
            }
            // It is waited for as long as only its other groups keep it busy; where it cannot help another one does.
            let can_come = !view.members.contains(&wanted)
                && !self.away.contains_key(&wanted)
                && self.takes_groups(wanted)
                && self.status(wanted).is_some_and(|status| fullness(status) < full::WARN);
            if can_come {
                return None;
            }
        }
        let candidates: Vec<Candidate> = self
            .records
            .bricks
            .iter()
            .map(|(brick, record)| {
                let free = |status: &BrickStatus| status.capacity_bytes.saturating_sub(status.used_bytes);
                let status = self.status(*brick).filter(|status| may(*brick, status));
                Candidate { id: *brick, weight: status.map_or(0, free), labels: record.labels.clone() }
            })
            .collect();
        let stay: Vec<BrickId> = view.writing_bricks().map(|(_, brick)| brick).collect();
        let domains: Vec<&str> = self.config.domains.iter().map(String::as_str).collect();
        placement::substitute(view.volume, view.group.0 as u32, &stay, &candidates, &domains)
    }

    /// Whether a slot of the group is empty and nobody can take it.
    pub(super) fn is_unplaced(&self, now: Time, view: &GroupView) -> bool {
        (0..view.members.len() as u8)
            .filter(|slot| !view.writers().has(*slot))
            .any(|slot| self.is_given_up(now, view, slot) && self.substitute(now, view, slot).is_none())
    }

    /// What the brick said last.
    pub(super) fn status(&self, brick: BrickId) -> Option<&BrickStatus> {
        self.leases.get(brick).map(|lease| &lease.status)
    }

    /// Bricks that say that they have left groups are no longer asked to.
    pub(super) fn on_left(
        &mut self,
        brick: BrickId,
        left: &[(GroupId, ViewNumber)],
        fx: &mut Vec<DirectoryEffect>,
    ) {
        for (group, number) in left {
            let Some(record) = self.records.groups.get_mut(group) else { continue };
            let before = record.former.len();
            record.former.retain(|(of, since)| *of != brick || since > number);
            if record.former.len() < before {
                let put = self.records.put_group(*group);
                self.put(vec![put], Vec::new(), fx);
            }
        }
    }

    /// A brick came with other disks than it is known with. While it may still believe in its views it gets no lease;
    /// then it counts as having lost its blocks in all groups that it writes. True as long as it gets no lease.
    pub(super) fn on_disks(
        &mut self,
        now: Time,
        brick: BrickId,
        disks: &[u64],
        fx: &mut Vec<DirectoryEffect>,
    ) -> bool {
        let Some(record) = self.records.bricks.get(&brick) else { return true };
        if disks.is_empty() || record.disks == disks {
            // Until it has left the groups whose blocks it lost, nothing that it says of them can be trusted.
            return !record.lost.is_empty();
        }
        let is_first = record.disks.is_empty();
        if !is_first && !self.leases.has_ended(now, brick) {
            return true;
        }
        let groups = self.records.groups.keys().copied();
        let writes: BTreeSet<GroupId> = groups
            .filter(|group| {
                let record = &self.records.groups[group];
                record.active.iter().chain(&record.next).any(|view| view.is_writer(brick))
            })
            .collect();
        let record = self.records.bricks.get_mut(&brick).expect("looked up above");
        record.disks = disks.to_vec();
        if !is_first {
            record.lost = writes.into_iter().collect();
            self.counters.count("brick came with other disks");
        }
        let has_lost = !record.lost.is_empty();
        let put = self.records.put_brick(brick);
        self.put(vec![put], Vec::new(), fx);
        has_lost
    }
}

/// The view that follows on `view`, with a change.
pub(super) fn following(view: &GroupView, change: impl FnOnce(&mut GroupView)) -> GroupView {
    let mut next = view.clone();
    next.number = ViewNumber(view.number.0 + 1);
    change(&mut next);
    next
}

/// The view that follows on `view` without the writers that go.
fn without(view: &GroupView, goes: impl Fn(BrickId) -> bool) -> GroupView {
    let gone = view.writing_bricks().filter(|(_, brick)| goes(*brick));
    let gone = gone.fold(Slots::default(), |gone, (slot, _)| gone.with(slot));
    following(view, |next| {
        next.current = Slots(view.current.0 & !gone.0);
        next.joining = Slots(view.joining.0 & !gone.0);
    })
}
