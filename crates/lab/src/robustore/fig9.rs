//! Figure 9: reads of what was written speculatively, so that fast disks have more of it.

use super::reads::{Figures, Reads, ends};
use super::setup::{RAID0, ROBUSTORE, RRAID_A, RRAID_S, Striping};
use crate::claim::{Claim, claim, shape};

pub(super) const FIG9: Reads = Reads {
    id: "robustore.fig9",
    title: "1 GB read from 64 of 128 disks that differ a hundredfold, by redundancy",
    striping: Striping::Unbalanced,
    own,
};

fn own(figures: &Figures) -> Vec<Claim> {
    let [raid0, rraid_s, rraid_a, robustore] =
        [RAID0, RRAID_S, RRAID_A, ROBUSTORE].map(|scheme| figures.bandwidth(scheme));
    let most_overhead = |scheme: &str| ends(&figures.from(scheme, 0.0, "io_overhead")).1;
    let sd_over_latency = figures.sd(ROBUSTORE) / figures.of(ROBUSTORE, "latency_s");
    let worst_sd = ends(&figures.from(ROBUSTORE, 200.0, "latency_sd_s")).1;
    let mut claims = vec![
        claim("RobuSTore, 300%: bandwidth (MB/s)", 400.0, robustore, [320.0, 480.0]),
        claim("RRAID-S, 300%: bandwidth (MB/s)", 117.0, rraid_s, [94.0, 140.0]),
        claim("RRAID-A, 300%: bandwidth (MB/s)", 228.0, rraid_a, [182.0, 274.0]),
        claim("RAID-0: bandwidth (MB/s)", 31.0, raid0, [25.0, 37.0]),
        claim("bandwidth, RobuSTore with 300% over RAID-0", 400.0 / 31.0, robustore / raid0, [10.3, 15.5]),
        claim("bandwidth at 300%, RobuSTore over RRAID-S", 400.0 / 117.0, robustore / rraid_s, [2.7, 4.1]),
        claim("bandwidth at 300%, RobuSTore over RRAID-A", 400.0 / 228.0, robustore / rraid_a, [1.4, 2.1]),
        shape(
            "bandwidth at 900%, RRAID-A over RobuSTore: similar",
            figures.at(RRAID_A, 900.0, "bandwidth_mb_s") / figures.at(ROBUSTORE, 900.0, "bandwidth_mb_s"),
            [0.8, 1.2],
        ),
        claim("RobuSTore: standard deviation from 200% on, the worst (s)", 0.5, worst_sd, [0.4, 0.6]),
        claim(
            "RobuSTore, 300%: standard deviation over latency, no more than",
            0.25,
            sd_over_latency,
            [0.0, 0.25],
        ),
    ];
    for scheme in [RRAID_S, RRAID_A, ROBUSTORE] {
        claims.push(shape(
            format!("bandwidth of {scheme}, 900% over 100%: more"),
            figures.at(scheme, 900.0, "bandwidth_mb_s") / figures.at(scheme, 100.0, "bandwidth_mb_s"),
            [1.0, 1e3],
        ));
    }
    for scheme in [RRAID_S, RRAID_A] {
        claims.push(shape(
            format!("standard deviation at 100%, {scheme} over RAID-0: worse"),
            figures.at(scheme, 100.0, "latency_sd_s") / figures.sd(RAID0),
            [1.0, 1e3],
        ));
        claims.push(shape(
            format!("standard deviation of {scheme}, 900% over 100%: better"),
            figures.at(scheme, 900.0, "latency_sd_s") / figures.at(scheme, 100.0, "latency_sd_s"),
            [0.0, 1.0],
        ));
    }
    claims.extend([
        claim("RAID-0: I/O overhead", 0.0, figures.of(RAID0, "io_overhead"), [0.0, 0.01]),
        claim("RRAID-A: I/O overhead, the most by redundancy", 0.0, most_overhead(RRAID_A), [0.0, 0.1]),
        claim("RRAID-S: I/O overhead, the most by redundancy", 2.0, most_overhead(RRAID_S), [1.6, 2.4]),
    ]);
    claims
}
