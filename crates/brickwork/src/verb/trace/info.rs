//! `brickwork trace info`.

use super::reading::{self, Reading};
use crate::global::Global;
use crate::output;
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use trace::info::DeviceSummary;
use trace::{Format, Statistics, Summary};

/// `trace info`.
#[derive(clap::Args)]
#[command(after_help = format!("\
Reuse distances are sampled when a trace has more than 65536 distinct blocks of 4 KiB; memory is bounded. Bursts show as
a variation of gaps (CV) above 1, which Poisson arrivals have.

Formats:
{}
Examples:
  brickwork trace info hm_0.csv.gz
  brickwork trace info *.spc.gz --take 1000000 --json", reading::formats()))]
pub(super) struct Args {
    /// The traces, `-` for standard input
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
}

/// Runs the verb.
pub(super) fn run(global: &Global, args: &Args) -> Result<()> {
    for (number, path) in args.traces.iter().enumerate() {
        let mut trace = args.reading.open(path)?;
        let mut statistics = Statistics::default();
        for record in &mut trace {
            statistics.add(&record?);
        }
        trace.warn(true);
        let summary = statistics.summary();
        let warnings: Vec<String> = trace.reader.warnings().iter().map(ToString::to_string).collect();
        let format = trace.reader.format();
        if global.json {
            output::print_json(&to_json(path, format, &summary, &warnings));
            continue;
        }
        if number > 0 {
            println!();
        }
        print(path, format, trace.reader.has_times(), &summary);
        warnings.iter().for_each(|warning| output::print_marked("  !", warning));
    }
    Ok(())
}

fn to_json(path: &Path, format: Format, summary: &Summary, warnings: &[String]) -> Value {
    let mut value = json!(summary);
    value["file"] = json!(path);
    value["format"] = json!(format.name());
    value["warnings"] = json!(warnings);
    value
}

fn print(path: &Path, format: Format, has_times: bool, summary: &Summary) {
    println!("{}: {}, {}", path.display(), format.name(), output::count(summary.devices as u64, "device"));
    let line = |name: &str, text: &str| println!("  {name:<11} {text}");
    let reads = percent(summary.amount.read_share);
    line(
        "requests",
        &format!(
            "{}, {reads} of them reads, {}",
            summary.amount.requests,
            bytes(summary.amount.bytes as f64)
        ),
    );
    line("sizes", &sizes(summary));
    if has_times {
        line(
            "time",
            &format!("{}, the first request at {}", seconds(summary.span_s), seconds(summary.first_s)),
        );
        line("rate", &rate(summary));
    } else {
        line("time", "this format has none");
    }
    if let Some((count, mean_ns)) = summary.responses {
        line("responses", &format!("mean {} as recorded ({count} requests)", seconds(mean_ns / 1e9)));
    }
    line(
        "sequential",
        &format!("{} begin where one of the device's last 8 ended", percent(summary.sequential_share)),
    );
    let reuse = &summary.reuse;
    let about = if reuse.is_exact { "" } else { "about " };
    let sampled = if reuse.is_exact {
        String::new()
    } else {
        format!(" ({} of blocks followed)", percent(reuse.sampled))
    };
    line("footprint", &format!("{about}{} in blocks of 4 KiB{sampled}", bytes(reuse.footprint_bytes)));
    println!("\n{}", reuses(summary));
    if summary.devices > 1 {
        println!("\n{}", devices(&summary.busiest));
    }
}

fn sizes(summary: &Summary) -> String {
    let mut text = format!("mean {}", bytes(summary.sizes.mean_bytes));
    for (percent, size) in &summary.sizes.percentiles_bytes {
        let name = match *percent {
            0.0 => "min".to_owned(),
            100.0 => "max".to_owned(),
            percent => format!("p{percent:.0}"),
        };
        if ![25.0, 75.0].contains(percent) {
            let _ = write!(text, ", {name} {}", bytes(*size as f64));
        }
    }
    text
}

fn rate(summary: &Summary) -> String {
    let mean = summary.arrivals.rate_mean_per_s.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
    let gaps = match summary.arrivals.gap_cv {
        Some(cv) => format!("gaps of {} with a CV of {cv:.2}", seconds(summary.arrivals.gap_mean_ns / 1e9)),
        None => "no gaps".to_owned(),
    };
    format!("{mean} a second, {} in the busiest; {gaps}", summary.arrivals.rate_peak_per_s)
}

/// Bars of the histogram are at most so long.
const BAR: f64 = 32.0;

/// How references are reused, and what a cache of each size would hold.
fn reuses(summary: &Summary) -> String {
    let reuse = &summary.reuse;
    let most = reuse.histogram.iter().map(|(_, share)| *share).fold(reuse.cold_share, f64::max).max(1e-9);
    let mut table = output::table(&["reused within", "references", "LRU hits", ""]);
    output::align_right(&mut table, &[0, 1, 2]);
    let mut row = |name: String, share: f64, hits: String| {
        let bar = "#".repeat((share / most * BAR).round() as usize);
        table.add_row([name, percent(share), hits, bar]);
    };
    let mut hits = 0.0;
    // The finest bin by itself, then two at a time: a screen should hold them.
    let (first, others) = reuse.histogram.split_at(reuse.histogram.len().min(1));
    for bins in first.chunks(1).chain(others.chunks(2)) {
        let share: f64 = bins.iter().map(|(_, share)| share).sum();
        hits += share;
        row(bytes(bins[bins.len() - 1].0 as f64), share, percent(hits));
    }
    row("never before".to_owned(), reuse.cold_share, String::new());
    output::render(&table)
}

fn devices(busiest: &[DeviceSummary]) -> String {
    let mut table = output::table(&["device", "requests", "reads", "up to"]);
    output::align_right(&mut table, &[0, 1, 2, 3]);
    for device in busiest {
        let name = device.device.map_or("others".to_owned(), |device| device.to_string());
        let reads = percent(device.reads as f64 / device.requests as f64);
        let end = bytes(device.end_sector as f64 * trace::SECTOR_BYTES as f64);
        table.add_row([name, device.requests.to_string(), reads, end]);
    }
    output::render(&table)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut scaled, mut unit) = (bytes, 0);
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        (scaled, unit) = (scaled / 1024.0, unit + 1);
    }
    let digits = usize::from(scaled.fract() != 0.0);
    format!("{scaled:.digits$} {}", UNITS[unit])
}

fn seconds(seconds: f64) -> String {
    match seconds {
        0.0 => "0 s".to_owned(),
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 3600.0 => format!("{s:.1} s"),
        s => format!("{:.1} h", s / 3600.0),
    }
}
