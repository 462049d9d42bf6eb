//! The machines of Brickwork and their pure maths. Nothing here knows a socket, a disk or a clock.
//!
//! Reading order: [`layout`] (where blocks lie), [`netraid`] (how a group's members agree on writes), then the roles:
//! [`brick`], [`gateway`], [`directory`], [`client`]; [`admission`] is the table of who may say what; [`heads`] is what a disk does next. `docs/protocol` tells the whole
//! story.

pub mod admission;
pub mod brick;
pub mod client;
pub mod counters;
pub mod directory;
pub mod distribute;
pub mod fair;
pub mod gateway;
pub mod heads;
pub mod index;
pub mod layout;
mod median;
pub mod netraid;
pub mod object;
#[cfg(feature = "planted")]
pub mod planted;
pub mod rules;
pub mod seat;
pub mod view;

pub use counters::Counters;
