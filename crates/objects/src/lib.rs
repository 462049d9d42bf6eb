//! Large objects.
//!
//! Reading order: [`object`] (segments, their fragments on bricks, accesses, repair), then [`index`] (names, versions, and who uses which segments).

pub mod index;
pub mod object;
