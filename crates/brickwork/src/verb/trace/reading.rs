//! The flags with which any trace is read, and a trace opened with them.

use crate::config::Bytes;
use crate::output;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use indicatif::ProgressBar;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trace::WINDOW_RECORDS;
use trace::reader::COUNT_MAX;
use trace::{Bounds, Format, Options, Order, Origin, Reader, Record, SECTOR_BYTES, Sizes};

/// How a trace is read.
#[derive(clap::Args)]
#[command(next_help_heading = "How the trace is read")]
pub(super) struct Reading {
    /// Its format; told by the content when absent
    #[arg(long, value_name = "NAME", value_parser = parse_format)]
    format: Option<Format>,
    /// Sort requests by time within a window (usual for formats that are out of order)
    #[arg(long, conflicts_with = "clamp")]
    sort: bool,
    /// Records in the window in which requests are sorted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=16_777_216), conflicts_with = "clamp")]
    window: Option<u32>,
    /// Raise times that go backwards to the one before
    #[arg(long)]
    clamp: bool,
    /// Take negative times for zero
    #[arg(long)]
    allow_negative: bool,
    /// Sectors of the volume, of 512 bytes; any address is taken when absent
    #[arg(long, value_name = "N")]
    volume_sectors: Option<NonZeroU64>,
    /// What to do with addresses beyond the volume
    #[arg(long, value_enum, default_value = "refuse", requires = "volume_sectors")]
    beyond: Beyond,
    /// What to do with requests that are empty or too large
    #[arg(long, value_enum, default_value = "refuse")]
    bad_size: BadSize,
    /// The largest request
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    max_request: Bytes,
    /// The unit of its times; as the format has it when absent
    #[arg(long, value_enum)]
    time_unit: Option<Unit>,
    /// From when times count; auto: from the first request if they are dates, else as they are
    #[arg(long, value_enum, default_value = "auto")]
    origin: From,
    /// Replace all times by so many requests a second, evenly
    #[arg(long, value_name = "PER_S", value_parser = parse_rate)]
    rate: Option<f64>,
    /// Take no more than the first N requests
    #[arg(long, value_name = "N")]
    take: Option<u64>,
    /// Read a file that was cut up to where it was cut
    #[arg(long)]
    allow_cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Beyond {
    Refuse,
    Wrap,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BadSize {
    Refuse,
    Skip,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unit {
    S,
    Ms,
    Us,
    Ns,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum From {
    Auto,
    Keep,
    First,
}

/// The list of formats for `--help`.
pub(super) fn formats() -> String {
    let line = |format: Format| format!("  {:<15} {}\n", format.name(), format.what());
    Format::all().map(line).collect()
}

fn parse_format(name: &str) -> Result<Format, String> {
    Format::find(name).ok_or_else(|| format!("no such format; there are: {}", trace::format::names()))
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "a number is expected".to_owned())?;
    if (1e-6..=1e9).contains(&rate) { Ok(rate) } else { Err("0.000001 to 1000000000 is expected".to_owned()) }
}

impl Reading {
    fn options(&self) -> Result<Options> {
        let count_max = self.max_request.0.div_ceil(SECTOR_BYTES);
        if !(1..=u64::from(COUNT_MAX) * 4).contains(&count_max) {
            bail!("--max-request {}: 512 bytes to 4GiB is possible", self.max_request);
        }
        Ok(Options {
            format: self.format,
            order: self.order(),
            is_negative_allowed: self.allow_negative,
            bounds: match (self.volume_sectors, self.beyond) {
                (None, _) => Bounds::None,
                (Some(sectors), Beyond::Refuse) => Bounds::Refuse(sectors),
                (Some(sectors), Beyond::Wrap) => Bounds::Wrap(sectors),
            },
            sizes: if self.bad_size == BadSize::Skip { Sizes::Skip } else { Sizes::Refuse },
            count_max: u32::try_from(count_max)?,
            origin: match self.origin {
                From::Auto => Origin::Auto,
                From::Keep => Origin::Keep,
                From::First => Origin::First,
            },
            unit_ns: self.time_unit.map(|unit| match unit {
                Unit::S => 1_000_000_000,
                Unit::Ms => 1_000_000,
                Unit::Us => 1_000,
                Unit::Ns => 1,
            }),
            rate_per_s: self.rate,
            is_cut_allowed: self.allow_cut,
        })
    }

    fn order(&self) -> Option<Order> {
        let window = self.window.map_or(WINDOW_RECORDS, |window| window as usize);
        match (self.clamp, self.sort || self.window.is_some()) {
            (true, _) => Some(Order::Clamp),
            (false, true) => Some(Order::Sort { window }),
            (false, false) => None,
        }
    }

    /// Opens the trace at `path`; `-` is standard input.
    pub(super) fn open(&self, path: &Path) -> Result<Opened> {
        let (name, done) = (path.display().to_string(), Arc::new(AtomicU64::new(0)));
        let (source, length): (Box<dyn Read + Send>, u64) = if path.as_os_str() == "-" {
            (Box::new(io::stdin()), 0)
        } else {
            let file = File::open(path).with_context(|| format!("opening the trace {name}"))?;
            let length = file.metadata().map_or(0, |metadata| metadata.len());
            (Box::new(Counted { file, done: Arc::clone(&done) }), length)
        };
        let reader = Reader::open(&name, source, self.options()?)?;
        let base = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bar = output::progress(length, &format!("reading {base}"), true);
        Ok(Opened { reader, left: self.take.unwrap_or(u64::MAX), bar, done, count: 0 })
    }
}

/// A trace that is read, with a progress bar.
pub(super) struct Opened {
    pub(super) reader: Reader,
    left: u64,
    bar: ProgressBar,
    done: Arc<AtomicU64>,
    count: u64,
}

/// Requests between two looks at the progress.
const LOOK: u64 = 1 << 16;

impl Iterator for Opened {
    type Item = Result<Record, trace::TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.count += 1;
        if self.count.is_multiple_of(LOOK) {
            self.bar.set_position(self.done.load(Ordering::Relaxed));
        }
        self.reader.next()
    }
}

impl Opened {
    /// Takes the progress bar away, and says what was odd on standard error, unless `is_silent`.
    pub(super) fn warn(&self, is_silent: bool) {
        self.bar.finish_and_clear();
        for warning in self.reader.warnings() {
            if !is_silent {
                eprintln!("brickwork: warning: {warning}");
            }
        }
    }
}

struct Counted {
    file: File,
    done: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.done.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
