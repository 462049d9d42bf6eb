//! Any table of comma separated values whose first line names its columns, in any order:
//!
//! ```text
//! time_ms,op,offset,size,device
//! 0.5,read,4096,8192,0
//! ```
//!
//! | what | names of its column |
//! |---|---|
//! | time | `time_s`, `time_ms`, `time_us`, `time_ns`; `time` or `timestamp` in seconds, or in what `--time-unit` says |
//! | read or write | `op`, `operation`, `type`, `rw`: the first letter counts |
//! | address | `sector`, `lba`, `lbn` (of 512 bytes), `offset`, `offset_bytes` |
//! | size | `count`, `sectors`, `blocks` (of 512 bytes), `size`, `length`, `bytes`, `size_bytes` |
//! | device, if there are several | `device`, `disk`, `lun`, `volume` |
//! | response time, if it is known | `response_s`, `response_ms`, `response_us`, `response_ns` |
//!
//! A name that says its unit says it whatever `--time-unit` is. Other columns count for nothing. A table without times is a format of its own: its requests have an order, and no moments.

use super::{Context, Decoder, Entry, Head, Text, Time, touched};
use crate::error::Fault;
use crate::field::{Field, Fields};
use crate::order::{Order, WINDOW_RECORDS};
use crate::record::{Record, SECTOR_BYTES};

pub(super) const TIMED: Entry = Entry {
    name: "columns",
    what: "any csv whose first line names its columns: time_ms, op, offset or sector, size or count, device",
    time: Some(Time { field: "time", unit_ns: 1_000_000_000, is_absolute: true }),
    address: "offset",
    size: "size",
    order: Order::Sort { window: WINDOW_RECORDS },
    detect: |head| header_of(head).is_some_and(|columns| columns.iter().any(Column::is_time)),
    decoder: || Decoder::Text(Box::new(Columns { has_times: true, columns: None })),
};

pub(super) const UNTIMED: Entry = Entry {
    name: "columns-without-times",
    what: "the same without a column of times",
    time: None,
    address: "offset",
    size: "size",
    order: Order::Refuse,
    detect: |head| header_of(head).is_some(),
    decoder: || Decoder::Text(Box::new(Columns { has_times: false, columns: None })),
};

/// What stands in a column. Units are in nanoseconds, and absent where they are the file's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Time(Option<u64>),
    Operation,
    Sector,
    Offset,
    Count,
    Bytes,
    Device,
    Response(u64),
    Other,
}

const NAMES: &[(&str, Column)] = &[
    ("time_s", Column::Time(Some(1_000_000_000))),
    ("time_ms", Column::Time(Some(1_000_000))),
    ("time_us", Column::Time(Some(1_000))),
    ("time_ns", Column::Time(Some(1))),
    ("at_ns", Column::Time(Some(1))),
    ("time", Column::Time(None)),
    ("timestamp", Column::Time(None)),
    ("op", Column::Operation),
    ("operation", Column::Operation),
    ("type", Column::Operation),
    ("rw", Column::Operation),
    ("sector", Column::Sector),
    ("lba", Column::Sector),
    ("lbn", Column::Sector),
    ("offset", Column::Offset),
    ("offset_bytes", Column::Offset),
    ("count", Column::Count),
    ("sectors", Column::Count),
    ("blocks", Column::Count),
    ("size", Column::Bytes),
    ("length", Column::Bytes),
    ("bytes", Column::Bytes),
    ("size_bytes", Column::Bytes),
    ("device", Column::Device),
    ("disk", Column::Device),
    ("lun", Column::Device),
    ("volume", Column::Device),
    ("response_s", Column::Response(1_000_000_000)),
    ("response_ms", Column::Response(1_000_000)),
    ("response_us", Column::Response(1_000)),
    ("response_ns", Column::Response(1)),
];

impl Column {
    fn is_time(&self) -> bool {
        matches!(self, Column::Time(_))
    }

    /// Two of a kind in one table contradict each other.
    fn is_like(self, other: Column) -> bool {
        use Column::{Bytes, Count, Offset, Sector};
        let is_pair = |one, two| [one, two].contains(&self) && [one, two].contains(&other);
        let is_same = core::mem::discriminant(&self) == core::mem::discriminant(&other);
        self != Column::Other && is_same || is_pair(Sector, Offset) || is_pair(Count, Bytes)
    }
}

