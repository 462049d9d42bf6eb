//! RobuSTore (Xia and Chien): the figures of its analysis, a file each.
//!
//! What the paper leaves unsaid is in `parameters/robustore.toml`; what came out is in `docs/lab/robustore.md`.

mod fig2;
mod table1;

use crate::experiment::Experiment;

/// All experiments of this paper, in its order.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![Box::new(fig2::Fig2), Box::new(table1::Table1)]
}
