//! Tables for people, 80 columns wide.

use super::super::demand::{self, Demand};
use super::load::Percentiles;
use super::objects::{self, Objects};
use super::reads::Reads;
use super::writes::Writes;
use super::{DEPTH, DEPTH_MORE, JOBS, READ_RATE, Results, WRITE_RATE};
use std::time::Duration;

pub(super) fn print(results: &Results, claims: &[Demand]) {
    if !results.reads.is_empty() {
        println!("\nReads at random, of 4 KiB unless told, one brick of all in a state. {JOBS} jobs of");
        println!(
            "depth 1 ask at most {READ_RATE} times a second (ms from when due), then {DEPTH} ask all the"
        );
        println!(
            "time (IOPS), then {DEPTH_MORE}. A read costs packets that daemons send each other, claims and"
        );
        println!("heartbeats too, and blocks read from disks. All states in turns; a slow brick is");
        println!("compared with the better of healthy's p99 and the median of its turns'.\n");
        println!("{}", reads_heading());
        results.reads.iter().for_each(|reads| println!("{}", reads_line(reads)));
    }
    if !results.writes.is_empty() {
        println!(
            "\nWrites of 4 KiB at random, {WRITE_RATE} a second: before the brick ails, until it has left,"
        );
        println!("and after (p50/p99 ms); in the first second in which it ails (p99 ms); s until");
        println!("it was held for slow, until it had left, and until it was back once it was well;");
        println!("{DEPTH} at a time while it is out (IOPS).\n");
        println!("{}", writes_heading());
        results.writes.iter().chain(&results.ceph).for_each(|writes| println!("{}", writes_line(writes)));
    }
    if !results.objects.is_empty() {
        println!(
            "\nPuts and gets of 1 MiB and ranges of 64 KiB on {} bricks, {} a second, so many of",
            objects::BRICKS,
            objects::RATE
        );
        println!("which begin at a time, through one gateway: before a brick ails (p50/p99 ms from");
        println!("when due), in its first second, and from then on; the longest from then on (ms);");
        println!("the most that were open; errors; processors in use before, of all (%).\n");
        println!("{}", objects_heading());
        results.objects.iter().for_each(|objects| println!("{}", objects_line(objects)));
    }
    let parts = results.reads.iter().map(|reads| &reads.paced);
    let parts = parts
        .chain(results.writes.iter().chain(&results.ceph).flat_map(|writes| [&writes.before, &writes.after]));
    print_lateness(parts);
    demand::print(claims);
}

pub(super) fn print_lateness<'a>(parts: impl Iterator<Item = &'a Percentiles>) {
    let late_ms = parts.map(|part| part.overslept_ms).fold(0.0, f64::max);
    println!("\nThe load's own idle jobs woke up to {late_ms:.1} ms late (p99), which is not counted.");
}

fn reads_heading() -> String {
    format!(
        "{:<9} {:<14} {:<9} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5} {:>4}",
        "layout", "policy", "state", "p50", "p99", "p99.9", "IOPS", "at 16", "pkts", "disk"
    )
}

/// One policy in one state.
pub(super) fn reads_line(reads: &Reads) -> String {
    let Percentiles { p50_ms, p99_ms, p999_ms, .. } = reads.paced;
    format!(
        "{:<9} {:<14} {:<9} {:>6} {:>6} {:>6} {:>6.0} {:>6.0} {:>5.2} {:>4.2}",
        reads.layout,
        reads.policy.replace("conservative", "cons").replace("adaptive", "adapt"),
        reads.state.name(),
        millis(p50_ms),
        millis(p99_ms),
        millis(p999_ms),
        reads.iops.mean,
        reads.iops_more.mean,
        reads.cost.packets,
        reads.cost.device_blocks,
    )
}

fn writes_heading() -> String {
    format!(
        "{:<9} {:<9} {:>9} {:>9} {:>9} {:>5} {:>4} {:>4} {:>5} {:>6}",
        "layout", "state", "before", "until", "after", "1st s", "slow", "left", "back", "IOPS"
    )
}

pub(super) fn writes_line(writes: &Writes) -> String {
    let both = |part: &Percentiles| match part.samples {
        0 => "-".to_owned(),
        _ => format!("{}/{}", millis(part.p50_ms), millis(part.p99_ms)),
    };
    format!(
        "{:<9} {:<9} {:>9} {:>9} {:>9} {:>5} {:>4} {:>4} {:>5} {:>6.0}",
        writes.layout,
        writes.state.name(),
        both(&writes.before),
        both(&writes.during),
        both(&writes.after),
        millis(writes.first.p99_ms),
        seconds(writes.noticed),
        seconds(writes.left),
        seconds(writes.back),
        writes.iops.mean,
    )
}

fn objects_heading() -> String {
    format!(
        "{:<5} {:<3} {:<9} {:>9} {:>9} {:>9} {:>7} {:>4} {:>6} {:>4}",
        "what", "at", "state", "before", "1st s", "later", "longest", "open", "errors", "CPU"
    )
}

pub(super) fn objects_line(objects: &Objects) -> String {
    let both = |part: &Percentiles| format!("{}/{}", millis(part.p50_ms), millis(part.p99_ms));
    format!(
        "{:<5} {:<3} {:<9} {:>9} {:>9} {:>9} {:>7} {:>4} {:>6} {:>4.0}",
        objects.what.name(),
        objects.together,
        objects.state.name(),
        both(&objects.before),
        both(&objects.first),
        both(&objects.later),
        millis(objects.longest_ms()),
        objects.most_open,
        objects.errors,
        objects.processors * 1e2,
    )
}

pub(super) fn seconds(span: Option<Duration>) -> String {
    span.map_or("-".to_owned(), |span| format!("{:.1}", span.as_secs_f64()))
}

/// Three figures that count.
pub(super) fn millis(ms: f64) -> String {
    match ms {
        0.0..9.95 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}
