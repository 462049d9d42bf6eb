//! Tables for people, 80 columns wide.

use super::Results;
use super::claims::{bounds, find};
use super::target::Sample;

pub(crate) fn print(results: &Results) {
    println!("\n4 KiB write + fdatasync on the bare disk (O_DIRECT)");
    for sync in &results.syncs {
        let (each, p50, p99) = (sync.writes_a_second_each, sync.flush_p50_us, sync.flush_p99_us);
        println!(
            "  {} at once: {each:>8.0} a second each, flush p50 {p50:.0} us, p99 {p99:.0} us",
            sync.jobs
        );
    }
    println!(
        "\nrate: requests a second, or MB/s of 1 MiB requests at depth 8; us of latency; processor us a request\n"
    );
    println!("{}", heading());
    for sample in &results.samples {
        let (one, two) = bounds(&results.samples, &sample.workload.name);
        println!("{}", line(sample, one, two));
    }
    print_tls(results);
    print_rest(results);
}

fn heading() -> String {
    let (workload, target, rate, cost) = ("workload", "target", "rate", "cpu");
    format!(
        "{workload:<16} {target:<13} {rate:>9} {:>8} {:>9} {cost:>7} {:>6} {:>6}",
        "p50", "p99", "/1hop", "/2hop"
    )
}

/// One sample as a line, with its ratios to one and two hops.
pub(crate) fn line(sample: &Sample, one: Option<&Sample>, two: Option<&Sample>) -> String {
    let ratio = |bound: Option<&Sample>| match bound {
        Some(bound) => format!("{:.2}", sample.measured.iops / bound.measured.iops),
        None => "-".to_owned(),
    };
    let rate =
        if sample.workload.is_sequential() { sample.megabytes_a_second() } else { sample.measured.iops };
    let (p50, p99, cost) = (sample.measured.p50_us, sample.measured.p99_us, sample.processor_us);
    let (workload, target, one, two) = (&sample.workload.name, &sample.target, ratio(one), ratio(two));
    format!("{workload:<16} {target:<13} {rate:>9.0} {p50:>8.0} {p99:>9.0} {cost:>7.1} {one:>6} {two:>6}")
}

fn print_tls(results: &Results) {
    if results.tls.is_empty() {
        return;
    }
    println!("\nTLS between the daemons, 3 copies: rate and processor time as ratios to plain text");
    for sample in &results.tls {
        let Some(plain) = find(&results.samples, "raid1x3", &sample.workload.name) else { continue };
        let (rate, cost) =
            (sample.measured.iops / plain.measured.iops, sample.processor_us / plain.processor_us.max(0.001));
        println!("  {:<18} rate {rate:>5.2}   processor {cost:>5.2}", sample.workload.name);
    }
}

fn print_rest(results: &Results) {
    if !results.flushes.is_empty() {
        println!("\nflushes for each acknowledged write and brick, 3 copies");
    }
    for flushes in &results.flushes {
        let (how, depth, writes) = (flushes.how, flushes.depth, flushes.writes);
        println!("  {how:<16} depth {depth:>2}: {:.3} ({writes} writes)", flushes.per_write_and_brick);
    }
    if let Some(memory) = &results.memory {
        let (brick, gateway) = (memory.idle_brick_bytes >> 20, memory.busy_gateway_bytes >> 20);
        println!("\nresident: idle brick {brick} MiB, gateway with 64 busy connections {gateway} MiB");
    }
    match &results.durable {
        Some(Ok((acknowledged, verified))) => {
            println!(
                "killed all at once: {acknowledged} acknowledged writes, {verified} blocks verified, none lost"
            );
        }
        Some(Err(why)) => println!("killed all at once: {why}"),
        None => {}
    }
}
