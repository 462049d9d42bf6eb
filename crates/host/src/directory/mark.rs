//! Whether all that was written to a store before it is opened has reached the disk.
//!
//! After a failed write or sync the kernel takes pages for clean that never reached the disk. Who opens the file then reads them as if they were
//! stored, until the kernel drops them: so the file has to be written again first. For an index of a hundred million names that takes
//! minutes. It is not needed where the process before closed the store and had seen no such error; nor once the machine has started anew,
//! as what is read then comes from the disk.
//!
//! A file beside the store says so: `closed`, with the store's inode and the time of its last change; or `open`, with the inode and the boot in
//! which the store was opened. Anything else, and no file at all, says that nobody knows. It says `open` before the store is written
//! to, and `closed` only after the database has been closed and nothing has failed. A store that somebody has copied there is another inode.
//! On file systems of other machines a start of this one says nothing: there only `closed` counts.

use crate::disk::file::{is_of_this_machine, sync_folder_of};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Names the run of the kernel.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What is said of one store.
#[derive(Debug)]
pub(super) struct Mark {
    path: PathBuf,
    boot: io::Result<String>,
}

impl Mark {
    pub(super) fn of(store: &Path) -> Mark {
        Mark::in_boot(store, fs::read_to_string(BOOT_ID).map(|boot| boot.trim().to_owned()))
    }

    fn in_boot(store: &Path, boot: io::Result<String>) -> Mark {
        let mut name = store.file_name().unwrap_or_default().to_owned();
        name.push(".mark");
        Mark { path: store.with_file_name(name), boot }
    }

    /// Whether all that is read of the store is on the disk.
    pub(super) fn is_sure(&self, store: &File) -> bool {
        let (Ok(said), Ok(boot)) = (fs::read_to_string(&self.path), &self.boot) else { return false };
        match said.strip_suffix('\n').map(|said| said.split(' ').collect::<Vec<_>>()).as_deref() {
            Some(["closed", inode, changed]) => {
                identity(store).is_ok_and(|is| (is.0.as_str(), is.1.as_str()) == (*inode, *changed))
            }
            Some(["open", inode, of]) => {
                let is_other_boot = of.len() == boot.len() && of != boot;
                is_other_boot && is_of_this_machine(store) && identity(store).is_ok_and(|is| is.0 == *inode)
            }
            _ => false,
        }
    }

    /// The store is open from now on: durably so, or else nothing is said of it any more.
    pub(super) fn open(&self, store: &File) -> io::Result<()> {
        let said = match &self.boot {
            Ok(boot) => identity(store).map(|(inode, _)| format!("open {inode} {boot}\n")),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        let is_said = said.and_then(|said| self.say(&said)).and_then(|file| file.sync_all());
        match is_said.and_then(|()| sync_folder_of(&self.path)) {
            Ok(()) => Ok(()),
            // On a full file system nobody can say anything, and the store is opened all the same.
            Err(_) => match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        }
    }

    /// The store is closed, and all of it is on the disk. Where that cannot be said, it is written again when it is opened.
    pub(super) fn close(&self, store: &File) {
        if let Ok((inode, changed)) = identity(store) {
            let _ = self.say(&format!("closed {inode} {changed}\n"));
        }
    }

    fn say(&self, what: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&self.path)?;
        file.write_all(what.as_bytes())?;
        Ok(file)
    }
}

/// Which file it is, and when it was changed last.
fn identity(store: &File) -> io::Result<(String, String)> {
    let of = store.metadata()?;
    Ok((format!("{}:{}", of.dev(), of.ino()), format!("{}.{:09}", of.mtime(), of.mtime_nsec())))
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

        fn mark(&self, boot: &str) -> Mark {
            Mark::in_boot(&self.folder.path().join("store"), Ok(boot.to_owned()))
        }
    }

    const FIRST: &str = "0f1d6f4c-0000-4000-8000-000000000001";
    const SECOND: &str = "0f1d6f4c-0000-4000-8000-000000000002";

    #[test]
    fn a_store_that_was_closed_is_sure_until_it_is_opened() {
        let place = Place::new();
        let mark = place.mark(FIRST);
        assert!(!mark.is_sure(&place.store), "nobody has said anything");
        mark.open(&place.store).unwrap();
        assert!(!mark.is_sure(&place.store), "who had it open may have been killed");
        mark.close(&place.store);
        assert!(mark.is_sure(&place.store) && place.mark(SECOND).is_sure(&place.store));
        mark.open(&place.store).unwrap();
        assert!(!mark.is_sure(&place.store));
    }

    #[test]
    fn once_the_machine_has_started_anew_a_store_is_sure_where_it_is_on_its_own_disks() {
        let place = Place::new();
        place.mark(FIRST).open(&place.store).unwrap();
        let is_own = is_of_this_machine(&place.store);
        assert_eq!(place.mark(SECOND).is_sure(&place.store), is_own);
        assert!(!place.mark(FIRST).is_sure(&place.store));
    }

    #[test]
    fn of_a_store_that_somebody_has_changed_or_put_there_nothing_is_sure() {
        let mut place = Place::new();
        let mark = place.mark(FIRST);
        mark.close(&place.store);
        assert!(mark.is_sure(&place.store));
        let path = place.folder.path().join("store");
        fs::copy(&path, path.with_extension("copy")).unwrap();
        fs::rename(path.with_extension("copy"), &path).unwrap();
        let copy = File::open(&path).unwrap();
        assert!(!mark.is_sure(&copy), "another file");
        mark.close(&place.store);
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        place.store.write_all(b"more").unwrap();
        place.store.set_modified(later).unwrap();
        assert!(!mark.is_sure(&place.store), "it was written to");
    }

    #[test]
    fn what_makes_no_sense_says_nothing() {
        let place = Place::new();
        let (mark, (inode, changed)) = (place.mark(SECOND), identity(&place.store).unwrap());
        for said in [
            String::new(),
            "closed\n".to_owned(),
            format!("closed {inode} {changed}"),
            format!("open {inode}\n"),
            format!("open {inode} 0f1d\n"),
            format!("open {inode} {SECOND}\n"),
        ] {
            fs::write(&mark.path, &said).unwrap();
            assert!(!mark.is_sure(&place.store), "{said}");
        }
        let blind = Mark::in_boot(&place.folder.path().join("store"), Err(io::ErrorKind::NotFound.into()));
        fs::write(&mark.path, format!("open {inode} {FIRST}\n")).unwrap();
        assert!(!blind.is_sure(&place.store), "the boot is not known");
        blind.open(&place.store).unwrap();
        assert!(!mark.path.exists(), "what was said does not hold any more");
    }
}
