//! `sim years`: one cluster that grows old.

use super::lines::Lines;
use super::panics;
use crate::global::Global;
use crate::output;
use anyhow::{Context, Result};
use serde_json::json;
use sim::Options;
use sim::years::{self, Month};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

const MONTHS_OF_A_YEAR: u32 = 12;
/// Years of which the end is shown: what fits into 80 columns.
const COLUMNS_MAX: u32 = 5;

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
    /// Write every event there, a JSON line each: about a gigabyte a year
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: &Years) -> Result<ExitCode> {
    panics::keep();
    let (start, total) = (Instant::now(), args.years * MONTHS_OF_A_YEAR);
    let bar = output::progress(u64::from(total), "growing old", false);
    let mut months: Vec<Month> = Vec::new();
    let lines = args.trace.as_deref().map(Lines::to_file).transpose()?;
    let to = lines.clone().map(|lines| Box::new(lines) as Box<dyn Write>);
    let outcome = panics::catch(|| {
        years::run(args.seed, &Options::default(), total, to, &mut |month| {
            bar.inc(1);
            months.push(month.clone());
        })
    });
    bar.finish_and_clear();
    if let (Some(lines), Some(path)) = (lines, &args.trace) {
        lines.finish().with_context(|| format!("cannot write the trace {}", path.display()))?;
    }
    let wall_s = start.elapsed().as_secs_f64();
    let violation = outcome.as_ref().map_or_else(Some, |outcome| outcome.violation.as_ref());
    if global.json {
        output::print_json(&json!({
            "outcome": outcome.as_ref().ok(), "violation": violation, "months": months, "wall_s": wall_s,
        }));
    } else {
        if let Ok(outcome) = &outcome {
            output::print_marked("Cluster:", &outcome.cluster);
        }
        print_tables(&months);
        let bricks = months.last().map_or(0, |month| month.bricks_ever);
        let counts = outcome.as_ref().map_or_else(
            |_| String::new(),
            |outcome| {
                let (events, operations) = (outcome.events, outcome.operations);
                format!(", {}, {}", output::count(events, "event"), output::count(operations, "operation"))
            },
        );
        println!("\n{} of {total} months, {bricks} bricks in all{counts} in {wall_s:.0} s", months.len());
        match violation {
            None => println!("No promise was broken, and no table grew beyond its bound."),
            Some(violation) => {
                println!(
                    "! {violation}\n  Repeat it: brickwork sim years --years {} --seed {}",
                    args.years, args.seed
                )
            }
        }
    }
    let is_clean = violation.is_none();
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A column for the first month, and one each for the ends of five years at most.
fn print_tables(months: &[Month]) {
    let years = (months.len() as u32).div_ceil(MONTHS_OF_A_YEAR);
    let every = years.div_ceil(COLUMNS_MAX).max(1) * MONTHS_OF_A_YEAR;
    let ends: Vec<&Month> =
        months.iter().filter(|month| month.number == 1 || month.number.is_multiple_of(every)).collect();
    let Some(last) = ends.last() else { return };
    let headings: Vec<String> = ends.iter().map(|month| format!("month {}", month.number)).collect();
    let headings: Vec<&str> = core::iter::once("").chain(headings.iter().map(String::as_str)).collect();
    let mut table = output::table(&headings);
    for name in last.tables.keys() {
        let size = |month: &&Month| month.tables.get(name).copied().unwrap_or_default().to_string();
        table.add_row(core::iter::once((*name).to_owned()).chain(ends.iter().map(size)));
    }
    output::align_right(&mut table, &(1..headings.len()).collect::<Vec<_>>());
    println!("\n{}", output::render(&table));
}
