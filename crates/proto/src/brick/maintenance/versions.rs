//! A walk over the versions of objects that the brick's disks have, a page at a time.

use super::context::Context;
use super::disks::Walker;
use super::job::Stretch;
use base::{ObjectVersion, VolumeId};
use wire::FragmentId;
use wire::disk::{INVENTORY_MAX, StoreError};
use wire::object::VERSIONS_MAX;

#[derive(Debug)]
pub(super) struct Versions {
    of: Walker,
    disk: usize,
    /// Versions up to this one came.
    after: Stretch,
    is_listing: bool,
}

/// Before all versions: they come behind all volumes.
fn start() -> Stretch {
    (VolumeId(FragmentId::volume(ObjectVersion(0)).0 - 1), u64::MAX)
}

impl Versions {
    pub(super) fn of(walker: Walker) -> Versions {
        Versions { of: walker, disk: 0, after: start(), is_listing: false }
    }

    /// Has the next page listed, if none is being listed. Whether there is another one.
    pub(super) fn list(&mut self, cx: &mut Context) -> bool {
        if self.disk >= cx.disks().count() {
            return false;
        }
        if !core::mem::replace(&mut self.is_listing, true) {
            cx.disks().list_versions(self.of, self.disk, self.after);
        }
        true
    }

    /// A disk has these stretches. The versions that they are of.
    pub(super) fn on_page(&mut self, result: Result<Vec<Stretch>, StoreError>) -> Vec<ObjectVersion> {
        self.is_listing = false;
        // A disk that fails has none.
        let page = result.unwrap_or_default();
        let mut versions: Vec<ObjectVersion> =
            page.iter().filter_map(|(volume, _)| FragmentId::version_of(*volume)).collect();
        versions.dedup();
        let is_last_page = page.len() < INVENTORY_MAX && versions.len() <= VERSIONS_MAX;
        versions.truncate(VERSIONS_MAX);
        match versions.last() {
            Some(last) if !is_last_page => self.after = (FragmentId::volume(*last), u64::MAX),
            _ => (self.disk, self.after) = (self.disk + 1, start()),
        }
        versions
    }
}
