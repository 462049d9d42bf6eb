//! Our own format, a table of comma separated values that says its version and its units:
//!
//! ```text
//! # brickwork-trace 1: at_ns and response_ns in nanoseconds, sector and count in 512-byte sectors
//! at_ns,device,sector,count,op,response_ns
//! 0,0,303567,7,w,
//! 26214000,0,303574,7,w,5120000
//! ```
//!
//! `op` is `r` or `w`; `response_ns` is empty when it is not known. All fields are exact.

use super::{Context, Decoder, Entry, Text, Time};
use crate::error::Fault;
use crate::field::Fields;
use crate::order::Order;
use crate::record::Record;

pub(super) const ENTRY: Entry = Entry {
    name: "brickwork",
    what: "Brickwork's own csv, exact: at_ns,device,sector,count,op,response_ns",
    time: Some(Time { field: "at_ns", unit_ns: 1, is_absolute: false }),
    address: "sector",
    size: "count",
    order: Order::Refuse,
    detect: |head| head.bytes.starts_with(MAGIC.as_bytes()) || head.bytes.starts_with(COLUMNS.as_bytes()),
    decoder: || Decoder::Text(Box::new(Brickwork)),
};

/// What the first line begins with; the version follows.
pub(crate) const MAGIC: &str = "# brickwork-trace ";
/// The version that is read and written.
pub(crate) const VERSION: &str = "1";
/// The second line.
pub(crate) const COLUMNS: &str = "at_ns,device,sector,count,op,response_ns";

struct Brickwork;

impl Text for Brickwork {
    fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Option<Record>, Fault> {
        if line.trim_ascii() == COLUMNS.as_bytes() {
            return Ok(None);
        }
        let mut fields = Fields::comma(line);
        let at_ns = context.time_ns(&fields.next("at_ns")?)?;
        let device = fields.next("device")?.small()?;
        let sector = fields.next("sector")?.integer()?;
        let count = fields.next("count")?.small()?;
        let is_write = fields.next("op")?.is_write()?;
        let response = fields.next("response_ns")?;
        let response_ns = match response.bytes {
            b"" => None,
            _ => Some(response.integer()?),
        };
        Ok(Some(Record { at_ns, device, sector, count, is_write, response_ns }))
    }
}

/// Whether a line of remarks states a version other than ours: the error to report.
pub(crate) fn refuse_version(line: &[u8]) -> Result<(), Fault> {
    let Some(after) = line.strip_prefix(MAGIC.as_bytes()) else { return Ok(()) };
    let version = after.split(|byte| !byte.is_ascii_alphanumeric()).next().unwrap_or_default();
    if version == VERSION.as_bytes() {
        return Ok(());
    }
    let version = version.escape_ascii();
    Err(Fault::Header(format!(
        "version {version} of brickwork traces is not known here, {VERSION} is; use a newer brickwork"
    )))
}
