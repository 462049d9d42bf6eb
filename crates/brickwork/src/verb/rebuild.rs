//! `brickwork rebuild`: how bricks catch up, and how lost ones are rebuilt on other bricks.

use super::{client, watch};
use crate::config::{Bytes, Period, keys};
use crate::global::Global;
use crate::{output, view};
use anyhow::Result;
use base::BLOCK_U64;
use std::process::ExitCode;
use std::time::Duration;
use wire::{AdminRequest, ClusterStatus};

/// How long progress is looked at to say when it will be over.
const LOOK: Duration = Duration::from_secs(1);

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Shows how far bricks have caught up, and sets how fast they do. You need not start anything: a brick that returns fetches
what it missed, and the blocks of a brick that stays away for --after are rebuilt on other bricks. Clients are served meanwhile.

Columns: the group, the brick that catches up in it, how much of the group it has compared, how much it has fetched because
blocks were missing or old, and the time left, estimated from one second.

Settings apply to the whole cluster. The directory stores them, and they override directory.toml.

Exits with 0 when all data are redundant, otherwise with 1. With --wait, exits with 1 only after --timeout.

Examples:
  brickwork rebuild                          shows the progress
  brickwork rebuild --wait && echo redundant
  brickwork rebuild --rate 50MiB             slower, to leave more to clients
  brickwork rebuild --after 1h               before a long maintenance")]
pub struct Args {
    #[command(flatten)]
    waiting: watch::Waiting,
    /// How many bytes a second each brick may fetch while it catches up
    #[arg(long, value_name = "SIZE", value_parser = parse_rate)]
    rate: Option<Bytes>,
    /// How long a brick may be away before its blocks are rebuilt on other bricks
    #[arg(long, value_name = "TIME", value_parser = parse_after)]
    after: Option<Period>,
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<ExitCode> {
    if args.rate.is_some() || args.after.is_some() {
        let request = AdminRequest::SetCare {
            rebuild_bytes_per_second: args.rate.map(|rate| rate.0),
            scrub_bytes_per_second: None,
            scrub_interval_s: None,
            rebuild_after_s: args.after.map(|after| after.seconds),
        };
        client::call(global, request)?;
    }
    if args.waiting.wait {
        return watch::rebuild(global, &args.waiting, &view::is_redundant);
    }
    let mut status = client::status(global)?;
    if global.json {
        output::print_json(&watch::rebuild_json(&status));
    } else {
        status = print(global, status)?;
    }
    let is_whole = view::is_redundant(&status) && !view::has_lost(&status);
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints how far everything is, from two looks where something catches up; returns the latest.
fn print(global: &Global, before: ClusterStatus) -> Result<ClusterStatus> {
    let mut status = before.clone();
    if watch::catching_up(&before).next().is_some() {
        std::thread::sleep(LOOK);
        status = client::status(global)?;
    }
    if view::is_redundant(&status) {
        println!("{}", watch::nothing_to_rebuild(&status));
    } else if watch::catching_up(&status).next().is_none() {
        println!("Not all data are redundant, and no brick is fetching what it lacks now.");
    } else {
        println!("{}", output::render(&table(&before, &status)));
    }
    watch::redundancy_problems(&status).iter().for_each(|problem| output::print_marked("!", problem));
    let care = &status.care;
    println!(
        "Each brick fetches at most {}/s; one that is away is replaced after {}.",
        Bytes(care.rebuild_bytes_per_second),
        Period { seconds: care.rebuild_after_s }
    );
    Ok(status)
}

/// What catches up, and how fast, from two looks at it.
fn table(before: &ClusterStatus, after: &ClusterStatus) -> comfy_table::Table {
    let mut table = output::table(&["group", "brick", "compared", "of", "fetched", "left"]);
    for (brick, group) in watch::catching_up(after) {
        let same = |(of, old): &(base::BrickId, &wire::CatchUp)| *of == brick && old.group == group.group;
        let compared = watch::catching_up(before).find(same).map_or(0, |(_, old)| old.compared_blocks);
        let rate = group.compared_blocks.saturating_sub(compared);
        let left = group.total_blocks.saturating_sub(group.compared_blocks).checked_div(rate);
        table.add_row([
            group.group.to_string(),
            brick.to_string(),
            Bytes(group.compared_blocks * BLOCK_U64).to_string(),
            Bytes(group.total_blocks * BLOCK_U64).to_string(),
            Bytes(group.fetched_bytes).to_string(),
            left.map_or_else(|| "?".to_owned(), |looks| view::ago((looks + 1) * LOOK.as_millis() as u64)),
        ]);
    }
    output::align_right(&mut table, &[2, 3, 4, 5]);
    table
}

/// A rate that gets somewhere.
pub fn parse_rate(text: &str) -> Result<Bytes, String> {
    let rate: Bytes = text.trim_end_matches("/s").parse().map_err(|error| format!("{error}"))?;
    keys::check_rate("it", rate).map(|()| rate)
}

fn parse_after(text: &str) -> Result<Period, String> {
    let after: Period = text.parse().map_err(|error| format!("{error}"))?;
    keys::check_after("it", after).map(|()| after)
}
