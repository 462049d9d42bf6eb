//! Prediction and measurement beside each other, as an outcome of the laboratory.

use super::figures::Figures;
use super::plan::{self, Plan};
use lab::cell::Row;
use lab::claim::{Claim, shape};
use lab::outcome::Outcome;
use std::time::Duration;

/// A row, twice.
pub(super) struct Comparison {
    pub(super) name: &'static str,
    pub(super) predicted: Figures,
    pub(super) live: Figures,
}

impl Comparison {
    /// By how much of the live figure the simulated one is off.
    fn error(&self, figure: fn(&Figures) -> f64) -> f64 {
        let live = figure(&self.live);
        (figure(&self.predicted) - live) / live
    }

    /// How late the emulated disks were, as a share of the mean service time.
    fn late_share(&self, plan: &Plan) -> f64 {
        self.live.late_p99_ms / (self.live.service_ms * f64::from(plan.dilate))
    }
}

/// Everything that came out.
pub(super) fn outcome(plan: &Plan, comparisons: &[Comparison], wall: Duration) -> Outcome {
    let rows = comparisons.iter().flat_map(|comparison| {
        [("live", comparison.live), ("simulated", comparison.predicted)]
            .map(|(world, figures)| row(comparison.name, world, &figures))
    });
    Outcome {
        id: "dsptf.table1.live".to_owned(),
        paper: "d-sptf".to_owned(),
        title: "Table 1 on daemons with emulated disks, beside its simulation".to_owned(),
        seed: plan.seed,
        wall_s: wall.as_secs_f64(),
        simulated_s: 0.0,
        events: 0,
        assumptions: Vec::new(),
        rows: rows.collect(),
        claims: comparisons.iter().flat_map(|comparison| claims(plan, comparison)).collect(),
        seeds: 1,
        quick: plan.quick,
        sensitivity: Vec::new(),
        notes: notes(plan),
        charts: Vec::new(),
    }
}

fn row(name: &str, world: &str, figures: &Figures) -> Row {
    let Figures {
        throughput_iops,
        idle,
        service_ms,
        queue_seen,
        requests_per_second,
        read_response_ms,
        write_response_ms,
        late_p99_ms,
        device_reads_per_read,
        nvram_full,
    } = *figures;
    Row::new()
        .with("scheme", name)
        .with("world", world)
        .with("throughput_iops", throughput_iops)
        .with("idle", idle)
        .with("service_ms", service_ms)
        .with("queue_seen", queue_seen)
        .with("requests_per_second", requests_per_second)
        .with("read_response_ms", read_response_ms)
        .with("write_response_ms", write_response_ms)
        .with("late_p99_ms", late_p99_ms)
        .with("device_reads_per_read", device_reads_per_read)
        .with("nvram_full", nvram_full)
}

fn claims(plan: &Plan, comparison: &Comparison) -> Vec<Claim> {
    let name = comparison.name;
    let within = [-plan::ERROR_MAX, plan::ERROR_MAX];
    let throughput = comparison.error(|figures| figures.throughput_iops);
    let service = comparison.error(|figures| figures.service_ms);
    vec![
        shape(format!("{name}: prediction error of the throughput"), throughput, within),
        shape(format!("{name}: prediction error of the service time"), service, within),
        shape(
            format!("{name}: valid only if the disks' lateness (p99) is a small share of the service time"),
            comparison.late_share(plan),
            [0.0, plan::LATE_SHARE_MAX],
        ),
    ]
}

fn notes(plan: &Plan) -> Vec<String> {
    vec![
        format!(
            "{} bricks, a gateway, a directory and the load are processes of their own, over TCP; {} requests \
             outstanding, {:.0}% reads, each of one block of {} bytes (the mean of the paper's exponential sizes), on the \
             cluster and in the simulation. Every block that was read was checked.",
            plan::BRICKS,
            plan::OUTSTANDING,
            plan::READS * 100.0,
            plan::REQUEST_BYTES
        ),
        format!(
            "Warmed up for {:.0} s and measured for {:.0} s of the drives' time; the simulation is the mean of eight runs of \
             that length, made before the cluster was started.",
            plan.warm_up.as_secs_f64(),
            plan.measure.as_secs_f64()
        ),
        format!(
            "Each disk is an emulated {} ({}), SPTF, without cache; the volume of {} is spread over all of it. The drives' \
             time passes {} times slower than the clock: all times but late_p99_ms are the drives'.",
            plan.drive_id, plan.parts, plan.volume, plan.dilate
        ),
        "A write is answered when it is in the journals of all bricks, which stand for non-volatile memory and cost no \
         time, and leaves the closed loop then (write_release=nvram); its block goes to the drive behind that."
            .to_owned(),
        "D-SPTF's reads wait at the emulated drives of all bricks; each is claimed, over TCP, when a drive's scheduler \
         chooses it, and the bid is the predicted positioning time. All platters turn by one clock, as in the simulation."
            .to_owned(),
    ]
}
