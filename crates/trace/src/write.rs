//! Traces written: our own format, DiskSim's ASCII and SPC.

use crate::compress::{Compression, Sink};
use crate::format::brickwork::{COLUMNS, MAGIC, VERSION};
use crate::record::Record;
use std::fmt;
use std::io::{self, Write};

/// Bytes gathered before they go to the compressor.
const BATCH_BYTES: usize = 1 << 16;

/// A format that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Our own, `brickwork`: keeps everything, exactly.
    Brickwork,
    /// `disksim`: times in milliseconds with six decimals, so exactly; no response times.
    DiskSim,
    /// `spc`: times in seconds with nine decimals, so exactly; no response times.
    Spc,
}

impl Target {
    pub const ALL: [Target; 3] = [Target::Brickwork, Target::DiskSim, Target::Spc];

    /// Its name, that of the format which reads it.
    pub fn name(self) -> &'static str {
        match self {
            Target::Brickwork => "brickwork",
            Target::DiskSim => "disksim",
            Target::Spc => "spc",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Writes a trace, compressed or not. [`Writer::finish`] has to be called: what is dropped instead is cut.
pub struct Writer<W: Write> {
    target: Target,
    batch: Vec<u8>,
    sink: Sink<W>,
    records: u64,
}

impl<W: Write> Writer<W> {
    /// A writer to `inner`.
    ///
    /// # Errors
    /// When the compressor does not start.
    pub fn new(inner: W, target: Target, compression: Compression) -> io::Result<Writer<W>> {
        let mut batch = Vec::with_capacity(2 * BATCH_BYTES);
        if target == Target::Brickwork {
            let units = "at_ns and response_ns in nanoseconds, sector and count in 512-byte sectors";
            writeln!(batch, "{MAGIC}{VERSION}: {units}\n{COLUMNS}")?;
        }
        Ok(Writer { target, batch, sink: Sink::new(inner, compression)?, records: 0 })
    }

    /// Writes one request.
    ///
    /// # Errors
    /// Those of `inner`.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        match self.target {
            Target::Brickwork => brickwork(&mut self.batch, record),
            Target::DiskSim => disksim(&mut self.batch, record),
            Target::Spc => spc(&mut self.batch, record),
        }
        self.records += 1;
        if self.batch.len() >= BATCH_BYTES {
            self.sink.write_all(&self.batch)?;
            self.batch.clear();
        }
        Ok(())
    }

    /// Requests written so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Writes what is still held, and the compressor's end.
    ///
    /// # Errors
    /// Those of `inner`.
    pub fn finish(mut self) -> io::Result<W> {
        self.sink.write_all(&self.batch)?;
        self.sink.finish()
    }
}

fn brickwork(line: &mut Vec<u8>, record: &Record) {
    for number in [record.at_ns, u64::from(record.device), record.sector, u64::from(record.count)] {
        push(line, number);
        line.push(b',');
    }
    line.extend_from_slice(if record.is_write { b"w," } else { b"r," });
    if let Some(response_ns) = record.response_ns {
        push(line, response_ns);
    }
    line.push(b'\n');
}

fn disksim(line: &mut Vec<u8>, record: &Record) {
    push_point(line, record.at_ns, 6);
    for number in
        [u64::from(record.device), record.sector, u64::from(record.count), u64::from(!record.is_write)]
    {
        line.push(b' ');
        push(line, number);
    }
    line.push(b'\n');
}

fn spc(line: &mut Vec<u8>, record: &Record) {
    for number in [u64::from(record.device), record.sector, record.bytes()] {
        push(line, number);
        line.push(b',');
    }
    line.extend_from_slice(if record.is_write { b"w," } else { b"r," });
    push_point(line, record.at_ns, 9);
    line.push(b'\n');
}

/// `number` in decimal digits. The standard formatter costs more than all the rest here.
fn push(line: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

/// `number` with a decimal point before its last `places` digits.
fn push_point(line: &mut Vec<u8>, number: u64, places: u32) {
    let scale = 10_u64.pow(places);
    push(line, number / scale);
    line.push(b'.');
    let part = number % scale;
    let zeros = places - part.checked_ilog10().map_or(1, |log| log + 1);
    (0..zeros).for_each(|_| line.push(b'0'));
    push(line, part);
}
