//! libCacheSim's oracleGeneral, 24 bytes a record, packed, little-endian: second (u32), object (u64), bytes (u32), the number of the
//! object's next request (i64, -1 for none). For block traces the object is the first sector. It does not tell reads from writes.

use super::{Binary, Context, Decoder, Entry, Head, Taken, Time, little};
use crate::error::Fault;
use crate::order::Order;
use crate::record::{Record, SECTOR_BYTES};

pub(super) const ENTRY: Entry = Entry {
    name: "oracle-general",
    what: "libCacheSim oracleGeneral: binary, 24 bytes a record; all count as reads",
    time: Some(Time { field: "time", unit_ns: 1_000_000_000, is_absolute: true }),
    address: "obj_id",
    size: "size",
    order: Order::Refuse,
    detect: looks_like,
    decoder: || Decoder::Binary(Box::new(Oracle)),
};

const RECORD_BYTES: usize = 24;

struct Oracle;

impl Binary for Oracle {
    fn take(&mut self, bytes: &[u8], context: &Context) -> Result<Taken, Fault> {
        if bytes.len() < RECORD_BYTES {
            return Ok(Taken::More);
        }
        let (seconds, size) = (little::<4>(bytes, 0), little::<4>(bytes, 12));
        let at_ns = seconds.checked_mul(context.unit_ns);
        let count = size.div_ceil(SECTOR_BYTES);
        let record = Record {
            at_ns: at_ns.ok_or_else(|| {
                Fault::field("time", seconds.to_string().as_bytes(), "too late for its unit")
            })?,
            device: 0,
            sector: little::<8>(bytes, 4),
            count: u32::try_from(count).expect("32-bit sizes are small enough"),
            is_write: false,
            response_ns: None,
        };
        Ok(Taken::Record(RECORD_BYTES, record))
    }
}

/// Records that detection looks at.
const LOOKED_AT: usize = 32;
/// No block trace has larger requests.
const BYTES_MAX: u64 = 1 << 26;

/// There is no magic: times must not fall, sizes be sane, and the next request lie ahead.
fn looks_like(head: &Head<'_>) -> bool {
    let (mut before, mut records) = (0, 0);
    for (number, record) in (1..).zip(head.bytes.chunks_exact(RECORD_BYTES).take(LOOKED_AT)) {
        let (time, size, next) = (little::<4>(record, 0), little::<4>(record, 12), little::<8>(record, 16));
        let is_ahead = next == u64::MAX || (number..1 << 48).contains(&next);
        if time < before || !(1..=BYTES_MAX).contains(&size) || !is_ahead {
            return false;
        }
        (before, records) = (time, number);
    }
    records > 1
}
