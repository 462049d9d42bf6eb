//! What can go wrong between a daemon and its machine.

use std::io;
use std::path::PathBuf;

/// Why a daemon did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// An address that cannot be used.
    #[error("address '{address}': {why}")]
    Address {
        address: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A listener that cannot be opened.
    #[error("cannot listen on '{address}': {why}")]
    Listen {
        /// Where.
        address: String,
        why: String,
    },
    /// A group that this machine does not know.
    #[error("there is no group '{group}' in /etc/group; name one that is there, or give its number")]
    Group { group: String },
    /// Certificates that cannot be used.
    #[error("TLS file '{}': {why}", path.display())]
    Tls { path: PathBuf, why: String },
    /// A disk that cannot be used.
    #[error("disk '{}': {why}", path.display())]
    Disk {
        /// The file or device.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// A disk whose file system was full, and has room again: the brick begins anew.
    #[error("disk '{}': {}", path.display(), wire::DISK_FULL)]
    DiskFull { path: PathBuf },
    /// Another process runs under the brick's id, and counts in its stead.
    #[error(
        "another process runs under the id of {brick} with a copy of its disks, and counts in its stead: this one serves \
         nothing any more. Stop one of the two, and do not start copies of a brick's disks"
    )]
    Ousted { brick: base::BrickId },
    /// Emulated disks that cannot be.
    #[error(transparent)]
    Emulation(#[from] crate::disk::emulated::SettingsError),
    /// A file of the directory that cannot be used.
    #[error("directory store '{}': {why}", path.display())]
    Store { path: PathBuf, why: String },
    /// The system refused something that every daemon needs.
    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },
    /// The machine gave up.
    #[error("{0}")]
    Failed(String),
    /// The directory answered no.
    #[error(transparent)]
    Admin(#[from] wire::AdminError),
    /// Nobody answered in time.
    #[error("the directory at '{address}' did not answer within {seconds} s{hint}")]
    Timeout {
        /// Where it was sought.
        address: String,
        seconds: u64,
        /// What was seen of it.
        hint: String,
    },
}

/// Names what was tried when the system refuses.
pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> HostError {
    move |source| HostError::System { what, source }
}
