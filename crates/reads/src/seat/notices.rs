//! Who is told that what they asked for waits. Whoever is not told takes silence for a slow disk.

use base::{NodeId, Time};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::OPERATIONS_MAX;

/// How often askers are told, as long as they wait.
pub const NOTICE_EVERY: Duration = Duration::from_millis(100);
/// Who begins to wait is told at once, but all together no more often than this.
const NOTICE_MIN: Duration = Duration::from_millis(5);

/// What one asker is told: which of its questions wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    pub to: NodeId,
    pub operations: Vec<u64>,
}

/// When notices are due.
#[derive(Debug, Default)]
pub(super) struct Notices {
    told: Option<Time>,
    due: Option<Time>,
}

impl Notices {
    /// Something begins to wait.
    pub(super) fn asked(&mut self, now: Time) {
        let soon = self.told.map_or(now, |told| now.max(told + NOTICE_MIN));
        self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Nobody is told before the next time.
    pub(super) fn put_off(&mut self, now: Time) {
        self.due = Some(now + NOTICE_EVERY);
    }

    /// All that wait are told.
    pub(super) fn take(&mut self, now: Time, waiting: impl Iterator<Item = (NodeId, u64)>) -> Vec<Notice> {
        (self.told, self.due) = (Some(now), Some(now + NOTICE_EVERY));
        let mut by_asker: BTreeMap<NodeId, Vec<u64>> = BTreeMap::new();
        for (asker, operation) in waiting {
            by_asker.entry(asker).or_default().push(operation);
        }
        let notices = by_asker.into_iter().flat_map(|(to, operations)| {
            let of_one = |some: &[u64]| Notice { to, operations: some.to_vec() };
            operations.chunks(OPERATIONS_MAX).map(of_one).collect::<Vec<Notice>>()
        });
        notices.collect()
    }
}
