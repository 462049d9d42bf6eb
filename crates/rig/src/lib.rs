//! What tests and benchmarks of real processes share.
//!
//! Reading order: [`cluster`] (daemons on loopback or in namespaces), [`nbd`] (the client they are driven by), [`stamp`]
//! and [`noise`] (content that says what it is, and repeatable draws).

pub mod cluster;
pub mod nbd;
pub mod noise;
pub mod stamp;
