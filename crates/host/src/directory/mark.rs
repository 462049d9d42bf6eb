//! Whether the process that had a store open before has closed it, and had seen no write fail.
//!
//! After a failed write or sync the kernel takes pages for clean that never reached the disk. Who opens the file then reads them as if they were
//! stored, until the kernel drops them: so the file has to be written again first. For an index of a hundred million names that takes
//! minutes.
//!
//! A file beside the store says how it was left:
//! - `closed`, with the store's inode and the time of its last change: the database has been closed, and nothing had failed. All of it is on the disk.
//! - `failed`: a write or a sync has failed, and not all of the store has been written again since. That the machine has started anew is no proof that
//!   what is read is on the disk: a container has a boot id of its own, a guest's pages may be in its host's cache. So all of it is written again.
//! - It is not there: the process was killed, or lost its power, and had seen no error. If one came in its last moment, the kernel's own cache may
//!   still hold what the disk lacks, and that alone: what the kernel does not drop when it is asked to ([`super::cached`]) is written again.

use crate::disk::file::sync_folder_of;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What is said of one store.
#[derive(Debug)]
pub(super) struct Mark(PathBuf);

/// How a store was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Left {
    Closed,
    Failed,
    Unsaid,
}

const FAILED: &str = "failed\n";

impl Mark {
    pub(super) fn of(store: &Path) -> Mark {
        let mut name = store.file_name().unwrap_or_default().to_owned();
        name.push(".closed");
        Mark(store.with_file_name(name))
    }

    /// How the store was left.
    pub(super) fn left(&self, store: &File) -> Left {
        match fs::read_to_string(&self.0) {
            Ok(said) if said == FAILED => Left::Failed,
            Ok(said) if closed(store).is_ok_and(|closed| closed == said) => Left::Closed,
            _ => Left::Unsaid,
        }
    }

    /// A write or a sync has failed. If this cannot be said either, a process that follows after a kill learns nothing of it.
    pub(super) fn fail(&self) {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let said = options.open(&self.0).and_then(|mut mark| {
            mark.write_all(FAILED.as_bytes())?;
            mark.sync_data()
        });
        if said.and_then(|()| sync_folder_of(&self.0)).is_err() {
            tracing::warn!(mark = %self.0.display(), "cannot note that a store has failed");
        }
    }

    /// The store is open from now on and has nothing in doubt, durably so.
    pub(super) fn open(&self) -> io::Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => sync_folder_of(&self.0),
        }
    }

    /// The store is closed, and all of it is on the disk. Where that cannot be said, the next process takes it as not closed.
    pub(super) fn close(&self, store: &File) {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let said = closed(store).and_then(|closed| options.open(&self.0)?.write_all(closed.as_bytes()));
        if said.is_err() {
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// What is said of a store that is closed: which file it is, and when it was changed last.
fn closed(store: &File) -> io::Result<String> {
    let of = store.metadata()?;
    let (inode, changed) = (format!("{}:{}", of.dev(), of.ino()), (of.mtime(), of.mtime_nsec()));
    Ok(format!("closed {inode} {}.{:09}\n", changed.0, changed.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        folder: tempfile::TempDir,
        store: File,
    }

    impl Place {
        fn new() -> Place {
            let folder = tempfile::tempdir().unwrap();
            let store = File::create(folder.path().join("store")).unwrap();
            Place { folder, store }
        }

        fn mark(&self) -> Mark {
            Mark::of(&self.folder.path().join("store"))
        }
    }

    #[test]
    fn a_store_that_was_closed_is_known_as_closed_until_it_is_opened() {
        let place = Place::new();
        let mark = place.mark();
        assert!(mark.left(&place.store) != Left::Closed, "nobody has said anything");
        mark.open().unwrap();
        assert!(mark.left(&place.store) != Left::Closed, "who had it open may have been killed");
        mark.close(&place.store);
        assert!(mark.left(&place.store) == Left::Closed);
        mark.open().unwrap();
        assert!(mark.left(&place.store) != Left::Closed);
    }

    #[test]
    fn a_store_that_somebody_has_changed_or_put_there_is_not() {
        let mut place = Place::new();
        let mark = place.mark();
        mark.close(&place.store);
        assert!(mark.left(&place.store) == Left::Closed);
        let path = place.folder.path().join("store");
        fs::copy(&path, path.with_extension("copy")).unwrap();
        let copy = File::open(path.with_extension("copy")).unwrap();
        assert!(mark.left(&copy) != Left::Closed, "another file");
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        place.store.write_all(b"more").unwrap();
        place.store.set_modified(later).unwrap();
        assert!(mark.left(&place.store) != Left::Closed, "it was written to");
    }

    #[test]
    fn a_store_that_failed_is_known_as_such_until_it_is_in_order() {
        let place = Place::new();
        let mark = place.mark();
        mark.open().unwrap();
        mark.fail();
        assert_eq!(place.mark().left(&place.store), Left::Failed);
        mark.open().unwrap();
        assert_eq!(place.mark().left(&place.store), Left::Unsaid);
    }

    #[test]
    fn what_was_cut_short_says_nothing() {
        let place = Place::new();
        let (mark, whole) = (place.mark(), closed(&place.store).unwrap());
        for length in 0..whole.len() {
            fs::write(&mark.0, &whole[..length]).unwrap();
            assert!(mark.left(&place.store) != Left::Closed, "{length} bytes");
        }
    }
}
