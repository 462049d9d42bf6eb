//! Bare block numbers, big-endian 32-bit words as Java's `DataInputStream` writes them: how the LIRS2 authors published
//! CloudPhysics traces. No times, sizes or operations; a key counts as a read of one 4 KiB block.

use super::{Binary, Context, Decoder, Entry, Taken, big};
use crate::error::Fault;
use crate::order::Order;
use crate::record::Record;

pub(super) const ENTRY: Entry = Entry {
    name: "keys",
    what: "bare block numbers, big-endian u32, 4 KiB each (never detected)",
    time: None,
    address: "key",
    size: "key",
    order: Order::Refuse,
    // Any file of binary data looks like this.
    detect: |_| false,
    decoder: || Decoder::Binary(Box::new(Keys)),
};

/// Sectors of the block that a key stands for.
const BLOCK_SECTORS: u32 = 8;

struct Keys;

impl Binary for Keys {
    fn take(&mut self, bytes: &[u8], _: &Context) -> Result<Taken, Fault> {
        if bytes.len() < 4 {
            return Ok(Taken::More);
        }
        let sector = u64::from(big(bytes, 0)) * u64::from(BLOCK_SECTORS);
        Ok(Taken::Record(4, Record { sector, count: BLOCK_SECTORS, ..Record::default() }))
    }
}
