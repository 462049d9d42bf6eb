//! RobuSTore (Xia and Chien): its tables and figures, a file each, over what they share: [`setup`] (servers, schemes, what is measured) and [`reads`].
//!
//! What the paper leaves unsaid is in `parameters/robustore.toml`; what came out is in `docs/lab/robustore.md`.

mod claimed;
mod fig10;
mod fig2;
mod fig8;
mod fig9;
mod homogeneous;
mod mixed;
mod planned;
mod reads;
mod setup;
mod sweeps;
mod table1;
mod update;

use crate::experiment::Experiment;

/// All experiments of this paper, in its order.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(fig2::Fig2),
        Box::new(table1::Table1),
        Box::new(fig8::Fig8),
        Box::new(fig9::FIG9),
        Box::new(fig10::FIG10),
        Box::new(homogeneous::Homogeneous),
        Box::new(sweeps::LATENCY),
        Box::new(sweeps::DISKS),
        Box::new(sweeps::SIZES),
        Box::new(sweeps::BLOCKS),
        Box::new(sweeps::COMPETING),
        Box::new(sweeps::BACKGROUND),
        Box::new(mixed::Mixed),
        Box::new(claimed::Claimed),
        Box::new(update::Update),
    ]
}
