//! What makes a write take effect at all its members or at none, and keeps readers from seeing half of one: the protocol
//! family's *atomicity*.

pub(crate) mod log;
pub(crate) mod read;
pub mod two_phase;
