//! A brick's disk as a machine: journal, blocks, checksums, recovery.
//!
//! A [`Store`] takes the participant's [`wire::disk::Command`]s and the disk's answers, and asks for reads, writes and
//! flushes of 4 KiB sectors. Three layers of committed content lie over the blocks at home: applied but not journalled,
//! journalled, being destaged; staged writes stand beside them until they are decided.
//!
//! Reading order: [`io`] (what a store asks of its disk), `superblock` (what is where), `record` and `journal` (how a
//! write gets on stable storage), `metadata`, `pages` and `slots` (where blocks are at home), `overlay` and `cache` (what
//! is in memory), then the machine: `machine`, `commit` with `room`, `works` and `discard`, `read`, `inventory` and
//! `heal`, `destage`, `recovery`; beside it [`fsck`](mod@fsck), for a disk that nobody uses. The bytes and the order in
//! which they become durable are in `docs/disk-format/README.md`.
//!
//! Deliberately absent: files, devices, threads, clocks; the fate of a write in doubt (the participant finds it out).

mod barrier;
mod cache;
mod commit;
mod destage;
mod discard;
mod effects;
pub mod fsck;
mod heal;
mod inventory;
pub mod io;
mod journal;
mod machine;
mod metadata;
mod overlay;
mod pages;
#[cfg(feature = "planted")]
pub mod planted;
mod read;
mod record;
mod recovery;
mod room;
mod slots;
mod superblock;
mod works;

pub use fsck::{Finding, FsckOptions, FsckReport, Outcome, Owner, Sectors, State, What, fsck};
pub use io::{Io, IoDone, IoFault, IoKind};
pub use machine::{Limits, Space, Stats, Store, StoreConfig, StoreEffect, StoreEvent};
pub use recovery::OpenError;
pub use superblock::{FormatError, FormatOptions, blocks_region, format, journal_bytes_default};
