//! What operations share, in parts that own their fields. Knows no operation.
//!
//! | part | what it is |
//! |---|---|
//! | [`views`] | views and geometries, who can be reached, which groups are stale |
//! | [`calls`] | questions that are outstanding, and numbers |
//! | [`charges`] | what was asked for each stream, and which brick has heard of it |
//! | [`computations`] | what operations have computed by others |
//! | [`confirmations`] | reads that wait until their group's view is confirmed |
//! | [`decisions`] | the fates of writes that members are still to be told (the lazy decision of `2pcw`) |
//! | [`gates`] | the line in which requests pass one after the other, locks that are given back |
//! | [`links`] | where records of parts that are decided together lie, and which addresses are free |
//! | [`stamps`] | the clock of stamps, this gateway's own writes, writes being settled |
//! | [`choice`] | how fast bricks are, and by which policy reads are served |

pub(crate) mod calls;
pub(crate) mod charges;
pub(crate) mod choice;
pub mod computations;
pub(crate) mod confirmations;
pub(crate) mod decisions;
pub(crate) mod gates;
pub mod links;
pub(crate) mod stamps;
pub(crate) mod views;
