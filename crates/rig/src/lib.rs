//! What tests and benchmarks of real processes share, and what the demo shows.
//!
//! Reading order: [`cluster`] (daemons on loopback or in namespaces), [`nbd`] (the client they are driven by), [`pattern`]
//! and [`noise`] (content that proves what it is, and repeatable draws), [`load`] (which checks every answer).
//!
//! The runs themselves are the program beside this library: they are no part of the product.

pub mod cluster;
pub mod load;
pub mod nbd;
pub mod noise;
pub mod pattern;
