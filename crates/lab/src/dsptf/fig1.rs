//! Figure 1: what a deeper queue is worth to a disk that schedules by positioning time.

use super::setup;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use crate::system::{Load, System};
use base::SECTOR_BYTES;
use rules::heads::Policy;
use sim::timed::{BrickSpec, Cluster, Conditions, Locality, Mix, Network, Scheme, Sizes};

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
        vec![
            "drive",
            "drive_parts",
            "request_mean_bytes",
            "requests",
            "warm_up_requests",
            "one_disk_read_share",
        ]
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let policies = [("SPTF", Policy::Sptf), ("FIFO", Policy::Fcfs)];
        let point = |(name, policy): (&str, Policy), pending: u32| {
            let system = one_disk(parameters, scale, policy, pending);
            Point::new(system).with("scheduler", name).with("pending", pending)
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

/// A disk and its scheduler alone, and so many small requests at it: with two pending there is nothing to choose from.
fn one_disk(parameters: &Parameters, scale: Scale, policy: Policy, pending: u32) -> System {
    let brick = BrickSpec {
        options: setup::drive_options(parameters),
        policy,
        writes_through: true,
        ..BrickSpec::new(setup::drive(parameters))
    };
    let network = Network { one_way_ns: 0, client_one_way_ns: 0, ..Network::default() };
    let sectors = parameters.count("request_mean_bytes") / SECTOR_BYTES;
    let mix = Mix {
        reads: parameters.number("one_disk_read_share"),
        sizes: Sizes::Fixed(sectors.max(1) as u32),
        locality: Locality::Uniform,
    };
    System {
        cluster: Cluster { network, ..Cluster::uniform(brick, 1, 1, Scheme::Central) },
        load: Load::Closed { outstanding: pending, mix },
        length: setup::length(parameters, scale, 1),
        conditions: Conditions::default(),
        drives: parameters.text("drive").to_owned(),
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
