//! Table 1: eight bricks with the same data under a closed random load, four schemes.

use super::setup::{self, SCHEMES};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::{Parameters, Value};
use crate::plot::{Axis, Chart};

pub(super) struct Table1;

/// The paper's rows: throughput in IO/s, idle share, service time in milliseconds.
const PAPER: [(&str, [f64; 3]); 4] = [
    ("Central SPTF", [188.0, 0.0, 5.28]),
    ("D-SPTF", [187.0, 0.0, 5.30]),
    ("Hashing", [133.0, 0.065, 7.05]),
    ("LARD", [134.0, 0.059, 7.04]),
];

impl Experiment for Table1 {
    fn id(&self) -> &str {
        "dsptf.table1"
    }

    fn paper(&self) -> &str {
        "d-sptf"
    }

    fn title(&self) -> &str {
        "Throughput, idle and service time of eight equal bricks"
    }

    fn assumptions(&self) -> Vec<&str> {
        setup::CLUSTER.to_vec()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        // What is assumed comes first: claims are about the first rows.
        let assumed = parameters.text("write_release");
        let others = ["nvram", "half", "all"].into_iter().filter(|other| *other != assumed);
        let point = |release: &str, name: &str| {
            let parameters = parameters.with("write_release", Value::Text(release.to_owned()));
            let cluster = setup::cluster(&parameters, 8, 8, setup::scheme(&parameters, name, &[]));
            let system = setup::closed(&parameters, scale, cluster, 16, 0.9);
            Point::new(system).with("scheme", name).with("write_release", release)
        };
        let releases = std::iter::once(assumed).chain(others);
        Ok(releases.flat_map(|release| SCHEMES.map(|name| point(release, name))).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["throughput_iops", "idle", "service_ms", "queue_seen", "identity_error"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let iops = |name: &str| figure(table, name, "throughput_iops");
        let gain = [("Hashing", 187.0 / 133.0), ("LARD", 187.0 / 134.0)].map(|(name, paper)| {
            let what = format!("D-SPTF over {}, throughput", name.replace("Hashing", "hashing"));
            claim(what, paper, iops("D-SPTF") / iops(name), [1.36, 1.45])
        });
        let mut claims = vec![
            claim(
                "D-SPTF over central SPTF, throughput",
                187.0 / 188.0,
                iops("D-SPTF") / iops("Central SPTF"),
                [0.99, 1.01],
            ),
            claim(
                "LARD over hashing, throughput",
                134.0 / 133.0,
                iops("LARD") / iops("Hashing"),
                [0.99, 1.02],
            ),
        ];
        claims.extend(gain);
        for (name, [throughput, idle, service]) in PAPER {
            let is = |name: &str, unit: &str| format!("{name}, {unit}");
            claims.push(within(is(name, "throughput (IO/s)"), throughput, iops(name), 0.05));
            let measured = figure(table, name, "idle");
            claims.push(claim(is(name, "idle share"), idle, measured, [idle - 0.02, idle + 0.02]));
            claims.push(within(
                is(name, "service time (ms)"),
                service,
                figure(table, name, "service_ms"),
                0.05,
            ));
        }
        claims.push(claim(
            "D-SPTF, queue seen when choosing",
            9.0,
            figure(table, "D-SPTF", "queue_seen"),
            [7.0, 10.0],
        ));
        claims.push(claim(
            "Hashing, queue seen when choosing",
            2.0,
            figure(table, "Hashing", "queue_seen"),
            [1.5, 3.0],
        ));
        let errors = table.0.iter().filter_map(|row| row.get("identity_error")?.number());
        let worst = errors.fold(0.0, f64::max);
        claims.push(shape("throughput x service time - (1 - idle), worst of any row", worst, [0.0, 1e-6]));
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let y = Axis::new("throughput of a brick", "IO/s");
        let (groups, series) = setup::bars(table, "scheme", "write_release", "throughput_iops");
        let groups = groups.iter().map(|release| format!("write leaves: {release}")).collect();
        let chart = Chart::bars("dsptf.table1", self.title(), y, groups, series);
        vec![PAPER.iter().fold(chart, |chart, (name, [throughput, ..])| chart.marked(name, 0.0, *throughput))]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Claims are about the assumed write_release, the first four rows. The figure that decides is when a write \
             leaves the closed loop, of which the paper says nothing; the other two settings follow."
                .to_owned(),
            "The paper's two statements about queues differ by the access in service (about nine; 7.4 + 1.6 - 1 = 8)."
                .to_owned(),
        ]
    }
}

fn figure(table: &Table, name: &str, figure: &str) -> f64 {
    table.number(&[("scheme", Cell::from(name))], figure)
}

/// Within a share of the paper's figure.
fn within(what: String, paper: f64, measured: f64, share: f64) -> Claim {
    claim(what, paper, measured, [paper * (1.0 - share), paper * (1.0 + share)])
}
