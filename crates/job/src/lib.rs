//! Programs that are started, bounded in time, watched and counted: what `xtask` and `rig` share.
//!
//! Reading order: [`process`] (one program), [`report`] (steps and their totals), [`scratch`] (where logs lie).
//!
//! Deliberately absent: anything of Brickwork. Every `cargo xtask` waits until this is compiled.

pub mod process;
pub mod report;
mod scratch;

pub use scratch::{in_memory, scratch, sweep, target};
