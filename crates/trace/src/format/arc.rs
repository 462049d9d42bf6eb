//! The traces of the ARC paper (Megiddo and Modha, FAST 2003), `.lis`: `start count ignored number`, blank separated, in pages of
//! 512 bytes. Reads only, without times.

use super::{Context, Decoder, Entry, Text};
use crate::error::Fault;
use crate::field::Fields;
use crate::order::Order;
use crate::record::Record;

pub(super) const ENTRY: Entry = Entry {
    name: "arc",
    what: "ARC paper .lis: start count ignored number; no times, all reads",
    time: None,
    address: "start",
    size: "count",
    order: Order::Refuse,
    detect: |head| head.reads_as(&ENTRY),
    decoder: || Decoder::Text(Box::new(Arc)),
};

struct Arc;

impl Text for Arc {
    fn line(&mut self, line: &[u8], _: &mut Context) -> Result<Option<Record>, Fault> {
        let mut fields = Fields::blank(line);
        let sector = fields.next("start")?.integer()?;
        let count = fields.next("count")?.small()?;
        fields.next("ignored")?.integer()?;
        fields.next("number")?.integer()?;
        if !fields.is_empty() {
            return Err(Fault::TooMany { field: "number", format: "arc" });
        }
        Ok(Some(Record { sector, count, ..Record::default() }))
    }
}
