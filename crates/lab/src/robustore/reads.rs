//! What Figures 9 and 10 have in common: reads, by how much more than the object is stored.

use super::setup::{
    self, BASELINE, Bed, Measures, PACED, PRECODED, RAID0, ROBUSTORE, RRAID_A, RRAID_S, Striping, at, curve,
};
use crate::cell::Row;
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::Chart;

/// Either of them.
pub(super) struct Reads {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// Where coded blocks were written to.
    pub(super) striping: Striping,
    /// What the text says of this figure alone.
    pub(super) own: fn(&Figures) -> Vec<Claim>,
}

/// The figures of a table, RAID-0's without redundancy and all others' at the baseline where nothing else is said.
pub(super) struct Figures<'a>(&'a Table<'a>);

impl Figures<'_> {
    pub(super) fn at(&self, scheme: &str, redundancy: f64, figure: &str) -> f64 {
        at(self.0, scheme, redundancy, figure)
    }

    pub(super) fn of(&self, scheme: &str, figure: &str) -> f64 {
        self.at(scheme, if scheme == RAID0 { 0.0 } else { BASELINE }, figure)
    }

    pub(super) fn bandwidth(&self, scheme: &str) -> f64 {
        self.of(scheme, "bandwidth_mb_s")
    }

    pub(super) fn sd(&self, scheme: &str) -> f64 {
        self.of(scheme, "latency_sd_s")
    }

    /// Of all redundancies from this one on.
    pub(super) fn from(&self, scheme: &str, redundancy: f64, figure: &str) -> Vec<f64> {
        let curve = curve(self.0, scheme, figure).into_iter();
        curve.filter(|[x, _]| *x >= redundancy).map(|[_, y]| y).collect()
    }
}

/// The least and the greatest of some figures.
pub(super) fn ends(figures: &[f64]) -> (f64, f64) {
    figures.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), y| (least.min(*y), most.max(*y)))
}

impl Experiment for Reads {
    fn id(&self) -> &str {
        self.id
    }

    fn paper(&self) -> &str {
        "robustore"
    }

    fn title(&self) -> &str {
        self.title
    }

    fn assumptions(&self) -> Vec<&str> {
        setup::ASSUMED.to_vec()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        Ok(Bed::new(parameters, scale).points(self.striping, Measures::Reads))
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        setup::rows(runs, false)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let figures = Figures(table);
        let mut claims = (self.own)(&figures);
        let overhead = |scheme: &str| figures.of(scheme, "io_overhead");
        let order = [ROBUSTORE, RRAID_A, RRAID_S, RAID0];
        for pair in order.windows(2) {
            let what = format!("bandwidth at 300%, {} over {}", pair[0], pair[1]);
            claims.push(shape(what, figures.bandwidth(pair[0]) / figures.bandwidth(pair[1]), [1.0, 1e3]));
        }
        claims.push(shape(
            "standard deviation, RAID-0 over RobuSTore with 300%: at least 5 times",
            figures.sd(RAID0) / figures.sd(ROBUSTORE),
            [5.0, 1e3],
        ));
        for other in [RRAID_S, RRAID_A] {
            let of = |scheme: &str| figures.from(scheme, 100.0, "latency_sd_s");
            let ratios: Vec<f64> =
                of(other).iter().zip(of(ROBUSTORE)).map(|(sd, coded)| sd / coded).collect();
            let what = format!("standard deviation, {other} over RobuSTore, the least by redundancy");
            claims.push(shape(what, ends(&ratios).0, [1.0, 1e3]));
        }
        claims.push(claim("RobuSTore, 300%: I/O overhead, about 50%", 0.5, overhead(ROBUSTORE), [0.4, 0.6]));
        let (least, most) = ends(&figures.from(ROBUSTORE, 100.0, "io_overhead"));
        claims.push(shape(
            "RobuSTore: I/O overhead, most less least by redundancy",
            most - least,
            [0.0, 0.1],
        ));
        claims.push(shape("lt-precoded, 300%: I/O overhead", overhead(PRECODED), [0.0, 0.1]));
        claims.push(shape("lt-precoded, paced, 300%: I/O overhead", overhead(PACED), [0.0, 0.1]));
        claims.push(shape(
            "bandwidth at 300%, lt-precoded over RobuSTore",
            figures.bandwidth(PRECODED) / figures.bandwidth(ROBUSTORE),
            [1.2, 1.6],
        ));
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let schemes = [RAID0, RRAID_S, RRAID_A, ROBUSTORE, PRECODED, PACED];
        let what = match self.striping {
            Striping::Unbalanced => "Reads of 1 GB",
            Striping::Balanced => "Reads of 1 GB, evenly striped",
        };
        let [mut bandwidth, mut variation, overhead] = setup::charts(table, self.id, what, &schemes);
        if self.striping == Striping::Unbalanced {
            let marks = [(ROBUSTORE, 400.0), (RRAID_S, 117.0), (RRAID_A, 228.0)];
            bandwidth = marks.iter().fold(bandwidth, |chart, (scheme, y)| chart.marked(scheme, BASELINE, *y));
            bandwidth = bandwidth.marked(RAID0, 0.0, 31.0);
            variation = variation.marked(ROBUSTORE, BASELINE, 0.5);
        }
        vec![bandwidth, variation, overhead.marked(ROBUSTORE, BASELINE, 0.5)]
    }

    fn notes(&self) -> Vec<String> {
        vec![setup::MB_NOTE.to_owned()]
    }
}
