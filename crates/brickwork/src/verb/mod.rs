//! The verbs, a file each.

pub mod attach;
pub mod brick;
pub mod bucket;
pub mod client;
pub mod cluster;
pub mod completions;
pub mod confirm;
pub mod daemon;
pub mod demo;
pub mod directory;
pub mod disk;
pub mod events;
pub mod fsck;
pub mod gateway;
pub mod lab;
pub mod man;
pub mod object;
pub mod protocol;
pub mod rebuild;
pub mod scrub;
pub mod sim;
pub mod status;
pub mod stream;
pub mod trace;
pub mod volume;
pub mod watch;
