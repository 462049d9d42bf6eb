//! A brick's disk as a machine: journal, blocks, checksums, recovery.
//!
//! A [`Store`] takes the participant's [`wire::disk::Command`]s and the disk's answers, and asks for reads, writes and
//! flushes of 4 KiB sectors. Three layers of committed content lie over the blocks at home: applied but not journalled,
//! journalled, being destaged; staged writes stand beside them until they are decided.
//!
//! The open store is made of parts that own their fields, from below to above:
//!
//! - `device`: requests on their way to the disk, and what each answer is for;
//! - `blocks`: where blocks are: `layers` of content in memory, `pages` and `slots`, `discard`, `cache`, and `full_disk`;
//! - `group_commit`: what one group of records holds, and all that waits for one: the `queue`, `writes` and `works` that are
//!   not over, `barrier`, `facts` with `notes`;
//! - `destage` with `writing`, `heal` and `page_map`: cycles that bring journalled content to its final place, and note which page is where;
//! - `pace`: how much new content may come while much of the old is not home; `labour`: how long the disk works for a block;
//! - `read` with `pass`: reads that are not answered;
//! - `running`: the router, with `commands` (from a command to stable storage) and `apply` (what makes content committed).
//!
//! Reading order: [`io`] (what a store asks of its disk), `superblock` and `header` (what is where), `record` and `journal` (how
//! a write gets on stable storage), `metadata` (where blocks are at home), `overlay`, then the parts above; `recovery`
//! with `frames`, `page_map`, `page_scan` and `restore` (opening a disk); `machine` puts both together. Beside it stands
//! [`fsck`](mod@fsck), for a disk that nobody uses. The bytes and the order in which they become durable are in
//! `docs/disk-format/README.md`.
//!
//! Deliberately absent: files, devices, threads, clocks; the fate of a write in doubt (the participant finds it out).

mod apply;
mod barrier;
mod blocks;
mod cache;
mod commands;
mod completions;
mod config;
mod destage;
mod device;
mod discard;
mod event;
mod facts;
mod frames;
pub mod fsck;
#[cfg(feature = "full")]
pub mod full;
mod full_disk;
mod group_commit;
mod header;
mod heal;
mod inventory;
pub mod io;
mod journal;
mod labour;
mod layers;
mod machine;
mod metadata;
mod notes;
mod open_error;
mod overlay;
mod pace;
mod page_index;
mod page_map;
mod page_scan;
mod pages;
mod pass;
#[cfg(feature = "planted")]
pub mod planted;
mod queue;
mod read;
mod record;
mod recovery;
mod refusal;
mod restore;
mod running;
mod slots;
mod split;
mod stats;
mod superblock;
mod turns;
mod works;
mod writes;
mod writing;

pub use config::{Limits, MapUse, StoreConfig, SumCheck};
pub use event::{StoreEffect, StoreEvent};
pub use fsck::{Finding, FsckOptions, FsckReport, Outcome, Owner, Sectors, State, What, fsck};
pub use io::{Io, IoDone, IoFault, IoKind, IoToken};
pub use labour::Labour;
pub use machine::Store;
pub use open_error::OpenError;
pub use pace::{Bound, Pace, Room};
pub use stats::{DestageStats, DiskStats, JournalStats, PageStats, ReadStats, Space, Stats};
pub use superblock::{FormatError, FormatOptions, format, journal_bytes_default};
