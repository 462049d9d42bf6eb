//! The formats in which traces come, a file each, and how one is told from another.
//!
//! A new format is one file that describes it in an [`Entry`], and one line in [`ALL`].

mod arc;
mod blkparse;
pub(crate) mod brickwork;
mod cloudphysics;
mod columns;
mod disksim;
mod etw;
mod keys;
mod msr;
mod oracle;
mod spc;
mod srt;
mod systor;
mod validation;
mod vscsi;

pub(crate) use brickwork::refuse_version;

use crate::error::{Fault, Place};
use crate::field::Field;
use crate::order::Order;
use crate::record::{Record, sectors};
use std::fmt;

/// All formats. Detection asks them in this order: those that can be mistaken for others come later.
const ALL: &[&Entry] = &[
    &brickwork::ENTRY,
    &srt::ENTRY,
    &etw::ENTRY,
    &cloudphysics::ENTRY,
    &validation::ENTRY,
    &blkparse::ENTRY,
    &msr::ENTRY,
    &systor::ENTRY,
    &columns::TIMED,
    &columns::UNTIMED,
    &spc::ENTRY,
    &disksim::MILLISECONDS,
    &disksim::NANOSECONDS,
    &arc::ENTRY,
    &vscsi::FIRST,
    &vscsi::SECOND,
    &oracle::ENTRY,
    &keys::ENTRY,
];

/// A format of traces.
#[derive(Clone, Copy)]
pub struct Format(pub(crate) &'static Entry);

impl Format {
    pub fn all() -> impl Iterator<Item = Format> {
        ALL.iter().map(|entry| Format(entry))
    }

    /// The format of this name.
    pub fn find(name: &str) -> Option<Format> {
        Format::all().find(|format| format.name() == name)
    }

    /// The format of a file that begins with `head`; `is_whole` when that is all of it.
    pub fn detect(head: &[u8], is_whole: bool) -> Option<Format> {
        Format::all().find(|format| (format.0.detect)(&Head { bytes: head, is_whole }))
    }

    /// Its name, as `--format` takes it.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// What it is, and where it comes from.
    pub fn what(&self) -> &'static str {
        self.0.what
    }

    /// Whether its requests have times. Others have the time zero throughout.
    pub fn has_times(&self) -> bool {
        self.0.time.is_some()
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The names of all formats, for errors and help.
pub fn names() -> String {
    Format::all().map(|format| format.name()).collect::<Vec<_>>().join(", ")
}

/// Why no format reads a file that begins with `head`, as well as that can be told.
pub(crate) fn unknown(head: &[u8], is_whole: bool) -> Fault {
    let head = Head { bytes: head, is_whole };
    if is_whole && head.lines().next().is_none() {
        return Fault::Empty;
    }
    columns::lacking(&head).unwrap_or_else(|| Fault::Unknown { formats: names() })
}

/// A format as its file describes it.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// How its times are written; `None` when it has none.
    pub(crate) time: Option<Time>,
    /// The names of its fields of address and size, for errors.
    pub(crate) address: &'static str,
    pub(crate) size: &'static str,
    /// The order in which its requests usually stand.
    pub(crate) order: Order,
    pub(crate) detect: fn(&Head<'_>) -> bool,
    pub(crate) decoder: fn() -> Decoder,
}

/// How a format writes times.
#[derive(Clone, Copy)]
pub(crate) struct Time {
    pub(crate) field: &'static str,
    /// One unit, in nanoseconds.
    pub(crate) unit_ns: u64,
    /// Whether times count from an epoch, not from the start of the trace.
    pub(crate) is_absolute: bool,
}

/// In what a decoder reads a line or record: what it is told of the file, and what it tells besides the request.
pub(crate) struct Context {
    /// One unit of the file's times, in nanoseconds.
    pub(crate) unit_ns: u64,
    /// Negative times become zero instead of an error.
    pub(crate) is_negative_allowed: bool,
    /// So many times did.
    pub(crate) negative: u64,
    /// Where the bytes are that are decoded now. Who hands on a request that it held back says where that was.
    pub(crate) place: Place,
    /// Whether the line is a request that is held back.
    pub(crate) is_held: bool,
}

impl Context {
    /// At the beginning of a file of `entry`'s format; `unit_ns` replaces the format's own unit.
    pub(crate) fn new(entry: &Entry, unit_ns: Option<u64>, is_negative_allowed: bool) -> Context {
        let unit_ns = unit_ns.or(entry.time.map(|time| time.unit_ns)).unwrap_or(1);
        Context { unit_ns, is_negative_allowed, negative: 0, place: Place::File, is_held: false }
    }

    /// The time that `field` says, in nanoseconds.
    #[inline]
    fn time_ns(&mut self, field: &Field<'_>) -> Result<u64, Fault> {
        let ns = field.time_ns(self.unit_ns, self.is_negative_allowed)?;
        self.negative += u64::from(ns == 0 && field.bytes.starts_with(b"-"));
        Ok(ns)
    }
}

/// The beginning of a file.
pub(crate) struct Head<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) is_whole: bool,
}

