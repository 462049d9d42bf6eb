//! The lines of a run's trace: counted, and left in a file.

use super::panics;
use anyhow::{Context, Result};
use outfile::Outfile;
use sim::Violation;
use sim::replay::{Header, write_trace};
use std::cell::Cell;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

/// Writes the trace of a run: what it violates, and how many events it has. A panic ends the trace where it happened, which is
/// where a reader wants it to end.
pub(super) fn leave_trace(path: &Path, header: &Header) -> Result<(Option<Violation>, u64)> {
    let cannot = || format!("cannot write the trace {}", path.display());
    let lines = Lines::to_file(path)?;
    let to = lines.clone();
    let violation = match panics::catch(|| write_trace(header, Box::new(to))) {
        Ok(outcome) => outcome.with_context(cannot)?.violation,
        Err(violation) => Some(violation),
    };
    lines.finish().with_context(cannot)?;
    // The first line is no event.
    Ok((violation, lines.count().saturating_sub(1)))
}

/// Counts the lines that are written, and passes them on to a file if there is one.
#[derive(Clone, Default)]
pub(super) struct Lines {
    count: Rc<Cell<u64>>,
    to: Rc<Cell<Option<BufWriter<Outfile>>>>,
}

impl Lines {
    /// Lines that go to a file, which is there once they are finished.
    pub(super) fn to_file(path: &Path) -> Result<Lines> {
        let file =
            Outfile::create(path).with_context(|| format!("cannot write the trace {}", path.display()))?;
        Ok(Lines { to: Rc::new(Cell::new(Some(BufWriter::new(file)))), ..Lines::default() })
    }

    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }

    pub(super) fn finish(&self) -> io::Result<()> {
        match self.to.take() {
            Some(file) => file.into_inner()?.finish(),
            None => Ok(()),
        }
    }

    fn with_file<T>(&self, and: impl FnOnce(&mut BufWriter<Outfile>) -> T) -> Option<T> {
        let mut file = self.to.take();
        let result = file.as_mut().map(and);
        self.to.set(file);
        result
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.count.set(self.count.get() + lines);
        self.with_file(|file| file.write_all(bytes)).transpose()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with_file(Write::flush).unwrap_or(Ok(()))
    }
}
