//! Stand-ins: bricks that take the writes of a member that is away.
//!
//! When a dead or slow member is left out and a brick is to spare, the new view *seals* the member and names that brick as its *stand-in*. The
//! stand-in takes every write from that view on, does not catch up, and serves no reads. The sealed member is asked for nothing; it takes its slot again when it
//! returns. If it is evicted or stays away for `rebuild_after`, the stand-in catches up and keeps the slot, unless an operator named another brick. See
//! `docs/decisions/2026-11-30-stand-ins.md`.
//!
//! The view that seals a member waits for the promises of its stand-ins, but no longer than [`STAND_IN_PATIENCE`](super::change::STAND_IN_PATIENCE) for them alone. If one did not promise in time,
//! the directory names no other for this group for 30 s.

use super::cluster::Cluster;
use super::event::DirectoryEffect;
use super::members::{Joins, Members, can_go_on};
use super::substitutes::Spares;
use super::views::{Views, following};
use base::{BrickId, Time};
use wire::{GroupView, Slots};

impl Members {
    /// Names a stand-in for each member that is away and has no writer in its slot in `next`, if a brick is to spare. If a change that may be revoked asks
    /// bricks to stand in already, the same ones are named again: asking others would begin the change anew.
    pub(super) fn name_stand_ins(&self, cluster: &Cluster, now: Time, next: &mut GroupView, spares: &Spares) {
        if !cluster.config.stand_ins {
            return;
        }
        let record = cluster.records.groups.get(&next.group);
        let pending = record.and_then(|record| record.next.as_ref());
        let pending = pending.filter(|pending| cluster.is_revocable(pending.group));
        let (writers, stand_ins) = (next.writers(), next.stand_ins());
        let is_the_same = |pending: &GroupView| {
            let new = pending.stand_ins().0 & !stand_ins.0;
            pending.writers().0 & !new == writers.0
        };
        for slot in (0..next.members.len() as u8).filter(|slot| !writers.has(*slot)) {
            if !next.member_at(slot).is_some_and(|member| self.is_expected_back(cluster, now, member)) {
                continue;
            }
            let member = next.member_at(slot);
            let of_pending = pending.filter(|pending| pending.sealed_at(slot) == member);
            let asked = of_pending.and_then(|pending| pending.stands_in_at(slot));
            let asked = asked.filter(|brick| !next.has_part(*brick) && cluster.leases.is_alive(now, *brick));
            // A change that goes on without one asks no other.
            let stand_in = match asked {
                None if !pending.is_some_and(is_the_same) => {
                    self.taker(cluster, now, (next, slot), spares, |_| true)
                }
                asked => asked,
            };
            stand_in.into_iter().for_each(|brick| next.seal(slot, brick));
        }
    }

    /// Whether the brick is known to be away, and may return.
    fn is_expected_back(&self, cluster: &Cluster, now: Time, brick: BrickId) -> bool {
        self.is_away(brick) && cluster.leases.is_settled(now, brick) && !self.is_given_up(cluster, now, brick)
    }

    /// Names stand-ins in a view in force that lacks some: no brick was to spare when the member was left out, or the one that was asked did not answer.
    pub(super) fn let_stand_in(
        &self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        (view, spares): (&GroupView, &Spares),
        fx: &mut Vec<DirectoryEffect>,
    ) -> bool {
        let is_covered = view.writers() == Slots::all(view.members.len() as u8);
        if !cluster.config.stand_ins
            || is_covered
            || !can_go_on(cluster, now, view)
            || self.was_refused(view.group)
        {
            return false;
        }
        let mut next = following(view, |_| {});
        self.name_stand_ins(cluster, now, &mut next, spares);
        if next.sealed == view.sealed {
            return false;
        }
        views.begin_change(cluster, now, next, Vec::new(), fx);
        true
    }

    /// The view that removes a sealed member that is evicted or has stayed away too long. Its stand-in gets the slot for good and catches up; or the brick
    /// that an operator named, or another one if the stand-in cannot.
    pub(super) fn replace_sealed(
        &self,
        cluster: &Cluster,
        now: Time,
        (view, joins): (&GroupView, &Joins),
    ) -> Option<GroupView> {
        let given_up = |(_, member): &&(u8, BrickId)| self.is_given_up(cluster, now, *member);
        view.sealed.iter().filter(given_up).find_map(|(slot, _)| {
            let taker = self.taker_of_sealed(cluster, now, (view, joins), *slot)?;
            self.may_begin(cluster, now, taker, joins).then(|| {
                following(view, |next| {
                    next.keep_stand_in(*slot);
                    next.members[usize::from(*slot)] = taker;
                })
            })
        })
    }

    /// Who takes the slot of a sealed member for good.
    pub(super) fn taker_of_sealed(
        &self,
        cluster: &Cluster,
        now: Time,
        (view, joins): (&GroupView, &Joins),
        slot: u8,
    ) -> Option<BrickId> {
        let (member, stand_in) = (view.sealed_at(slot)?, view.stands_in_at(slot)?);
        let wanted = cluster.records.bricks.get(&member).and_then(|record| record.substitute);
        let keeps = wanted.is_none_or(|wanted| wanted == stand_in || self.is_away(wanted));
        if keeps && self.is_able(cluster, now, stand_in) {
            return Some(stand_in);
        }
        let closed = following(view, |next| next.close(Slots::default().with(slot)));
        self.substitute(cluster, now, (&closed, joins), slot)
    }
}
