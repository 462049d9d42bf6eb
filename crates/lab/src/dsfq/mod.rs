//! DSFQ (Wang, Merchant: FAST 2007): every figure of its evaluation, what sections 3.3.2 and 3.4 tell of, and its theorems. A file each, but for Figures 9 and 11, which have one
//! bed.
//!
//! What the paper leaves unsaid is in `parameters/dsfq.toml`; what came out, and what does not hold, is in `docs/lab/dsfq.md`. [`live`] is what of it runs on daemons too.

mod anomaly;
mod bursts;
mod fig10;
mod fig12;
mod fig13;
mod fig14;
mod fig8;
mod fig9;
pub mod live;
mod setup;
mod theorems;

use crate::experiment::Experiment;

/// All experiments of this paper, in its order.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(fig8::Fig8),
        Box::new(fig9::Fig9a),
        Box::new(fig9::Fig9b),
        Box::new(fig10::Fig10),
        Box::new(fig9::Fig11),
        Box::new(fig12::Fig12),
        Box::new(fig13::Fig13),
        Box::new(fig14::Fig14),
        Box::new(anomaly::Anomaly),
        Box::new(bursts::Bursts),
        Box::new(theorems::Theorems),
    ]
}
