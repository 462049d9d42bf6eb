//! `brickwork scrub`: every brick checks every block that it holds, and has repaired what is rotten or old.

use super::rebuild::parse_rate;
use super::{client, watch};
use crate::config::{Bytes, Period};
use crate::global::Global;
use crate::{output, view};
use anyhow::Result;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Instant;
use wire::directory::BrickEntry;
use wire::{AdminRequest, ClusterStatus, ScrubStatus};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Begins a scrub on all bricks now. Bricks also scrub by themselves once in --every. A scrub reads each block from the disk,
verifies its checksum, and compares its stamp with the other members of the group. Blocks that are unreadable or old are
repaired from the others. A block that no member can produce is lost: reads of that block fail with EIO, and this command
and `brickwork status` name its volume and bytes. A block that a full brick has no room to repair is counted here and served
by the other bricks; the next scrub tries again.

--rate and --every without --wait only change the setting. Settings apply to the whole cluster. The directory stores them,
and they override directory.toml.

With --wait, exits with 0 when every block was checked and everything found was repaired. Exits with 1 when something is not
repaired, when a brick could not be checked, or after --timeout.

Examples:
  brickwork scrub --wait                     prints the result
  brickwork scrub --wait --rate 200MiB       faster, from now on
  brickwork scrub --every 30d                less often
  brickwork scrub --every off                never by itself
  brickwork scrub --wait --json | jq .lost")]
