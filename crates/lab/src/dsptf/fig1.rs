//! Figure 1: what a deeper queue is worth to a disk that schedules by positioning time.

use super::disk::DiskLoop;
use super::setup;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use proto::heads::Policy;

const PENDING: [u32; 11] = [1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32];

pub(super) struct Fig1;

impl Experiment for Fig1 {
    fn id(&self) -> &str {
        "dsptf.fig1"
    }

    fn paper(&self) -> &str {
        "d-sptf"
    }

    fn title(&self) -> &str {
        "Throughput of one disk by queue depth, SPTF and FIFO"
    }

    fn assumptions(&self) -> Vec<&str> {
        vec!["drive", "drive_parts", "request_mean_bytes", "requests", "warm_up_requests"]
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let policies = [("SPTF", Policy::Sptf), ("FIFO", Policy::Fcfs)];
        let point = |(name, policy): (&str, Policy), pending: u32| {
            let job = DiskLoop {
                drive: parameters.text("drive").to_owned(),
                model: setup::drive(parameters),
                options: setup::drive_options(parameters),
                policy,
                pending,
                bytes: parameters.count("request_mean_bytes"),
                warm_up: scale.of(parameters.count("warm_up_requests")),
                requests: scale.of(parameters.count("requests")),
            };
            Point::new(job).with("scheduler", name).with("pending", pending)
        };
        Ok(policies.into_iter().flat_map(|policy| PENDING.map(|pending| point(policy, pending))).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["throughput_iops"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let gain =
            |pending: u32| throughput(table, "SPTF", pending) / throughput(table, "FIFO", pending) - 1.0;
        vec![
            claim("SPTF over FIFO with 16 pending, throughput gain", 0.70, gain(16), [0.65, 0.75]),
            claim(
                "SPTF over FIFO with 1 or 2 pending, throughput gain",
                0.0,
                gain(1).max(gain(2)),
                [-0.01, 0.01],
            ),
            shape("SPTF, least gain from one depth to the next deeper", least_step(table), [1.0, 2.0]),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let (x, y) = (Axis::new("accesses pending at the disk", ""), Axis::new("throughput", "IO/s"));
        let series = setup::series(table, "scheduler", "pending", "throughput_iops");
        let paper = throughput(table, "FIFO", 16) * 1.70;
        vec![Chart::lines("dsptf.fig1", self.title(), x, y, series).marked("SPTF", 16.0, paper)]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "The paper's curve has no readable figures; its mark is FIFO measured here plus the 70% of its text.".to_owned(),
            "The access in service counts as pending: with 16, the next is one of 15.".to_owned(),
        ]
    }
}

fn throughput(table: &Table, scheduler: &str, pending: u32) -> f64 {
    table.number(&[("scheduler", Cell::from(scheduler)), ("pending", Cell::from(pending))], "throughput_iops")
}

/// The least ratio of neighbouring depths: above 1 the curve only rises. From 2 on, as with 1 or 2 there is no choice.
fn least_step(table: &Table) -> f64 {
    let depths = &PENDING[1..];
    let step = |pair: &[u32]| throughput(table, "SPTF", pair[1]) / throughput(table, "SPTF", pair[0]);
    depths.windows(2).map(step).fold(f64::INFINITY, f64::min)
}
