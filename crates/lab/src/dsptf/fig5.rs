//! Figure 5: what more replicas are worth, with two reads for each write.

use super::setup::{self, SCHEMES};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};

/// From mirroring to the eight of Table 1.
const REPLICAS: [u32; 7] = [2, 3, 4, 5, 6, 7, 8];

pub(super) struct Fig5;

impl Experiment for Fig5 {
    fn id(&self) -> &str {
        "dsptf.fig5"
    }

    fn paper(&self) -> &str {
        "d-sptf"
    }

    fn title(&self) -> &str {
        "Throughput of a brick by number of replicas, 67% reads"
    }

    fn assumptions(&self) -> Vec<&str> {
        setup::CLUSTER.to_vec()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let point = |name: &str, replicas: u32| {
            let cluster =
                setup::cluster(parameters, replicas, replicas, setup::scheme(parameters, name, &[]));
            let system = setup::closed(parameters, scale, cluster, 16, 2.0 / 3.0);
            Point::new(system).with("scheme", name).with("replicas", replicas)
        };
        Ok(SCHEMES.into_iter().flat_map(|name| REPLICAS.map(|replicas| point(name, replicas))).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["throughput_iops", "idle", "service_ms"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let gain = |replicas: u32| {
            let others = throughput(table, "Hashing", replicas) + throughput(table, "LARD", replicas);
            throughput(table, "D-SPTF", replicas) / (others / 2.0) - 1.0
        };
        let step = |pair: &[u32]| gain(pair[1]) - gain(pair[0]);
        let least_step = REPLICAS.windows(2).map(step).fold(f64::INFINITY, f64::min);
        let off = |replicas: u32| {
            (throughput(table, "D-SPTF", replicas) / throughput(table, "Central SPTF", replicas) - 1.0).abs()
        };
        vec![
            claim("D-SPTF over hashing and LARD with 2 replicas, gain", 0.09, gain(2), [0.07, 0.11]),
            claim("D-SPTF over hashing and LARD with 8 replicas, gain", 0.20, gain(8), [0.18, 0.23]),
            shape("least growth of the gain from a replica more", least_step, [-0.005, 0.1]),
            shape(
                "D-SPTF off central SPTF, worst of any count",
                REPLICAS.map(off).into_iter().fold(0.0, f64::max),
                [0.0, 0.02],
            ),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let (x, y) = (Axis::new("replicas", "").not_from_zero(), Axis::new("throughput of a brick", "IO/s"));
        let series = setup::series(table, "scheme", "replicas", "throughput_iops");
        let paper = |replicas: u32, gain: f64| throughput(table, "Hashing", replicas) * (1.0 + gain);
        vec![
            Chart::lines("dsptf.fig5", self.title(), x, y, series)
                .marked("D-SPTF", 2.0, paper(2, 0.09))
                .marked("D-SPTF", 8.0, paper(8, 0.20)),
        ]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "The paper's axis cannot be read; its marks are hashing measured here plus the 9% and 20% of its text."
                .to_owned(),
        ]
    }
}

fn throughput(table: &Table, name: &str, replicas: u32) -> f64 {
    table.number(&[("scheme", Cell::from(name)), ("replicas", Cell::from(replicas))], "throughput_iops")
}
