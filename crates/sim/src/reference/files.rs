//! How reference data are read.

use super::{CurvePoint, Logged, Measured};
use ::trace::{Format, Options, Reader, Record, TraceError};
use base::Time;
use model::drive::Access;
use std::io::Cursor;

/// Reads `lbn,blocks,read_in_r90,read_in_r67`, a stream for [`closed_loop`]; `read_percent` says whether all are reads
/// (100), or which column tells (90, 67).
///
/// # Errors
/// The line and the column.
pub fn parse_workload(text: &str, read_percent: u32) -> Result<Vec<Access>, ReferenceError> {
    let access = |row: Row<'_>| {
        let is_read = match read_percent {
            100 => 1,
            90 => row.number(2, "read_in_r90")?,
            _ => row.number::<u32>(3, "read_in_r67")?,
        };
        row.access(0, is_read == 0)
    };
    rows(text).map(access).collect()
}

/// Reads `issue_ms,lbn,blocks,is_read,service_ms`.
///
/// # Errors
/// The line and the column.
pub fn parse_log(text: &str) -> Result<Vec<Logged>, ReferenceError> {
    let logged = |row: Row<'_>| {
        let is_read: u32 = row.number(3, "is_read")?;
        let (start, service_ns) = (Time(row.ms(0, "issue_ms")?), row.ms(4, "service_ms")?);
        Ok(Logged { start, access: row.access(1, is_read == 0)?, service_ns })
    };
    rows(text).map(logged).collect()
}

/// Reads a validation trace of DiskSim, as the room of traces does.
///
/// # Errors
/// The line and the field.
pub fn parse_measured(text: &str) -> Result<Vec<Measured>, TraceError> {
    let options = Options { format: Format::find("validation"), ..Options::default() };
    let source = Box::new(Cursor::new(text.to_owned()));
    let records: Vec<Record> =
        Reader::open("validation trace", source, options)?.collect::<Result<_, _>>()?;
    // Nothing is issued after the last.
    let issues = records.iter().map(|record| Some(record.at_ns)).skip(1).chain([None]);
    let measured = |(record, next_ns): (&Record, Option<u64>)| {
        let Record { at_ns, sector, count, is_write, .. } = *record;
        let service_ns = record.response_ns.unwrap_or(0);
        let think_ns = next_ns.map_or(0, |next_ns| next_ns - at_ns - service_ns);
        Measured { access: Access { sector, count, is_write }, service_ns, think_ns }
    };
    Ok(records.iter().zip(issues).map(measured).collect())
}

/// Reads reference curves: `config,read_write,scheduler,_,outstanding_Q,_,iops,mean_service_ms,...,mean_response_ms` with
/// the last in the 14th column.
///
/// # Errors
/// The line and the column.
pub fn parse_curves(text: &str) -> Result<Vec<CurvePoint>, ReferenceError> {
    let point = |row: Row<'_>| {
        let word = |column: usize| row.cells.get(column).copied().unwrap_or("").to_owned();
        Ok(CurvePoint {
            configuration: word(0),
            mix: word(1),
            scheduler: word(2),
            depth: row.number(4, "outstanding_Q")?,
            iops: row.number(6, "iops")?,
            service_ms: row.number(7, "mean_service_ms")?,
            response_ms: row.number(13, "mean_response_ms")?,
        })
    };
    rows(text).map(point).collect()
}
/// A line of reference data that does not read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {field}: is `{found}`; it must be {must}")]
pub struct ReferenceError {
    /// From 1.
    pub line: usize,
    pub field: &'static str,
    pub found: String,
    pub must: &'static str,
}

struct Row<'a> {
    line: usize,
    cells: Vec<&'a str>,
}

impl Row<'_> {
    fn number<T: std::str::FromStr>(&self, column: usize, field: &'static str) -> Result<T, ReferenceError> {
        let cell = self.cells.get(column).map_or("", |cell| cell.trim());
        cell.parse().map_err(|_| self.error(field, cell, "a number that is not negative"))
    }

    /// Milliseconds as nanoseconds.
    fn ms(&self, column: usize, field: &'static str) -> Result<u64, ReferenceError> {
        let ms: f64 = self.number(column, field)?;
        if ms.is_finite() && (0.0..1e12).contains(&ms) {
            return Ok((ms * 1e6).round() as u64);
        }
        Err(self.error(field, &ms.to_string(), "a time in milliseconds"))
    }

    fn access(&self, sector: usize, is_write: bool) -> Result<Access, ReferenceError> {
        let access = Access {
            sector: self.number(sector, "lbn")?,
            count: self.number(sector + 1, "blocks")?,
            is_write,
        };
        if access.count == 0 {
            return Err(self.error("blocks", "0", "at least 1"));
        }
        Ok(access)
    }

    fn error(&self, field: &'static str, found: &str, must: &'static str) -> ReferenceError {
        ReferenceError { line: self.line, field, found: found.to_owned(), must }
    }
}

/// The lines below the headings, cut at commas.
fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    let lines = text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| Row { line: index + 1, cells: line.split(',').collect() })
}
