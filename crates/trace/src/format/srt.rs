//! SRT, in which HP Laboratories kept the Cello and snake traces (Ruemmler and Wilkes 1993): a header of text up to a form
//! feed, then records of big-endian 32-bit words: size, id, second, microsecond, start, stop, bytes, sector, device, driver,
//! cylinder, flags, info, queue length. `start` and `stop` count microseconds from the request's entry into the queue.

use super::{Binary, Context, Decoder, Entry, Taken, Time, big};
use crate::error::Fault;
use crate::order::Order;
use crate::record::{Record, sectors};

pub(super) const ENTRY: Entry = Entry {
    name: "srt",
    what: "SRT, HP Labs (Cello, snake, hplajw): binary with a text header",
    time: Some(Time { field: "sec", unit_ns: UNIT_NS, is_absolute: false }),
    address: "sector",
    size: "bytes",
    order: Order::Refuse,
    detect: |head| head.bytes.starts_with(b"$$TR_IOREC"),
    decoder: || Decoder::Binary(Box::new(Srt { sector_bytes: None })),
};

/// A second; its fraction has a word of its own.
const UNIT_NS: u64 = 1_000_000_000;
/// Bytes of a header; those known have about 3,000.
const HEADER_BYTES_MAX: usize = 1 << 17;
/// Bytes of a SHORTIO record.
const RECORD_BYTES: usize = 56;
/// Records longer than this are none.
const RECORD_BYTES_MAX: usize = 1 << 12;
/// The sector size of disks whose header does not say.
const SECTOR_BYTES_DEFAULT: u64 = 512;
const SHORTIO: u32 = 1;
const FORM_FEED: u8 = 0x0c;

struct Srt {
    /// Known once the header has been read.
    sector_bytes: Option<u64>,
}

impl Binary for Srt {
    fn take(&mut self, bytes: &[u8], context: &Context) -> Result<Taken, Fault> {
        if context.unit_ns != UNIT_NS {
            return Err(Fault::Header(
                "SRT writes times in seconds and microseconds; leave --time-unit out".to_owned(),
            ));
        }
        match self.sector_bytes {
            None => self.header(bytes),
            Some(sector_bytes) => record(bytes, sector_bytes),
        }
    }
}

impl Srt {
    fn header(&mut self, bytes: &[u8]) -> Result<Taken, Fault> {
        let Some(end) = memchr::memchr(FORM_FEED, bytes) else {
            if bytes.len() > HEADER_BYTES_MAX {
                return Err(Fault::Header(
                    "the header of an SRT trace ends with a form feed; there is none".to_owned(),
                ));
            }
            return Ok(Taken::More);
        };
        self.sector_bytes = Some(sector_bytes(&bytes[..end])?);
        Ok(Taken::Header(end + 1))
    }
}

/// What the header says of the size of sectors, in which addresses count.
fn sector_bytes(header: &[u8]) -> Result<u64, Fault> {
    let header = String::from_utf8_lossy(header);
    let values = header.split("sectorsize").skip(1).filter_map(|after| {
        let digits = after.trim_start().strip_prefix('=')?.trim_start();
        digits.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    });
    let values: Vec<u64> = values.collect();
    let first = values.first().copied().unwrap_or(SECTOR_BYTES_DEFAULT);
    if values.iter().any(|value| *value != first) {
        return Err(Fault::Header(
            "header field `sectorsize`: disks with different sectors cannot be read".to_owned(),
        ));
    }
    if !(1..=1 << 16).contains(&first) {
        return Err(Fault::Header(format!("header field `sectorsize` is {first}: no disk has such sectors")));
    }
    Ok(first)
}

fn record(bytes: &[u8], sector_bytes: u64) -> Result<Taken, Fault> {
    if bytes.len() < 8 {
        return Ok(Taken::More);
    }
    let word = |index: usize| big(bytes, index * 4);
    let (length, kind) = (word(0) as usize, word(1) & 0xffff);
    if !(8..=RECORD_BYTES_MAX).contains(&length) || (kind == SHORTIO && length < RECORD_BYTES) {
        return Err(Fault::field(
            "size",
            length.to_string().as_bytes(),
            "no record has this length; is the file damaged?",
        ));
    }
    if bytes.len() < length {
        return Ok(Taken::More);
    }
    if kind != SHORTIO {
        return Ok(Taken::Skip(length));
    }
    let offset = u64::from(word(7)) * sector_bytes;
    let place = sectors(offset, u64::from(word(6)));
    let (sector, count) = place.expect("32-bit words give no such place");
    let record = Record {
        at_ns: u64::from(word(2)) * UNIT_NS + u64::from(word(3)) * 1_000,
        device: word(8) >> 8 & 0xff,
        sector,
        count,
        is_write: word(11) & 1 == 0,
        response_ns: Some(u64::from(word(5)) * 1_000),
    };
    Ok(Taken::Record(length, record))
}
