//! D-SPTF (Lumb, Golding, Ganger: ASPLOS 2004): every table and figure, and what stands only in its prose. A file each.
//!
//! What the paper leaves unsaid is in `parameters/dsptf.toml`; where it contradicts itself, `docs/lab/dsptf.md` says so.

mod fig1;
mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod fig9;
mod setup;
mod table1;
mod table3;
mod table4;
mod table5;
mod table6;
mod text;
mod traces;

use crate::experiment::Experiment;

/// All experiments of this paper, in its order.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(fig1::Fig1),
        Box::new(table1::Table1),
        Box::new(fig5::Fig5),
        Box::new(fig6::Fig6),
        Box::new(table3::Table3),
        Box::new(table4::Table4),
        Box::new(fig7::Fig7),
        Box::new(fig8::Fig8),
        Box::new(table5::Table5),
        Box::new(table6::Table6),
        Box::new(fig9::Fig9),
        Box::new(text::Text),
    ]
}
