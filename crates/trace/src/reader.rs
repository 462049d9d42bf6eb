//! A trace as an iterator: detect the format, decode, check what may be wrong, bring into order.
//!
//! Memory is bounded whatever the length: a buffer of the file, the decompressor's window, and the window in which requests
//! are sorted.

use crate::compress::plain;
use crate::error::{Fault, Place, TraceError, Warning};
use crate::format::{self, Binary, Context, Decoder, Format, Taken, Text};
use crate::input::Input;
use crate::order::{Order, Placed, Window};
use crate::record::{Record, SECTOR_BYTES};
use std::collections::BTreeSet;
use std::io::Read;
use std::num::NonZeroU64;

/// Requests larger than this are taken for damage: 1 GiB.
pub const COUNT_MAX: u32 = (1 << 30) / SECTOR_BYTES as u32;
/// Requests a second and device that earn a warning: beyond all mechanical disks and arrays in public traces.
const RATE_MAX_PER_S: f64 = 20_000.0;
/// Seconds between requests that earn a warning.
const APART_MAX_S: f64 = 1_000.0;
/// Requests below which a rate says nothing.
const RATED_MIN: u64 = 500;
/// Devices counted for the rate.
const DEVICES_MAX: usize = 1 << 16;

/// What to do with addresses beyond a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Bounds {
    /// There is no volume to lie beyond.
    #[default]
    None,
    /// An error beyond so many sectors.
    Refuse(NonZeroU64),
    /// Wrap into so many sectors: the address modulo their number, moved down if its end would lie beyond.
    Wrap(NonZeroU64),
}

/// What to do with requests that are empty or larger than [`Options::count_max`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sizes {
    #[default]
    Refuse,
    Skip,
}

/// From when times count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Origin {
    /// From the first request when the format counts from an epoch; else as the file has it.
    #[default]
    Auto,
    /// As the file has it.
    Keep,
    /// From the first request.
    First,
}

/// How to read a trace.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Its format; detected when absent.
    pub format: Option<Format>,
    /// Times that go backwards; as suits the format when absent.
    pub order: Option<Order>,
    /// Negative times become zero, with a warning; an error otherwise. What ETW logged when it was complete may have been
    /// issued before the trace began: that is always allowed.
    pub is_negative_allowed: bool,
    /// Addresses beyond the volume.
    pub bounds: Bounds,
    /// Requests of absurd sizes.
    pub sizes: Sizes,
    /// The largest request, in sectors.
    pub count_max: u32,
    /// From when times count.
    pub origin: Origin,
    /// One unit of the file's times, in nanoseconds; the format's own when absent.
    pub unit_ns: Option<u64>,
    /// Replaces all times by even ones, so many requests a second.
    pub rate_per_s: Option<f64>,
    /// A file that ends in the middle of a line, a record or its compression ends there, with a warning.
    pub is_cut_allowed: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            format: None,
            order: None,
            is_negative_allowed: false,
            bounds: Bounds::default(),
            sizes: Sizes::default(),
            count_max: COUNT_MAX,
            origin: Origin::default(),
            unit_ns: None,
            rate_per_s: None,
            is_cut_allowed: false,
        }
    }
}

/// A trace, request after request. After an error it ends.
pub struct Reader {
    file: String,
    format: Format,
    options: Options,
    order: Order,
    input: Input,
    decoder: Decoder,
    line: u64,
    number: u64,
    context: Context,
    stage: Stage,
    window: Window,
    seen: Seen,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reading,
    /// The file is read; what was held back follows.
    Draining,
    Ended,
}

/// What was noticed on the way.
#[derive(Default)]
struct Seen {
    emitted: u64,
    first_ns: u64,
    last_ns: u64,
    /// The latest time read, for formats out of order.
    latest_ns: u64,
    devices: BTreeSet<u32>,
    sorted: u64,
    clamped: u64,
    clamped_most_ns: u64,
    wrapped: u64,
    skipped: u64,
    end: Vec<Warning>,
}

