//! Whether the directory's store is as new as what bricks know. A store that was put back from a backup does not know of views,
//! volumes and numbers that were given out since: whoever acts on it gives them out a second time.
//!
//! Each brick keeps the newest version of the map of which it ever heard, and says so with every heartbeat. A directory that
//! starts listens to all bricks for a moment before it does anything; once a brick knows more than the store it does nothing
//! at all, and says so. I/O goes on as while the directory is away.

use super::records::BrickRecord;
use base::{BrickId, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// For so long a directory that starts waits for bricks that are silent, before it grants leases and makes views: two heartbeats
/// and their way. Bricks have no leases then, unless the directory was back at once.
const LISTENING: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Age {
    began: Time,
    heard: BTreeSet<BrickId>,
    /// Who knows a later map, and which.
    later: Option<(BrickId, u64)>,
}

impl Age {
    pub(super) fn new(now: Time) -> Age {
        Age { began: now, heard: BTreeSet::new(), later: None }
    }

    /// A brick was heard; `knows` is the later version that it knows, if so.
    pub(super) fn hear(&mut self, brick: BrickId, knows: Option<u64>) {
        self.heard.insert(brick);
        if let Some(knows) = knows {
            self.later = Some((brick, knows));
        }
    }

    /// Whether the store is older than what bricks know.
    pub(super) fn is_old(&self) -> bool {
        self.later.is_some()
    }

    /// Whether nothing may be done: the store is old, or bricks were not heard yet that could know that it is.
    pub(super) fn holds_still(&self, now: Time, bricks: &BTreeMap<BrickId, BrickRecord>) -> bool {
        self.is_old() || self.listens(now, bricks)
    }

    /// Whether the store may be old, as far as was heard: what it lacks may have been made since, and is not denied yet.
    pub(super) fn listens(&self, now: Time, bricks: &BTreeMap<BrickId, BrickRecord>) -> bool {
        let is_early = !self.is_old() && now.since(self.began) < LISTENING;
        is_early && bricks.keys().any(|brick| !self.heard.contains(brick))
    }

    /// What is told of an old store that holds the map up to `version`.
    pub(super) fn warning(&self, version: u64) -> Option<String> {
        self.later.map(|(brick, knows)| {
            format!(
                "the directory's store is older than what {brick} knows: it holds version {version} of the cluster's map, and the \
                 brick heard of {knows}. It was put back from a backup, and the directory refuses to act on it, as it could \
                 send reads and writes to bricks with old data. Open volumes stay usable; no other can be opened. Stop the directory, \
                 and put the newest directory.db back, or move it aside and run `brickwork directory rebuild`"
            )
        })
    }
}
