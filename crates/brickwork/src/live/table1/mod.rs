//! `brickwork lab run dsptf.table1 --live`: the decentralised rows of D-SPTF's Table 1 on separate daemons over TCP, with
//! real bytes, emulated disks, and load from outside, beside a simulation of the same.
//!
//! The simulation runs first: its parameters are those of the live run ([`plan`]), and are fixed before that begins.
//!
//! Reading order: [`plan`], [`predict`] (the simulation), [`figures`] (what bricks say of their drives), [`outcome`] (both
//! beside each other), this file (a run).

mod figures;
mod outcome;
mod plan;
mod predict;

pub use plan::{ASSUMPTIONS, Plan};

use super::bed::{Bed, Folder};
use super::load::Client;
use anyhow::{Context, Result};
use figures::Figures;
use lab::outcome::Outcome;
use outcome::Comparison;
use predict::Prediction;
use rig::cluster::Page;
use std::time::{Duration, Instant};
use wire::ReadPolicy;

/// The rows that run live, as the paper and the cluster name them.
pub const ROWS: [(&str, ReadPolicy); 3] =
    [("D-SPTF", ReadPolicy::Claim), ("Hashing", ReadPolicy::Hash), ("LARD", ReadPolicy::Lard)];

/// Runs all rows. `say` is told what happens.
///
/// # Errors
/// When the cluster cannot be made, or a request fails, or a block holds what it must not.
pub fn run(plan: &Plan, say: &dyn Fn(&str)) -> Result<Outcome> {
    let begin = Instant::now();
    say("simulating");
    let predicted =
        ROWS.iter().map(|(_, policy)| predict::predict(plan, *policy)).collect::<Result<Vec<_>>>()?;
    let folder = Folder::make(&plan.folder)?;
    let comparisons = compare(plan, &folder, predicted, say)
        .with_context(|| format!("the live run failed; its logs stay in {}", folder.logs().display()))?;
    if let Err(error) = folder.remove() {
        say(&format!("{error:#}"));
    }
    Ok(outcome::outcome(plan, &comparisons, begin.elapsed()))
}

/// All rows, on a cluster that ends with them.
fn compare(
    plan: &Plan,
    folder: &Folder,
    predicted: Vec<Prediction>,
    say: &dyn Fn(&str),
) -> Result<Vec<Comparison>> {
    say("starting eight bricks");
    let mut bed = Bed::start(&plan.setting(), folder)?;
    say("filling the volume");
    bed.fill()?;
    let mut comparisons = Vec::new();
    for ((name, policy), predicted) in ROWS.into_iter().zip(predicted) {
        say(&format!("{name}: {:.0} s", plan.real(plan.warm_up + plan.measure).as_secs_f64()));
        let live = measure(plan, &mut bed, policy).with_context(|| format!("the live row '{name}'"))?;
        comparisons.push(Comparison { name, predicted, live });
    }
    Ok(comparisons)
}

/// One row: warm up, measure, stop.
fn measure(plan: &Plan, bed: &mut Bed, policy: ReadPolicy) -> Result<Figures> {
    bed.read_by(policy)?;
    bed.emulate(|_| plan.emulation())?;
    bed.await_drives(true)?;
    let client = Client::start(&plan.asked(), &[bed.endpoint(0)])?;
    let window = || -> Result<(Vec<Page>, Vec<Page>)> {
        client.sleep(plan.real(plan.warm_up));
        client.measure(true);
        let before = bed.pages()?;
        client.sleep(plan.real(plan.measure));
        client.measure(false);
        Ok((before, bed.pages()?))
    };
    let result = window();
    let seen = client.stop();
    bed.emulate(|_| String::new())?;
    bed.await_drives(false)?;
    let (before, after) = result?;
    Ok(figures::between(plan, &before, &after, &seen?))
}

impl Plan {
    /// How long a time of the drives lasts on the clock.
    pub fn real(&self, drive_time: Duration) -> Duration {
        drive_time * self.dilate
    }
}
