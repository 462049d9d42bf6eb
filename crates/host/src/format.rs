//! Makes the disks of a new brick.

use crate::disk::DiskFile;
use crate::turn::draw_id;
use crate::{DiskSpec, HostError};
use base::{BrickId, ClusterId};
use std::io;

/// Zeros are written in pieces of this size.
const PIECE_BYTES: u64 = 1 << 20;

/// Whose a new disk is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskIdentity {
    pub cluster: ClusterId,
    pub brick: BrickId,
    /// Which of the brick's disks it is, from 0.
    pub index: u16,
    /// The size of its journal in bytes; `None` for what suits the disk.
    pub journal_bytes: Option<u64>,
}

/// Takes the room of a disk that is to be formatted later; a file is created where there is none. What fails leaves nothing
/// behind.
///
/// # Errors
/// As [`format_disk`].
pub fn reserve_disk(spec: &DiskSpec) -> Result<(), HostError> {
    DiskFile::create(spec).map(drop)
}

/// Formats a disk; what was on it is lost. A file is created where there is none, with all its blocks allocated. Returns
/// the size of the disk in bytes, once all of it is on stable storage.
///
/// # Errors
/// [`HostError::Disk`] when the disk cannot be opened, is in use, or is too small.
pub fn format_disk(spec: &DiskSpec, identity: &DiskIdentity) -> Result<u64, HostError> {
    let disk = DiskFile::create(spec)?;
    let failed = |why: String| HostError::Disk { path: spec.path.clone(), why };
    let disk_bytes = disk.size_bytes();
    let journal_bytes = identity.journal_bytes.unwrap_or_else(|| store::journal_bytes_default(disk_bytes));
    let writes = store::format(store::FormatOptions {
        cluster: identity.cluster,
        brick: identity.brick,
        disk_index: identity.index,
        uuid: (u128::from(draw_id()) << 64 | u128::from(draw_id())).to_le_bytes(),
        disk_bytes,
        journal_bytes,
    });
    let writes = writes.map_err(|error| failed(error.to_string()))?;
    let system = |error: io::Error| failed(error.to_string());
    // Blocks that are allocated but were never written cost a change of the file system's metadata at their first flush,
    // so that the journal is written through once.
    for offset in (0..journal_bytes).step_by(PIECE_BYTES as usize) {
        let length = PIECE_BYTES.min(disk_bytes - offset);
        disk.write_at(offset, &base::Payload::zeros(length as usize)).map_err(system)?;
    }
    for (offset, content) in &writes {
        disk.write_at(*offset, content).map_err(system)?;
    }
    disk.sync().map_err(system)?;
    Ok(disk_bytes)
}
