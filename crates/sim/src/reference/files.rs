//! How reference data are read.

use super::{CurvePoint, Logged, Measured};
use base::Time;
use model::drive::Access;

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
    rows(text, 1, true).map(access).collect()
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
    rows(text, 1, true).map(logged).collect()
}

/// Reads DiskSim's validation format: `R|W Hit|Miss|... lbn blocks service_us think_us`.
///
/// # Errors
/// The line and the column.
pub fn parse_measured(text: &str) -> Result<Vec<Measured>, ReferenceError> {
    let measured = |row: Row<'_>| {
        let is_write = match row.cells.first().copied() {
            Some("R") => false,
            Some("W") => true,
            other => return Err(row.error("direction", other.unwrap_or(""), "R or W")),
        };
        let us = |column, field| row.number::<f64>(column, field).map(|us| (us * 1e3).round() as u64);
        let (service_ns, think_ns) = (us(4, "service_us")?, us(5, "think_us")?);
        Ok(Measured { access: row.access(2, is_write)?, service_ns, think_ns })
    };
    rows(text, 0, false).map(measured).collect()
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
    rows(text, 1, true).map(point).collect()
}
/// A line of reference data that does not read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {field}: is `{found}`; it must be {must}")]
pub struct ReferenceError {
    /// From 1.
    pub line: usize,
    /// The column.
    pub field: &'static str,
    /// What stands there.
    pub found: String,
    /// What could.
    pub must: &'static str,
}

/// A line, cut.
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

fn rows(text: &str, headings: usize, by_comma: bool) -> impl Iterator<Item = Row<'_>> {
    let cut = move |line| {
        if by_comma { str::split(line, ',').collect() } else { str::split_whitespace(line).collect() }
    };
    let lines = text.lines().enumerate().skip(headings).filter(|(_, line)| !line.trim().is_empty());
    lines.map(move |(index, line)| Row { line: index + 1, cells: cut(line) })
}
