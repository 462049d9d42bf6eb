//! D-SPTF (Lumb, Golding, Ganger: ASPLOS 2004): every table and figure, and what stands only in its prose. A file each.
//!
//! What the paper leaves unsaid is in `parameters/dsptf.toml`; where it contradicts itself, `docs/lab/dsptf.md` says so.

mod disk;
mod fig1;
mod setup;

use crate::experiment::Experiment;

/// All experiments of this paper, in its order.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![Box::new(fig1::Fig1)]
}
