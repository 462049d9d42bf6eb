//! A trace written to a file that appears whole or not at all, or to standard output.

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use outfile::Outfile;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use trace::compress::Compression;
use trace::{Record, Target, Writer};

/// How a trace is written.
#[derive(clap::Args)]
pub(super) struct Writing {
    /// The format to write
    #[arg(long, value_enum, default_value = "brickwork")]
    to: To,
    /// Write over a file that exists
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum To {
    /// Our own table: exact, keeps response times
    Brickwork,
    /// DiskSim ASCII, times in milliseconds; no response times
    Disksim,
    /// SPC, times in seconds; no response times
    Spc,
}

impl Writing {
    /// Begins to write to `out`; `-` is standard output. The end of its name says how it is compressed.
    pub(super) fn open(&self, out: &Path) -> Result<Written> {
        let target = match self.to {
            To::Brickwork => Target::Brickwork,
            To::Disksim => Target::DiskSim,
            To::Spc => Target::Spc,
        };
        let compression = Compression::of_name(&out.to_string_lossy());
        let (sink, place) = if is_standard(out) { (Sink::Out(io::stdout()), None) } else { self.file(out)? };
        let started = Writer::new(sink, target, compression);
        let writer = started.with_context(|| format!("writing {}", out.display()))?;
        Ok(Written { writer, place })
    }

    fn file(&self, out: &Path) -> Result<(Sink, Option<PathBuf>)> {
        let file = if self.force { Outfile::create(out) } else { Outfile::create_new(out) };
        match file {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("{} exists; --force writes over it", out.display())
            }
            file => {
                let file = file.with_context(|| format!("cannot write {}", out.display()))?;
                Ok((Sink::File(file), Some(out.to_owned())))
            }
        }
    }
}

/// Whether `out` stands for standard output.
pub(super) fn is_standard(out: &Path) -> bool {
    out.as_os_str() == "-"
}

/// A trace that is being written.
pub(super) struct Written {
    writer: Writer<Sink>,
    place: Option<PathBuf>,
}

enum Sink {
    Out(io::Stdout),
    File(Outfile),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Out(out) => out.write(bytes),
            Sink::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Out(out) => out.flush(),
            Sink::File(file) => file.flush(),
        }
    }
}

impl Written {
    /// Writes one request.
    pub(super) fn write(&mut self, record: &Record) -> Result<()> {
        self.writer.write(record).with_context(|| self.writing())
    }

    /// Puts the file in its place, and returns how many requests it has.
    pub(super) fn finish(self) -> Result<u64> {
        let (records, what) = (self.writer.records(), self.writing());
        let Sink::File(file) = self.writer.finish().context(what.clone())? else { return Ok(records) };
        file.finish().context(what)?;
        Ok(records)
    }

    fn writing(&self) -> String {
        self.place
            .as_ref()
            .map_or("writing to standard output".to_owned(), |place| format!("writing {}", place.display()))
    }
}
