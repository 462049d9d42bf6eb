//! A quiet stream beside a greedy one: what its requests take, alone and beside it.

use super::Times;
use super::bed::{Bed, Disk};
use super::load::{Client, Seen};
use anyhow::Result;
use rig::load::steady::Arrivals;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

const BRICKS: usize = 3;
/// Of the quiet stream, a second.
const RATE: f64 = 90.0;
/// Requests that the greedy stream has under way.
const DEPTH: usize = 64;
/// The quiet stream's target at last: what it has alone, and some more.
const TARGET: &str = "4ms";
const QUIET: &str = "quiet";
const GREEDY: &str = "greedy";

/// What the quiet stream's requests took.
pub(super) struct Quiet {
    pub(super) how: String,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// What the greedy one got, in requests a second.
    pub(super) greedy: f64,
}

impl Quiet {
    pub(super) fn json(&self) -> Value {
        json!({ "how": self.how, "p50_ms": self.p50_ms, "p99_ms": self.p99_ms, "greedy_requests_per_second": self.greedy })
    }
}

/// Alone; beside the greedy one without streams, with them, and with a latency target.
pub(super) fn measure(binary: &Path, places: u32, times: &Times) -> Result<Vec<Quiet>> {
    let mut bed = Bed::start(binary, Disk::Emulated, BRICKS)?;
    for name in [QUIET, GREEDY] {
        bed.mirror(name)?;
    }
    bed.ready()?;
    let quiet = Client::reads(QUIET, 0, Arrivals::Open(RATE));
    let both = [quiet.clone(), Client::reads(GREEDY, 1, Arrivals::Closed(DEPTH))];
    let mut all = vec![run(&bed, "alone", &[quiet], times)?, run(&bed, "without streams", &both, times)?];
    for name in [QUIET, GREEDY] {
        bed.stream(name, 100, &[])?;
        bed.give(name, name)?;
    }
    for places in [places, wire::StreamTable::PLACES] {
        bed.places(places)?;
        all.push(run(&bed, &format!("streams, {places} places"), &both, times)?);
    }
    bed.set_stream(QUIET, &["--latency", TARGET])?;
    all.push(run(&bed, &format!("target of {TARGET}"), &both, times)?);
    Ok(all)
}

fn run(bed: &Bed, how: &str, clients: &[Client], times: &Times) -> Result<Quiet> {
    let load = bed.load(clients, Instant::now())?;
    let (from, until) = (times.warm_up, times.warm_up + times.measure);
    load.run(until);
    let seen = load.finish()?;
    let percentile = |share| seen[0].percentile_ms(share, from, until);
    Ok(Quiet {
        how: how.to_owned(),
        p50_ms: percentile(0.5),
        p99_ms: percentile(0.99),
        greedy: seen.get(1).map_or(0.0, |seen: &Seen| seen.rate(from, until)),
    })
}
