//! What whole clusters do in the timed world: experiments of our own, of no paper. A file each.
//!
//! What is assumed of hardware and load is in `parameters/world.toml`.

mod kill;

use crate::experiment::Experiment;

/// All of them.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![Box::new(kill::Kill)]
}
