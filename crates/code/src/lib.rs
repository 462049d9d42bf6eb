//! XOR parity, Reed-Solomon over GF(256) and fountain codes: bytes in, bytes out.
//!
//! Reading order: [`Code`] (what parity is, and how lost shards come back), then `field` (the arithmetic), `kernel`
//! (`target ^= c * source` for whole shards) and `simd` (the same by the processor's own instructions). [`Computation`] is
//! such work as a value, for those who have it done. [`fountain`] has the codes of large objects.
//!
//! Deliberately absent: which brick holds which shard (that is a layout), and where shards travel.

#![deny(unsafe_code)]

mod computation;
mod elimination;
mod erasure;
mod field;
pub mod fountain;
mod kernel;
#[allow(unsafe_code)]
mod simd;

pub use computation::{Computation, Computed};
pub use erasure::{Code, CodeError};
pub use kernel::{accumulate, multiply, multiply_add};
