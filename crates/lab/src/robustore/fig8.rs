//! Figure 8: writes, by how much more than the object is stored.

use super::reads::ends;
use super::setup::{self, BASELINE, Bed, Measures, PRECODED, RAID0, ROBUSTORE, RRAID, Striping, at, curve};
use crate::cell::Row;
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::Chart;

pub(super) struct Fig8;

impl Experiment for Fig8 {
    fn id(&self) -> &str {
        "robustore.fig8"
    }

    fn paper(&self) -> &str {
        "robustore"
    }

    fn title(&self) -> &str {
        "1 GB written to 64 of 128 disks that differ a hundredfold, by redundancy"
    }

    fn assumptions(&self) -> Vec<&str> {
        setup::ASSUMED.to_vec()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        Ok(Bed::new(parameters, scale).points(Striping::Unbalanced, Measures::Writes))
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        setup::rows(runs, true)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let of = |scheme: &str, figure: &str| {
            at(table, scheme, if scheme == RAID0 { 0.0 } else { BASELINE }, figure)
        };
        let bandwidth = |scheme: &str| of(scheme, "bandwidth_mb_s");
        let sd = |scheme: &str| of(scheme, "latency_sd_s");
        // A law: what is stored in all, over what it takes, whatever the redundancy.
        let stored = |scheme: &str| -> Vec<f64> {
            curve(table, scheme, "bandwidth_mb_s").iter().map(|[x, y]| y * (1.0 + x / 100.0)).collect()
        };
        let copies = stored(RRAID).into_iter().map(|rate| rate / bandwidth(RAID0));
        let farthest = copies.fold(
            1.0,
            |far: f64, ratio| {
                if (ratio - 1.0).abs() > (far - 1.0).abs() { ratio } else { far }
            },
        );
        let coded: Vec<f64> = stored(ROBUSTORE);
        let (least, most) = ends(&coded);
        vec![
            claim("RobuSTore, 300%: bandwidth (MB/s)", 186.0, bandwidth(ROBUSTORE), [149.0, 223.0]),
            claim("RRAID, 300%: bandwidth (MB/s)", 7.5, bandwidth(RRAID), [6.0, 9.0]),
            claim("RAID-0: bandwidth (MB/s)", 30.0, bandwidth(RAID0), [24.0, 36.0]),
            claim(
                "bandwidth, RobuSTore with 300% over RAID-0",
                186.0 / 30.0,
                bandwidth(ROBUSTORE) / bandwidth(RAID0),
                [5.0, 7.4],
            ),
            claim(
                "bandwidth at 300%, RobuSTore over RRAID",
                186.0 / 7.5,
                bandwidth(ROBUSTORE) / bandwidth(RRAID),
                [20.0, 30.0],
            ),
            claim(
                "RRAID: bandwidth x copies over RAID-0's, where it is farthest from 1",
                1.0,
                farthest,
                [0.95, 1.05],
            ),
            shape("RobuSTore: bandwidth x (1 + redundancy), most over least", most / least, [1.0, 1.1]),
            claim("RobuSTore, 300%: standard deviation (s)", 0.5, sd(ROBUSTORE), [0.4, 0.6]),
            claim("RRAID, 300%: standard deviation (s)", 6.4, sd(RRAID), [5.1, 7.7]),
            shape("standard deviation at 300%, RRAID over RobuSTore", sd(RRAID) / sd(ROBUSTORE), [10.0, 1e3]),
            claim(
                "RobuSTore, 300%: standard deviation over latency, no more than about",
                0.09,
                sd(ROBUSTORE) / of(ROBUSTORE, "latency_s"),
                [0.0, 0.108],
            ),
            claim("RRAID, 300%: I/O overhead", 3.0, of(RRAID, "io_overhead"), [2.95, 3.05]),
            shape(
                "RobuSTore over RRAID, 300%: I/O overhead, slightly more",
                of(ROBUSTORE, "io_overhead") / of(RRAID, "io_overhead"),
                [1.0, 1.1],
            ),
            shape(
                "lt-precoded over RobuSTore, 300%: bandwidth",
                bandwidth(PRECODED) / bandwidth(ROBUSTORE),
                [0.95, 1.05],
            ),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let schemes = [RAID0, RRAID, ROBUSTORE, PRECODED];
        let [bandwidth, variation, overhead] = setup::charts(table, self.id(), "Writes of 1 GB", &schemes);
        let bandwidth = bandwidth.marked(ROBUSTORE, BASELINE, 186.0).marked(RRAID, BASELINE, 7.5);
        let bandwidth = bandwidth.marked(RAID0, 0.0, 30.0);
        let variation = variation.marked(ROBUSTORE, BASELINE, 0.5).marked(RRAID, BASELINE, 6.4);
        vec![bandwidth, variation, overhead]
    }

    fn notes(&self) -> Vec<String> {
        vec![setup::MB_NOTE.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::super::setup::drawn_rates_mb_s;
    use base::Rng;

    fn mean_and_sd(of: &[f64]) -> (f64, f64) {
        let mean = of.iter().sum::<f64>() / of.len() as f64;
        let squares: f64 = of.iter().map(|one| (one - mean) * (one - mean)).sum();
        (mean, libm::sqrt(squares / (of.len() as f64 - 1.0)))
    }

    /// The page on this paper says how steady a write can be at 300%: the rates of the drawn disks alone vary so much, without any protocol.
    #[test]
    fn drawn_disks_alone_vary_more_than_the_paper_says() {
        let mut draw = Rng::with_seed(1);
        let (mut coded, mut copied) = (Vec::new(), Vec::new());
        for _ in 0..20_000 {
            let rates = drawn_rates_mb_s(&mut draw);
            coded.push(4096.0 / rates.iter().sum::<f64>());
            copied.push(64.0 / rates.iter().copied().fold(f64::INFINITY, f64::min));
        }
        let ((mean, sd), (copied_mean, copied_sd)) = (mean_and_sd(&coded), mean_and_sd(&copied));
        let is = |value: f64, expected: f64, by: f64| {
            assert!((value - expected).abs() < by, "{value} is not {expected}");
        };
        is(sd, 0.60, 0.02);
        is(sd / mean, 0.107, 0.003);
        is(copied_sd, 5.7, 0.2);
        is(copied_sd / copied_mean, 0.048, 0.003);
        is(copied_sd / sd, 9.5, 0.4);
        // As many accesses as the page's figures have.
        let mut sds: Vec<f64> = coded.chunks_exact(40).map(|some| mean_and_sd(some).1).collect();
        sds.sort_unstable_by(f64::total_cmp);
        is(sds[sds.len() / 20], 0.48, 0.03);
        is(sds[sds.len() - 1 - sds.len() / 20], 0.73, 0.03);
    }
}