/// The columns that a first line names, each with its name.
fn columns(line: &[u8]) -> Vec<(&'static str, Column)> {
    let column = |name: &[u8]| {
        let name = name.trim_ascii();
        let name = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name);
        let known = NAMES.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
        known.copied().unwrap_or(("another column", Column::Other))
    };
    // Spreadsheets begin a file with a byte order mark.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    line.trim_ascii().split(|byte| *byte == b',').map(column).collect()
}

/// The columns of a file whose first line names at least an address, a size, and whether it is a write.
fn header_of(head: &Head<'_>) -> Option<Vec<Column>> {
    let columns: Vec<Column> = columns(head.lines().next()?).into_iter().map(|(_, column)| column).collect();
    check(&columns).is_ok().then_some(columns)
}

/// What a first line lacks that names columns, but not all that a request needs.
pub(super) fn lacking(head: &Head<'_>) -> Option<Fault> {
    let columns: Vec<Column> = columns(head.lines().next()?).into_iter().map(|(_, column)| column).collect();
    let known = columns.iter().filter(|column| **column != Column::Other).count();
    (known >= KNOWN_MIN).then(|| check(&columns).err()).flatten()
}

/// A line with so many names of columns is meant as a header.
const KNOWN_MIN: usize = 2;

fn check(columns: &[Column]) -> Result<(), Fault> {
    let has = |wanted: &[Column]| columns.iter().any(|column| wanted.contains(column));
    let needed: [(&[Column], &str); 3] = [
        (&[Column::Operation], "no column is named op, operation, type or rw"),
        (&[Column::Sector, Column::Offset], "no column is named sector, lba, lbn, offset or offset_bytes"),
        (&[Column::Count, Column::Bytes], "no column is named count, sectors, blocks, size, length or bytes"),
    ];
    match needed.iter().find(|(wanted, _)| !has(wanted)) {
        Some((_, why)) => Err(Fault::Header(format!("the first line names the columns, and {why}"))),
        None => Ok(()),
    }
}

struct Columns {
    has_times: bool,
    /// As the first line names them.
    columns: Option<Vec<(&'static str, Column)>>,
}

impl Columns {
    fn begin(&mut self, line: &[u8]) -> Result<(), Fault> {
        let named = columns(line);
        let kinds: Vec<Column> = named.iter().map(|(_, column)| *column).collect();
        check(&kinds)?;
        if self.has_times && !kinds.iter().any(Column::is_time) {
            let why = "the first line names the columns, and none is named time_s, time_ms, time_us, time_ns, time or timestamp";
            return Err(Fault::Header(format!("{why}; without times the format is columns-without-times")));
        }
        let twice = named
            .iter()
            .enumerate()
            .find(|(at, (_, column))| kinds[..*at].iter().any(|other| other.is_like(*column)));
        if let Some((_, (name, _))) = twice {
            return Err(Fault::Header(format!("the first line has a second column for what `{name}` says")));
        }
        self.columns = Some(named);
        Ok(())
    }
}

impl Text for Columns {
    fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Option<Record>, Fault> {
        let Some(columns) = &self.columns else {
            self.begin(line)?;
            return Ok(None);
        };
        let mut fields = Fields::comma(line);
        let mut record =
            Record { at_ns: 0, device: 0, sector: 0, count: 0, is_write: false, response_ns: None };
        let (mut offset, mut size): (Option<u64>, Option<Field<'_>>) = (None, None);
        for (name, column) in columns {
            let field = fields.next(name)?;
            match column {
                Column::Time(_) if !self.has_times => {}
                Column::Time(None) => record.at_ns = context.time_ns(&field)?,
                Column::Time(Some(unit_ns)) => {
                    record.at_ns = field.time_ns(*unit_ns, context.is_negative_allowed)?;
                    context.negative += u64::from(record.at_ns == 0 && field.bytes.starts_with(b"-"));
                }
                Column::Operation => record.is_write = field.is_write()?,
                Column::Sector => record.sector = field.integer()?,
                Column::Offset => offset = Some(field.integer()?),
                Column::Count => record.count = field.small()?,
                Column::Bytes => size = Some(field),
                Column::Device => record.device = field.small()?,
                Column::Response(_) if field.bytes.is_empty() => {}
                Column::Response(unit_ns) => record.response_ns = Some(field.time_ns(*unit_ns, true)?),
                Column::Other => {}
            }
        }
        if let Some(offset) = offset {
            record.sector = offset / SECTOR_BYTES;
        }
        if let Some(size) = size {
            let offset = offset.unwrap_or(record.sector.saturating_mul(SECTOR_BYTES));
            (record.sector, record.count) = touched(offset, size.integer()?, &size)?;
        }
        Ok(Some(record))
    }
}
