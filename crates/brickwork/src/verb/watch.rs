//! Watches the cluster: until something is done, with progress bars for people and one JSON value at the end for programs; or
//! for as long as somebody looks ([`redraw`]).
//!
//! The directory knows no more than what bricks said with their last heartbeats, so that asking it a few times a second
//! is enough.

use super::client;
use crate::config::{Bytes, Period};
use crate::global::Global;
use crate::{output, view};
use anyhow::Result;
use base::{BLOCK_U64, BrickId};
use indicatif::{MultiProgress, ProgressBar};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wire::{CatchUp, ClusterStatus};

/// Time between two questions.
const AGAIN: Duration = Duration::from_millis(200);
/// For how long all must be done before it is believed: the directory acts on what it was told, and on what bricks say,
/// some moments later.
const HOLD: Duration = Duration::from_secs(1);
/// Bars shown at a time.
const BARS_MAX: usize = 12;

/// To the top left, and nothing on the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows something anew and again, until nobody reads it any more.
pub fn redraw(every: Duration, mut show: impl FnMut() -> Result<()>) -> Result<()> {
    loop {
        show()?;
        if !output::is_complete() {
            return Ok(());
        }
        std::thread::sleep(every);
    }
}

/// What is shown next takes the place of what is on the terminal.
pub fn clear() {
    if std::io::stdout().is_terminal() {
        print!("{CLEAR}");
    }
}

/// Flags of verbs that wait.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Waiting {
    /// Wait until it is done, and show how far it is
    #[arg(long)]
    pub wait: bool,
    /// Give up waiting after this time (30s, 10m, 2h); the work itself goes on
    #[arg(long, value_name = "TIME", requires = "wait")]
    pub timeout: Option<Period>,
}

/// Asks until `done`, showing what `show` makes of each answer. The last answer, and whether it was done in time.
pub fn until(
    global: &Global,
    waiting: &Waiting,
    done: &dyn Fn(&ClusterStatus) -> bool,
    mut show: impl FnMut(&ClusterStatus),
) -> Result<(ClusterStatus, bool)> {
    let start = Instant::now();
    let mut done_since: Option<Instant> = None;
    loop {
        let status = client::status(global)?;
        done_since = done(&status).then(|| done_since.unwrap_or_else(Instant::now));
        let is_done = done_since.is_some_and(|since| since.elapsed() >= HOLD);
        let is_over = waiting.timeout.is_some_and(|limit| start.elapsed().as_secs() >= limit.seconds);
        if is_done || is_over {
            return Ok((status, is_done));
        }
        show(&status);
        std::thread::sleep(AGAIN);
    }
}

