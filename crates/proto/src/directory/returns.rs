//! How much of what it missed a brick that returned has caught up with, in percent. The number does not fall when a group is compared again or a
//! further group begins. It starts anew when the brick has been away again.

use super::cluster::Cluster;
use base::BrickId;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
struct Return {
    /// The most groups in which it lacked something since it returned.
    lacked: usize,
    percent: u8,
}

/// The bricks that are up and lack something.
#[derive(Debug, Default)]
pub(super) struct Returns(BTreeMap<BrickId, Return>);

impl Returns {
    /// Takes in how far bricks say that they are. `is_here` says whether a brick is one that may catch up.
    pub(super) fn note(&mut self, cluster: &Cluster, is_here: impl Fn(BrickId) -> bool) {
        let index = cluster.records.groups.index();
        let mut joins: BTreeMap<BrickId, usize> = BTreeMap::new();
        for view in index.joining().filter_map(|group| cluster.active(group)) {
            let joining = view.joining_bricks().filter(|(_, brick)| view.is_catching_up(*brick));
            joining.for_each(|(_, brick)| *joins.entry(brick).or_default() += 1);
        }
        for brick in cluster.records.bricks.keys().copied() {
            let lacks = index.count_of_outsider(brick) + joins.get(&brick).copied().unwrap_or_default();
            if lacks == 0 || !is_here(brick) {
                self.0.remove(&brick);
                continue;
            }
            let known = self.0.entry(brick).or_default();
            known.lacked = known.lacked.max(lacks);
            let done = (known.lacked - lacks) as f64 + compared(cluster, brick);
            // The brick's report may be older than what the directory knows.
            let percent = (100.0 * done / known.lacked as f64).clamp(0.0, 99.0) as u8;
            known.percent = known.percent.max(percent);
        }
    }

    /// How much of what the brick lacked when it returned it has by now.
    pub(super) fn percent(&self, brick: BrickId) -> Option<u8> {
        self.0.get(&brick).map(|known| known.percent)
    }
}

/// What the brick has compared of the groups in which it catches up, as so many groups.
fn compared(cluster: &Cluster, brick: BrickId) -> f64 {
    let Some(status) = cluster.status(brick) else { return 0.0 };
    let part = |group: &wire::CatchUp| match (group.done, group.total_blocks) {
        (true, _) => 1.0,
        (false, 0) => 0.0,
        (false, total) => group.compared_blocks.min(total) as f64 / total as f64,
    };
    let is_under_way = |group: &&wire::CatchUp| {
        cluster
            .active(group.group)
            .is_some_and(|view| view.number == group.number && view.is_catching_up(brick))
    };
    status.groups.catching_up.iter().filter(is_under_way).map(part).sum()
}
