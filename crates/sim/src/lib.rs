//! The simulated world: the very machines that serve real data, among modelled disks, networks and clocks, under
//! faults drawn from a seed. A seed is the run.
//!
//! Reading order: [`torture`] (one seed from its set-up to its judgement), [`options`] (what a seed draws), `world`
//! (events, machines, network, power), `workload` (clients), `objects` (objects by name, and their segments), `administrator`, `faults`, [`checkers`] (what must always
//! hold), `convergence` and `audit` (the end of a run), [`history`], [`trace`] and [`replay`]; [`schedule`] (a run's turns
//! as a list) and [`shrink`] (a smaller run with the same violation). [`timed`] measures how fast
//! a cluster is: the same world, over hardware that takes time, with a `shelf` for each disk. Apart: [`years`] (a cluster that grows old), [`central`] (the ideal that
//! no machines can be), [`reference`] (modelled drives beside real ones),
//! [`theorems`] (how unfair bare queues are), [`array`] (disks under a controller that plans), [`queue`] (events in the order of time).
//!
//! Deliberately absent: clocks, threads, files. The driver gives a seed, and places to write to.

mod administrator;
pub mod array;
mod audit;
pub mod central;
pub mod checkers;
mod convergence;
mod digest;
mod failover;
mod faults;
pub mod history;
pub mod hostile;
mod objects;
pub mod options;
pub mod plants;
pub mod queue;
pub mod rare;
pub mod reference;
pub mod replay;
pub mod schedule;
mod shelf;
pub mod shrink;
pub mod theorems;
pub mod timed;
pub mod torture;
pub mod trace;
mod units;
mod workload;
mod world;
pub mod years;

pub use checkers::Violation;
pub use history::History;
pub use options::Options;
pub use queue::EventQueue;
pub use replay::Replay;
pub use schedule::{Course, Recording, Schedule};
pub use torture::{Outcome, run, run_course, run_seed};
