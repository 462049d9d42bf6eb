//! Continuous retrieval (Altiparmak and Tosun): the figures of its evaluation, a file each, and its traces.
//!
//! What the paper leaves unsaid is in `parameters/retrieval.toml`; what came out is in `docs/lab/retrieval.md`. Every figure takes its
//! requests from `workload`; Figures 12 to 14 describe them by means of `statistics`.

mod fig12;
mod fig13;
mod fig14;
mod policies;
mod statistics;
mod workload;

use crate::experiment::Experiment;

/// All experiments of this paper, in its order.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![Box::new(fig12::Fig12), Box::new(fig13::Fig13), Box::new(fig14::Fig14), Box::new(policies::Policies)]
}
