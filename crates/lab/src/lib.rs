//! The instrument: published experiments, each a file that states what its paper claims and what comes out here, and
//! experiments of one's own.
//!
//! Reading order: [`experiment`] (what one is), [`parameters`] and [`papers`] (what a paper leaves
//! unsaid), [`outcome`] (a run from
//! start to end), [`claim`] and [`cell`] (what is stated), [`dsptf`] (the first paper's), [`own`] (users').
//! Behind them [`runner`] (all cores, resumed after interruption), [`requests`] (each request in a file), [`plot`], [`report`], [`files`].
//!
//! Deliberately absent: protocols and models. An experiment only sets up what `sim` runs.

// Tests write as they like; see clippy.toml.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod catalogue;
pub mod cell;
pub mod claim;
pub mod dsfq;
pub mod dsptf;
pub mod error;
pub mod experiment;
pub mod files;
mod killing;
pub mod netraid;
pub mod outcome;
pub mod own;
pub mod papers;
pub mod parameters;
pub mod plot;
pub mod report;
pub mod requests;
pub mod retrieval;
pub mod robustore;
pub mod runner;
pub mod statistics;
pub mod system;
pub mod world;
