//! Prediction and measurement beside each other, as an outcome of the laboratory.

use super::figures::Figures;
use super::plan::{self, Plan};
use super::predict::Prediction;
use lab::cell::Row;
use lab::claim::{Claim, shape};
use lab::outcome::{Effort, Extent, Outcome, Provenance, Subject};
use std::time::Duration;

pub(super) struct Comparison {
    pub(super) name: &'static str,
    pub(super) predicted: Prediction,
    pub(super) live: Figures,
}

impl Comparison {
    /// By how much of the live figure the simulated one is off.
    fn error(&self, figure: fn(&Figures) -> f64) -> f64 {
        let live = figure(&self.live);
        (figure(&self.predicted.figures) - live) / live
    }

    /// How late the emulated disks were, as a share of the mean service time.
    fn late_share(&self, plan: &Plan) -> f64 {
        self.live.late_p99_ms / (self.live.service_ms * f64::from(plan.dilate))
    }
}

/// Everything that came out.
pub(super) fn outcome(plan: &Plan, comparisons: &[Comparison], wall: Duration) -> Outcome {
    let rows = comparisons.iter().flat_map(|comparison| {
        [("live", comparison.live), ("simulated", comparison.predicted.figures)]
            .map(|(world, figures)| row(comparison.name, world, &figures))
    });
    Outcome {
        subject: Subject {
            id: "dsptf.table1.live".to_owned(),
            paper: "d-sptf".to_owned(),
            title: "Table 1 on daemons with emulated disks, beside its simulation".to_owned(),
        },
        effort: Effort {
            seed: plan.seed,
            wall_s: wall.as_secs_f64(),
            simulated_s: comparisons.iter().map(|one| one.predicted.simulated_s).sum(),
            events: comparisons.iter().map(|one| one.predicted.events).sum(),
        },
        assumptions: plan.assumptions.clone(),
        rows: rows.collect(),
        claims: comparisons.iter().flat_map(|one| claims(plan, one)).chain(gains(comparisons)).collect(),
        extent: Extent { seeds: 1, quick: plan.quick },
        sensitivity: Vec::new(),
        notes: notes(plan),
        provenance: Provenance::default(),
        charts: Vec::new(),
    }
}

/// Few enough columns for a terminal.
fn row(name: &str, world: &str, figures: &Figures) -> Row {
    Row::new()
        .with("scheme", name)
        .with("world", world)
        .with("throughput_iops", figures.throughput_iops)
        .with("idle", figures.idle)
        .with("service_ms", figures.service_ms)
        .with("queue_seen", figures.queue_seen)
        .with("read_response_ms", figures.read_response_ms)
        .with("device_reads_per_read", figures.device_reads_per_read)
        .with("late_p99_ms", figures.late_p99_ms)
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

/// How much more the first row does than the others, live and simulated.
fn gains(comparisons: &[Comparison]) -> Vec<Claim> {
    let Some((first, others)) = comparisons.split_first() else { return Vec::new() };
    let gain = |other: &Comparison| {
        let of =
            |world: fn(&Comparison) -> Figures| world(first).throughput_iops / world(other).throughput_iops;
        let (predicted, live) = (of(|row| row.predicted.figures), of(|row| row.live));
        let what = format!(
            "{} over {}, throughput: prediction error of the ratio ({live:.3} live, {predicted:.3} simulated)",
            first.name, other.name
        );
        shape(what, (predicted - live) / live, [-plan::ERROR_MAX, plan::ERROR_MAX])
    };
    others.iter().map(gain).collect()
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
            plan.drive.id, plan.drive.parts, plan.volume, plan.dilate
        ),
        "A write is answered when it is in the journals of all bricks, which stand for non-volatile memory and cost no \
         time, and leaves the closed loop then (write_release=nvram); its block goes to the drive behind that."
            .to_owned(),
        "D-SPTF's reads wait at the emulated drives of all bricks; each is claimed, over TCP, when a drive's scheduler \
         chooses it, and the bid is the predicted positioning time. All platters turn by one clock, as in the simulation."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shares_of_what_was_measured_and_late_disks_make_a_run_invalid() {
        let plan = Plan::new(&lab::papers::parameters("d-sptf"), 10, 1, true).expect("a plan");
        let live =
            Figures { throughput_iops: 100.0, service_ms: 5.0, late_p99_ms: 0.5, ..Figures::default() };
        let figures = Figures { throughput_iops: 104.0, service_ms: 4.0, ..Figures::default() };
        let predicted = Prediction { figures, simulated_s: 1.5, events: 7 };
        let comparison = Comparison { name: "Hashing", predicted, live };
        let claims = claims(&plan, &comparison);
        let seen: Vec<(f64, bool)> =
            claims.iter().map(|claim| ((claim.measured * 1e6).round() / 1e6, claim.holds)).collect();
        assert_eq!(seen, [(0.04, true), (-0.2, false), (0.01, true)]);
        let late = Figures { late_p99_ms: 2.0, ..live };
        assert!(!super::claims(&plan, &Comparison { name: "Hashing", predicted, live: late })[2].holds);
        let outcome = outcome(&plan, &[comparison], Duration::from_secs(1));
        assert_eq!(
            (outcome.effort.simulated_s, outcome.effort.events, outcome.assumptions.len()),
            (1.5, 7, 5)
        );
    }
}
