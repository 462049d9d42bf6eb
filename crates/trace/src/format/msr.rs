//! MSR Cambridge (SNIA IOTTA 388; Narayanan et al., FAST 2008):
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`, times in ticks of 100 ns since 1601, the rest in bytes.

use super::{Context, Decoder, Entry, Text, Time, touched};
use crate::error::Fault;
use crate::field::Fields;
use crate::order::{Order, WINDOW_RECORDS};
use crate::record::Record;

pub(super) const ENTRY: Entry = Entry {
    name: "msr",
    what: "MSR Cambridge: FILETIME,host,disk,Read|Write,offset,size,response",
    time: Some(Time { field: "Timestamp", unit_ns: 100, is_absolute: true }),
    address: "Offset",
    size: "Size",
    // The order is not guaranteed.
    order: Order::Sort { window: WINDOW_RECORDS },
    detect: |head| head.reads_as(&ENTRY),
    decoder: || Decoder::Text(Box::new(Msr { hosts: Vec::new() })),
};

/// Hosts told apart in one file. The collection has 13.
const HOSTS_MAX: usize = 1 << 12;

struct Msr {
    hosts: Vec<Box<[u8]>>,
}

impl Text for Msr {
    fn line(&mut self, line: &[u8], context: &mut Context) -> Result<Option<Record>, Fault> {
        let mut fields = Fields::comma(line);
        let time = fields.next("Timestamp")?;
        if time.bytes.eq_ignore_ascii_case(b"Timestamp") {
            return Ok(None);
        }
        let at_ns = context.time_ns(&time)?;
        let host = fields.next("Hostname")?.bytes;
        let disk = fields.next("DiskNumber")?;
        let device = self
            .device(host, disk.small()?)
            .ok_or_else(|| disk.fault("more disks or hosts than a trace has"))?;
        let operation = fields.next("Type")?;
        if !matches!(operation.bytes, b"Read" | b"Write" | b"read" | b"write") {
            return Err(operation.fault("Read or Write is expected"));
        }
        let is_write = operation.is_write()?;
        let offset = fields.next("Offset")?.integer()?;
        let size = fields.next("Size")?;
        let (sector, count) = touched(offset, size.integer()?, &size)?;
        let response_ns = Some(fields.next("ResponseTime")?.time_ns(context.unit_ns, true)?);
        Ok(Some(Record { at_ns, device, sector, count, is_write, response_ns }))
    }
}

impl Msr {
    /// Disks of the file's first host keep their numbers; those of the n-th further one are `n * 65536 +` theirs.
    fn device(&mut self, host: &[u8], disk: u32) -> Option<u32> {
        let known = self.hosts.iter().position(|known| **known == *host);
        let index = known.unwrap_or(self.hosts.len());
        if known.is_none() {
            self.hosts.push(host.into());
        }
        (index < HOSTS_MAX && disk < 1 << 16).then_some((index as u32) << 16 | disk)
    }
}
