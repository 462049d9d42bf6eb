//! What a cluster stands on, modelled: [`clock`], [`link`] and [`disk`]. All they draw comes from one [`Draw`].
//!
//! Reading order: [`draw`], [`clock`], [`link`], [`disk`].
//!
//! Deliberately absent: what travels over a link and what lies on a disk. A model knows bytes and nanoseconds.

pub mod clock;
pub mod disk;
pub mod draw;
pub mod link;

pub use clock::Clock;
pub use disk::{Disk, DiskConfig, DiskFault, DiskRequest, PowerCut};
pub use draw::Draw;
pub use link::{Link, LinkConfig};