impl Reader {
    /// A reader of the trace that `source` holds, compressed or not. `file` is its name, for errors.
    ///
    /// # Errors
    /// When the beginning cannot be read, or its format not be told.
    pub fn open(file: &str, source: Box<dyn Read + Send>, options: Options) -> Result<Reader, TraceError> {
        let failed = |fault| TraceError::new(file, Place::File, fault);
        let unreadable = |why| failed(Fault::Read { at_bytes: 0, why, hint: "" });
        let mut input = Input::new(plain(source).map_err(unreadable)?);
        if let Err(fault) = input.fill() {
            // A cut in the first buffer: what came before it may still be wanted.
            if input.held().is_empty() || !options.is_cut_allowed {
                return Err(failed(fault));
            }
        }
        let format = options.format.or_else(|| Format::detect(input.held(), input.is_end()));
        let format = format.ok_or_else(|| failed(format::unknown(input.held(), input.is_end())))?;
        let order = options.order.unwrap_or(format.0.order);
        let context = Context::new(format.0, options.unit_ns, options.is_negative_allowed);
        Ok(Reader {
            file: file.to_owned(),
            format,
            options,
            order,
            input,
            decoder: (format.0.decoder)(),
            line: 0,
            number: 0,
            context,
            stage: Stage::Reading,
            window: Window::new(),
            seen: Seen::default(),
        })
    }

    /// The format, as told or detected.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether times mean something: the format has them, or they were replaced.
    pub fn has_times(&self) -> bool {
        self.format.has_times() || self.options.rate_per_s.is_some()
    }

    /// What was odd so far; complete at the end.
    pub fn warnings(&self) -> Vec<Warning> {
        self.seen.warnings(self.context.negative, self.rated().then(|| self.unit()))
    }

    fn rated(&self) -> bool {
        self.format.has_times() && self.options.rate_per_s.is_none()
    }

