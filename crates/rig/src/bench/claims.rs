//! What the figures must show. A claim that does not hold is printed as such.

use super::Results;
use super::bounds::{ONE_HOP, TWO_HOPS};
use super::demand::Demand;
use super::target::Sample;

/// The sample of a target and workload.
pub(crate) fn find<'a>(samples: &'a [Sample], target: &str, workload: &str) -> Option<&'a Sample> {
    samples.iter().find(|sample| sample.target == target && sample.workload.name == workload)
}

/// All claims for which there are figures.
pub(crate) fn all(results: &Results) -> Vec<Demand> {
    let mut claims: Vec<Demand> =
        [speed(results), writes(results), costs(results)].into_iter().flatten().flatten().collect();
    if let Some(durable) = &results.durable {
        let lost = if durable.is_ok() { 0.0 } else { 1.0 };
        claims.push(Demand::at_most("runs that lost a write when all were killed at once", lost, 0.0));
    }
    claims
}

fn speed(results: &Results) -> Vec<Option<Demand>> {
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

fn writes(results: &Results) -> Vec<Option<Demand>> {
    let samples = &results.samples;
    let median = || {
        let (ours, bound) = (find(samples, "raid1x3", "write q1")?, find(samples, TWO_HOPS, "write q1")?);
        let flush = results.syncs.iter().find(|sync| sync.jobs == 3)?.flush_p50_us;
        Some(Demand::at_most(
            "3 copies, write q1 p50, us",
            ours.measured.p50_us,
            bound.measured.p50_us + 2.0 * flush,
        ))
    };
    let flushes = results.flushes.iter().filter(|flushes| flushes.depth == 64);
    let flushes = flushes.map(|one| {
        let what = format!("flushes per write and brick, q64 ({})", one.how);
        Some(Demand::at_most(what, one.per_write_and_brick, 0.25))
    });
    std::iter::once(median()).chain(flushes).collect()
}

fn costs(results: &Results) -> Vec<Option<Demand>> {
    let cost = |workload: &str| find(&results.samples, "raid1x3", workload).map(|sample| sample.processor_us);
    let memory = results.memory.as_ref();
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    vec![
        cost("read cached q16").map(|us| Demand::at_most("3 copies, processor per read q16, us", us, 35.0)),
        cost("write q64").map(|us| Demand::at_most("3 copies, processor per write q64, us", us, 150.0)),
        memory.map(|memory| Demand::at_most("idle brick, MiB", mebibytes(memory.idle_brick_bytes), 40.0)),
        memory.map(|memory| {
            Demand::at_most("gateway, 64 busy connections, MiB", mebibytes(memory.busy_gateway_bytes), 150.0)
        }),
    ]
}

fn at_least_or_none(what: &str, measured: Option<f64>, bound: f64) -> Option<Demand> {
    Some(Demand::at_least(what, measured?, bound))
}

/// The one-hop and two-hop samples beside which a sample is stated.
pub(crate) fn bounds<'a>(samples: &'a [Sample], workload: &str) -> (Option<&'a Sample>, Option<&'a Sample>) {
    (find(samples, ONE_HOP, workload), find(samples, TWO_HOPS, workload))
}
