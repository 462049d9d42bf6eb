//! What a cluster stands on, modelled: [`clock`], [`link`], [`bus`], [`disk`], [`mod@drive`] and [`host`]. All they draw comes from one
//! [`Draw`]. [`disk`] is what may go wrong with a disk; [`mod@drive`] is how long real ones take; [`host`] is how long processors take.
//!
//! Reading order: [`draw`], [`clock`], [`link`], [`bus`], [`disk`], [`mod@drive`], [`host`].
//!
//! Deliberately absent: what travels over a link and what lies on a disk. A model knows bytes and nanoseconds.

pub mod bus;
pub mod clock;
pub mod disk;
pub mod draw;
pub mod drive;
pub mod host;
pub mod link;

pub use clock::Clock;
pub use disk::{Disk, DiskConfig, DiskFault, DiskRequest, PowerCut};
pub use draw::Draw;
pub use drive::{Access, Drive, DriveModel, DriveOptions, Service};
pub use link::{Link, LinkConfig};
