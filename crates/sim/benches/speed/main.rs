//! How fast the simulator's inner loops are, each per processor second: what other processes take does not count.
//!
//! - The queue of events: a bare hold model, which pops an event and pushes it again later, with several distributions of
//!   how much later; beside it the binary heap of the standard library, which does the same.
//! - A disk: an Atlas 10K with a constant number of random accesses outstanding, as the event loop of a simulator would
//!   drive it. Drawing the accesses is part of what is measured, and so is the loop's queue of events.
//! - Clusters: whole machines in the timed world.

#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

mod disk;
mod hold;
mod timed;

use std::time::{Duration, Instant};

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    if processor_time().is_none() {
        println!("the time that this thread was run is not known here: these are seconds of the clock");
    }
    if is_wanted("queue") {
        hold::bench();
    }
    if is_wanted("disk") {
        disk::bench();
    }
    if is_wanted("timed") {
        timed::bench();
    }
}

/// How many times `work` is done in a second, from the best of three rounds of about a fifth of a second or more.
fn per_second(mut work: impl FnMut(u64)) -> f64 {
    let mut times = 1_000;
    while elapsed(|| work(times)) < Duration::from_millis(20) {
        times *= 2;
    }
    let times = times * 10;
    let best = (0..3).map(|_| elapsed(|| work(times))).min().expect("three rounds");
    times as f64 / best.as_secs_f64()
}

fn elapsed(work: impl FnOnce()) -> Duration {
    let (clock, processor) = (Instant::now(), processor_time());
    work();
    match (processor, processor_time()) {
        (Some(before), Some(after)) => after - before,
        _ => clock.elapsed(),
    }
}

/// How long this thread was run by a processor, where the system says so.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}
