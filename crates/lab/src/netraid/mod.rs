//! Network RAID protocols (Kenchammana-Hosekote, Golding, Fleiner, Zaki): the load that each operation places on clients and bricks, a file a
//! figure.
//!
//! What the paper leaves unsaid is in `parameters/netraid.toml`; what came out, and what does not hold, is in `docs/lab/network-raid.md`. Every
//! figure takes its cluster from `setup`; Figures 5 to 7 count by means of `counted`.

mod atomicity;
mod contention;
mod counted;
mod crash;
mod driven;
mod failover;
mod fig10;
mod fig11;
mod fig12;
mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod fig9;
mod setup;

use crate::experiment::Experiment;

/// All experiments of this paper, in its order; then those that go beyond it.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(fig5::FIG5),
        Box::new(fig6::FIG6),
        Box::new(fig7::FIG7),
        Box::new(fig8::Fig8),
        Box::new(fig9::Fig9),
        Box::new(fig10::Fig10),
        Box::new(fig11::Fig11),
        Box::new(fig12::Fig12),
        Box::new(atomicity::Atomicity),
        Box::new(contention::Contention),
        Box::new(crash::Crash),
        Box::new(failover::Failover),
    ]
}
