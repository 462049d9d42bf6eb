//! SPC, the format of the UMass repository's Financial and WebSearch (Storage Performance Council, trace format 1.01):
//! `ASU,LBA,size_bytes,opcode,timestamp_s[,...]`, addresses in 512-byte sectors of the application storage unit.

use super::{Context, Decoder, Entry, Text, Time, touched};
use crate::error::Fault;
use crate::field::Fields;
use crate::order::Order;
use crate::record::Record;

pub(super) const ENTRY: Entry = Entry {
    name: "spc",
    what: "SPC 1.01, UMass Financial and WebSearch: asu,lba,bytes,op,time_s",
    time: Some(Time { field: "timestamp", unit_ns: 1_000_000_000, is_absolute: false }),
    address: "LBA",
    size: "size",
    order: Order::Refuse,
    detect: |head| head.reads_as(&ENTRY),
    decoder: || Decoder::Text(Box::new(Spc)),
};

struct Spc;

impl Text for Spc {
    fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Option<Record>, Fault> {
        let mut fields = Fields::comma(line);
        let device = fields.next("ASU")?.small()?;
        let sector = fields.next("LBA")?.integer()?;
        let size = fields.next("size")?;
        let (_, count) = touched(0, size.integer()?, &size)?;
        let operation = fields.next("opcode")?;
        if operation.bytes.len() != 1 {
            return Err(operation.fault("one letter is expected, r or w"));
        }
        let is_write = operation.is_write()?;
        let at_ns = context.time_ns(&fields.next("timestamp")?)?;
        Ok(Some(Record { at_ns, device, sector, count, is_write, response_ns: None }))
    }
}
