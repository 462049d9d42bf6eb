//! Checks a disk that no brick is using: superblocks, journal, metadata, and the checksum of every block.
//!
//! It reads through [`Sectors`], so that it needs neither files nor time. What the journal says is found out by the very code
//! that opens a disk; what lies at home is then compared with it. A repair first makes the disk openable, lets a store bring
//! home what its journal holds, and then writes down as lost what cannot be read, so that a brick fetches it from others.
//!
//! Reading order: [`finding`] (what can be found, and what it means), [`report`] (what is asked and told), `scan` (how it is found), `repair`.
//!
//! Deliberately absent: content from elsewhere. A lost block stays lost until the brick runs among its peers.

pub mod finding;
mod repair;
pub mod report;
mod scan;

pub use finding::{Finding, State, What};
pub use report::{FINDINGS_MAX, FsckOptions, FsckReport, Outcome, Owner, Sectors};

use crate::open_error::OpenError;
use scan::Scan;

/// Checks a disk, and repairs it when asked. `progress` is told `(bytes done, bytes in all)`.
///
/// # Errors
/// When the disk cannot be checked: it is nobody's, somebody else's, of a newer format, cut short, or does not answer.
pub fn fsck(
    disk: &mut dyn Sectors,
    options: &FsckOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<FsckReport, OpenError> {
    let mut scan = Scan::new(disk, options, progress)?;
    scan.headers()?;
    let opened = scan.journal()?;
    scan.metadata(opened.as_deref())?;
    scan.map(opened.as_deref())?;
    scan.end()
}
