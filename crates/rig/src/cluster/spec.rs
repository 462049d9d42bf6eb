//! What a cluster is to consist of.

use super::Wrapper;
use std::path::PathBuf;

/// What a cluster consists of.
#[derive(Clone)]
pub struct Spec {
    /// Its name, for people.
    pub name: &'static str,
    /// Where it keeps its files, logs and pids for somebody to look at; in the target folder, and removed at its end, when
    /// there is none.
    pub folder: Option<PathBuf>,
    /// Number of bricks, each on a host of its own.
    pub bricks: usize,
    /// What each brick stores on.
    pub storage: Storage,
    pub gateways: usize,
    /// By how many seconds the wall clocks of gateways are ahead of the machine's; those of further gateways are right.
    pub gateway_clocks_s: Vec<i64>,
    /// The first brick and the first gateway have clocks that are as far behind as this file says ([`super::set_behind`]).
    pub behind: Option<PathBuf>,
    /// How long a brick's lease is, in milliseconds; as the directory has it by default when there is none.
    pub lease_ms: Option<u32>,
    /// Whether each gateway stands beside the brick of its number: data paths `coord` and `amongst`.
    pub beside: bool,
    /// Whether daemons speak TLS to each other.
    pub tls: bool,
    /// Whether the gateways' NBD clients must show a certificate.
    pub nbd_tls: bool,
    /// What runs around each brick.
    pub brick_wrapper: Option<Wrapper>,
    /// Whether daemons answer with their metrics ([`super::Cluster::metrics`]).
    pub metrics: bool,
    /// How daemons reach each other.
    pub ways: Ways,
    /// Whether the processes go on when this one ends ([`super::Cluster::leave_running`]); wants a folder.
    pub outlives: bool,
}

/// What each brick stores on: its disk, what it keeps of it in memory, and how it asks it.
#[derive(Clone)]
pub struct Storage {
    /// Bytes of each brick's disk.
    pub disk_bytes: u64,
    /// Where bricks' disks lie, in folders of their own that are removed at the end; beside each brick's configuration when there is none.
    pub folder: Option<PathBuf>,
    /// Bytes of each brick's cache.
    pub cache_bytes: u64,
    /// Bytes of the journal on each brick's disk.
    pub journal_bytes: u64,
    /// Bytes of journalled content at which a disk writes it back; what is usual when there is none.
    pub destage_bytes: Option<u64>,
    /// `auto`, `io_uring` or `plain`.
    pub io: &'static str,
    /// What says how bricks' disks behave.
    pub emulation: Emulation,
}

/// How the daemons of a cluster reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    Loopback,
    /// Each has a network namespace of its own. Then they speak TLS, and NBD is on unix sockets.
    Namespaces {
        /// The brick, counted from 1, whose packets can be late ([`super::Network::set_late`]).
        late: Option<usize>,
    },
}

impl Ways {
    pub(super) fn are_namespaces(self) -> bool {
        self != Ways::Loopback
    }
}

/// Disks that answer later than they could.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Emulation {
    /// Disks are as they are.
    None,
    /// Each brick's can be changed while it runs ([`super::Cluster::emulate`]).
    Each,
    /// All bricks' are as this file says, which is there when they start.
    File(PathBuf),
}

impl Default for Storage {
    fn default() -> Storage {
        Storage {
            disk_bytes: 512 << 20,
            folder: None,
            cache_bytes: 64 << 20,
            journal_bytes: 64 << 20,
            destage_bytes: None,
            io: "auto",
            emulation: Emulation::None,
        }
    }
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            name: "rig",
            folder: None,
            bricks: 3,
            storage: Storage::default(),
            gateways: 1,
            gateway_clocks_s: Vec::new(),
            behind: None,
            lease_ms: None,
            beside: false,
            tls: false,
            nbd_tls: false,
            brick_wrapper: None,
            metrics: false,
            ways: Ways::Loopback,
            outlives: false,
        }
    }
}