/// Watches bricks catch up until `done`. Ends with 0 when it is, with 1 when the time was over or blocks are lost for good.
pub fn rebuild(
    global: &Global,
    waiting: &Waiting,
    done: &dyn Fn(&ClusterStatus) -> bool,
) -> Result<ExitCode> {
    let start = Instant::now();
    let mut bars = Bars::new(global.json);
    let (mut fetched, mut told) = (Fetched::default(), Vec::new());
    let (status, is_done) = until(global, waiting, done, |status| {
        fetched.note(status);
        for (brick, group) in catching_up(status) {
            let name = format!("{} on {brick}, {}", group.group, Bytes(group.fetched_bytes));
            bars.set(&name_key(brick, group), name, group.compared_blocks, group.total_blocks);
        }
        bars.end_round();
        for obstacle in obstacles(status).into_iter().filter(|_| !global.json) {
            if !told.contains(&obstacle) {
                bars.note(&obstacle);
                told.push(obstacle);
            }
        }
    })?;
    bars.clear();
    if global.json {
        let mut value = rebuild_json(&status);
        value["fetched_bytes"] = json!(fetched.bytes());
        value["waited_s"] = json!(start.elapsed().as_secs_f64());
        value["done"] = json!(is_done);
        output::print_json(&value);
    } else if is_done {
        let fetched = match fetched.bytes() {
            0 => String::new(),
            bytes => format!("; {} fetched meanwhile", Bytes(bytes)),
        };
        println!("{} Waited {}{fetched}.", nothing_to_rebuild(&status), view::span(start.elapsed()));
    } else {
        let groups = output::count(catching_up(&status).count() as u64, "group");
        println!(
            "Not done after {}: {groups} to go (`brickwork rebuild` shows how far). It goes on.",
            view::span(start.elapsed())
        );
        redundancy_problems(&status).iter().for_each(|problem| output::print_marked("!", problem));
    }
    Ok(if is_done && !view::has_lost(&status) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is said once nothing catches up.
pub fn nothing_to_rebuild(status: &ClusterStatus) -> &'static str {
    match view::has_lost(status) {
        true => "Nothing is left to rebuild, but blocks are lost: `brickwork status` names the volumes.",
        false => "All data are redundant.",
    }
}

/// What a rebuild is at, for programs.
pub fn rebuild_json(status: &ClusterStatus) -> Value {
    let groups: Vec<Value> = catching_up(status)
        .map(|(brick, group)| {
            let mut value = view::catch_up_json(group);
            value["brick"] = json!(brick.0);
            value
        })
        .collect();
    let sum = |of: fn(&wire::directory::VolumeStatus) -> u32| -> u32 {
        let heads = status.volumes.iter().filter(|volume| volume.volume.id == volume.volume.family);
        heads.map(of).sum()
    };
    json!({
        "redundant": view::is_redundant(status), "degraded": sum(|volume| volume.degraded),
        "unavailable": sum(|volume| volume.unavailable), "rebuilding": sum(|volume| volume.rebuilding),
        "unplaced": sum(|volume| volume.unplaced), "groups": groups, "care": view::care_json(status),
    })
}

/// All groups in which a brick catches up.
pub fn catching_up(status: &ClusterStatus) -> impl Iterator<Item = (BrickId, &CatchUp)> {
    status.bricks.iter().filter(|brick| brick.alive).flat_map(|brick| {
        brick.status.groups.catching_up.iter().filter(|group| !group.done).map(move |group| (brick.id, group))
    })
}

/// What stands between the volumes and their redundancy, in words.
pub fn redundancy_problems(status: &ClusterStatus) -> Vec<String> {
    let mut told = obstacles(status);
    told.extend(status.bricks.iter().filter(|brick| !brick.alive && brick.groups > 0).map(|brick| {
        let for_how_long = brick
            .silent_ms
            .map_or_else(|| "since the directory started".to_owned(), |ms| format!("for {}", view::ago(ms)));
        let after = Period { seconds: status.care.rebuild_after_s };
        format!(
            "{} is away {for_how_long}: when it comes back it catches up, after {after} it is replaced.",
            brick.id
        )
    }));
    told
}

/// What waiting alone does not mend.
fn obstacles(status: &ClusterStatus) -> Vec<String> {
    let stuck = status.volumes.iter().filter(|volume| volume.unplaced > 0 && !volume.volume.is_snapshot);
    stuck
        .map(|volume| {
            format!(
                "Volume '{}': for {} of {} groups no other brick can take the place of the one that is missing (each member \
                 needs a brick of its own, with room): bring it back, or add one.",
                volume.volume.name, volume.unplaced, volume.groups
            )
        })
        .collect()
}

/// Names what one brick does in one group; in the order of bricks.
fn name_key(brick: BrickId, group: &CatchUp) -> String {
    format!("{:010}/{:020}", brick.0, group.group.0)
}

/// Bytes that bricks fetch while somebody looks, over all groups, also of those that are through by now. Bricks say how
/// far they are with each heartbeat, so that what is seen a few times between two of them misses nothing.
#[derive(Default)]
pub struct Fetched {
    /// By brick and group: what was seen last. None before the first look.
    last: Option<BTreeMap<String, u64>>,
    bytes: u64,
}

impl Fetched {
    /// Looks.
    pub fn note(&mut self, status: &ClusterStatus) {
        let is_first = self.last.is_none();
        let last = self.last.get_or_insert_default();
        for (brick, group) in status
            .bricks
            .iter()
            .flat_map(|brick| brick.status.groups.catching_up.iter().map(move |group| (brick.id, group)))
        {
            let bytes = group.fetched_bytes;
            self.bytes += match last.insert(name_key(brick, group), bytes) {
                // What was fetched before anybody looked does not count.
                None if is_first => 0,
                Some(last) if last <= bytes => bytes - last,
                // It began anew, under another view.
                None | Some(_) => bytes,
            };
        }
    }

    /// How many so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Progress bars by name; those that are not set in a round are gone.
pub struct Bars {
    all: MultiProgress,
    bars: BTreeMap<String, (ProgressBar, bool)>,
}

impl Bars {
    /// None yet, and never any with `silent`.
    pub fn new(silent: bool) -> Bars {
        Bars { all: output::progresses(silent), bars: BTreeMap::new() }
    }

    /// How far something is, in blocks. `key` names it, and orders the bars.
    pub fn set(&mut self, key: &str, name: String, position: u64, total: u64) {
        if !self.bars.contains_key(key) && self.bars.len() >= BARS_MAX {
            return;
        }
        let (bar, is_set) = self
            .bars
            .entry(key.to_owned())
            .or_insert_with(|| (self.all.add(output::progress_of(total * BLOCK_U64)), true));
        *is_set = true;
        bar.set_message(name);
        bar.set_length(total * BLOCK_U64);
        bar.set_position(position * BLOCK_U64);
    }

    /// Removes the bars that were not set since the last call.
    pub fn end_round(&mut self) {
        self.bars.retain(|_, (bar, is_set)| {
            if !*is_set {
                bar.finish_and_clear();
            }
            std::mem::take(is_set)
        });
    }

    /// A line above the bars.
    pub fn note(&self, line: &str) {
        self.all.suspend(|| output::print_marked("!", line));
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.bars.values().for_each(|(bar, _)| bar.finish_and_clear());
        self.bars.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{GroupId, ViewNumber};
    use wire::directory::BrickEntry;
    use wire::{BrickStatus, GroupProgress};

    fn at(fetched: &[(u64, u64)]) -> ClusterStatus {
        let group = |&(group, fetched_bytes): &(u64, u64)| CatchUp {
            group: GroupId(group),
            number: ViewNumber(1),
            compared_blocks: 0,
            total_blocks: 10,
            fetched_bytes,
            done: false,
        };
        let brick = BrickEntry {
            id: BrickId(1),
            alive: true,
            silent_ms: Some(1),
            groups: 1,
            stale_groups: 1,
            joining_groups: 1,
            evicted: false,
            slow: None,
            status: BrickStatus {
                groups: GroupProgress {
                    catching_up: fetched.iter().map(group).collect(),
                    ..GroupProgress::default()
                },
                ..BrickStatus::default()
            },
            stand_in_groups: 0,
            caught_up_percent: None,
            version: 1,
        };
        ClusterStatus {
            bricks: vec![brick],
            gateways: Vec::new(),
            volumes: Vec::new(),
            version: 1,
            care: wire::Care::default(),
            warnings: Vec::new(),
            store: None,
            next: None,
            counts: None,
        }
    }

    #[test]
    fn fetched_bytes_are_those_since_somebody_looks() {
        let mut fetched = Fetched::default();
        fetched.note(&at(&[(1, 100), (2, 0)]));
        fetched.note(&at(&[(1, 150), (2, 30)]));
        fetched.note(&at(&[(2, 40), (3, 7)]));
        assert_eq!(fetched.bytes(), 50 + 40 + 7);
    }

    #[test]
    fn a_comparison_that_begins_anew_loses_nothing_of_what_was_fetched() {
        let mut fetched = Fetched::default();
        for bytes in [10, 70, 5, 20] {
            fetched.note(&at(&[(1, bytes)]));
        }
        assert_eq!(fetched.bytes(), 80);
    }
}
