//! `cargo xtask bench fairness`: what streams get of disks that cannot give all that is asked.
//!
//! Reading order: [`verb`] (what is run), `bed` (the cluster), `load` (what clients ask and see), then a file for each situation: `shares` (three
//! streams, 1:2:4), `killed` (the same while a brick dies and is rebuilt), `rates` (a reservation under attack, a limit), `quiet` (one that asks
//! little beside one that asks much), `ceph` (what three tenants get of Ceph); `table` and what must hold. Daemons are real, on this machine; disks
//! are emulated or files.

mod bed;
mod ceph;
mod killed;
mod load;
mod quiet;
mod rates;
mod shares;
mod table;

use super::demand::Demand;
use crate::place;
use anyhow::{Result, bail, ensure};
use bed::Disk;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Places of a disk in all situations on emulated disks: a stream that has four requests under way still has one that waits.
const PLACES: u32 = 2;
/// Of a file: with one request at a time the disk is as short as it can be.
const PLACES_OF_FILE: u32 = 1;

/// A situation that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Situation {
    /// Three greedy streams 1:2:4 on skewed layouts, on emulated disks; without streams, and with them
    Shares,
    /// The same on files of this machine's disk: as they are, and with accesses that take 2 ms more
    Files,
    /// The same clients on Ceph, on such files too, if Ceph is installed: it has no weights by client
    Ceph,
    /// Three greedy streams on three copies, while a brick is killed and rebuilt
    Killed,
    /// A reservation under attack, and a limit
    Rates,
    /// A quiet stream beside a greedy one
    Quiet,
}

/// How to measure.
#[derive(Args)]
#[command(after_help = "\
Examples:
  cargo xtask bench fairness --quick
  cargo xtask bench fairness --json > fairness.json
  cargo xtask bench fairness --only files --only ceph
  cargo xtask bench fairness --only shares --only killed --seconds 30")]
pub(crate) struct Options {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Seconds of each run, after it has gone on for half as long
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=3600))]
    seconds: u64,
    /// A few seconds for each: to see that it works, not to quote
    #[arg(long)]
    quick: bool,
    /// Only this situation; may be repeated
    #[arg(long = "only")]
    only: Vec<Situation>,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// How long a run is.
pub(super) struct Times {
    warm_up: Duration,
    measure: Duration,
}

/// All that was measured.
#[derive(Default)]
struct Results {
    shares: Vec<shares::Shares>,
    killed: Option<killed::Killed>,
    rates: Option<rates::Rates>,
    quiet: Vec<quiet::Quiet>,
}

/// Measures and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let binary = place::binary(options.binary.as_deref())?;
    let seconds = if options.quick { 4 } else { options.seconds };
    let times = Times { warm_up: Duration::from_secs(seconds / 2), measure: Duration::from_secs(seconds) };
    let is_wanted = |one: &Situation| options.only.is_empty() || options.only.contains(one);
    let (mut results, mut failed) = (Results::default(), Vec::new());
    for one in Situation::value_variants().iter().copied().filter(is_wanted) {
        let name = one.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        eprintln!("{name}");
        // What else was measured is told all the same.
        if let Err(error) = results.measure(one, options, &binary, &times) {
            eprintln!("{name}: {error:#}");
            failed.push(name);
        }
    }
    let demands = demands(&results);
    if options.json {
        println!("{}", as_json(seconds, &results, &demands));
    } else {
        table::print(&results, &demands);
    }
    ensure!(failed.is_empty(), "not measured: {}", failed.join(", "));
    Ok(())
}

impl Results {
    fn measure(&mut self, one: Situation, options: &Options, binary: &Path, times: &Times) -> Result<()> {
        match one {
            Situation::Shares => {
                self.shares.extend(shares::measure(binary, Disk::Emulated, PLACES, times)?);
            }
            Situation::Files => {
                self.shares.extend(shares::measure(binary, Disk::File, PLACES_OF_FILE, times)?);
                self.shares.extend(shares::measure(binary, Disk::LateFile, PLACES, times)?);
            }
            Situation::Ceph => match ceph::missing()? {
                None => self.shares.push(ceph::measure(times)?),
                Some(what) if options.only.contains(&Situation::Ceph) => bail!("{what}"),
                Some(what) => eprintln!("skipped: {what}"),
            },
            Situation::Killed => self.killed = Some(killed::measure(binary, PLACES, times)?),
            Situation::Rates => self.rates = Some(rates::measure(binary, PLACES, times)?),
            Situation::Quiet => self.quiet = quiet::measure(binary, PLACES, times)?,
        }
        Ok(())
    }
}

/// What must hold of what was measured.
fn demands(results: &Results) -> Vec<Demand> {
    let mut demands = Vec::new();
    // What is shared are disks: of files that are faster than the processors the table tells, and nothing is demanded.
    let must_show = |shares: &&shares::Shares| shares.server.places().is_some() && shares.disk != Disk::File;
    for shares in results.shares.iter().filter(must_show) {
        let what = format!("1:2:4, {} disks: the worst share's error", shares.disk.name());
        demands.push(Demand::at_most(what, shares.error(), 0.05));
    }
    if let Some(killed) = &results.killed {
        let what = "from 1 s after the view change: the worst 5 s' error";
        demands.push(Demand::at_most(what, killed.errors().0, 0.1));
    }
    if let Some(rates) = &results.rates {
        let part = rates.reserved[0] / f64::from(rates::RESERVED);
        demands.push(Demand::at_least("what is reserved, under attack", part, 0.95));
        for (how, most) in [("alone", rates.limited_most), ("beside another", rates.beside_most)] {
            let what = format!("most in any second over the limit, {how}");
            demands.push(Demand::at_most(what, most as f64 / f64::from(rates::LIMITED), 1.05));
        }
    }
    if let [alone, .., last] = results.quiet.as_slice() {
        let what = "a quiet stream's p99 with a target over its p99 alone";
        demands.push(Demand::at_most(what, last.p99_ms / alone.p99_ms, 2.0));
    }
    demands
}

fn as_json(seconds: u64, results: &Results, demands: &[Demand]) -> serde_json::Value {
    json!({
        "machine": {"processors": std::thread::available_parallelism().map_or(0, usize::from)},
        "seconds": seconds,
        "shares": results.shares.iter().map(shares::Shares::json).collect::<Vec<_>>(),
        "killed": results.killed.as_ref().map(killed::Killed::json),
        "rates": results.rates.as_ref().map(rates::Rates::json),
        "quiet": results.quiet.iter().map(quiet::Quiet::json).collect::<Vec<_>>(),
        "claims": demands.iter().map(Demand::json).collect::<Vec<_>>(),
    })
}
