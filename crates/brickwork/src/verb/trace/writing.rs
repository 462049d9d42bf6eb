//! A trace written to a file that appears whole or not at all, or to standard output.

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use trace::compress::Compression;
use trace::{Record, Target, Writer};

/// The file to write.
#[derive(clap::Args)]
pub(super) struct Writing {
    /// The file to write, `-` for standard output; .gz, .xz and .zst are compressed
    out: PathBuf,
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
    /// Begins to write.
    pub(super) fn open(&self) -> Result<Written> {
        let target = match self.to {
            To::Brickwork => Target::Brickwork,
            To::Disksim => Target::DiskSim,
            To::Spc => Target::Spc,
        };
        let compression = Compression::of_name(&self.out.to_string_lossy());
        let (sink, place) =
            if self.out.as_os_str() == "-" { (Sink::Out(io::stdout()), None) } else { self.file()? };
        let writer = Writer::new(sink, target, compression).with_context(|| self.writing())?;
        Ok(Written { writer, place, is_forced: self.force })
    }

    /// Where it goes, for people.
    pub(super) fn path(&self) -> &Path {
        &self.out
    }

    fn file(&self) -> Result<(Sink, Option<PathBuf>)> {
        if self.out.exists() && !self.force {
            bail!("{} exists; --force writes over it", self.out.display());
        }
        let folder = match self.out.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = NamedTempFile::new_in(folder)
            .with_context(|| format!("making a file in {}", folder.display()))?;
        Ok((Sink::File(file), Some(self.out.clone())))
    }

    fn writing(&self) -> String {
        format!("writing {}", self.out.display())
    }
}

/// A trace that is being written.
pub(super) struct Written {
    writer: Writer<Sink>,
    place: Option<PathBuf>,
    is_forced: bool,
}

enum Sink {
    Out(io::Stdout),
    File(NamedTempFile),
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
        let Sink::File(file) = self.writer.finish().with_context(|| what.clone())? else {
            return Ok(records);
        };
        let place = self.place.unwrap_or_default();
        let result = if self.is_forced { file.persist(&place) } else { file.persist_noclobber(&place) };
        result.map_err(|error| error.error).context(what)?;
        Ok(records)
    }

    fn writing(&self) -> String {
        self.place
            .as_ref()
            .map_or("writing to standard output".to_owned(), |place| format!("writing {}", place.display()))
    }
}
