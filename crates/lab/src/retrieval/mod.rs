//! Continuous retrieval (Altiparmak and Tosun): its examples, what it proves, and the figures of its evaluation, a file each.
//!
//! What the paper leaves unsaid is in `parameters/retrieval.toml`; what came out is in `docs/lab/retrieval.md`. Every figure takes its
//! requests from `workload`; Figures 12 to 14 describe them by means of `statistics`, and Figures 15 to 18 run them by means of `setup`.

mod example1;
mod fig1;
mod fig12;
mod fig13;
mod fig14;
mod fig15;
mod fig16;
mod fig17;
mod fig18;
mod policies;
mod setup;
mod statistics;
mod theory;
mod workload;

use crate::experiment::Experiment;

/// All experiments of this paper, in its order.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(fig1::Fig1),
        Box::new(theory::Theory),
        Box::new(example1::Example1),
        Box::new(fig12::Fig12),
        Box::new(fig13::Fig13),
        Box::new(fig14::Fig14),
        Box::new(fig15::Fig15),
        Box::new(fig16::Fig16),
        Box::new(fig17::Fig17),
        Box::new(fig18::Fig18),
        Box::new(policies::Policies),
    ]
}