pub struct Args {
    #[command(flatten)]
    waiting: watch::Waiting,
    /// How many bytes a second each brick may read while it scrubs
    #[arg(long, value_name = "SIZE", value_parser = parse_rate)]
    rate: Option<Bytes>,
    /// How often bricks scrub by themselves (7d, 12h); off: only on command
    #[arg(long, value_name = "TIME")]
    every: Option<Period>,
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<ExitCode> {
    let is_set = args.rate.is_some() || args.every.is_some();
    if is_set {
        let request = AdminRequest::SetCare {
            rebuild_bytes_per_second: None,
            scrub_bytes_per_second: args.rate.map(|rate| rate.0),
            scrub_interval_s: args.every.map(|every| every.seconds),
            rebuild_after_s: None,
        };
        client::call(global, request)?;
    }
    if is_set && !args.waiting.wait {
        print_settings(global, &client::status(global)?);
        return Ok(ExitCode::SUCCESS);
    }
    let started = client::status_of(client::call(global, AdminRequest::Scrub)?)?;
    if args.waiting.wait {
        return wait(global, &args.waiting, started.care.scrub);
    }
    if global.json {
        output::print_json(&json!({ "scrub": started.care.scrub, "bricks": takers(&started).count() }));
    } else {
        println!(
            "{} begin to check their blocks, at most {}/s each. Wait for what comes of it:\n  brickwork scrub --wait",
            output::count(takers(&started).count() as u64, "brick"),
            Bytes(started.care.scrub_bytes_per_second)
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn print_settings(global: &Global, status: &ClusterStatus) {
    if global.json {
        output::print_json(&view::care_json(status));
        return;
    }
    let every = Period { seconds: status.care.scrub_interval_s };
    let every = if every.seconds == 0 { "only when asked".to_owned() } else { format!("every {every}") };
    println!("Bricks scrub {every}, at most {}/s each.", Bytes(status.care.scrub_bytes_per_second));
}

/// Bricks that are there to be scrubbed.
fn takers(status: &ClusterStatus) -> impl Iterator<Item = &BrickEntry> {
    status.bricks.iter().filter(|brick| brick.alive && !brick.evicted && brick.status.failed.is_none())
}

/// Whether a brick is through with the scrub of this number, or a later one.
fn is_through(scrub: &ScrubStatus, number: u64) -> bool {
    scrub.number >= number && !scrub.running
}

/// Blocks that a scrub which is over has found and not repaired, although they can be made out.
fn unrepaired(brick: &BrickEntry) -> u64 {
    let (status, scrub) = (&brick.status, &brick.status.scrub);
    let found_blocks = if scrub.running { 0 } else { scrub.found_blocks };
    found_blocks.saturating_sub(scrub.repaired_blocks + status.rot.lost_blocks)
}

fn wait(global: &Global, waiting: &watch::Waiting, number: u64) -> Result<ExitCode> {
    let start = Instant::now();
    let mut bars = watch::Bars::new(global.json);
    let done = |status: &ClusterStatus| takers(status).all(|brick| is_through(&brick.status.scrub, number));
    let (status, is_done) = watch::until(global, waiting, &done, |status| {
        for brick in takers(status) {
            let scrub = &brick.status.scrub;
            let name = format!("{}, {} repaired of {}", brick.id, scrub.repaired_blocks, scrub.found_blocks);
            let checked = if is_through(scrub, number) { scrub.total_blocks } else { scrub.checked_blocks };
            if scrub.number >= number {
                bars.set(&format!("{:010}", brick.id.0), name, checked, scrub.total_blocks);
            }
        }
        bars.end_round();
    })?;
    bars.clear();
    let outcome = Outcome::of(&status, number, is_done);
    if global.json {
        output::print_json(&outcome.json(&status, start.elapsed().as_secs_f64()));
    } else {
        outcome.print(&view::span(start.elapsed()));
    }
    Ok(if outcome.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What came of a scrub.
struct Outcome {
    is_done: bool,
    checked_blocks: u64,
    found_blocks: u64,
    repaired_blocks: u64,
    /// Of all bricks; blocks for which there was no room in `lost` are counted here as well.
    lost_blocks: u64,
    lost: Vec<view::LostRange>,
    /// Volumes that lost all that a disk had of them, which no scrub looks for.
    bare: Vec<String>,
    /// Blocks, and the bricks that had no room to repair them.
    without_room: Vec<(u64, String)>,
    /// Bricks that hold blocks and were not there to be checked.
    missed: Vec<String>,
}

impl Outcome {
    fn of(status: &ClusterStatus, number: u64, is_done: bool) -> Outcome {
        let sum = |of: fn(&BrickEntry) -> u64| takers(status).map(of).sum();
        // A brick checks only groups of which it is a current member.
        let was_missed = |brick: &&BrickEntry| {
            let scrub = &brick.status.scrub;
            let is_checked = brick.alive && brick.stale_groups == 0 && is_through(scrub, number);
            brick.groups > 0
                && !(is_checked && (scrub.total_blocks > 0 || brick.status.space.used_bytes == 0))
        };
        let without_room = takers(status).filter(|brick| is_through(&brick.status.scrub, number));
        let without_room = without_room.map(|brick| (unrepaired(brick), brick.id.to_string()));
        Outcome {
            is_done,
            checked_blocks: sum(|brick| brick.status.scrub.checked_blocks),
            found_blocks: sum(|brick| brick.status.scrub.found_blocks),
            repaired_blocks: sum(|brick| brick.status.scrub.repaired_blocks),
            lost_blocks: status.bricks.iter().map(|brick| brick.status.rot.lost_blocks).sum(),
            lost: view::lost_ranges(status),
            bare: status.volumes.iter().filter(|of| of.lost > 0).map(|of| of.volume.name.clone()).collect(),
            without_room: without_room.filter(|(blocks, _)| *blocks > 0).collect(),
            missed: status.bricks.iter().filter(was_missed).map(|brick| brick.id.to_string()).collect(),
        }
    }

    fn is_clean(&self) -> bool {
        let is_repaired = self.lost_blocks == 0 && self.lost.is_empty() && self.without_room.is_empty();
        self.is_done && is_repaired && self.bare.is_empty() && self.missed.is_empty()
    }

    fn print(&self, took: &str) {
        let [checked, found, lost] = [self.checked_blocks, self.found_blocks, self.lost_blocks]
            .map(|blocks| output::count(blocks, "block"));
        let end = if self.is_done { "" } else { " so far; it goes on" };
        println!(
            "{checked} checked in {took}{end}: {found} rotten or old, {} repaired, {lost} lost.",
            self.repaired_blocks
        );
        for range in &self.lost {
            output::print_marked(
                "!",
                &format!(
                    "Lost: {range}. Reads of it end with EIO until it is written again, or a brick that has it returns."
                ),
            );
        }
        for volume in &self.bare {
            let line = format!(
                "Lost with a disk: blocks of '{volume}'; `brickwork volume lost {volume}` lists them."
            );
            output::print_marked("!", &line);
        }
        for (blocks, brick) in &self.without_room {
            let blocks = output::count(*blocks, "block");
            let line =
                format!("Not repaired: {blocks} on {brick}, which has no room. Make some, then scrub again.");
            output::print_marked("!", &line);
        }
        if !self.missed.is_empty() {
            output::print_marked("!", &format!("Not checked, or not all of it: {}.", self.missed.join(", ")));
        }
    }

    fn json(&self, status: &ClusterStatus, waited_s: f64) -> Value {
        let bricks: Vec<Value> = status
            .bricks
            .iter()
            .map(|brick| {
                let mut value = view::scrub_json(&brick.status);
                value["brick"] = json!(brick.id.0);
                value["lost_blocks"] = json!(brick.status.rot.lost_blocks);
                value["without_room_blocks"] = json!(unrepaired(brick));
                value
            })
            .collect();
        json!({
            "done": self.is_done, "clean": self.is_clean(), "waited_s": waited_s, "checked_blocks": self.checked_blocks,
            "found_blocks": self.found_blocks, "repaired_blocks": self.repaired_blocks, "lost_blocks": self.lost_blocks,
            "lost": view::lost_json(&self.lost), "volumes_with_lost_blocks": self.bare, "missed": self.missed, "bricks": bricks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::BrickStatus;

    /// A brick whose scrub has found three blocks and repaired one.
    fn brick() -> BrickEntry {
        let scrub = ScrubStatus { number: 4, found_blocks: 3, repaired_blocks: 1, ..ScrubStatus::default() };
        BrickEntry {
            id: base::BrickId(3),
            alive: true,
            silent_ms: Some(4),
            groups: 0,
            stale_groups: 0,
            joining_groups: 0,
            evicted: false,
            slow: None,
            status: BrickStatus { scrub, ..BrickStatus::default() },
            version: 1,
            stand_in_groups: 0,
            caught_up_percent: None,
        }
    }

    fn outcome(brick: BrickEntry) -> Outcome {
        let (gateways, volumes, warnings) = (Vec::new(), Vec::new(), Vec::new());
        let care = wire::Care::default();
        Outcome::of(
            &ClusterStatus {
                bricks: vec![brick],
                gateways,
                volumes,
                version: 1,
                care,
                warnings,
                store: None,
                next: None,
                counts: None,
            },
            4,
            true,
        )
    }

    #[test]
    fn what_found_no_room_is_told_apart_from_what_is_lost() {
        let full = outcome(brick());
        assert_eq!((full.without_room.clone(), full.is_clean()), (vec![(2, "brick-3".to_owned())], false));
        let mut lost = brick();
        lost.status.rot.lost_blocks = 2;
        assert_eq!(outcome(lost).without_room, []);
        let mut clean = brick();
        clean.status.scrub.repaired_blocks = 3;
        assert!(outcome(clean).is_clean());
        let mut running = brick();
        running.status.scrub.running = true;
        assert_eq!(outcome(running).without_room, [], "not before it is over");
    }
}
