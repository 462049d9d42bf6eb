//! Versions of objects that nobody will ever read: what dead putters left, and what was replaced or removed.
//!
//! The brick goes through the versions that its disks have, asks the index which of them are gone, and gives the space of those back. Only what
//! the index says is gone goes: it says so once that is on stable storage there, and for good. A brick that has never had a fragment does none of this.

use super::context::Context;
use super::disks::Effect;
use super::job::Stretch;
use crate::counters::Counter;
use base::{ObjectVersion, Time, VolumeId};
use core::time::Duration;
use wire::FragmentId;
use wire::disk::{INVENTORY_MAX, StoreError};
use wire::object::VERSIONS_MAX;

/// A pass that took long is followed by a pause that is so many times as long.
const PAUSES: u32 = 20;
/// A question to the index that was not answered is asked again after this time.
const AGAIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
enum Stage {
    /// The next versions of the disk are to be listed.
    Next,
    Listing,
    /// These are being judged.
    Asked {
        versions: Vec<ObjectVersion>,
        operation: u64,
        again: Time,
    },
}

#[derive(Debug)]
struct Pass {
    begun: Time,
    disk: usize,
    /// Versions up to this one are done.
    after: Stretch,
    is_last_page: bool,
    stage: Stage,
}

/// The pass under way, and when the next one begins.
#[derive(Debug)]
pub(super) struct Garbage {
    /// Between two passes, at least.
    every: Duration,
    /// When to begin; none while there are no fragments.
    due: Option<Time>,
    pass: Option<Pass>,
    operations: u64,
}

/// Before all versions: they come behind all volumes.
fn start() -> Stretch {
    (VolumeId(FragmentId::volume(ObjectVersion(0)).0 - 1), u64::MAX)
}

impl Garbage {
    pub(super) fn new(every: Duration) -> Garbage {
        Garbage { every, due: None, pass: None, operations: 0 }
    }

    /// There are fragments here.
    pub(super) fn notice(&mut self, now: Time) {
        if self.pass.is_none() {
            self.due.get_or_insert(now + self.every);
        }
    }

    pub(super) fn deadline(&self) -> Option<(Time, &'static str)> {
        let again = self.pass.as_ref().and_then(|pass| match &pass.stage {
            Stage::Asked { again, .. } => Some((*again, "the index is asked again which versions are gone")),
            Stage::Next | Stage::Listing => None,
        });
        again.or(self.due.map(|due| (due, "garbage is looked for")))
    }

    pub(super) fn advance(&mut self, cx: &mut Context) {
        let now = cx.now();
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            let pass = Pass { begun: now, disk: 0, after: start(), is_last_page: false, stage: Stage::Next };
            self.pass = Some(pass);
        }
        let Some(pass) = &mut self.pass else { return };
        match &mut pass.stage {
            Stage::Next if pass.disk < cx.disks().count() => {
                pass.stage = Stage::Listing;
                cx.disks().list_versions(pass.disk, pass.after);
            }
            Stage::Next => {
                let pause = (now.since(pass.begun) * PAUSES).max(self.every);
                (self.pass, self.due) = (None, Some(now + pause));
            }
            Stage::Asked { versions, operation, again } if *again <= now => {
                *again = now + AGAIN;
                cx.disks().tell(Effect::AskGone { operation: *operation, versions: versions.clone() });
            }
            Stage::Listing | Stage::Asked { .. } => {}
        }
    }

    /// A disk has these stretches.
    pub(super) fn on_stretches(&mut self, now: Time, result: Result<Vec<Stretch>, StoreError>) {
        let Some(pass) = &mut self.pass else { return };
        // A disk that fails has nothing to give back.
        let page = result.unwrap_or_default();
        let mut versions: Vec<ObjectVersion> =
            page.iter().filter_map(|(volume, _)| FragmentId::version_of(*volume)).collect();
        versions.dedup();
        pass.is_last_page = page.len() < INVENTORY_MAX && versions.len() <= VERSIONS_MAX;
        versions.truncate(VERSIONS_MAX);
        match versions.last() {
            None => pass.go_on(),
            Some(last) => {
                pass.after = (FragmentId::volume(*last), u64::MAX);
                self.operations += 1;
                pass.stage = Stage::Asked { versions, operation: self.operations, again: now };
            }
        }
    }

    /// The index has judged.
    pub(super) fn on_gone(&mut self, cx: &mut Context, operation: u64, gone: &[ObjectVersion]) {
        let Some(pass) = &mut self.pass else { return };
        let Stage::Asked { versions, operation: asked, .. } = &pass.stage else { return };
        if operation != *asked {
            return;
        }
        for version in versions.iter().filter(|version| gone.contains(version)) {
            cx.count(Counter::GoneVersionsGivenBack);
            cx.disks().tell(Effect::DropVersion(*version));
        }
        pass.go_on();
    }
}

impl Pass {
    fn go_on(&mut self) {
        self.stage = Stage::Next;
        if self.is_last_page {
            (self.disk, self.after) = (self.disk + 1, start());
        }
    }
}
