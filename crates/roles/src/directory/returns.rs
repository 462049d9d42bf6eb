//! How much of what it missed a brick that returned has caught up with, in percent. The number does not fall when a group is compared again or a
//! further group begins. It starts anew when the brick has been away again. Of a brick that takes the places of others nothing is said: it is
//! not known how many there will be.

use super::cluster::Cluster;
use base::BrickId;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
struct Return {
    /// The most groups in which it lacked something since it returned.
    lacked: usize,
    percent: u8,
}

/// The bricks that are up and lack something that they missed.
#[derive(Debug, Default)]
pub(super) struct Returns(BTreeMap<BrickId, Return>);

impl Returns {
    /// Takes in how far bricks say that they are. `is_here` says whether a brick is one that may catch up.
    pub(super) fn note(&mut self, cluster: &Cluster, is_here: impl Fn(BrickId) -> bool) {
        let index = cluster.records.groups.index();
        for brick in cluster.records.bricks.keys().copied() {
            let waiting = index.count_of_outsider(brick);
            let lacks = waiting + index.count_of_catching_up(brick);
            if lacks == 0 || !is_here(brick) {
                self.0.remove(&brick);
                continue;
            }
            if waiting > 0 {
                self.0.entry(brick).or_insert(Return { lacked: 0, percent: 0 });
            }
            let Some(known) = self.0.get_mut(&brick) else { continue };
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