    fn unit(&self) -> &'static str {
        match self.context.unit_ns {
            1_000_000_000 => "seconds",
            1_000_000 => "milliseconds",
            1_000 => "microseconds",
            100 => "ticks of 100 ns",
            1 => "nanoseconds",
            _ => "another unit",
        }
    }

    fn next_placed(&mut self) -> Result<Option<Placed>, TraceError> {
        let window = if let Order::Sort { window } = self.order { window } else { 0 };
        loop {
            if self.stage == Stage::Ended && self.window.len() == 0 {
                return Ok(None);
            }
            let due = if self.stage == Stage::Ended { 0 } else { window };
            if window > 0 && self.window.len() > due {
                return Ok(self.window.pop());
            }
            let Some(placed) = self.decode()? else {
                self.stage = Stage::Ended;
                continue;
            };
            if !self.check(&placed)? {
                continue;
            }
            let placed = self.bounded(placed)?;
            if window == 0 {
                return Ok(Some(placed));
            }
            self.seen.sorted += u64::from(placed.record.at_ns < self.seen.latest_ns);
            self.seen.latest_ns = self.seen.latest_ns.max(placed.record.at_ns);
            self.window.push(placed);
        }
    }

    /// The next request of the file, as it stands there.
    #[inline]
    fn decode(&mut self) -> Result<Option<Placed>, TraceError> {
        if self.stage == Stage::Reading {
            let decoded = match &mut self.decoder {
                Decoder::Text(text) => next_line(
                    &mut **text,
                    &mut self.input,
                    &mut self.line,
                    &mut self.seen.end,
                    &mut self.context,
                ),
                Decoder::Binary(binary) => {
                    next_record(&mut **binary, &mut self.input, &mut self.number, &mut self.context)
                }
            };
            match decoded {
                Ok(Some(record)) => return Ok(Some(Placed { record, place: self.context.place })),
                Ok(None) => {}
                Err(fault) => self.cut(fault)?,
            }
            self.stage = Stage::Draining;
        }
        let Decoder::Text(text) = &mut self.decoder else { return Ok(None) };
        Ok(text.held(&mut self.context).map(|record| Placed { record, place: self.context.place }))
    }

    /// The file cannot be read on: an error, or its end if that is allowed.
    #[cold]
    fn cut(&mut self, fault: Fault) -> Result<(), TraceError> {
        let is_cut = match &fault {
            Fault::Cut { .. } => true,
            // What the system says has an error number; what is left is the decompressor's.
            Fault::Read { why, .. } => why.raw_os_error().is_none(),
            _ => false,
        };
        if !is_cut || !self.options.is_cut_allowed {
            return Err(TraceError::new(&self.file, self.context.place, fault));
        }
        self.seen.end.push(Warning::EndLeftOut { place: self.context.place, why: fault.to_string() });
        Ok(())
    }

    /// Whether the request's size makes sense. An error, or `false`, when it does not.
    #[inline]
    fn check(&mut self, placed: &Placed) -> Result<bool, TraceError> {
        if (1..=self.options.count_max).contains(&placed.record.count) {
            return Ok(true);
        }
        self.seen.skipped += 1;
        if self.options.sizes == Sizes::Skip {
            return Ok(false);
        }
        let is_empty = placed.record.count == 0;
        let fault = Fault::Size {
            field: self.format.0.size,
            bytes: placed.record.bytes(),
            why: if is_empty { "empty" } else { "larger than --max-request" },
            more: if is_empty { "" } else { ", or raise --max-request" },
        };
        Err(TraceError::new(&self.file, placed.place, fault))
    }

    #[inline]
    fn bounded(&mut self, mut placed: Placed) -> Result<Placed, TraceError> {
        let record = &mut placed.record;
        let end = record.sector.checked_add(u64::from(record.count));
        let volume = match self.options.bounds {
            Bounds::None => u64::MAX,
            Bounds::Refuse(volume) | Bounds::Wrap(volume) => volume.get(),
        };
        if end.is_some_and(|end| end <= volume) {
            return Ok(placed);
        }
        if matches!(self.options.bounds, Bounds::Wrap(_)) && u64::from(record.count) <= volume {
            record.sector = (record.sector % volume).min(volume - u64::from(record.count));
            self.seen.wrapped += 1;
            return Ok(placed);
        }
        let field = self.format.0.address;
        let fault = Fault::Beyond { field, sector: record.sector, end: record.end(), volume };
        Err(TraceError::new(&self.file, placed.place, fault))
    }

    /// The request with its final time.
    #[inline]
    fn timed(&mut self, Placed { mut record, place }: Placed) -> Result<Record, TraceError> {
        let seen = &mut self.seen;
        if let Some(rate_per_s) = self.options.rate_per_s {
            record.at_ns = (seen.emitted as f64 * 1e9 / rate_per_s) as u64;
        } else if seen.emitted > 0 && record.at_ns < seen.last_ns {
            let back_ns = seen.last_ns - record.at_ns;
            if self.order != Order::Clamp {
                return Err(self.backwards(back_ns, place));
            }
            seen.clamped += 1;
            seen.clamped_most_ns = seen.clamped_most_ns.max(back_ns);
            record.at_ns = seen.last_ns;
        }
        if seen.emitted == 0 {
            seen.first_ns = record.at_ns;
        }
        seen.emitted += 1;
        seen.last_ns = record.at_ns;
        if !seen.devices.contains(&record.device) && seen.devices.len() < DEVICES_MAX {
            seen.devices.insert(record.device);
        }
        let is_absolute = self.format.0.time.is_some_and(|time| time.is_absolute);
        let from_first =
            self.options.origin == Origin::First || (self.options.origin == Origin::Auto && is_absolute);
        if from_first {
            record.at_ns -= seen.first_ns;
        }
        Ok(record)
    }

    #[cold]
    fn backwards(&self, back_ns: u64, place: Place) -> TraceError {
        let field = self.format.0.time.map_or("time", |time| time.field);
        let fault = match self.order {
            Order::Sort { window } => Fault::OutsideWindow { field, back_ns, window },
            _ => Fault::Decreasing { field, back_ns },
        };
        TraceError::new(&self.file, place, fault)
    }
}

