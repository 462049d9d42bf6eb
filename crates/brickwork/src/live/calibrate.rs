//! `brickwork lab calibrate`: what work costs the processors of this machine.
//!
//! A few simple loads run on real daemons, whose disks are files in memory, and it is measured what each request costs the
//! clients, the gateways and the bricks. How much work of which kind a request is, the simulation of the same load says. So the
//! costs are those with which the simulation would have spent what was spent: the non-negative least squares of relative
//! errors. How many turns a request takes depends on the costs, so that both are found in a few rounds.
//!
//! Computing parity is measured by itself: it is no more than the processor's own work.

use super::bed::{self, Bed, Folder};
use super::described::{Described, Figures, Predicted, Times};
use anyhow::{Context, Result};
use base::{BLOCK_U64, Payload};
use code::{Code, Computation};
use lab::system::{Load, System};
use model::drive::DriveModel;
use model::host::{Costs, KINDS, Kind, Machine, Work};
use sim::timed::{
    BrickSpec, Cluster, Conditions, Hosts, Length, Locality, Mix, Network, Scheme, Sizes, WriteRelease,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::ReadPolicy;

const TIMES: Times = Times { warm_up: Duration::from_millis(600), measure: Duration::from_millis(2_400) };
const NOW: Times = Times { warm_up: Duration::from_millis(400), measure: Duration::from_millis(1_600) };
/// Shorter: what is simulated is even.
const SIMULATED: Times = Times { warm_up: Duration::from_millis(50), measure: Duration::from_millis(200) };
const ROUNDS: u32 = 6;
/// How often parity is computed before the time is looked at.
const TIMES_A_ROUND: u32 = 200;
const SEED: u64 = 1;
const BRICKS: u32 = 3;
/// The share of reads, blocks a request, requests outstanding. The first is one request alone.
const LOADS: [(f64, u32, u32); 8] = [
    (1.0, 1, 1),
    (0.0, 1, 1),
    (1.0, 1, 8),
    (0.0, 1, 8),
    (0.5, 1, 32),
    (1.0, 1, 64),
    (1.0, 16, 8),
    (0.0, 16, 8),
];
/// Which of them shows how fast the machine is now. Machines that others use as well are faster and slower by a fifth from one quarter of an
/// hour to the next.
const REFERENCE: usize = 4;
/// What is assumed before anything is known, in nanoseconds.
const GUESS: Costs = Costs {
    ns: [
        4_000.0, 4_000.0, 2_000.0, 200.0, 4_000.0, 8_000.0, 4_000.0, 10_000.0, 10_000.0, 10_000.0, 200.0, 0.0,
    ],
    sleep_ns: 3_000.0,
};

/// What came out.
pub struct Calibrated {
    pub machine: Machine,
    /// Each load: its name, what was measured, and what these costs say.
    pub loads: Vec<Checked>,
}

/// A load: requests a second, and microseconds of processors a request; measured, and as the costs say.
pub struct Checked {
    pub name: String,
    pub requests_per_second: [f64; 2],
    pub processor_us: [f64; 2],
}

/// Measures for about forty seconds. `say` is told what happens.
///
/// # Errors
/// When the cluster cannot be made, or a request fails.
pub fn run(say: &dyn Fn(&str)) -> Result<Calibrated> {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let loads = LOADS.map(|load| (name(load), load));
    let described = |load| Described::new(system(load, processors)?, &TIMES, SEED);
    let all = loads.iter().map(|(_, load)| described(*load)).collect::<Result<Vec<_>>>()?;
    let folder = Folder::make(&bed::folder())?;
    let live = measure(&all, &loads, &folder, say).with_context(|| {
        format!("the calibration failed; the daemons' logs stay in {}", folder.logs().display())
    })?;
    folder.remove()?;
    say("fitting");
    let (mut costs, predicted) = fit(&all, &live, processors)?;
    // None of these loads has parity.
    costs.ns[Kind::Coded as usize] = coded_ns();
    let checked = |((name, _), (live, predicted)): (&(String, _), (&Figures, &Predicted))| Checked {
        name: name.clone(),
        requests_per_second: [live.requests_per_second, predicted.figures.requests_per_second],
        processor_us: [live.spent.all(), predicted.figures.spent.all()],
    };
    let loads = loads.iter().zip(live.iter().zip(&predicted)).map(checked).collect();
    let reference_us = live[REFERENCE].spent.all();
    Ok(Calibrated { machine: Machine { processors, costs, reference_us }, loads })
}

/// Nanoseconds for 1024 bytes of content that are multiplied or added: the parity of whole stripes, at the best of a few times.
fn coded_ns() -> f64 {
    let data = (1..=4).map(|byte| Payload::from(vec![byte; 64 << 10])).collect();
    let stripe = Computation::Encode { code: Code::new(4, 2), data };
    let time = |_| {
        let began = Instant::now();
        (0..TIMES_A_ROUND).for_each(|_| drop(std::hint::black_box(&stripe).run()));
        began.elapsed().as_nanos() as f64 / f64::from(TIMES_A_ROUND) / (stripe.bytes() as f64 / 1024.0)
    };
    (0..5).map(time).fold(f64::INFINITY, f64::min)
}

/// The same machine as it is now: measures the reference load for about two seconds.
///
/// # Errors
/// When the cluster cannot be made, or a request fails.
pub(super) fn now(machine: Machine) -> Result<Machine> {
    let described = Described::new(system(LOADS[REFERENCE], machine.processors)?, &NOW, SEED)?;
    let folder = Folder::make(&bed::folder())?;
    let mut bed = Bed::start(&described.setting, &folder)?;
    bed.fill()?;
    let figures = described.measure_on(&mut bed, &NOW)?;
    drop(bed);
    folder.remove()?;
    Ok(machine.at_speed(figures.spent.all()))
}

fn measure(
    all: &[Described],
    loads: &[(String, (f64, u32, u32))],
    folder: &Folder,
    say: &dyn Fn(&str),
) -> Result<Vec<Figures>> {
    say("starting three bricks");
    let mut bed = Bed::start(&all[0].setting, folder)?;
    bed.fill()?;
    let one = |(described, (name, _)): (&Described, &(String, _))| {
        say(name);
        described.measure_on(&mut bed, &TIMES)
    };
    all.iter().zip(loads).map(one).collect()
}

fn name((reads, blocks, outstanding): (f64, u32, u32)) -> String {
    let what = match reads {
        1.0 => "reads",
        0.0 => "writes",
        _ => "reads and writes",
    };
    format!("{what} of {} KiB, {outstanding} outstanding", u64::from(blocks) * BLOCK_U64 / 1024)
}

fn system((reads, blocks, outstanding): (f64, u32, u32), processors: u32) -> Result<System> {
    let entry = model::drive::find("ram-disk").context("the library has no ram-disk")?;
    let brick = BrickSpec { depth: 64, ..BrickSpec::new(Arc::new(DriveModel::parse(entry.id, entry.text)?)) };
    let network = Network { one_way_ns: 0, client_one_way_ns: 0, ..Network::default() };
    let hosts = Some(Hosts { costs: GUESS, processors, is_shared: true });
    let scheme = Scheme::Policy(ReadPolicy::FOR_NEW_VOLUMES);
    let mix = Mix { reads, sizes: Sizes::Blocks(blocks), locality: Locality::Uniform };
    Ok(System {
        cluster: Cluster {
            network,
            hosts,
            write_release: WriteRelease::Nvram,
            ..Cluster::uniform(brick, BRICKS, BRICKS, scheme)
        },
        load: Load::Closed { outstanding, mix },
        length: Length { warmup: 0, requests: 1 },
        conditions: Conditions::default(),
        drives: entry.id.to_owned(),
    })
}

/// The costs with which the simulation spends what was spent.
fn fit(all: &[Described], live: &[Figures], processors: u32) -> Result<(Costs, Vec<Predicted>)> {
    let mut costs = GUESS;
    let mut predicted = predict(all, costs, processors)?;
    for _ in 0..ROUNDS {
        let mut equations = Vec::new();
        for (live, predicted) in live.iter().zip(&predicted) {
            let (worked, spent) = (&predicted.worked, &live.spent);
            for (work, us) in [
                (&worked.clients, spent.clients),
                (&worked.gateways, spent.gateways),
                (&worked.bricks, spent.bricks),
            ] {
                equations.push((work.0, us * 1e3));
            }
        }
        costs.ns = least_squares(&equations);
        // What one request alone waits beyond its work is that processors have to be woken for each of its turns.
        let turns = |work: &Work| work.count(Kind::Turn);
        let worked = &predicted[0].worked;
        let wakes = turns(&worked.clients) + turns(&worked.gateways) + turns(&worked.bricks);
        let missing_ns = (live[0].p50_ms - predicted[0].figures.p50_ms) * 1e6;
        costs.sleep_ns = (costs.sleep_ns + missing_ns / wakes.max(1.0)).clamp(0.0, 1e6);
        predicted = predict(all, costs, processors)?;
    }
    Ok((costs, predicted))
}

fn predict(all: &[Described], costs: Costs, processors: u32) -> Result<Vec<Predicted>> {
    let hosts = Hosts { costs, processors, is_shared: true };
    all.iter().map(|described| described.clone().on(hosts).predict(&SIMULATED, 1)).collect()
}

/// The non-negative costs for which the relative errors of all equations have the least sum of squares: coordinate descent.
fn least_squares(equations: &[([f64; KINDS], f64)]) -> [f64; KINDS] {
    let rows: Vec<[f64; KINDS]> = equations
        .iter()
        .filter(|(_, total)| *total > 0.0)
        .map(|(counts, total)| counts.map(|count| count / total))
        .collect();
    let mut costs = [0.0; KINDS];
    for _ in 0..20_000 {
        for kind in 0..KINDS {
            let (mut with, mut square) = (0.0, 0.0);
            for row in &rows {
                let others: f64 =
                    (0..KINDS).filter(|other| *other != kind).map(|other| row[other] * costs[other]).sum();
                with += row[kind] * (1.0 - others);
                square += row[kind] * row[kind];
            }
            costs[kind] = if square > 0.0 { f64::max(with / square, 0.0) } else { 0.0 };
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_found_from_what_they_add_up_to() {
        let wanted = [
            4_000.0, 6_000.0, 1_500.0, 150.0, 0.0, 9_000.0, 2_500.0, 20_000.0, 30_000.0, 40_000.0, 300.0,
            50.0,
        ];
        let rows: Vec<[f64; KINDS]> = vec![
            [1.0, 1.0, 2.0, 4.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [2.0, 0.5, 2.0, 64.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [1.0, 1.0, 0.0, 4.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.2, 0.0, 0.0, 4.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [1.5, 0.2, 6.0, 12.0, 0.0, 0.0, 0.0, 3.0, 1.0, 1.0, 12.0, 0.0],
            [0.5, 0.4, 2.0, 4.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.1, 0.1, 2.0, 64.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.3, 0.0, 6.0, 8.0, 2.0, 0.0, 0.0, 1.0, 0.2, 0.1, 8.0, 0.0],
            [0.4, 0.3, 1.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.5, 0.5, 1.0, 0.0],
            [0.5, 0.5, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [1.0, 0.1, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.1, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 64.0],
            [0.3, 0.1, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 64.0, 0.0],
            [0.3, 0.1, 1.0, 2.0, 0.0, 0.0, 0.0, 4.0, 1.0, 0.0, 16.0, 0.0],
        ];
        let total = |row: &[f64; KINDS]| row.iter().zip(&wanted).map(|(count, ns)| count * ns).sum::<f64>();
        let found = least_squares(&rows.iter().map(|row| (*row, total(row))).collect::<Vec<_>>());
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!((found - wanted).abs() < 1.0 + wanted * 0.01, "{found} for {wanted}");
        }
    }
}
