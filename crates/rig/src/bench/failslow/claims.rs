//! What the figures must show. A claim that does not hold is printed as such.

use super::super::demand::Demand;
use super::super::mean::Mean;
use super::load::Percentiles;
use super::objects::Objects;
use super::reads::Reads;
use super::state::State;
use super::writes::Writes;
use super::{DEPTH, DEPTH_MORE, JUDGED, MIRROR, PLAIN, Results};

/// p99 with a slow brick over p99 without, at most.
const READS_RATIO: f64 = 1.2;
/// The same of reads that no other brick has.
const ROWS_RATIO: f64 = 1.5;
/// Reads a second while no brick is slow, over those of the plainest policy, at least.
const HEALTHY_RATIO: f64 = 0.95;
const WRITES_RATIO: f64 = 2.0;
/// p99 of writes and of objects in the first second in which a brick ails, and from then on, over p99 before.
const FIRST_RATIO: f64 = 2.0;
const LATER_RATIO: f64 = 1.2;
const PARITY_RATIO: f64 = 3.0;
/// The longest transfer of an object beside a brick that was killed, and beside one that fell silent.
const DEAD_MS: f64 = 500.0;
const SILENT_MS: f64 = 1000.0;
/// Device reads a read at most, in light load.
const DEVICE_READS: f64 = 1.05;

/// All that can be judged by what was measured.
pub(super) fn all(results: &Results) -> Vec<Demand> {
    let mut layouts: Vec<&str> = results.reads.iter().map(|reads| reads.layout.as_str()).collect();
    layouts.extend(results.writes.iter().map(|writes| writes.layout.as_str()));
    layouts.sort_unstable();
    layouts.dedup();
    layouts
        .into_iter()
        .flat_map(|layout| [of_reads(results, layout), of_writes(results, layout)].concat())
        .chain(results.objects.iter().flat_map(of_objects))
        .collect()
}

fn of_objects(objects: &Objects) -> Vec<Demand> {
    let Objects { together, state, what, before, first, later, errors, .. } = objects;
    let of_it = format!("{} x{together}, {}", what.name(), state.name());
    let ratio = |when: &str, part: &Percentiles, bound: f64| {
        Demand::at_most(format!("{of_it}, {when}: p99 to before"), part.p99_ms / before.p99_ms, bound)
    };
    let longest = |bound| Demand::at_most(format!("{of_it}: longest, ms"), objects.longest_ms(), bound);
    let mut claims = match state {
        State::Healthy => Vec::new(),
        State::Late(_) | State::Stopped => {
            vec![ratio("first second", first, FIRST_RATIO), ratio("after a second", later, LATER_RATIO)]
        }
        State::Dead => vec![longest(DEAD_MS)],
        State::Silent => vec![longest(SILENT_MS)],
    };
    claims.push(Demand::at_most(format!("{of_it}: errors"), *errors as f64, 0.0));
    claims
}

fn of_reads(results: &Results, layout: &str) -> Vec<Demand> {
    let of_layout: Vec<&Reads> = results.reads.iter().filter(|reads| reads.layout == layout).collect();
    let by = |policy: &'static str| of_layout.iter().copied().filter(move |reads| reads.policy == policy);
    let reads: Vec<&Reads> = by(JUDGED).collect();
    let at = |state: State| reads.iter().find(|reads| reads.state == state);
    let slow = || reads.iter().filter(|reads| reads.state.is_slow());
    let ratio = if layout == MIRROR { READS_RATIO } else { ROWS_RATIO };
    let mut claims = Vec::new();
    if let Some(healthy) = at(State::Healthy) {
        if let Some(plain) = by(PLAIN).find(|reads| reads.state == State::Healthy) {
            for (depth, rate, plain) in
                [(DEPTH, healthy.iops, plain.iops), (DEPTH_MORE, healthy.iops_more, plain.iops_more)]
            {
                let what = format!("{layout} reads at depth {depth}, healthy: over {PLAIN}'s rate");
                let (measured, error) = rate.over(plain);
                claims.push(Demand::at_least(what, measured, HEALTHY_RATIO).known_within(error));
            }
        }
        claims.extend(slow().map(|reads| {
            let what = format!("{layout} reads, one brick {}: p99 over healthy", reads.state.name());
            // What disturbed the machine while all was well must not make a slow brick look good.
            Demand::at_most(
                what,
                reads.paced.p99_ms / healthy.paced.p99_ms.min(healthy.p99_of_turns_ms),
                ratio,
            )
        }));
        if layout == MIRROR {
            claims.push(Demand::at_most(
                format!("{layout} reads: device reads a read"),
                healthy.cost.device_blocks,
                DEVICE_READS,
            ));
        }
    }
    if let Some(dead) = at(State::Dead) {
        claims.extend(slow().map(|reads| throughput(layout, "reads", reads.state, reads.iops, dead.iops)));
    }
    claims
}

/// Writes beside a slow brick that is the last redundancy of its groups: they wait for it, and it stays.
fn of_kept(results: &Results, layout: &str) -> Vec<Demand> {
    let of_it = |writes: &&Writes| writes.layout == layout && writes.state.is_slow();
    let stays = |writes: &Writes| {
        let what = format!("{layout} writes, {}: it stays, as the last redundancy", writes.state.name());
        Demand::at_least(what, f64::from(u8::from(writes.left.is_none())), 1.0)
    };
    results.writes.iter().filter(of_it).map(stays).collect()
}

fn of_writes(results: &Results, layout: &str) -> Vec<Demand> {
    if layout.starts_with("raid5") {
        return of_kept(results, layout);
    }
    let writes: Vec<&Writes> = results.writes.iter().filter(|writes| writes.layout == layout).collect();
    let at = |state: State| writes.iter().find(|writes| writes.state == state);
    let slow = || writes.iter().filter(|writes| writes.state.is_slow());
    let ratio = if layout == MIRROR { WRITES_RATIO } else { PARITY_RATIO };
    let mut claims = Vec::new();
    if let Some(healthy) = at(State::Healthy) {
        claims.extend(slow().map(|writes| {
            let what = format!("{layout} writes, {} left out: p99 over healthy", writes.state.name());
            let p99_ms = if writes.left.is_some() { writes.after.p99_ms } else { writes.during.p99_ms };
            Demand::at_most(what, p99_ms / healthy.after.p99_ms, ratio)
        }));
    }
    for (when, ratio, part) in [
        ("first second", FIRST_RATIO, (|writes| &writes.first) as fn(&Writes) -> &Percentiles),
        ("after a second", LATER_RATIO, |writes| &writes.later),
    ] {
        claims.extend(slow().map(|writes| {
            let what = format!("{layout} writes, {}, {when}: p99 over before", writes.state.name());
            Demand::at_most(what, part(writes).p99_ms / writes.before.p99_ms, ratio)
        }));
    }
    claims.extend(slow().map(|writes| {
        let what = format!("{layout} writes, {}: it leaves, once", writes.state.name());
        Demand::at_least(what, f64::from(u8::from(writes.stays_out)), 1.0)
    }));
    if let Some(dead) = at(State::Dead) {
        claims
            .extend(slow().map(|writes| throughput(layout, "writes", writes.state, writes.iops, dead.iops)));
    }
    claims
}

fn throughput(layout: &str, what: &str, state: State, slow: Mean, dead: Mean) -> Demand {
    let what = format!("{layout} {what}, {}: throughput over dead", state.name());
    let (measured, error) = slow.over(dead);
    Demand::at_least(what, measured, 1.0).known_within(error)
}
