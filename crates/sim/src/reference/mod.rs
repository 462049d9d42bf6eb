//! A modelled drive beside what is known about the drive itself: closed loops under a head scheduler, logs of single
//! accesses, and traces with the times that a real drive took.
//!
//! Reading order: [`closed_loop()`], [`compare_log`], [`replay_measured`], then `files` (how their data are read).

mod closed_loop;
mod files;
mod log;
mod measured;

pub use closed_loop::{CurvePoint, LoopConfig, LoopResult, Replacement, closed_loop, loop_of};
pub use files::{ReferenceError, parse_curves, parse_log, parse_measured, parse_workload};
pub use log::{Agreement, LogComparison, Logged, compare_log};
pub use measured::{Class, Compared, Measured, MeasuredComparison, replay_measured, rms_demerit_ms};
