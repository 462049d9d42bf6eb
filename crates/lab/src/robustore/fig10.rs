//! Figure 10: reads of what was written evenly, as many blocks on each disk as copies have.

use super::reads::{Figures, Reads, ends};
use super::setup::{ROBUSTORE, RRAID_A, RRAID_S, Striping};
use crate::claim::{Claim, shape};

pub(super) const FIG10: Reads = Reads {
    id: "robustore.fig10",
    title: "1 GB read from 64 of 128 disks with as many blocks on each, by redundancy",
    striping: Striping::Balanced,
    own,
};

fn own(figures: &Figures) -> Vec<Claim> {
    let of = |redundancy: f64| figures.at(ROBUSTORE, redundancy, "bandwidth_mb_s");
    let (_, best) = ends(&figures.from(ROBUSTORE, 100.0, "bandwidth_mb_s"));
    let gain = |scheme: &str| {
        figures.at(scheme, 300.0, "bandwidth_mb_s") / figures.at(scheme, 100.0, "bandwidth_mb_s")
    };
    let mut claims = vec![
        shape("RobuSTore: bandwidth at 300% over the best: near it", of(300.0) / best, [0.8, 1.0]),
        shape(
            "RobuSTore: bandwidth at 300% over 100%: it rises rapidly until then",
            gain(ROBUSTORE),
            [1.2, 10.0],
        ),
    ];
    for scheme in [RRAID_S, RRAID_A] {
        for redundancy in [300.0, 900.0] {
            let gained = |scheme: &str| {
                figures.at(scheme, redundancy, "bandwidth_mb_s") - figures.at(scheme, 100.0, "bandwidth_mb_s")
            };
            claims.push(shape(
                format!(
                    "bandwidth gained from 100% to {redundancy}%, {scheme} less RobuSTore (MB/s): it gains less"
                ),
                gained(scheme) - gained(ROBUSTORE),
                [-1e3, 0.0],
            ));
        }
    }
    claims
}
