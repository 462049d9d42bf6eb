//! What is measured: opened for reading only, and past the page cache.

use anyhow::{Context, Result, bail, ensure};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Smaller, and requests of 1 MiB at random places are hardly at random places.
const SIZE_MIN: u64 = 4 << 20;
/// A file with fewer allocated blocks than this share of its size is mostly holes.
const ALLOCATED_PERCENT_MIN: u64 = 90;

/// A device or a file.
#[derive(Debug)]
pub(super) struct Target {
    file: File,
    path: PathBuf,
    size_bytes: u64,
    allocated_percent: u64,
}

impl Target {
    pub(super) fn open(path: &Path) -> Result<Target> {
        let metadata =
            std::fs::metadata(path).with_context(|| format!("cannot probe '{}'", path.display()))?;
        let kind = metadata.file_type();
        ensure!(
            kind.is_file() || kind.is_block_device(),
            "'{}' is neither a block device nor a regular file",
            path.display()
        );
        let file = open_direct(path)?;
        let size_bytes = (&file).seek(SeekFrom::End(0))?;
        ensure!(
            size_bytes >= SIZE_MIN,
            "'{}' has {size_bytes} bytes; {SIZE_MIN} are needed to read at random places",
            path.display()
        );
        let allocated_percent = allocated_percent(&metadata, size_bytes);
        Ok(Target { file, path: path.to_owned(), size_bytes, allocated_percent })
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// What makes the measurement doubtful.
    pub(super) fn warning(&self) -> Option<String> {
        (self.allocated_percent < ALLOCATED_PERCENT_MIN).then(|| {
            format!(
                "only {}% of '{}' is allocated; holes are read without the device being asked, so that this looks faster than it is",
                self.allocated_percent,
                self.path.display()
            )
        })
    }

    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buffer, offset).with_context(|| {
            format!("cannot read {} bytes at {offset} of '{}'", buffer.len(), self.path.display())
        })
    }
}

fn open_direct(path: &Path) -> Result<File> {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path);
    opened.or_else(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => bail!(
            "the file system of '{}' has no direct I/O, and through the page cache the memory would be measured; probe the device below it",
            path.display()
        ),
        Some(libc::EACCES) => {
            bail!("may not read '{}'; run this as a user who may, such as root", path.display())
        }
        _ => Err(error).with_context(|| format!("cannot open '{}'", path.display())),
    })
}

fn allocated_percent(metadata: &Metadata, size_bytes: u64) -> u64 {
    if metadata.is_file() { metadata.blocks().saturating_mul(512 * 100) / size_bytes } else { 100 }
}
