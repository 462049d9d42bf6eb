//! What the figures must show. A claim that does not hold is printed as such.

use super::Results;
use super::bounds::{ONE_HOP, TWO_HOPS};
use super::target::Sample;
use serde_json::{Value, json};

/// A demand and what was measured.
pub(crate) struct Claim {
    what: String,
    measured: f64,
    bound: f64,
    at_least: bool,
}

impl Claim {
    pub(crate) fn holds(&self) -> bool {
        if self.at_least { self.measured >= self.bound } else { self.measured <= self.bound }
    }

    pub(crate) fn json(&self) -> Value {
        let must = if self.at_least { "at least" } else { "at most" };
        json!({"what": self.what, "measured": self.measured, "must_be": must, "bound": self.bound, "holds": self.holds()})
    }
}

/// The sample of a target and workload.
pub(crate) fn find<'a>(samples: &'a [Sample], target: &str, workload: &str) -> Option<&'a Sample> {
    samples.iter().find(|sample| sample.target == target && sample.workload.name == workload)
}

/// All claims for which there are figures.
pub(crate) fn all(results: &Results) -> Vec<Claim> {
    let mut claims: Vec<Claim> =
        [speed(results), writes(results), costs(results)].into_iter().flatten().flatten().collect();
    if let Some(durable) = &results.durable {
        let lost = if durable.is_ok() { 0.0 } else { 1.0 };
        claims.push(at_most("runs that lost a write when all were killed at once", lost, 0.0));
    }
    claims
}

fn speed(results: &Results) -> Vec<Option<Claim>> {
    let samples = &results.samples;
    let ratio = |workload: &str| {
        let (ours, bound) = (find(samples, "raid1x3", workload)?, find(samples, TWO_HOPS, workload)?);
        Some(ours.measured.iops / bound.measured.iops)
    };
    vec![
        at_least_or_none("3 copies, reads q16 cached, of two hops", ratio("read cached q16"), 1.2),
        at_least_or_none("3 copies, reads q16 at 4x the cache, of two hops", ratio("read 4x q16"), 1.2),
        at_least_or_none("3 copies, writes q64, of two hops", ratio("write q64"), 0.3),
        at_least_or_none("3 copies, 1 MiB reads cached, of two hops", ratio("1M read cached"), 1.0),
        at_least_or_none("3 copies, 1 MiB reads at 4x the cache, of two hops", ratio("1 MiB read"), 1.0),
    ]
}

fn writes(results: &Results) -> Vec<Option<Claim>> {
    let samples = &results.samples;
    let median = || {
        let (ours, bound) = (find(samples, "raid1x3", "write q1")?, find(samples, TWO_HOPS, "write q1")?);
        let flush = results.syncs.iter().find(|sync| sync.jobs == 3)?.flush_p50_us;
        Some(at_most("3 copies, write q1 p50, us", ours.measured.p50_us, bound.measured.p50_us + 2.0 * flush))
    };
    let flushes = results.flushes.iter().filter(|flushes| flushes.depth == 64);
    let flushes = flushes.map(|one| {
        let what = format!("flushes per write and brick, q64 ({})", one.how);
        Some(at_most(&what, one.per_write_and_brick, 0.25))
    });
    std::iter::once(median()).chain(flushes).collect()
}

fn costs(results: &Results) -> Vec<Option<Claim>> {
    let cost = |workload: &str| find(&results.samples, "raid1x3", workload).map(|sample| sample.processor_us);
    let memory = results.memory.as_ref();
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    vec![
        cost("read cached q16").map(|us| at_most("3 copies, processor per read q16, us", us, 35.0)),
        cost("write q64").map(|us| at_most("3 copies, processor per write q64, us", us, 150.0)),
        memory.map(|memory| at_most("idle brick, MiB", mebibytes(memory.idle_brick_bytes), 40.0)),
        memory.map(|memory| {
            at_most("gateway, 64 busy connections, MiB", mebibytes(memory.busy_gateway_bytes), 150.0)
        }),
    ]
}

fn at_most(what: &str, measured: f64, bound: f64) -> Claim {
    Claim { what: what.to_owned(), measured, bound, at_least: false }
}

fn at_least_or_none(what: &str, measured: Option<f64>, bound: f64) -> Option<Claim> {
    Some(Claim { what: what.to_owned(), measured: measured?, bound, at_least: true })
}

/// Prints each with its verdict.
pub(crate) fn print(claims: &[Claim]) {
    if claims.is_empty() {
        return;
    }
    println!("\n{:<52} {:>8} {:>9} verdict", "must show", "measured", "bound");
    for claim in claims {
        let (sign, verdict) =
            (if claim.at_least { '≥' } else { '≤' }, if claim.holds() { "holds" } else { "SHORT" });
        println!("{:<52} {:>8.2} {sign} {:>7.2} {verdict}", claim.what, claim.measured, claim.bound);
    }
}

/// The one-hop and two-hop samples beside which a sample is stated.
pub(crate) fn bounds<'a>(samples: &'a [Sample], workload: &str) -> (Option<&'a Sample>, Option<&'a Sample>) {
    (find(samples, ONE_HOP, workload), find(samples, TWO_HOPS, workload))
}
