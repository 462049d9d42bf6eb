//! DiskSim's ASCII traces: `time device block sectors flags`, blank separated, flags hexadecimal with bit 0 for a read.
//! DiskSim counts milliseconds, with a point; MQSim and SSDSim keep the shape and count nanoseconds, without.

use super::{Context, Decoder, Entry, Head, Text, Time};
use crate::error::Fault;
use crate::field::Fields;
use crate::order::Order;
use crate::record::Record;

pub(super) const MILLISECONDS: Entry = Entry {
    name: "disksim",
    what: "DiskSim ASCII: time_ms device sector sectors flags(hex, bit 0 reads)",
    time: Some(Time { field: "time", unit_ns: 1_000_000, is_absolute: false }),
    address: "blkno",
    size: "size",
    order: Order::Refuse,
    detect: |head| has_points(head) && head.reads_as(&MILLISECONDS),
    decoder: || decoder(&MILLISECONDS),
};

pub(super) const NANOSECONDS: Entry = Entry {
    name: "disksim-ns",
    what: "MQSim and SSDSim: the same with time_ns",
    time: Some(Time { field: "time", unit_ns: 1, is_absolute: false }),
    detect: |head| !has_points(head) && head.reads_as(&NANOSECONDS),
    decoder: || decoder(&NANOSECONDS),
    ..MILLISECONDS
};

struct DiskSim {
    name: &'static str,
}

fn decoder(entry: &Entry) -> Decoder {
    Decoder::Text(Box::new(DiskSim { name: entry.name }))
}

impl Text for DiskSim {
    fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Option<Record>, Fault> {
        let mut fields = Fields::blank(line);
        let at_ns = context.time_ns(&fields.next("time")?)?;
        let device = fields.next("devno")?.small()?;
        let sector = fields.next("blkno")?.integer()?;
        let count = fields.next("size")?.small()?;
        let is_write = fields.next("flags")?.hexadecimal()? & 1 == 0;
        if !fields.is_empty() {
            return Err(Fault::TooMany { field: "flags", format: self.name });
        }
        Ok(Some(Record { at_ns, device, sector, count, is_write, response_ns: None }))
    }
}

/// Whether times have a decimal point, as milliseconds do.
fn has_points(head: &Head<'_>) -> bool {
    head.lines()
        .filter_map(|line| Fields::blank(line).optional("time"))
        .any(|time| time.bytes.contains(&b'.'))
}
