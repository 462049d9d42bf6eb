//! A reservation under attack, and a limit: what they give, and what they cost the others.

use super::Times;
use super::bed::{Bed, Disk};
use super::load::Client;
use anyhow::Result;
use rig::load::steady::Arrivals;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const BRICKS: usize = 3;
/// Requests a second of 4 KiB: what is reserved, and the limit.
pub(super) const RESERVED: u32 = 500;
pub(super) const LIMITED: u32 = 500;
/// Requests under way: of who has the reservation or limit, and of the other.
const DEPTH: usize = 32;
const ATTACK_DEPTH: usize = 256;
const VICTIM: &str = "billing";
const ATTACKER: &str = "attacker";

/// Requests a second.
pub(super) struct Rates {
    /// What the stream and the other one get by weight alone, 1:1000.
    pub(super) plain: [f64; 2],
    /// With a reservation.
    pub(super) reserved: [f64; 2],
    /// The stream is alone, with its limit.
    pub(super) limited: f64,
    /// The most of its requests in any second.
    pub(super) limited_most: usize,
    /// The other one, beside it, and the most in any second of what is limited.
    pub(super) beside_limited: [f64; 2],
    pub(super) beside_most: usize,
}

impl Rates {
    pub(super) fn json(&self) -> Value {
        let both = |[own, other]: [f64; 2]| json!({ "own": own, "other": other });
        json!({
            "reservation": RESERVED, "limit": LIMITED, "by_weight_1_to_1000": both(self.plain), "with_reservation": both(self.reserved),
            "limited_alone": self.limited, "limited_alone_most_in_any_second": self.limited_most,
            "limited_beside_other": both(self.beside_limited), "limited_beside_other_most_in_any_second": self.beside_most,
        })
    }
}

pub(super) fn measure(binary: &Path, places: u32, times: &Times) -> Result<Rates> {
    let mut bed = Bed::start(binary, Disk::Emulated, BRICKS)?;
    for (name, weight) in [(VICTIM, 1), (ATTACKER, 1000)] {
        bed.mirror(name)?;
        bed.stream(name, weight, &[])?;
        bed.give(name, name)?;
    }
    bed.ready()?;
    bed.places(places)?;
    let own = Client::reads(VICTIM, 0, Arrivals::Closed(DEPTH));
    let both = [own.clone(), Client::reads(ATTACKER, 1, Arrivals::Closed(ATTACK_DEPTH))];
    let plain = run(&bed, &both, times)?;
    bed.set_stream(VICTIM, &["--reservation", &format!("{RESERVED}iops")])?;
    let reserved = run(&bed, &both, times)?;
    let limit = format!("{LIMITED}iops");
    bed.set_stream(VICTIM, &["--reservation", "none", "--limit", &limit, "--weight", "1000"])?;
    let alone = run(&bed, &[own], times)?;
    let beside = run(&bed, &both, times)?;
    Ok(Rates {
        plain: plain.rates,
        reserved: reserved.rates,
        limited: alone.rates[0],
        limited_most: alone.most,
        beside_limited: beside.rates,
        beside_most: beside.most,
    })
}

struct Run {
    rates: [f64; 2],
    most: usize,
}

fn run(bed: &Bed, clients: &[Client], times: &Times) -> Result<Run> {
    let load = bed.load(clients, Instant::now())?;
    let (from, until) = (times.warm_up, times.warm_up + times.measure);
    load.run(until);
    let seen = load.finish()?;
    let rate = |client: usize| seen.get(client).map_or(0.0, |seen| seen.rate(from, until));
    // From the first request on.
    let most = seen[0].most_in_any(Duration::from_secs(1), Duration::ZERO, until);
    Ok(Run { rates: [rate(0), rate(1)], most })
}
