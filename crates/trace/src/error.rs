//! What may be wrong with a trace, and where: file, line and field.

use std::fmt;
use thiserror::Error;

/// A trace that cannot be read: which file, where in it, and why. The reader ends with it.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct TraceError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    file: String,
    place: Place,
    fault: Fault,
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::File => write!(f, "{}: {}", self.file, self.fault),
            place => write!(f, "{}, {place}: {}", self.file, self.fault),
        }
    }
}

impl TraceError {
    pub(crate) fn new(file: &str, place: Place, fault: Fault) -> TraceError {
        TraceError(Box::new(Inner { file: file.to_owned(), place, fault }))
    }

    /// The name under which the trace was opened.
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// Where in it.
    pub fn place(&self) -> Place {
        self.0.place
    }

    /// What is wrong there.
    pub fn fault(&self) -> &Fault {
        &self.0.fault
    }
}

/// Where in a trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line of a text; the first is 1.
    Line(u64),
    /// A record of a binary file.
    Record {
        /// Its number; the first is 1.
        number: u64,
        /// Where it begins: bytes from the start of the file once decompressed.
        byte: u64,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File => f.write_str("the file"),
            Place::Line(line) => write!(f, "line {line}"),
            Place::Record { number, byte } => write!(f, "record {number} (byte {byte})"),
        }
    }
}

#[derive(Debug, Error)]
pub enum Fault {
    /// A field whose content makes no sense.
    #[error("field `{field}` is {value}: {why}")]
    Field {
        /// The field's name in the format's description.
        field: &'static str,
        /// What stands there, shortened, bytes that are no text escaped.
        value: Box<str>,
        /// Why that is wrong.
        why: &'static str,
    },
    /// A line or record that ends too early.
    #[error("field `{field}` is missing")]
    Missing {
        /// The first field that is not there.
        field: &'static str,
    },
    /// More fields than the format has.
    #[error(
        "there is more after the last field `{field}`; is the format `{format}`? Name another with --format"
    )]
    TooMany {
        /// The format's last field.
        field: &'static str,
        format: &'static str,
    },
    /// The file ends inside a line or a record.
    #[error("the file ends in the middle of this {what} ({why}); --allow-cut reads what is before it")]
    Cut {
        /// `line` or `record`.
        what: &'static str,
        why: Box<str>,
    },
    /// No end of line far and wide.
    #[error(
        "the line is longer than {limit_bytes} bytes: this is no text trace; name its format with --format"
    )]
    LineTooLong {
        /// The longest line that is read.
        limit_bytes: usize,
    },
    /// A request before the one before it.
    #[error(
        "field `{field}`: the request was issued {back_ns} ns before the one read before it; sort with --sort \
         (a window of records), or raise it to the time before with --clamp"
    )]
    Decreasing {
        /// The format's field of time.
        field: &'static str,
        /// How far back the time goes, in nanoseconds.
        back_ns: u64,
    },
    /// A request that comes too late even for the window in which requests are sorted.
    #[error(
        "field `{field}`: the request was issued {back_ns} ns before one that has left the sorting window of {window} \
         records; give a wider one with --window"
    )]
    OutsideWindow {
        /// The format's field of time.
        field: &'static str,
        /// How far back the time goes, in nanoseconds.
        back_ns: u64,
        /// Records in the window.
        window: usize,
    },
    /// Sectors that the volume does not have.
    #[error(
        "field `{field}`: sectors {sector}..{end} lie beyond the volume's {volume} sectors; wrap them with --beyond wrap, \
         or give a larger --volume-sectors"
    )]
    Beyond {
        /// The format's field of the address.
        field: &'static str,
        /// The first sector asked for.
        sector: u64,
        /// The sector after the last.
        end: u64,
        /// Sectors of the volume.
        volume: u64,
    },
    /// A size no request has.
    #[error(
        "field `{field}`: a request of {bytes} bytes ({why}); leave such requests out with --bad-size skip{more}"
    )]
    Size {
        /// The format's field of the size.
        field: &'static str,
        bytes: u64,
        /// Empty, or larger than the limit.
        why: &'static str,
        /// A further way out.
        more: &'static str,
    },
    /// Nothing at all, or nothing but empty lines and remarks.
    #[error("it is empty: there is no request in it")]
    Empty,
    /// No format known to us.
    #[error("this looks like none of the formats known; name one with --format: {formats}")]
    Unknown { formats: String },
    /// A header that says something we do not read.
    #[error("{0}")]
    Header(String),
    /// Reading or decompressing failed.
    #[error("reading failed {at_bytes} bytes in: {why}{hint}")]
    Read {
        /// Bytes that came out of the decompressor before.
        at_bytes: u64,
        /// What the system or the decompressor says.
        why: std::io::Error,
        hint: &'static str,
    },
}

/// Bytes of a field that an error shows.
const SHOWN_MAX: usize = 40;

impl Fault {
    pub(crate) fn field(field: &'static str, value: &[u8], why: &'static str) -> Fault {
        let shown = &value[..value.len().min(SHOWN_MAX)];
        let dots = if shown.len() < value.len() { "..." } else { "" };
        Fault::Field { field, value: format!("`{}{dots}`", shown.escape_ascii()).into(), why }
    }
}

/// Something odd that does not stop the reader.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum Warning {
    /// The last line has no end.
    #[error(
        "the last line ({line}) has no newline: it was read whole, and may have been cut in its last field"
    )]
    NoNewline { line: u64 },
    /// The end was left out as wished.
    #[error("the end from {place} on was left out: {why}")]
    EndLeftOut {
        /// Where.
        place: Place,
        why: String,
    },
    /// Times that were raised.
    #[error("{count} times went backwards and were raised to the time before, by at most {most_ns} ns")]
    Clamped {
        count: u64,
        /// The largest step back, in nanoseconds.
        most_ns: u64,
    },
    /// Times before zero.
    #[error("{count} times were negative, before the trace began, and became zero")]
    Negative { count: u64 },
    /// Requests that came out of order, and were sorted.
    #[error("{count} requests were out of order and have been sorted")]
    Sorted { count: u64 },
    /// Addresses that were wrapped.
    #[error("{count} requests lay beyond the volume and were wrapped into it")]
    Wrapped { count: u64 },
    /// Requests of absurd sizes that were left out.
    #[error("{count} requests were empty or too large and have been left out")]
    SizesSkipped { count: u64 },
    /// More than any disk sees.
    #[error(
        "{per_s:.0} requests a second to each device on average, which no disk could have seen: are the times in another \
         unit? This was read as {unit}; see --time-unit"
    )]
    TooFast {
        /// Requests a second and device.
        per_s: f64,
        /// The unit in which times were read.
        unit: &'static str,
    },
    /// Fewer than anybody records.
    #[error(
        "one request in {apart_s:.0} s on average: are the times in another unit? This was read as {unit}; see \
         --time-unit"
    )]
    TooSlow {
        /// Seconds between two requests.
        apart_s: f64,
        /// The unit in which times were read.
        unit: &'static str,
    },
}
