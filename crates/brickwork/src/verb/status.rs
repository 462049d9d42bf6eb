//! `brickwork status`: how bricks, gateways and volumes are.

use super::{client, watch};
use crate::config::Bytes;
use crate::global::Global;
use crate::{output, view};
use anyhow::Result;
use std::process::ExitCode;
use std::time::Duration;
use wire::ClusterStatus;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
The first lines say whether anything needs an operator, and what to do. Of a large cluster the tables show 50 bricks, volumes and gateways each,
those that do not serve first, then others that need attention; --all shows all. --check and --json always look at all.

Examples:
  brickwork status
  brickwork status --all
  brickwork status --watch
  brickwork status --check || page-the-operator
  brickwork status --json | jq '.bricks[] | select(.alive | not)'")]
pub struct Args {
    /// Exit with 1 when anything needs an operator
    #[arg(long)]
    check: bool,
    /// Show all bricks, gateways and volumes; without it, at most 50 of each
    #[arg(long)]
    all: bool,
    /// Show it anew every two seconds, until Ctrl-C
    #[arg(long, conflicts_with = "check")]
    watch: bool,
}

/// So many of each table's rows are shown unless all are asked for.
const SHOWN_MAX: u32 = 50;
/// Between two looks: bricks say how they are about twice a second, gateways every two seconds.
const AGAIN: Duration = Duration::from_secs(2);

/// Prints it.
pub fn run(global: &Global, args: Args) -> Result<ExitCode> {
    if args.watch {
        watch::redraw(AGAIN, || show(global, &args, true).map(drop))?;
        return Ok(ExitCode::SUCCESS);
    }
    let status = show(global, &args, false)?;
    let sick = args.check && !view::problems(&status).is_empty();
    Ok(if sick { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show(global: &Global, args: &Args, in_place: bool) -> Result<ClusterStatus> {
    let status = match args.all || args.check || global.json {
        true => client::status(global)?,
        false => client::summary(global, SHOWN_MAX)?,
    };
    if global.json {
        output::print_json(&view::status_json(&status));
        return Ok(status);
    }
    if in_place {
        watch::clear();
    }
    print(&status);
    Ok(status)
}

fn print(status: &ClusterStatus) {
    let problems = view::problems(status);
    if problems.is_empty() {
        println!("All is well: every brick serves, every volume has its full redundancy.");
    }
    for problem in problems {
        output::print_marked("!", &problem);
    }
    print_bricks(status);
    print_volumes(status);
    print_gateways(status);
}

fn print_gateways(status: &ClusterStatus) {
    if status.gateways.is_empty() {
        return;
    }
    let mut table = output::table(&["gateway", "address", "open volumes", "clients", "state"]);
    for gateway in &status.gateways {
        let address = if gateway.address.is_empty() { "within an attach" } else { gateway.address.as_str() };
        let clients: u32 = gateway.opened.iter().map(|of| of.users).sum();
        table.add_row([
            gateway.name.clone(),
            address.to_owned(),
            gateway.opened.len().to_string(),
            clients.to_string(),
            view::gateway_heard(gateway),
        ]);
    }
    output::align_right(&mut table, &[2, 3]);
    println!("\n{}", output::render(&table));
    if let Some(counts) = &status.counts {
        print_rest("gateway", counts.gateways, status.gateways.len(), None);
    }
}

fn print_bricks(status: &ClusterStatus) {
    if status.bricks.is_empty() {
        return;
    }
    let mut table = output::table(&["brick", "state", "address", "used", "groups"]);
    for brick in &status.bricks {
        table.add_row([
            brick.id.to_string(),
            view::brick_state_since(brick),
            brick.status.address.clone(),
            view::usage(&brick.status),
            brick.groups.to_string(),
        ]);
    }
    output::align_right(&mut table, &[4]);
    println!("\n{}", output::render(&table));
    if let Some(counts) = &status.counts {
        print_rest("brick", counts.bricks, status.bricks.len(), Some(counts.unwell_bricks));
    }
    for brick in status.bricks.iter().filter(|brick| view::synced_disks(&brick.status).next().is_some()) {
        let disks: Vec<String> = view::synced_disks(&brick.status).map(|disk| disk.to_string()).collect();
        let (id, disks) = (brick.id, disks.join(", "));
        output::print_marked("=", &format!("{id}: each durable write is followed by a sync (disk {disks})."));
    }
}

fn print_volumes(status: &ClusterStatus) {
    if status.volumes.is_empty() {
        return;
    }
    let mut table = output::table(&["volume", "size", "layout", "groups", "state"]);
    // A snapshot is as its volume is; `volume list` shows them.
    let volumes = || status.volumes.iter().filter(|volume| !volume.volume.is_snapshot);
    for volume in volumes() {
        let read_only = if volume.volume.read_only { ", read-only" } else { "" };
        table.add_row([
            volume.volume.name.clone(),
            Bytes(volume.volume.size_bytes).to_string(),
            volume.volume.layout.clone(),
            volume.groups.to_string(),
            format!("{}{read_only}", view::volume_state(volume)),
        ]);
    }
    output::align_right(&mut table, &[1, 3]);
    println!("\n{}", output::render(&table));
    if let Some(counts) = &status.counts {
        print_rest("volume", counts.volumes, volumes().count(), Some(counts.unwell_volumes));
    }
}

/// How many more there are than the table shows, which begins with those that need attention.
fn print_rest(what: &str, count: u32, shown: usize, unwell: Option<u32>) {
    if let Some(line) = rest(what, count, shown, unwell) {
        println!("{line}");
    }
}

fn rest(what: &str, count: u32, shown: usize, unwell: Option<u32>) -> Option<String> {
    let (shown, more) = (shown as u32, count.saturating_sub(shown as u32));
    let how = match unwell.map(|unwell| unwell.saturating_sub(shown)) {
        Some(0) => ", none of which needs attention",
        Some(unwell) => &format!(", of which {unwell} need attention"),
        None => "",
    };
    (more > 0).then(|| {
        format!(
            "and {}{how}: `brickwork status --all`",
            output::count(u64::from(more), &format!("more {what}"))
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_table_does_not_show_is_counted() {
        assert_eq!(rest("volume", 50, 50, Some(3)), None);
        let said = rest("volume", 1050, 50, Some(3)).unwrap();
        assert_eq!(said, "and 1000 more volumes, none of which needs attention: `brickwork status --all`");
        let said = rest("brick", 151, 50, Some(60)).unwrap();
        assert_eq!(said, "and 101 more bricks, of which 10 need attention: `brickwork status --all`");
        assert_eq!(rest("gateway", 51, 50, None).unwrap(), "and 1 more gateway: `brickwork status --all`");
    }
}
