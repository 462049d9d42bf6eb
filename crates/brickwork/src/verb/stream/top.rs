//! `brickwork stream top`: what streams get, second by second.

use super::{capacity, status};
use crate::global::Global;
use crate::verb::watch;
use crate::{output, view};
use anyhow::Result;
use serde_json::{Value, json};
use std::time::Duration;
use wire::{StreamInfo, StreamsStatus};

/// Between two looks. Bricks report twice a second, and the directory has rates of a second.
const AGAIN: Duration = Duration::from_secs(1);
/// A share within this factor of what the weight makes due is as it should be: rates are of a second, and so have noise.
const TOLERANCE: f64 = 0.05;

/// `stream top`.
#[derive(clap::Args)]
#[command(after_help = "\
Columns:
  WAITING     requests that wait for their turn now: what the stream wants beyond what it gets
  UNITS/S     service over the last second: a request costs 8 units, and 1 for each 4 KiB
  SHARE       the part of all service that this is
  DUE         the part that its weight makes due, among the streams that want service now
  WAIT MS     how long its requests waited for their turn, in the mean
  IN TIME     the part of its latest requests that kept its latency target, 128 a disk; of those that came while nobody of it waited
  HELD BACK BY  where a stream waits and gets less than is due: the streams that get more than is due to them; its own
                limit where it gets as much as that allows

A stream may be held back for a while because it was served more elsewhere.

Examples:
  brickwork stream top
  brickwork stream top --once
  brickwork stream top --json | jq -r '.streams[] | select(.held_back_by != [] or .at_limit) | .stream'")]
pub(super) struct Top {
    /// Show one second and end
    #[arg(long)]
    once: bool,
}

/// What a stream gets.
#[derive(Clone, PartialEq, Debug)]
struct Row {
    stream: StreamInfo,
    waiting: u32,
    units_per_second: u64,
    requests_per_second: u64,
    /// Of all service, from 0 to 1.
    share: f64,
    /// Of all service, by weight, among those that want any.
    due: f64,
    turn_us: u64,
    /// Of its latest requests that count for its latency target: how many, and how many were late.
    timed: u32,
    late: u32,
    /// Those that get more than is due to them while this one waits and gets less.
    held_back_by: Vec<String>,
    /// Whether it waits and gets as much as its own limit allows: nobody else holds it back then.
    at_limit: bool,
}

impl Row {
    fn wants(&self) -> bool {
        self.waiting > 0 || self.units_per_second > 0
    }

    /// Whether it gets what its own limit allows, within noise.
    fn reaches_its_limit(&self) -> bool {
        let limit = self.stream.limit as f64;
        self.stream.limit > 0 && self.units_per_second as f64 >= limit * (1.0 - TOLERANCE)
    }

    /// Who or what holds it back, for people.
    fn obstacles(&self) -> String {
        if self.at_limit { "its own limit".to_owned() } else { self.held_back_by.join(", ") }
    }

    /// The part of its requests that kept its latency target, from 0 to 1; none where there is no target, or nothing to tell of.
    fn in_time(&self) -> Option<f64> {
        let is_told = self.stream.latency_us > 0 && self.timed > 0;
        is_told.then(|| 1.0 - f64::from(self.late) / f64::from(self.timed))
    }
}

pub(super) fn run(global: &Global, args: Top) -> Result<()> {
    match args.once {
        true => show(global, false),
        false => watch::redraw(AGAIN, || show(global, true)),
    }
}

fn show(global: &Global, in_place: bool) -> Result<()> {
    let status = status(global)?;
    let rows = rows(&status);
    if global.json {
        output::print_json(&rows_json(&status, &rows));
        return Ok(());
    }
    if in_place {
        watch::clear();
    }
    print(&status, &rows);
    Ok(())
}

fn rows(status: &StreamsStatus) -> Vec<Row> {
    let row = |(stream, of): (&StreamInfo, &wire::StreamStatus)| Row {
        stream: stream.clone(),
        waiting: of.waiting,
        units_per_second: of.served_per_second,
        requests_per_second: of.requests_per_second,
        share: 0.0,
        due: 0.0,
        turn_us: of.turn_us,
        timed: of.timed,
        late: of.late,
        held_back_by: Vec::new(),
        at_limit: false,
    };
    let mut rows: Vec<Row> = status.table.streams.iter().zip(&status.streams).map(row).collect();
    let all: u64 = rows.iter().map(|row| row.units_per_second).sum();
    let weights: u64 = rows.iter().filter(|row| row.wants()).map(|row| u64::from(row.stream.weight)).sum();
    for row in &mut rows {
        row.share = row.units_per_second as f64 / all.max(1) as f64;
        if row.wants() {
            row.due = f64::from(row.stream.weight) / weights.max(1) as f64;
        }
    }
    let ahead: Vec<String> = rows
        .iter()
        .filter(|row| row.share > row.due * (1.0 + TOLERANCE))
        .map(|row| row.stream.name.clone())
        .collect();
    for row in &mut rows {
        row.at_limit = row.waiting > 0 && row.reaches_its_limit();
        if row.waiting > 0 && !row.at_limit && row.share < row.due * (1.0 - TOLERANCE) {
            row.held_back_by.clone_from(&ahead);
        }
    }
    rows
}

