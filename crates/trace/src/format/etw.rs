//! Event Tracing for Windows as comma separated values: SNIA's Exchange, TPC-C, TPC-E and Microsoft production traces.
//!
//! A header between `BeginHeader` and `EndHeader`, then events. `DiskRead` and `DiskWrite` are wanted. Such a row is logged when
//! the request is complete: it was issued `ElapsedTime` before its `TimeStamp`, so rows are out of order. The last field,
//! `FileName`, may contain commas, and is not looked at.

use super::{Decoder, Entry, Settings, Text, Time};
use crate::error::Fault;
use crate::field::{Field, Fields};
use crate::reader::{Order, WINDOW_RECORDS};
use crate::record::{Record, sectors};

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
    decoder: |settings| {
        let unit_ns = settings.unit_ns(&ENTRY);
        Decoder::Text(Box::new(Etw { settings: *settings, unit_ns, is_header: false }))
    },
};

struct Etw {
    settings: Settings,
    unit_ns: u64,
    is_header: bool,
}

impl Text for Etw {
    fn line(&mut self, line: &[u8]) -> Result<Option<Record>, Fault> {
        let mut fields = Fields::comma(line);
        let event = fields.next("event")?.bytes;
        match event {
            b"BeginHeader" => self.is_header = true,
            b"EndHeader" => self.is_header = false,
            b"DiskRead" | b"DiskWrite" if !self.is_header => {
                return self.request(event == b"DiskWrite", fields).map(Some);
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

impl Etw {
    fn request(&self, is_write: bool, mut fields: Fields<'_>) -> Result<Record, Fault> {
        let logged = fields.next("TimeStamp")?;
        let logged_ns = logged.time_ns(self.unit_ns, self.settings.may_be_negative)?;
        fields.skip(3, "IrpPtr")?;
        let offset = fields.next("ByteOffset")?.hexadecimal()?;
        let size = fields.next("IOSize")?;
        let place = sectors(offset, size.hexadecimal()?);
        let (sector, count) = place.ok_or_else(|| size.fault("no request has so many bytes"))?;
        let elapsed = fields.next("ElapsedTime")?;
        let response_ns = elapsed.time_ns(self.unit_ns, self.settings.may_be_negative)?;
        let at_ns = self.issued(logged_ns, response_ns, &elapsed)?;
        let device = fields.next("DiskNum")?.small()?;
        Ok(Record { at_ns, device, sector, count, is_write, response_ns: Some(response_ns) })
    }

    fn issued(&self, logged_ns: u64, response_ns: u64, elapsed: &Field<'_>) -> Result<u64, Fault> {
        let why =
            "the request would have been issued before the trace began; --clamp lets it begin with the trace";
        match logged_ns.checked_sub(response_ns) {
            None if !self.settings.may_be_negative => Err(elapsed.fault(why)),
            at_ns => Ok(at_ns.unwrap_or(0)),
        }
    }
}
