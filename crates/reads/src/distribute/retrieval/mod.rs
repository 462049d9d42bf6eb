//! Continuous retrieval of replicated data (Altiparmak and Tosun): from which copies the buckets of requests are read.
//!
//! Reading order: [`request`] (what is asked, and what is known of disks), [`chooser`] (who chooses; a file a chooser), [`solver`] (the
//! best choice for one request), [`mixed`] (buckets of different sizes, for which there is a bound but no quick best choice), [`plan`]
//! (what waits, kept best as buckets come and go).

pub mod chooser;
pub mod max_flow;
pub mod mixed;
pub mod online;
pub mod plan;
pub mod random;
pub mod request;
pub mod shortest_queue;
pub mod solver;
pub mod two_choices;

pub use chooser::{Choice, Chooser};
pub use mixed::{MixedSizes, SizedDisk};
pub use plan::{Fairness, Move, Plan, Waiting};
pub use request::{Disk, Request};
pub use solver::Solver;
