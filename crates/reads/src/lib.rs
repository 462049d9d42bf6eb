//! Reads before they are messages: who serves them, and how requests wait at a disk.
//!
//! Reading order: [`distribute`] (a file a read policy, and the solver for the best choice of copies), [`seat`] (what waits at a disk, and who is next).

pub mod distribute;
pub mod seat;
