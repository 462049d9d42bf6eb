//! CloudPhysics as libCacheSim has it: `version,time,op,size,lbn` with a header line; times in whole seconds, `op` a SCSI
//! command in hexadecimal, size in bytes, address in sectors.

use super::{Context, Decoder, Entry, Text, Time, touched, vscsi};
use crate::error::Fault;
use crate::field::Fields;
use crate::order::Order;
use crate::record::Record;

pub(super) const ENTRY: Entry = Entry {
    name: "cloudphysics",
    what: "CloudPhysics csv: version,time_s,op(hex SCSI),bytes,sector",
    time: Some(Time { field: "time", unit_ns: 1_000_000_000, is_absolute: true }),
    address: "lbn",
    size: "size",
    order: Order::Refuse,
    detect: |head| head.lines().next().is_some_and(|line| line.trim_ascii() == HEADER),
    decoder: || Decoder::Text(Box::new(CloudPhysics)),
};

const HEADER: &[u8] = b"version,time,op,size,lbn";

struct CloudPhysics;

impl Text for CloudPhysics {
    fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Option<Record>, Fault> {
        if line.trim_ascii() == HEADER {
            return Ok(None);
        }
        let mut fields = Fields::comma(line);
        fields.next("version")?.integer()?;
        let at_ns = context.time_ns(&fields.next("time")?)?;
        let command = fields.next("op")?.hexadecimal()?;
        let size = fields.next("size")?;
        let (_, count) = touched(0, size.integer()?, &size)?;
        let sector = fields.next("lbn")?.integer()?;
        let record = |is_write| Record { at_ns, device: 0, sector, count, is_write, response_ns: None };
        Ok(vscsi::is_write(command).map(record))
    }
}
