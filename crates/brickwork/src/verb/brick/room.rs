//! Whether the file systems of a new brick have room for its disks, looked at before anything is made or registered.

use crate::config::{Bytes, DiskFile};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What keys, certificates and the configuration take at most, with the file system's own blocks.
const FILES_BYTES: u64 = 1 << 20;

/// What is wanted of one file system.
struct Wanted {
    /// A place on it.
    place: PathBuf,
    bytes: u64,
}

/// Refuses disks that do not fit, beside the files that `init` writes to `dir`.
pub(super) fn require(dir: &Path, disks: &[DiskFile]) -> Result<()> {
    let mut wanted = BTreeMap::new();
    add(&mut wanted, dir, FILES_BYTES)?;
    for disk in disks {
        add(&mut wanted, &disk.path, missing_bytes(disk))?;
    }
    for Wanted { place, bytes } in wanted.into_values() {
        let Some(free) = host::free_bytes(&place) else { continue };
        ensure!(
            free >= bytes,
            "the file system of {} has {} free, and {} are wanted for the brick's disks and its configuration; free some, or \
             make the disks smaller",
            place.display(),
            Bytes(free),
            Bytes(bytes),
        );
    }
    Ok(())
}

fn add(wanted: &mut BTreeMap<u64, Wanted>, path: &Path, bytes: u64) -> Result<()> {
    let path = std::path::absolute(path)?;
    let place = path.ancestors().find(|place| place.exists()).unwrap_or(Path::new("/"));
    let device =
        std::fs::metadata(place).with_context(|| format!("cannot look at {}", place.display()))?.dev();
    wanted.entry(device).or_insert_with(|| Wanted { place: place.to_owned(), bytes: 0 }).bytes += bytes;
    Ok(())
}

/// What a disk's file has yet to take of its file system; nothing where the disk is a device.
fn missing_bytes(disk: &DiskFile) -> u64 {
    let size = disk.size.map_or(0, |size| size.0);
    match std::fs::metadata(&disk.path) {
        Ok(metadata) if metadata.file_type().is_block_device() => 0,
        Ok(metadata) => size.max(metadata.len()).saturating_sub(metadata.blocks() * 512),
        Err(_) => size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_that_do_not_fit_together_are_refused_with_figures() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk = |name: &str, bytes: u64| DiskFile {
            path: dir.path().join("brick").join(name),
            size: Some(Bytes(bytes)),
            model: None,
        };
        require(dir.path(), &[disk("a", 1 << 20), disk("b", 1 << 20)]).expect("they fit");
        let half = host::free_bytes(dir.path()).expect("known") / 3 * 2;
        let error =
            require(dir.path(), &[disk("a", half), disk("b", half)]).expect_err("too large").to_string();
        assert!(error.contains("free") && error.contains("make the disks smaller"), "{error}");
    }
}
