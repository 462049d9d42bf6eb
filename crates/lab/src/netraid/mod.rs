//! Network RAID protocols (Kenchammana-Hosekote, Golding, Fleiner, Zaki): the load that each operation places on clients and bricks, a file a
//! figure.
//!
//! What the paper leaves unsaid is in `parameters/netraid.toml`; what came out, and what does not hold, is in `docs/lab/network-raid.md`. Every
//! figure takes its cluster from `setup`; Figures 5 to 7 count by means of `counted`.

mod counted;
mod fig5;
mod fig6;
mod fig7;
mod setup;

use crate::experiment::Experiment;

/// All experiments of this paper, in its order.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![Box::new(fig5::Fig5), Box::new(fig6::Fig6), Box::new(fig7::Fig7)]
}
