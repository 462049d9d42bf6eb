//! Event Tracing for Windows as comma separated values: SNIA's Exchange, TPC-C, TPC-E and Microsoft production traces.
//!
//! A header between `BeginHeader` and `EndHeader`, then events. `DiskRead` and `DiskWrite` are wanted. Such a row is logged when
//! the request is complete: it was issued `ElapsedTime` before its `TimeStamp`, so rows are out of order, and a trace that
//! begins under load has requests from before it began: they are issued at its beginning. The last field, `FileName`, may
//! contain commas, and is not looked at.

use super::{Context, Decoder, Entry, Text, Time, touched};
use crate::error::Fault;
use crate::field::Fields;
use crate::order::{Order, WINDOW_RECORDS};
use crate::record::Record;

pub(super) const ENTRY: Entry = Entry {
    name: "etw",
    what: "SNIA/Microsoft ETW csv (Exchange, TPC-C, TPC-E): DiskRead|DiskWrite rows",
    time: Some(Time { field: "TimeStamp", unit_ns: 1_000, is_absolute: false }),
    address: "ByteOffset",
    size: "IOSize",
    order: Order::Sort { window: WINDOW_RECORDS },
    detect: |head| {
        head.lines().next().is_some_and(|line| line.trim_ascii() == b"BeginHeader") || head.reads_as(&ENTRY)
    },
    decoder: || Decoder::Text(Box::new(Etw { is_header: false })),
};

struct Etw {
    is_header: bool,
}

impl Text for Etw {
    fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Option<Record>, Fault> {
        let mut fields = Fields::comma(line);
        let event = fields.next("event")?.bytes;
        match event {
            b"BeginHeader" => self.is_header = true,
            b"EndHeader" => self.is_header = false,
            b"DiskRead" | b"DiskWrite" if !self.is_header => {
                return request(event == b"DiskWrite", fields, context).map(Some);
            }
            // Other events; anything that is no name of one is not this format.
            _ if event.first().is_none_or(|byte| !byte.is_ascii_alphabetic()) && !self.is_header => {
                return Err(Fault::field("event", event, "the name of an event is expected"));
            }
            _ => {}
        }
        Ok(None)
    }
}

fn request(is_write: bool, mut fields: Fields<'_>, context: &mut Context) -> Result<Record, Fault> {
    let logged_ns = context.time_ns(&fields.next("TimeStamp")?)?;
    fields.skip(3, "IrpPtr")?;
    let offset = fields.next("ByteOffset")?.hexadecimal()?;
    let size = fields.next("IOSize")?;
    let (sector, count) = touched(offset, size.hexadecimal()?, &size)?;
    let response_ns = context.time_ns(&fields.next("ElapsedTime")?)?;
    let issued_ns = logged_ns.checked_sub(response_ns);
    context.negative += u64::from(issued_ns.is_none());
    let device = fields.next("DiskNum")?.small()?;
    let at_ns = issued_ns.unwrap_or(0);
    Ok(Record { at_ns, device, sector, count, is_write, response_ns: Some(response_ns) })
}