impl Iterator for Reader {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let result =
            self.next_placed().and_then(|placed| placed.map(|placed| self.timed(placed)).transpose());
        if result.is_err() {
            self.stage = Stage::Ended;
            self.window = Window::new();
        }
        result.transpose()
    }
}

/// The request of the next line that holds one.
#[inline]
fn next_line(
    text: &mut dyn Text,
    input: &mut Input,
    number: &mut u64,
    warnings: &mut Vec<Warning>,
    context: &mut Context,
) -> Result<Option<Record>, Fault> {
    loop {
        context.place = Place::Line(*number + 1);
        let Some(line) = input.line()? else { return Ok(None) };
        *number += 1;
        let bytes = input.text(&line);
        if format::is_nothing(bytes) {
            format::refuse_version(bytes)?;
            continue;
        }
        context.is_held = false;
        let result = text.line(bytes, context);
        if !line.is_whole {
            let why = match &result {
                Err(fault) => fault.to_string(),
                Ok(None) if !context.is_held => "so far it is no request".to_owned(),
                Ok(_) => String::new(),
            };
            if !why.is_empty() {
                return Err(Fault::Cut { what: "line", why: why.into() });
            }
            warnings.push(Warning::NoNewline { line: *number });
        }
        if let Some(record) = result? {
            return Ok(Some(record));
        }
    }
}

#[inline]
fn next_record(
    binary: &mut dyn Binary,
    input: &mut Input,
    number: &mut u64,
    context: &mut Context,
) -> Result<Option<Record>, Fault> {
    loop {
        context.place = Place::Record { number: *number + 1, byte: input.offset() };
        match binary.take(input.held(), context)? {
            Taken::Record(length, record) => {
                input.take(length);
                *number += 1;
                return Ok(Some(record));
            }
            Taken::Skip(length) => {
                input.take(length);
                *number += 1;
            }
            Taken::Header(length) => input.take(length),
            Taken::More if !input.is_end() => input.fill()?,
            Taken::More if input.held().is_empty() => return Ok(None),
            Taken::More => {
                let why = format!("{} bytes are left, too few for one", input.held().len());
                return Err(Fault::Cut { what: "record", why: why.into() });
            }
        }
    }
}

impl Seen {
    fn warnings(&self, negative: u64, unit: Option<&'static str>) -> Vec<Warning> {
        let mut warnings = self.end.clone();
        let mut add = |count: u64, warning: Warning| warnings.extend((count > 0).then_some(warning));
        add(negative, Warning::Negative { count: negative });
        add(self.sorted, Warning::Sorted { count: self.sorted });
        add(self.clamped, Warning::Clamped { count: self.clamped, most_ns: self.clamped_most_ns });
        add(self.wrapped, Warning::Wrapped { count: self.wrapped });
        add(self.skipped, Warning::SizesSkipped { count: self.skipped });
        warnings.extend(unit.and_then(|unit| self.rate(unit)));
        warnings
    }

    fn rate(&self, unit: &'static str) -> Option<Warning> {
        if self.emitted < RATED_MIN {
            return None;
        }
        let span_s = (self.last_ns - self.first_ns) as f64 / 1e9;
        let per_s = self.emitted as f64 / span_s / self.devices.len() as f64;
        if per_s > RATE_MAX_PER_S {
            return Some(Warning::TooFast { per_s, unit });
        }
        let apart_s = span_s / self.emitted as f64;
        (apart_s > APART_MAX_S).then_some(Warning::TooSlow { apart_s, unit })
    }
}
