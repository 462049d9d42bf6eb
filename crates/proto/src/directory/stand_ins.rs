//! Stand-ins: who takes the writes of a member that is away, from the view on that seals it.
//!
//! A member that is left out because it is dead or slow is *sealed*: what it has is all that was written before, it is asked for nothing more, and it
//! takes its slot again when it returns. Where a brick is to spare it *stands in*, from the same view on: it takes every write and fetches nothing that is
//! older, so that new writes are on as many disks as all others. It serves no reads. Only if the member stays away for
//! `rebuild_after` does it catch up and keep the slot. See `docs/decisions/2026-11-30-stand-ins.md`.
//!
//! The view that seals a member waits for the promises of its stand-ins. One that does not promise in time is done without ([`PATIENCE`]), and another
//! one is looked for once the view is in force.

use super::cluster::Cluster;
use super::event::DirectoryEffect;
use super::members::{Joins, Members, can_go_on};
use super::substitutes::Spares;
use super::views::{Views, following};
use base::{BrickId, Time};
use core::time::Duration;
use wire::GroupView;

/// A change of a view that waits for nobody but new stand-ins goes on without them after so long.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

impl Members {
    /// Names stand-ins for the members that a view to come leaves out, as far as there are bricks to spare. Where it has been asked for already
    /// they stay who they are: a change that is made anew costs time.
    pub(super) fn name_stand_ins(&self, cluster: &Cluster, now: Time, next: &mut GroupView, spares: &Spares) {
        if !cluster.config.stand_ins {
            return;
        }
        let record = cluster.records.groups.get(&next.group);
        let pending = record.and_then(|record| record.next.as_ref()).filter(|pending| {
            let new = pending.stand_ins().0 & !next.stand_ins().0;
            cluster.is_revocable(pending.group) && pending.writers().0 & !new == next.writers().0
        });
        let writers = next.writers();
        for slot in (0..next.members.len() as u8).filter(|slot| !writers.has(*slot)) {
            if !next.member_at(slot).is_some_and(|member| self.is_expected_back(cluster, now, member)) {
                continue;
            }
            let asked = pending.map(|pending| pending.stands_in_at(slot));
            let stand_in = match asked {
                Some(asked) => asked.filter(|brick| cluster.leases.is_alive(now, *brick)),
                None => self.taker(cluster, now, (next, slot), spares, |_| true),
            };
            stand_in.into_iter().for_each(|brick| next.seal(slot, brick));
        }
    }

    /// Whether the brick is known to be away, and may return.
    fn is_expected_back(&self, cluster: &Cluster, now: Time, brick: BrickId) -> bool {
        self.is_away(brick) && cluster.leases.is_settled(now, brick) && !self.is_given_up(cluster, now, brick)
    }

    /// Somebody stands in where a member is missing: when it was left out nobody was to spare, or did not answer.
    pub(super) fn let_stand_in(
        &self,
        cluster: &mut Cluster,
        views: &mut Views,
        now: Time,
        (view, spares): (&GroupView, &Spares),
        fx: &mut Vec<DirectoryEffect>,
    ) -> bool {
        if !can_go_on(cluster, now, view) || self.was_refused(view.group) {
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

    /// The view in which a member that was sealed and is given up has no part any more: who stands in for it has the slot for good and catches
    /// up, or whom an operator has named.
    pub(super) fn replace_sealed(
        &self,
        cluster: &Cluster,
        now: Time,
        (view, joins): (&GroupView, &Joins),
    ) -> Option<GroupView> {
        let given_up = |(_, member): &&(u8, BrickId)| self.is_given_up(cluster, now, *member);
        view.sealed.iter().filter(given_up).find_map(|(slot, member)| {
            let stand_in = view.stands_in_at(*slot)?;
            let wanted = cluster.records.bricks.get(member).and_then(|record| record.substitute);
            let taker = match wanted {
                Some(wanted) if wanted != stand_in => {
                    let closed = following(view, |next| next.close(wire::Slots::default().with(*slot)));
                    self.substitute(cluster, now, (&closed, joins), *slot)?
                }
                _ => stand_in,
            };
            let has_time = self.is_able(cluster, now, taker) && self.may_begin(cluster, now, taker, joins);
            has_time.then(|| {
                following(view, |next| {
                    next.keep_stand_in(*slot);
                    next.members.get_mut(usize::from(*slot)).into_iter().for_each(|of| *of = taker);
                })
            })
        })
    }
}

/// How many stand in for others from `next` on, and how many members that were sealed take their slots again.
pub(super) fn named_and_relieved(before: &GroupView, next: &GroupView) -> (usize, usize) {
    let is_new = |(slot, _): &&(u8, BrickId)| before.stands_in_at(*slot) != next.stands_in_at(*slot);
    let is_back = |(slot, member): &&(u8, BrickId)| {
        next.writers().has(*slot) && next.members.get(usize::from(*slot)) == Some(member)
    };
    (next.sealed.iter().filter(is_new).count(), before.sealed.iter().filter(is_back).count())
}
