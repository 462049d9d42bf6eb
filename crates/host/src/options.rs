//! What a daemon is told when it starts. Reading a configuration file into these is the binary's business.

use base::{BrickId, ClusterId};
use reads::distribute::claim::estimate::Calibration;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Certificates as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The cluster's own authority: whoever it did not sign is a stranger.
    pub ca: PathBuf,
    /// This node's certificate (with intermediates, if any).
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// How peers know each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// Not at all: allowed on unix sockets and loopback addresses only.
    Plain,
    /// By certificates of the cluster's authority, in both directions.
    Tls(TlsFiles),
}

/// What every node is told.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    pub cluster: ClusterId,
    /// How peers know each other.
    pub security: Security,
    /// Where Prometheus may ask for metrics.
    pub metrics: Option<SocketAddr>,
}

/// A disk of a brick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSpec {
    /// A regular file or a block device.
    pub path: PathBuf,
    /// Its size in bytes; needed to create a file, otherwise the whole of what is there.
    pub size_bytes: Option<u64>,
}

/// How to do disk I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoEngine {
    /// io_uring where the kernel has and allows it, otherwise plain.
    #[default]
    Auto,
    /// io_uring, or an error.
    IoUring,
    /// `pread`, `pwrite` and `fdatasync` on a few threads.
    Plain,
}

/// What [`crate::run_brick`] is told.
#[derive(Clone, Debug)]
pub struct BrickOptions {
    pub node: NodeOptions,
    /// Its id, given by the directory when it joined.
    pub id: BrickId,
    /// Where it listens for gateways.
    pub listen: String,
    /// Where gateways reach it, when that is not where it listens.
    pub advertise: Option<String>,
    /// Where the directory is.
    pub directory: String,
    /// Its disks, formatted before.
    pub disks: Vec<DiskSpec>,
    /// What is known of their speed, in the same order.
    pub calibrations: Vec<Calibration>,
    /// How to do disk I/O.
    pub io: IoEngine,
    /// Journalled content at which a disk brings it home, in bytes; `None` for the store's own bound.
    pub destage_bytes: Option<u64>,
    /// A file that says how its disks are made to look slower than they are, read again when it changes: for tests and
    /// experiments. See [`crate::disk::emulated`].
    pub emulation: Option<PathBuf>,
    /// Memory for blocks of all disks together, in bytes.
    pub cache_bytes: u64,
    /// Failure-domain labels, such as `("host", "a")`.
    pub labels: Vec<(String, String)>,
}

/// The NBD front of a gateway.
#[derive(Clone, Debug, Default)]
pub struct NbdOptions {
    /// Where plain NBD clients connect: `tcp:HOST:PORT`, `unix:/path`.
    pub listen: Vec<String>,
    /// Certificates for TCP clients, who then must show one of that authority. Unix sockets stay plain.
    pub tls: Option<TlsFiles>,
    /// The group that may use its unix sockets, by name or number; without one, only the daemon's own user may.
    pub group: Option<String>,
}

/// What [`crate::run_gateway`] is told.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    pub node: NodeOptions,
    /// Where it listens for clients (`attach`).
    pub listen: String,
    /// Where clients reach it, when that is not where it listens.
    pub advertise: Option<String>,
    /// What operators call it; the directory gives it a name where there is none.
    pub name: Option<String>,
    /// The brick on its machine, if any.
    pub beside: Option<BrickId>,
    /// Where the directory is.
    pub directory: String,
    pub nbd: NbdOptions,
}

/// What [`crate::run_directory`] is told.
#[derive(Clone, Debug)]
pub struct DirectoryOptions {
    pub node: NodeOptions,
    /// Where it listens.
    pub listen: String,
    /// The file of its embedded store; created when it is not there.
    pub store: PathBuf,
    /// Leases and failure domains.
    pub config: roles::directory::DirectoryConfig,
}

/// What [`crate::run_attach`] is told.
#[derive(Clone, Debug)]
pub struct AttachOptions {
    pub node: NodeOptions,
    /// Where the directory is.
    pub directory: String,
    pub volume: String,
    /// The unix socket to serve it on.
    pub socket: PathBuf,
    /// The group that may use the socket, by name or number; without one, only the daemon's own user may.
    pub group: Option<String>,
}

/// What [`crate::admin_call`] is told.
#[derive(Clone, Debug)]
pub struct AdminOptions {
    /// Cluster and security (with a certificate for `client.brickwork`).
    pub node: NodeOptions,
    /// Where the directory is.
    pub directory: String,
    /// How long to try.
    pub timeout: Duration,
}

/// What is called once when a daemon serves. It is boxed so that the loops of daemons are compiled here, for speed, and not
/// once more for each caller.
pub type OnReady<'a> = Box<dyn FnOnce(&Ready) + 'a>;

/// A daemon serves. `Display` is the line it prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Who: `brick-3`, `directory`, `gateway`, `attach NAME`.
    pub name: String,
    /// The addresses it listens on, with the ports that were drawn.
    pub addresses: Vec<String>,
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ready {} listening on {}", self.name, self.addresses.join(" "))
    }
}
