//! The family of network RAID protocols: `(data path, serialization, atomicity)`, after Kenchammana-Hosekote et al.,
//! "The Design and Evaluation of Network RAID Protocols" (IBM Research), section 2.2.
//!
//! The brick's side is common to the family: [`participant`] stages, decides and reads. It is put together from an
//! [`order`] (which of the writes that want a block has its turn) and an [`atomicity`] (all members or none).
//! Each protocol's coordinating side is a file of its own; `gw,ts,2pcw+read` is [`coordinator`].

pub mod allocation;
pub mod atomicity;
pub mod completions;
pub mod coordinator;
pub mod expected;
pub mod lateness;
pub mod list;
pub mod order;
pub mod pace;
pub mod participant;
pub mod pending;
pub mod read;
pub mod reconstruct;
pub mod repair;
#[cfg(test)]
mod scripted;
pub mod settle;
pub mod traffic;
pub mod write;
