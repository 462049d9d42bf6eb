//! Which brick takes a slot of a group: for good, in place of a member that stays away, or as its stand-in.

use super::cluster::Cluster;
use super::members::{Members, full, fullness};
use crate::layout::placement::{self, Candidate, Pool};
use base::{BrickId, Time};
use core::cell::OnceCell;
use wire::GroupView;

/// The bricks that could take a slot of any group. The list is made once for each look at all groups, when it is first needed.
#[derive(Debug, Default)]
pub(super) struct Spares(OnceCell<Pool>);

impl Spares {
    fn pool(&self, members: &Members, cluster: &Cluster, now: Time, domains: &[&str]) -> &Pool {
        self.0.get_or_init(|| {
            let bricks = cluster.records.bricks.iter();
            let spare = bricks.filter_map(|(brick, record)| {
                let status = cluster.status(*brick)?;
                let may = members.is_able(cluster, now, *brick)
                    && record.lost.is_empty()
                    && fullness(status) < full::WARN;
                let weight = status.space.capacity_bytes.saturating_sub(status.space.used_bytes);
                may.then(|| Candidate { id: *brick, weight, labels: record.labels.clone() })
            });
            Pool::new(spare.collect(), domains)
        })
    }
}

impl Members {
    /// The brick that takes the slot, among those for which `may` is true. `None` if no brick can, or if the one that an operator named is to be waited for.
    pub(super) fn taker(
        &self,
        cluster: &Cluster,
        now: Time,
        (view, slot): (&GroupView, u8),
        spares: &Spares,
        may: impl Fn(BrickId) -> bool,
    ) -> Option<BrickId> {
        let former = cluster.records.groups.get(&view.group).map(|record| record.former.as_slice())?;
        let fits = |brick: BrickId| {
            !view.has_part(brick)
                && former.iter().all(|(of, _)| *of != brick)
                && !self.refuses(view.group, brick)
                && may(brick)
        };
        let domains: Vec<&str> = cluster.config.domains.iter().map(String::as_str).collect();
        let pool = spares.pool(self, cluster, now, &domains);
        let is_spare = |brick: BrickId| pool.all().binary_search_by_key(&brick, |spare| spare.id).is_ok();
        let wanted = cluster.records.bricks.get(view.members.get(usize::from(slot))?);
        if let Some(wanted) = wanted.and_then(|record| record.substitute) {
            if is_spare(wanted) && fits(wanted) {
                return Some(wanted);
            }
            // It is waited for as long as only its other groups keep it busy; where it cannot help another one does.
            let can_come = !view.has_part(wanted)
                && !self.is_away(wanted)
                && cluster.takes_groups(wanted)
                && cluster.status(wanted).is_some_and(|status| fullness(status) < full::WARN);
            if can_come {
                return None;
            }
        }
        let stay: Vec<BrickId> = view.writing_bricks().map(|(_, brick)| brick).collect();
        let staying = || {
            stay.iter().filter_map(|brick| {
                let labels = cluster.records.bricks.get(brick)?.labels.clone();
                Some(Candidate { id: *brick, weight: 0, labels })
            })
        };
        let draw = |of: &mut dyn Iterator<Item = &Candidate>| {
            let of = of.filter(|spare| fits(spare.id) && !stay.contains(&spare.id)).cloned();
            let candidates: Vec<Candidate> = staying().chain(of).collect();
            placement::substitute(view.volume, view.group.0 as u32, &stay, &candidates, &domains)
        };
        // A few of many are looked at, and all if none of these fits.
        draw(&mut pool.some(view.group.0))
            .or_else(|| pool.is_drawn_from().then(|| draw(&mut pool.all().iter()))?)
    }
}
