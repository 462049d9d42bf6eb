//! Continuous retrieval of replicated data (Altiparmak and Tosun): from which copies the buckets of requests are read.
//!
//! Reading order: [`request`] (what is asked, and what is known of disks), [`solver`] (the best choice for one request).

pub mod request;
pub mod solver;

pub use request::{Disk, Request};
pub use solver::Solver;