fn print(status: &StreamsStatus, rows: &[Row]) {
    let headings =
        ["stream", "weight", "waiting", "units/s", "share", "due", "wait ms", "in time", "held back by"];
    let mut table = output::table(&headings);
    // Background work that does nothing is no news.
    for row in rows.iter().filter(|row| row.wants() || !row.stream.is_background()) {
        table.add_row([
            row.stream.name.clone(),
            row.stream.weight.to_string(),
            row.waiting.to_string(),
            row.units_per_second.to_string(),
            percent(row.share),
            percent(row.due),
            format!("{:.1}", row.turn_us as f64 / 1000.0),
            row.in_time().map_or_else(|| "-".to_owned(), percent),
            row.obstacles(),
        ]);
    }
    output::align_right(&mut table, &[1, 2, 3, 4, 5, 6, 7]);
    println!("{}", output::render(&table));
    if !status.table.is_shared() {
        println!("Nothing was said of streams: requests are served as they come.");
    } else if status.bricks_informed < status.bricks {
        println!(
            "{} of {} go by the latest weights so far.",
            status.bricks_informed,
            output::count(u64::from(status.bricks), "brick")
        );
    }
    if let Some(line) = capacity(&status.capacities) {
        println!("{line}");
    }
}

fn percent(part: f64) -> String {
    format!("{:.0}%", part * 100.0)
}

fn rows_json(status: &StreamsStatus, rows: &[Row]) -> Value {
    let row = |row: &Row| {
        json!({
            "stream": row.stream.name, "weight": row.stream.weight, "waiting": row.waiting,
            "units_per_second": row.units_per_second, "requests_per_second": row.requests_per_second,
            "share": row.share, "due": row.due, "turn_ms": row.turn_us as f64 / 1000.0,
            "held_back_by": row.held_back_by, "at_limit": row.at_limit, "latency_us": Some(row.stream.latency_us).filter(|us| *us > 0),
            "in_time": row.in_time(), "timed": row.timed, "late": row.late,
        })
    };
    json!({
        "shared": status.table.is_shared(), "bricks": status.bricks, "bricks_informed": status.bricks_informed,
        "capacities": view::capacities_json(&status.capacities),
        "streams": rows.iter().map(row).collect::<Vec<Value>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::StreamId;
    use wire::{StreamStatus, StreamTable};

    fn status(of: &[(&str, u32, u64, u32)]) -> StreamsStatus {
        let mut status = StreamsStatus {
            table: StreamTable { streams: Vec::new(), ..StreamTable::default() },
            ..StreamsStatus::default()
        };
        for (id, (name, weight, served_per_second, waiting)) in of.iter().enumerate() {
            let stream = StreamId(id as u32);
            let info = StreamInfo { weight: *weight, ..StreamInfo::usual(stream, *name) };
            status.table.streams.push(info);
            let (served_per_second, waiting) = (*served_per_second, *waiting);
            status.streams.push(StreamStatus {
                stream,
                served_per_second,
                waiting,
                ..StreamStatus::default()
            });
        }
        status
    }

    fn held_back(of: &[(&str, u32, u64, u32)]) -> Vec<(String, Vec<String>)> {
        let held = rows(&status(of)).into_iter().filter(|row| !row.held_back_by.is_empty());
        held.map(|row| (row.stream.name, row.held_back_by)).collect()
    }

    #[test]
    fn who_waits_and_gets_less_than_is_due_is_held_back_by_those_that_get_more() {
        let by = |name: &str, by: &str| vec![(name.to_owned(), vec![by.to_owned()])];
        assert_eq!(held_back(&[("a", 100, 500, 9), ("b", 300, 500, 9)]), by("b", "a"));
        assert!(held_back(&[("a", 100, 250, 9), ("b", 300, 750, 9)]).is_empty(), "as is due");
        assert!(held_back(&[("a", 100, 240, 9), ("b", 300, 760, 9)]).is_empty(), "within noise");
        assert!(held_back(&[("a", 100, 900, 9), ("b", 300, 100, 0)]).is_empty(), "it wants no more");
        assert!(held_back(&[("a", 100, 0, 0), ("b", 300, 0, 0)]).is_empty());
        // Who gets what its limit allows is held back by nobody else.
        let mut limited = status(&[("a", 100, 500, 9), ("b", 300, 500, 9)]);
        limited.table.streams[1].limit = 520;
        let row = rows(&limited).remove(1);
        assert_eq!((row.held_back_by.is_empty(), row.obstacles().as_str()), (true, "its own limit"));
        limited.table.streams[1].limit = 2000;
        assert_eq!(rows(&limited)[1].obstacles(), "a", "it does not reach that one");
        // Whether a target is kept is shown where there is one.
        let mut timed = status(&[("a", 100, 10, 0), ("b", 300, 0, 0)]);
        timed.table.streams[0].latency_us = 5000;
        timed.streams.iter_mut().for_each(|stream| (stream.timed, stream.late) = (128, 32));
        assert_eq!(rows(&timed).iter().map(Row::in_time).collect::<Vec<_>>(), [Some(0.75), None]);
        // Who wants nothing counts for nothing.
        assert_eq!(rows(&status(&[("a", 100, 10, 0), ("b", 300, 0, 0)]))[0].due, 1.0);
    }
}