/// Turns bytes into requests.
pub(crate) enum Decoder {
    Text(Box<dyn Text>),
    Binary(Box<dyn Binary>),
}

/// A format of lines.
pub(crate) trait Text: Send {
    /// What a line says. `None` for headers and whatever else is no request.
    fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Option<Record>, Fault>;

    /// At the end of the file: what was held back, one at a time.
    fn held(&mut self, _: &mut Context) -> Option<Record> {
        None
    }
}

/// A format of binary records.
pub(crate) trait Binary: Send {
    /// What the first of these bytes say.
    fn take(&mut self, bytes: &[u8], context: &Context) -> Result<Taken, Fault>;
}

/// What a binary decoder makes of the bytes it is shown.
pub(crate) enum Taken {
    /// Too few of them to say.
    More,
    /// So many of them are a header.
    Header(usize),
    /// So many of them are a record that is no request.
    Skip(usize),
    /// So many of them are this one.
    Record(usize, Record),
}

/// Lines that detection looks at.
const LINES_LOOKED_AT: usize = 32;

impl<'a> Head<'a> {
    /// Its first whole lines that say something.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a [u8]> {
        let whole = match self.bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) if !self.is_whole => &self.bytes[..end],
            _ => self.bytes,
        };
        whole.split(|byte| *byte == b'\n').filter(|line| !is_nothing(line)).take(LINES_LOOKED_AT)
    }

    /// Whether `entry` reads the first lines and finds requests there. The last line of a whole file may be cut.
    pub(crate) fn reads_as(&self, entry: &Entry) -> bool {
        let Decoder::Text(mut text) = (entry.decoder)() else { return false };
        let mut context = Context::new(entry, None, true);
        let results: Vec<_> = self.lines().map(|line| text.line(line, &mut context)).collect();
        let bad = results.iter().position(Result::is_err);
        let is_good = bad.is_none_or(|place| place > 0 && place + 1 == results.len());
        is_good && results.iter().any(|result| matches!(result, Ok(Some(_))))
    }
}

/// Whether a line says nothing: empty, or a remark.
pub(crate) fn is_nothing(line: &[u8]) -> bool {
    line.iter().find(|byte| !byte.is_ascii_whitespace()).is_none_or(|byte| *byte == b'#')
}

/// The sectors that a request of `bytes` bytes from byte `offset` on touches; `size` is the field that says how many bytes.
fn touched(offset: u64, bytes: u64, size: &Field<'_>) -> Result<(u64, u32), Fault> {
    sectors(offset, bytes).ok_or_else(|| size.fault("no request has so many bytes"))
}

/// A number of `N` bytes at `at`, little-endian.
fn little<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + N].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// A number of 4 bytes at `at`, big-endian.
fn big(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |value, byte| value << 8 | u32::from(*byte))
}
