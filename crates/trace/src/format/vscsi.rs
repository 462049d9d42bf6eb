//! VMware's vscsiStats traces, little-endian. Version 1, 32 bytes: number, bytes, scatter entries (u32 each), command, version
//! (u16 each), sector, microsecond (u64 each). Version 2, 40 bytes: command, version, number, bytes, scatter entries, sector,
//! microsecond, response in microseconds. The high byte of `version` is 1 or 2.

use super::{Binary, Context, Decoder, Entry, Head, Taken, Time, little};
use crate::error::Fault;
use crate::order::Order;
use crate::record::{Record, sectors};

pub(super) const FIRST: Entry = Entry {
    name: "vscsi1",
    what: "VMware vscsiStats, version 1: binary, 32 bytes a record",
    time: Some(Time { field: "timestamp", unit_ns: 1_000, is_absolute: true }),
    address: "lbn",
    size: "len",
    order: Order::Refuse,
    detect: |head| looks_like(head, LAYOUT_1),
    decoder: || Decoder::Binary(Box::new(Vscsi { layout: LAYOUT_1 })),
};

pub(super) const SECOND: Entry = Entry {
    name: "vscsi2",
    what: "VMware vscsiStats, version 2: binary, 40 bytes a record",
    detect: |head| looks_like(head, LAYOUT_2),
    decoder: || Decoder::Binary(Box::new(Vscsi { layout: LAYOUT_2 })),
    ..FIRST
};

/// Where the fields of a version lie, in bytes.
#[derive(Clone, Copy)]
struct Layout {
    version: u64,
    length: usize,
    command_at: usize,
    size_at: usize,
    lbn_at: usize,
    time_at: usize,
    response_at: Option<usize>,
}

const LAYOUT_1: Layout =
    Layout { version: 1, length: 32, command_at: 12, size_at: 4, lbn_at: 16, time_at: 24, response_at: None };
const LAYOUT_2: Layout = Layout {
    version: 2,
    length: 40,
    command_at: 0,
    size_at: 8,
    lbn_at: 16,
    time_at: 24,
    response_at: Some(32),
};

struct Vscsi {
    layout: Layout,
}

impl Binary for Vscsi {
    fn take(&mut self, bytes: &[u8], context: &Context) -> Result<Taken, Fault> {
        let layout = self.layout;
        if bytes.len() < layout.length {
            return Ok(Taken::More);
        }
        let version = little::<2>(bytes, layout.command_at + 2) >> 8;
        if version != layout.version {
            return Err(fault("ver", version, "another version, or a damaged file"));
        }
        let Some(is_write) = is_write(little::<2>(bytes, layout.command_at)) else {
            return Ok(Taken::Skip(layout.length));
        };
        let (sector, size) = (little::<8>(bytes, layout.lbn_at), little::<4>(bytes, layout.size_at));
        let (_, count) = sectors(0, size).expect("32-bit sizes are small enough");
        let record = Record {
            at_ns: time_ns("timestamp", little::<8>(bytes, layout.time_at), context)?,
            device: 0,
            sector,
            count,
            is_write,
            response_ns: layout
                .response_at
                .map(|at| time_ns("rt", little::<8>(bytes, at), context))
                .transpose()?,
        };
        Ok(Taken::Record(layout.length, record))
    }
}

fn time_ns(field: &'static str, units: u64, context: &Context) -> Result<u64, Fault> {
    units.checked_mul(context.unit_ns).ok_or_else(|| fault(field, units, "a time later than 584 years"))
}

fn fault(field: &'static str, value: u64, why: &'static str) -> Fault {
    Fault::field(field, value.to_string().as_bytes(), why)
}

/// SCSI commands of 6, 10, 12 and 16 bytes. `None` for those that move no data.
pub(super) fn is_write(command: u64) -> Option<bool> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(false),
        0x0a | 0x2a | 0xaa | 0x8a => Some(true),
        _ => None,
    }
}

/// Records that detection looks at.
const LOOKED_AT: usize = 16;

fn looks_like(head: &Head<'_>, layout: Layout) -> bool {
    let mut records = head.bytes.chunks_exact(layout.length).take(LOOKED_AT).peekable();
    let is_one = |record: &[u8]| {
        let command = little::<2>(record, layout.command_at);
        little::<2>(record, layout.command_at + 2) >> 8 == layout.version && command <= 0xff
    };
    records.peek().is_some() && records.all(is_one)
}
