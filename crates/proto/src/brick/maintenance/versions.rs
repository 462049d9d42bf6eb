//! A walk over the versions of objects that the brick's disks have, a page at a time: what stretches of which there are.

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

    /// Whether a disk is listing what it has.
    pub(super) fn is_listing(&self) -> bool {
        self.is_listing
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

    /// A disk has these stretches. Those that are of versions, of at most [`VERSIONS_MAX`]. The next page begins behind the last one, or behind its version if
    /// `skips`.
    pub(super) fn on_page(&mut self, result: Result<Vec<Stretch>, StoreError>, skips: bool) -> Vec<Stretch> {
        self.is_listing = false;
        // A disk that fails has none.
        let mut page = result.unwrap_or_default();
        let is_full = page.len() >= INVENTORY_MAX;
        page.retain(|(volume, _)| FragmentId::version_of(*volume).is_some());
        let mut count = 0;
        let mut last = None;
        let cut = page.iter().position(|(volume, _)| {
            count += usize::from(last.replace(*volume) != Some(*volume));
            count > VERSIONS_MAX
        });
        page.truncate(cut.unwrap_or(page.len()));
        match page.last().copied() {
            Some((volume, _)) if (is_full || cut.is_some()) && skips => self.after = (volume, u64::MAX),
            Some(last) if is_full || cut.is_some() => self.after = last,
            _ => (self.disk, self.after) = (self.disk + 1, start()),
        }
        page
    }
}

/// The versions that stretches are of, each once.
pub(super) fn versions_of(stretches: &[Stretch]) -> Vec<ObjectVersion> {
    let of_each = stretches.iter().filter_map(|(volume, _)| FragmentId::version_of(*volume));
    let mut versions: Vec<ObjectVersion> = of_each.collect();
    versions.dedup();
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretches(versions: core::ops::Range<u64>, of_each: u64) -> Vec<Stretch> {
        let of =
            |version| (0..of_each).map(move |stretch| (FragmentId::volume(ObjectVersion(version)), stretch));
        versions.flat_map(of).collect()
    }

    #[test]
    fn the_next_page_begins_where_the_last_one_ends() {
        let begun = || Versions { is_listing: true, ..Versions::of(Walker::Garbage) };
        let mut versions = begun();
        assert_eq!(versions.on_page(Ok(stretches(1..3, 9)), false), stretches(1..3, 9));
        assert_eq!((versions.disk, versions.after), (1, start()), "a page that is not full is a disk's last");
        let full = stretches(1..3, 3000);
        for (skips, after) in
            [(false, full[INVENTORY_MAX - 1]), (true, (full[INVENTORY_MAX - 1].0, u64::MAX))]
        {
            let mut versions = begun();
            let page = versions.on_page(Ok(full[..INVENTORY_MAX].to_vec()), skips);
            assert_eq!((page.len(), versions.disk, versions.after), (INVENTORY_MAX, 0, after));
        }
        let mut versions = begun();
        let page = versions.on_page(Ok(stretches(0..VERSIONS_MAX as u64 + 1, 2)), false);
        assert_eq!(versions_of(&page).len(), VERSIONS_MAX);
        assert_eq!((versions.disk, Some(versions.after)), (0, page.last().copied()));
        assert_eq!(versions.on_page(Ok(vec![(VolumeId(7), 1)]), false), []);
        assert_eq!(versions.disk, 1);
    }
}
