//! Which brick takes a slot of a group: for good, in place of a member that stays away, or as its stand-in.

use super::cluster::Cluster;
use super::members::{Members, full, fullness};
use base::{BrickId, Time};
use core::cell::OnceCell;
use rules::layout::placement::{Candidate, Pool};
use wire::GroupView;

/// All bricks, and how much room those have that could take a slot of any group. The list is made once for each look at all groups, when it is first needed.
#[derive(Debug, Default)]
pub(super) struct Spares(OnceCell<Pool>);

impl Spares {
    fn pool(&self, members: &Members, cluster: &Cluster, now: Time) -> &Pool {
        self.0.get_or_init(|| {
            let bricks = cluster.records.bricks.iter().map(|(brick, record)| Candidate {
                id: *brick,
                weight: members.spare_bytes(cluster, now, *brick).unwrap_or(0),
                labels: record.labels.clone(),
            });
            let domains: Vec<&str> = cluster.config.domains.iter().map(String::as_str).collect();
            Pool::new(&bricks.collect::<Vec<_>>(), &domains)
        })
    }
}

impl Members {
    /// The brick that takes the slot now. `None` if no brick can, or if one is to be waited for that is only busy: the one that an operator named, or all whose failure domains are the
    /// least crowded.
    pub(super) fn taker(
        &self,
        cluster: &Cluster,
        now: Time,
        (view, slot): (&GroupView, u8),
        spares: &Spares,
        has_time: impl Fn(BrickId) -> bool,
    ) -> Option<BrickId> {
        let former = cluster.records.groups.get(&view.group).map(|record| record.former.as_slice())?;
        let fits = |brick: BrickId| {
            !view.has_part(brick)
                && former.iter().all(|(of, _)| *of != brick)
                && !self.refuses(view.group, brick)
        };
        let wanted = cluster.records.bricks.get(view.members.get(usize::from(slot))?);
        if let Some(wanted) = wanted.and_then(|record| record.substitute) {
            if self.spare_bytes(cluster, now, wanted).is_some() && fits(wanted) && has_time(wanted) {
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
        let group = (view.volume, view.group.0 as u32);
        spares.pool(self, cluster, now).substitute(group, &stay, fits, has_time)
    }

    /// How much room a brick has for groups of others; `None` if it may take none.
    fn spare_bytes(&self, cluster: &Cluster, now: Time, brick: BrickId) -> Option<u64> {
        let (record, status) = (cluster.records.bricks.get(&brick)?, cluster.status(brick)?);
        let may =
            self.is_able(cluster, now, brick) && record.lost.is_empty() && fullness(status) < full::WARN;
        may.then(|| status.space.capacity_bytes.saturating_sub(status.space.used_bytes))
    }
}
