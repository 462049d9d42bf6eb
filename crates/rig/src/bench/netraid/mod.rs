//! `cargo xtask bench netraid`: the protocols that the network RAID paper evaluates (Kenchammana-Hosekote et al., Table 1), and the default one,
//! beside each other on the same bricks.
//!
//! Reading order: [`verb`] (what is run, in which order), `bed` (the cluster, its volumes, the clients that attach them, and whose processor time
//! is counted), `load` (what clients do), `outcome` (what several turns make of it), `hop` (how much of a gateway's way a protocol saves), `table`.

mod bed;
mod hop;
mod load;
mod outcome;
mod table;

use crate::place;
use anyhow::Result;
use bed::{Bed, Idle};
use clap::Args;
use hop::Ends;
use load::Workload;
use outcome::Outcome;
use rig::noise::Noise;
use serde_json::{Value, json};
use std::path::PathBuf;
use wire::{Protocol, known};

/// What `--quick` measures unless it is told: the two ends of the saved hop.
const QUICK: [&str; 2] = ["gw,ts,2pcw", "direct,ts,2pcw"];

/// A seed is below this, which leaves room to make others of it and to multiply it.
const SEEDS: u64 = 1 << 30;

/// How to measure.
#[derive(Args)]
#[command(after_help = "\
Each protocol has a volume of its own, and all volumes lie on the same bricks.
A client is a process `brickwork attach` (`attach --direct` for the path
`direct`) with one request outstanding at a time; eight clients are eight such
processes, which attach the same volume. Beside each brick there is a gateway.
Volumes of the paths `coord` and `amongst` are coordinated there, and clients of
the path `gw` use the gateway that they reach first. All volumes are written
once before anything is measured. Bricks can cache all that is read: data paths
are compared, and not disks. A write is on the disk when it is acknowledged: its
latency has a flush in it, unless the disks are in memory (--ram).

A turn measures 4 KiB writes and reads at random by one client and by eight,
each under all protocols one after the other, in an order that is drawn for each
turn and workload. What else the machine does falls on all protocols alike.
Compare figures of one run with each other only.

Columns:
  ops/s      requests a second of all clients: the mean of the turns
  +-         the standard error of that mean, in percent; `-` of a single turn
  mean, p99  latency in microseconds, over all requests of all turns
  client, gateway, brick
             microseconds of processor for each request, by all `attach`, all
             gateways, all bricks; fio and the directory are not counted. What
             gateways and bricks take at rest is part of it, and is told below
             the tables
  hop        how much of the hop through a gateway is saved: 0% is the mean
             latency under a protocol of the path `gw`, 100% that under the same
             protocol of the path `direct`. Of the measured pairs it is the one
             whose order and atomicity are nearest. `-` where there is none, or
             where `direct` is not faster by two standard errors and by 5%

Nine protocols and three turns take a quarter of an hour, 5 GB of disk in the
target folder (raid1x3: 6 GB), or as much memory with --ram, and 3 GB of memory
(6 GB) for what bricks cache.

Examples:
  cargo xtask bench netraid --quick
  cargo xtask bench netraid --ram
  cargo xtask bench netraid --json > netraid.json
  cargo xtask bench netraid --layout raid1x3
  cargo xtask bench netraid --turns 10 --protocol gw,ts,2pcw --protocol fab")]
pub(crate) struct Options {
    /// Print everything as one JSON object instead of tables: also each turn, medians, and which protocols `hop` compares
    #[arg(long)]
    json: bool,
    /// One turn of a second for each, and only gw,ts,2pcw and direct,ts,2pcw unless others are named: to see that it works, not to quote
    #[arg(long)]
    quick: bool,
    /// Measure only this protocol, or the preset of that name (`brickwork protocol list`); may be repeated [default: those of the paper's Table 1, and the default one]
    #[arg(long = "protocol", value_name = "PROTOCOL", value_parser = known::parse)]
    protocols: Vec<Protocol>,
    /// The layout of all volumes; there are as many bricks as the layout is wide
    #[arg(long, default_value = "raid5-4+1")]
    layout: String,
    /// Put the bricks' disks into memory (/dev/shm), as the paper's RAM disks are: writes then tell what the path costs, and not the flush
    #[arg(long)]
    ram: bool,
    /// Seconds of each measurement, after a second of the same that is not counted
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// How often all is measured [default: 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1000))]
    turns: Option<u64>,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// How much of it.
struct Plan {
    protocols: Vec<Protocol>,
    layout: String,
    ram: bool,
    /// Of each volume.
    bytes: u64,
    seconds: u64,
    turns: u64,
}

impl Plan {
    fn new(options: &Options) -> Plan {
        let quick = options.quick;
        Plan {
            protocols: chosen(&options.protocols, quick),
            layout: options.layout.clone(),
            ram: options.ram,
            // Large enough that eight clients seldom meet (of 16 MB on, the paper's Figure 12), and that there are several groups.
            bytes: if quick { 64 << 20 } else { 128 << 20 },
            seconds: if quick { 1 } else { options.seconds },
            turns: options.turns.unwrap_or(if quick { 1 } else { 3 }),
        }
    }
}

/// Those that were asked for, each once, or those that are usual.
fn chosen(asked: &[Protocol], quick: bool) -> Vec<Protocol> {
    let parse = |name: &&str| name.parse().expect("a protocol");
    let wanted: Vec<Protocol> = match (asked, quick) {
        ([], true) => QUICK.iter().map(parse).collect(),
        ([], false) => known::EVALUATED.iter().map(parse).chain([Protocol::default()]).collect(),
        (asked, _) => asked.to_vec(),
    };
    let mut chosen = Vec::new();
    for protocol in wanted {
        if !chosen.contains(&protocol) {
            chosen.push(protocol);
        }
    }
    chosen
}

/// All that was measured.
struct Results {
    idle: Idle,
    /// Of each workload and protocol, in this order.
    outcomes: Vec<Outcome>,
}

/// Measures and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let binary = place::binary(options.binary.as_deref())?;
    let plan = Plan::new(options);
    let mut bed = Bed::start(&binary, &plan)?;
    let idle = bed.at_rest()?;
    let outcomes = measure(&mut bed, &plan)?;
    bed.end()?;
    let results = Results { idle, outcomes };
    if options.json {
        println!("{}", as_json(options.quick, &plan, &results));
    } else {
        table::print(&plan, &results);
    }
    Ok(())
}

