//! The family of network RAID protocols: `(data path, serialization, atomicity)`, after Kenchammana-Hosekote et al.,
//! "The Design and Evaluation of Network RAID Protocols" (IBM Research), section 2.2.
//!
//! The brick's side is common to the family: [`participant`] stages, decides and reads. It is put together from an
//! [`order`] (which of the writes that want a block has its turn) and an [`atomicity`] (all members or none).
//! Each protocol's coordinating side is a file of its own; `gw,ts,2pcw+read` is [`coordinator`].

pub(crate) mod allocation;
pub(crate) mod answer;
pub mod atomicity;
pub(crate) mod context;
pub(crate) mod coordinator;
pub(crate) mod expected;
pub mod lateness;
pub(crate) mod list;
pub(crate) mod members;
pub(crate) mod operate;
pub mod order;
pub(crate) mod outcome;
pub mod participant;
pub mod pending;
pub(crate) mod read;
pub(crate) mod reconstruct;
pub(crate) mod repair;
#[cfg(test)]
mod scripted;
pub(crate) mod settle;
pub mod traffic;
pub(crate) mod write;
