//! The real world: sockets, TLS, disks and timers, and the loops that drive the machines with them.
//!
//! For users of the crate (the binary):
//!
//! ```ignore
//! let shutdown = Shutdown::on_signals()?;                           // SIGTERM and SIGINT end the loops cleanly
//! let node = NodeOptions { cluster, security, metrics: None };       // security: Plain | Tls(TlsFiles { ca, cert, key })
//! run_directory(DirectoryOptions { node, listen, store, config }, &shutdown, on_ready)?;
//! run_brick(BrickOptions { node, id, listen, advertise, directory, disks, .. }, &shutdown, on_ready)?;
//! run_gateway(GatewayOptions { node, listen, advertise, directory, nbd: NbdOptions { listen, tls, group } }, &shutdown, on_ready)?;
//! run_attach(AttachOptions { node, directory, volume, socket, group }, &shutdown, on_ready)?;       // or run_attach_direct
//! let reply = admin_call(&AdminOptions { node, directory, timeout }, AdminRequest::STATUS)?;   // blocks
//! run_recount(&node, listen, &forgotten, &shutdown, on_ready, |told| enough(told))?;  // and write_store(path, &puts): a lost directory
//! format_disk(&DiskSpec { path, size_bytes }, &DiskIdentity { cluster, brick, index: 0, journal_bytes: None })?;
//! ```
//! Each `run_*` takes the calling thread until `shutdown` is requested, and calls `on_ready` once, with a [`Ready`]
//! whose `Display` is the line that a daemon prints (`ready brick-3 listening on 127.0.0.1:7003`). Addresses are
//! `HOST:PORT`, `tcp:HOST:PORT` or `unix:/path`; port 0 draws one, and [`Ready`] tells which.
//!
//! Certificates name roles by DNS names: `brick-3.bricks.brickwork`, `directory.brickwork`, `gateway.brickwork`,
//! `client.brickwork` (`attach`, and commands that change nothing). A certificate is used both as a server's and as a client's. An operator's names
//! `operator.brickwork` as well, and a client's may name the stream of its requests: `stream-12.streams.brickwork` ([`stream_name`],
//! [`stream_named_by`]). The ids of gateways and clients follow from their certificates ([`identity`]).
//!
//! # What a request costs
//!
//! Counted with `strace -c` over a gateway and three bricks (raid1x3) on loopback, depth 16, and by reading the code; the
//! time under `strace` makes batches smaller than they are in earnest.
//!
//! | 4 KiB | gateway | brick |
//! |---|---|---|
//! | read | 0.9 `readv`, 0.9 `writev`, 0.6 `epoll_wait` | 0.5 `readv`, 0.5 `writev`, 1.2 `epoll_wait`; from disk 0.5 `io_uring_enter` |
//! | write | 0.5 `readv`, 0.5 `writev`, 0.4 `epoll_wait` (three bricks together) | 0.13 each of `readv`, `writev`, `io_uring_enter`, 0.4 `epoll_wait` |
//!
//! Copies of a payload in user space: none at the gateway, in either direction. At the brick none for a read (disk buffer or
//! cache to socket); for a write below 32 KiB one, into an aligned buffer, where the disk does not take it from where it
//! arrived; none for a larger one, which is received into an aligned buffer. TLS encrypts from and decrypts into its own
//! buffers: one copy more each way. Allocations: one small one for each buffer that becomes [`bytes::Bytes`].
//!
//! A completion of io_uring interrupts `epoll_wait` and signals the eventfd as well, so that a lone request ends two waits.
//!
//! Reading order: [`clock`], [`address`], [`socket`], [`admission`] (who is let in), [`descriptors`], [`door`], [`threads`] (a door whose callers
//! have a thread each), [`tls`], [`buffer`], [`framing`], [`output`], [`refusals`], [`transport`] (peers), [`disk`],
//! [`nbd_server`], [`turn`] (what every loop does in a turn), then the daemons: [`brick`], [`gateway`], [`directory`],
//! [`full_file_system`] (a brick whose file system has no room), [`recount`], [`attach`], [`objects`], [`admin`].
//!
//! Deliberately absent: decisions. What to send, store or answer is the machines' business; nothing here retries,
//! orders or remembers on their behalf.

pub mod address;
mod admin;
pub mod admission;
mod attach;
mod brick;
pub mod buffer;
mod channel;
pub mod clock;
pub mod descriptors;
mod directory;
pub mod disk;
mod door;
mod error;
mod format;
mod framing;
mod full_file_system;
mod gateway;
pub mod identity;
mod metrics;
mod nbd_server;
mod objects;
pub mod options;
mod output;
mod recount;
pub mod refusals;
mod shutdown;
mod slots;
mod socket;
pub mod threads;
mod tls;
pub mod transport;
mod turn;
mod workers;

pub use admin::admin_call;
pub use attach::run_attach;
pub use brick::run_brick;
pub use directory::fill::fill_index;
pub use directory::run_directory;
pub use error::HostError;
pub use format::{DiskIdentity, format_disk, reserve_disk};
pub use full_file_system::free_bytes;
pub use gateway::{run_attach_direct, run_gateway};
pub use objects::{ObjectUser, Waker, run_objects};
pub use options::{
    AdminOptions, AttachOptions, BrickOptions, DirectoryOptions, DiskSpec, GatewayOptions, IoEngine,
    NbdOptions, NodeOptions, OnReady, Ready, Security, TlsFiles,
};
pub use reads::distribute::claim::estimate::Calibration;
pub use recount::{Told, run_recount, write_store};
pub use shutdown::Shutdown;
pub use tls::{OPERATOR_NAME, is_of_client, is_operators, stream_name, stream_named_by};
