//! DiskSim's validation traces: requests to a real drive with the response times that were measured:
//! `R|W buffer_action sector sectors response_us think_us`. One was outstanding: the next was issued a think time after the
//! end of the one before.

use super::{Context, Decoder, Entry, Text, Time};
use crate::error::Fault;
use crate::field::Fields;
use crate::order::Order;
use crate::record::Record;

pub(super) const ENTRY: Entry = Entry {
    name: "validation",
    what: "DiskSim validation: R|W action sector sectors response_us think_us",
    time: Some(Time { field: "think time", unit_ns: 1_000, is_absolute: false }),
    address: "lbn",
    size: "sectors",
    order: Order::Refuse,
    detect: |head| head.reads_as(&ENTRY),
    decoder: || Decoder::Text(Box::new(Validation { next_ns: 0 })),
};

struct Validation {
    next_ns: u64,
}

impl Text for Validation {
    fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Option<Record>, Fault> {
        let mut fields = Fields::blank(line);
        let operation = fields.next("operation")?;
        if operation.bytes.len() != 1 {
            return Err(operation.fault("R or W is expected"));
        }
        let is_write = operation.is_write()?;
        let action = fields.next("buffer action")?;
        if action.bytes.first().is_none_or(u8::is_ascii_digit) {
            return Err(action.fault("what the drive's buffer did is expected, as `Hit`"));
        }
        let sector = fields.next("lbn")?.integer()?;
        let count = fields.next("sectors")?.small()?;
        let response_ns = context.time_ns(&fields.next("response")?)?;
        let think = fields.next("think time")?;
        let think_ns = context.time_ns(&think)?;
        let at_ns = self.next_ns;
        let next = at_ns.checked_add(response_ns).and_then(|done| done.checked_add(think_ns));
        self.next_ns = next.ok_or_else(|| think.fault("the trace would last longer than 584 years"))?;
        Ok(Some(Record { at_ns, device: 0, sector, count, is_write, response_ns: Some(response_ns) }))
    }
}
