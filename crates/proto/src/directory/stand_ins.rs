//! Stand-ins: who takes the writes of a member that is away, from the view on that seals it.
//!
//! A member that is left out because it is dead or slow is *sealed*: what it has is all that was written before, it is asked for nothing more, and it
//! takes its slot again when it returns. Where a brick is to spare it *stands in*, from the same view on: it takes every write, so that new
//! writes have their full redundancy, and fetches nothing that is older. It serves no reads. Only if the member stays away for
//! `rebuild_after` does it catch up and keep the slot. See `docs/decisions/2026-11-30-stand-ins.md`.
//!
//! The view that seals a member waits for its stand-ins too: each is durable there before the view begins. One that does not promise
//! in time is done without ([`PATIENCE`]), and another one is looked for once the view is in force.

use super::cluster::Cluster;
use super::event::DirectoryEffect;
use super::members::{Joins, Members, can_go_on};
use super::views::{Views, following};
use base::{BrickId, Time};
use core::time::Duration;
use wire::{GroupView, Slots};

/// For so long the change of a view waits for nobody but stand-ins.
pub(super) const PATIENCE: Duration = Duration::from_millis(150);

impl Members {
    /// Names stand-ins for the members that a view to come leaves out, as far as there are bricks to spare. Where it has been asked for already
    /// they stay who they are: a change that is made anew costs time.
    pub(super) fn name_stand_ins(&self, cluster: &Cluster, now: Time, next: &mut GroupView) {
        if !cluster.config.stand_ins {
            return;
        }
        let record = cluster.records.groups.get(&next.group);
        let pending = record.and_then(|record| record.next.as_ref()).filter(|pending| {
            cluster.is_revocable(pending.group)
                && pending.writers().0 & !pending.stand_ins().0 == next.writers().0
        });
        let writers = next.writers();
        for slot in (0..next.members.len() as u8).filter(|slot| !writers.has(*slot)) {
            let Some(member) = next.member_at(slot).filter(|member| self.is_missed(cluster, now, *member))
            else {
                continue;
            };
            let asked = pending.map(|pending| pending.stands_in_at(slot));
            let stand_in = match asked {
                Some(asked) => asked.filter(|brick| cluster.leases.is_alive(now, *brick)),
                None => self.substitute(cluster, now, (next, &Joins::none()), slot),
            };
            if let Some(brick) = stand_in.filter(|brick| *brick != member) {
                next.seal(slot, brick);
            }
        }
    }

    /// Whether the brick is away, and may return.
    fn is_missed(&self, cluster: &Cluster, now: Time, brick: BrickId) -> bool {
        self.is_away(brick) && !self.is_given_up(cluster, now, brick)
    }

    /// Somebody stands in where a member is missing: when it was left out nobody was to spare, or did not answer.
    pub(super) fn let_stand_in(
        &self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        view: &GroupView,
        fx: &mut Vec<DirectoryEffect>,
    ) -> bool {
        if !can_go_on(cluster, now, view) || self.has_refused(view.group) {
            return false;
        }
        let mut next = following(view, |_| {});
        self.name_stand_ins(cluster, now, &mut next);
        if next.sealed == view.sealed {
            return false;
        }
        views.begin_change(cluster, now, next, Vec::new(), fx);
        true
    }

    /// Members that were sealed and are given up: who stands in for them has the slot for good, and catches up.
    pub(super) fn keep_stand_ins(
        &self,
        cluster: &Cluster,
        now: Time,
        (view, joins): (&GroupView, &Joins),
    ) -> Option<GroupView> {
        let (slot, _) = view.sealed.iter().copied().find(|(slot, member)| {
            self.is_given_up(cluster, now, *member)
                && view.members.get(usize::from(*slot)).is_some_and(|brick| {
                    cluster.leases.is_alive(now, *brick) && self.may_begin(cluster, now, *brick, joins)
                })
        })?;
        Some(following(view, |next| next.keep_stand_in(slot)))
    }
}

/// How many stand in for others from `next` on, and how many members that were sealed take their slots again.
pub(super) fn changes(before: &GroupView, next: &GroupView) -> (usize, usize) {
    let is_new = |(slot, _): &&(u8, BrickId)| before.stands_in_at(*slot) != next.stands_in_at(*slot);
    let is_back = |(slot, member): &&(u8, BrickId)| {
        next.writers().has(*slot) && next.members.get(usize::from(*slot)) == Some(member)
    };
    (next.sealed.iter().filter(is_new).count(), before.sealed.iter().filter(is_back).count())
}

/// Whether a change waits for nobody but stand-ins.
pub(super) fn are_all(next: &GroupView, missing: Slots) -> bool {
    !missing.is_empty() && missing.and(next.stand_ins()) == missing
}