fn measure(bed: &mut Bed, plan: &Plan) -> Result<Vec<Outcome>> {
    let of_workload = |workload| plan.protocols.iter().map(move |protocol| Outcome::new(workload, *protocol));
    let mut outcomes: Vec<Outcome> = Workload::ALL.into_iter().flat_map(of_workload).collect();
    for turn in 1..=plan.turns {
        for (number, of_workload) in outcomes.chunks_mut(plan.protocols.len()).enumerate() {
            // All protocols of a turn ask for the same blocks, and no two turns do.
            let seed = seed(turn * Workload::ALL.len() as u64 + number as u64);
            for at in shuffled(of_workload.len(), seed) {
                let outcome = &mut of_workload[at];
                outcome.turns.push(bed.measure(at, outcome.workload, (seed, plan.seconds))?);
                eprintln!("turn {turn} of {}: {}", plan.turns, outcome.last_turn());
            }
        }
    }
    Ok(outcomes)
}

/// fio multiplies it by the number of a client: seeds next to each other would give two clients the same blocks.
fn seed(run: u64) -> u64 {
    Noise::new(run).draw() % SEEDS
}

/// The numbers below `count`, in an order that the seed draws.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut noise = Noise::new(seed);
    let mut order: Vec<(u64, usize)> = (0..count).map(|at| (noise.draw(), at)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

impl Results {
    fn of(&self, workload: Workload) -> Vec<&Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.workload == workload).collect()
    }
}

fn as_json(quick: bool, plan: &Plan, results: &Results) -> Value {
    let of_workload = |workload| {
        let outcomes = results.of(workload);
        let samples = outcomes.iter().map(|outcome| outcome.json(Ends::of(outcome, &outcomes)));
        samples.collect::<Vec<_>>()
    };
    json!({
        "machine": { "processors": std::thread::available_parallelism().map_or(0, usize::from) },
        "quick": quick, "layout": plan.layout, "disks_in_memory": plan.ram, "volume_bytes": plan.bytes, "block_bytes": load::BLOCK_BYTES,
        "seconds": plan.seconds, "turns": plan.turns,
        "at_rest": results.idle.json(),
        "samples": Workload::ALL.into_iter().flat_map(of_workload).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protocol_is_measured_once() {
        let names = |asked: &[&str], quick| {
            let asked: Vec<Protocol> = asked.iter().map(|name| known::parse(name).expect("known")).collect();
            chosen(&asked, quick).iter().map(Protocol::to_string).collect::<Vec<_>>()
        };
        let usual = names(&[], false);
        assert_eq!(
            (usual.len(), usual[0].as_str(), usual[8].as_str()),
            (9, known::EVALUATED[0], "gw,ts-wait,2pcw+read")
        );
        assert_eq!(names(&[], true), QUICK);
        assert_eq!(
            names(&["palladio", "direct,ts,2pcw", "fab"], true),
            ["direct,ts,2pcw", "gw,ts,2pcw+read"]
        );
    }

    #[test]
    fn an_order_has_all_and_the_seed_tells_which() {
        let mut sorted = shuffled(9, 5);
        assert_eq!(shuffled(9, 5), sorted);
        assert!((1..5).any(|seed| shuffled(9, seed) != sorted));
        sorted.sort_unstable();
        assert_eq!(sorted, (0..9).collect::<Vec<_>>());
    }
}
