//! `sim years`: one cluster that grows old.

use super::panics;
use crate::global::Global;
use crate::output;
use anyhow::Result;
use serde_json::json;
use sim::Options;
use sim::years::{self, Month};
use std::process::ExitCode;
use std::time::Instant;

const MONTHS_OF_A_YEAR: u32 = 12;

/// `sim years`.
#[derive(clap::Args, Clone)]
#[command(after_help = "\
A cluster of twelve bricks. In each month bricks, gateways and the directory crash, disks rot, are exchanged or replaced by
older copies, a brick may run twice, the network fails, and volumes, snapshots and streams come and go. Then all is healed. The
oldest brick and those that were lost give way to new ones and are forgotten; every fourth month the directory moves to another
machine; and all clocks go on by a month. At the end of each month all groups must be redundant, and no brick may know anything
of deleted volumes. From month 7 on no table may have more than twice its largest size in months 1 to 6; one of up to 16 entries
is never too large. A year takes 20 to 70 seconds of a processor.

Examples:
  brickwork sim years
  brickwork sim years --years 1 --seed 7 --json")]
pub(super) struct Years {
    /// How many years
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    years: u32,
    /// What is drawn, and when
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

pub(super) fn run(global: &Global, args: &Years) -> Result<ExitCode> {
    panics::keep();
    let (start, total) = (Instant::now(), args.years * MONTHS_OF_A_YEAR);
    let bar = output::progress(u64::from(total), "growing old", false);
    let mut months: Vec<Month> = Vec::new();
    let outcome = years::run(args.seed, &Options::default(), total, &mut |month| {
        bar.inc(1);
        months.push(month.clone());
    });
    bar.finish_and_clear();
    let wall_s = start.elapsed().as_secs_f64();
    let is_clean = outcome.violation.is_none();
    if global.json {
        output::print_json(&json!({ "outcome": outcome, "months": months, "wall_s": wall_s }));
    } else {
        println!("{}", outcome.cluster);
        print_tables(&months);
        let bricks = months.last().map_or(0, |month| month.bricks_ever);
        println!(
            "\n{} of {total} months, {bricks} bricks in all, {}, {} in {wall_s:.0} s",
            months.len(),
            output::count(outcome.events, "event"),
            output::count(outcome.operations, "operation")
        );
        match &outcome.violation {
            None => println!("No promise was broken, and no table grew beyond its bound."),
            Some(violation) => {
                println!(
                    "! {violation}\n  Repeat it: brickwork sim years --years {} --seed {}",
                    args.years, args.seed
                )
            }
        }
    }
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A column for the first month, and one for the end of each year.
fn print_tables(months: &[Month]) {
    let ends =
        months.iter().filter(|month| month.number == 1 || month.number.is_multiple_of(MONTHS_OF_A_YEAR));
    let ends: Vec<&Month> = ends.collect();
    let Some(last) = ends.last() else { return };
    let titles: String =
        ends.iter().map(|month| format!("{:>9}", format!("month {}", month.number))).collect();
    println!("\n{:<36}{titles}", "");
    for name in last.tables.keys() {
        let row: String = ends
            .iter()
            .map(|month| format!("{:>9}", month.tables.get(name).copied().unwrap_or_default()))
            .collect();
        println!("{name:<36}{row}");
    }
}
