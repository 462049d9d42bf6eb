//! The machines of Brickwork. Nothing here knows a socket, a disk or a clock.
//!
//! Each role puts together parts of the crates below: [`brick`], [`gateway`], [`directory`], [`client`]; [`admission`] is the table of who may say what.
//! `docs/protocol` tells the whole story.

pub mod admission;
pub mod brick;
pub mod client;
pub mod directory;
pub mod gateway;
