//! The Systor 2017 collection (Lee et al., SNIA IOTTA 4964): `Timestamp,Response,IOType,LUN,Offset,Size`; seconds, `R` or `W` (or
//! nothing, for requests that are neither), bytes.

use super::{Context, Decoder, Entry, Text, Time, touched};
use crate::error::Fault;
use crate::field::Fields;
use crate::order::{Order, WINDOW_RECORDS};
use crate::record::Record;

pub(super) const ENTRY: Entry = Entry {
    name: "systor",
    what: "Systor'17: time_s,response_s,R|W,LUN,offset,size",
    time: Some(Time { field: "Timestamp", unit_ns: 1_000_000_000, is_absolute: true }),
    address: "Offset",
    size: "Size",
    order: Order::Sort { window: WINDOW_RECORDS },
    detect: |head| head.reads_as(&ENTRY),
    decoder: || Decoder::Text(Box::new(Systor)),
};

struct Systor;

impl Text for Systor {
    fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Option<Record>, Fault> {
        let mut fields = Fields::comma(line);
        let time = fields.next("Timestamp")?;
        if time.bytes.eq_ignore_ascii_case(b"Timestamp") {
            return Ok(None);
        }
        let at_ns = context.time_ns(&time)?;
        let response = fields.next("Response")?;
        let operation = fields.next("IOType")?;
        let is_write = match operation.bytes {
            b"R" => Some(false),
            b"W" => Some(true),
            b"" => None,
            _ => return Err(operation.fault("R, W or nothing is expected")),
        };
        let device = fields.next("LUN")?.small()?;
        let offset = fields.next("Offset")?;
        let size = fields.next("Size")?;
        if !fields.is_empty() {
            return Err(Fault::TooMany { field: "Size", format: "systor" });
        }
        let Some(is_write) = is_write else { return Ok(None) };
        let (sector, count) = touched(offset.integer()?, size.integer()?, &size)?;
        let response_ns = match response.bytes {
            b"" => None,
            _ => Some(response.time_ns(context.unit_ns, true)?),
        };
        Ok(Some(Record { at_ns, device, sector, count, is_write, response_ns }))
    }
}
