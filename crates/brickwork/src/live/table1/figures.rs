//! What bricks say of their drives, at two moments, and what follows from that.

use super::plan::Plan;
use crate::live::load::Seen;
use rig::cluster::Page;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a row has, times in the drives' own time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Accesses of a drive a second, in the mean over bricks.
    pub throughput_iops: f64,
    /// The share of time in which a drive did nothing.
    pub idle: f64,
    /// The mean time of an access.
    pub service_ms: f64,
    /// The mean number of accesses that the head scheduler chose from.
    pub queue_seen: f64,
    /// The mean response time of reads, as clients see it.
    pub read_response_ms: f64,
    /// 99% of the answers that were held back were not later, on the clock.
    pub late_p99_ms: f64,
    /// Reads of drives for each read of a client.
    pub device_reads_per_read: f64,
}

/// What happened between two looks.
pub(super) fn between(plan: &Plan, before: &[Page], after: &[Page], seen: &Seen) -> Figures {
    let bricks: Vec<[f64; 3]> =
        before.iter().zip(after).map(|(before, after)| drive(before, after)).collect();
    let total = |name: &str| sum(after, name) - sum(before, name);
    let count = bricks.len().max(1) as f64;
    let reads = total("brickwork_emulated_drive_reads_total");
    let accesses = reads + total("brickwork_emulated_drive_writes_total");
    let busy_s: f64 = bricks.iter().map(|[_, busy, _]| busy).sum();
    let clock_s: f64 = bricks.iter().map(|[_, _, clock]| clock).sum();
    let client_reads = seen.reads.count as f64 / plan.measure.as_secs_f64();
    let drive_ms = |response: Duration| response.as_secs_f64() * 1e3 / f64::from(plan.dilate);
    Figures {
        throughput_iops: bricks.iter().map(|[accesses, _, clock]| accesses / clock.max(1e-9)).sum::<f64>()
            / count,
        idle: bricks.iter().map(|[_, busy, clock]| 1.0 - busy / clock.max(1e-9)).sum::<f64>() / count,
        service_ms: busy_s * 1e3 / accesses.max(1.0),
        queue_seen: total("brickwork_emulated_drive_seen_total")
            / total("brickwork_emulated_drive_choices_total").max(1.0),
        read_response_ms: drive_ms(seen.reads.mean()),
        late_p99_ms: late_p99_s(before, after) * 1e3,
        device_reads_per_read: reads * count / clock_s.max(1e-9) / client_reads.max(1e-9),
    }
}

/// Accesses, busy seconds, and seconds of a drive.
fn drive(before: &Page, after: &Page) -> [f64; 3] {
    let change = |name: &str| get(after, name) - get(before, name);
    [
        change("brickwork_emulated_drive_reads_total") + change("brickwork_emulated_drive_writes_total"),
        change("brickwork_emulated_drive_busy_seconds"),
        change("brickwork_emulated_drive_clock_seconds"),
    ]
}

/// The bound of the first bucket that holds 99% of the answers that bricks held back.
fn late_p99_s(before: &[Page], after: &[Page]) -> f64 {
    let prefix = "brickwork_emulation_lateness_seconds_bucket{le=\"";
    let mut buckets: Vec<(f64, f64)> = Vec::new();
    for name in after.iter().flat_map(BTreeMap::keys).filter(|name| name.starts_with(prefix)) {
        let bound = name[prefix.len()..].trim_end_matches("\"}");
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap_or(f64::INFINITY) };
        if buckets.iter().all(|(known, _)| known.to_bits() != bound.to_bits()) {
            buckets.push((bound, sum(after, name) - sum(before, name)));
        }
    }
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wanted = buckets.last().map_or(0.0, |(_, all)| all * 0.99);
    buckets.iter().find(|(_, count)| *count >= wanted).map_or(0.0, |(bound, _)| *bound)
}

fn get(page: &Page, name: &str) -> f64 {
    page.get(name).copied().unwrap_or(0.0)
}

fn sum(pages: &[Page], name: &str) -> f64 {
    pages.iter().map(|page| get(page, name)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_of_the_time_between() {
        let page = |low: u64, high: u64| {
            rig::cluster::page(&format!(
                "# TYPE x\nbrickwork_emulation_lateness_seconds_bucket{{le=\"0.001\"}} {low}\n\
                 brickwork_emulation_lateness_seconds_bucket{{le=\"0.002\"}} {high}\n\
                 brickwork_emulation_lateness_seconds_bucket{{le=\"+Inf\"}} {high}\nother 3\n"
            ))
        };
        assert_eq!(late_p99_s(&[page(0, 1000)], &[page(990, 1990)]), 0.001);
        assert_eq!(late_p99_s(&[page(0, 1000)], &[page(980, 2000)]), 0.002);
        assert_eq!(late_p99_s(&[Page::new()], &[Page::new()]), 0.0);
    }
}
