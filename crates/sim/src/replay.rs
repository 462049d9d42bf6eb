//! Steps through the trace of a run: runs its seed again and shows each event, as long as both agree.

use crate::options::Options;
use crate::torture;
use crate::trace::Step;
use core::cell::RefCell;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};
use std::rc::Rc;
use thiserror::Error;

/// The columns of a terminal.
const COLUMNS: usize = 80;

/// The first line of a trace file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the program that wrote it.
    pub version: String,
    pub seed: u64,
    /// What the run was asked to be.
    pub options: Options,
}

impl Header {
    /// Of a run of this program.
    pub fn new(seed: u64, options: &Options) -> Header {
        Header { version: env!("CARGO_PKG_VERSION").to_owned(), seed, options: options.clone() }
    }
}

/// Why a trace cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The file cannot be read, or the output not written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is none of a trace.
    #[error("line {line} is not a line of a trace: {source}")]
    Malformed {
        /// From 1.
        line: u64,
        source: serde_json::Error,
    },
    /// There is no first line.
    #[error("the trace is empty")]
    Empty,
    /// The run went another way than the trace.
    #[error("event {n} went another way than in the trace, which version {version} wrote; this is {}", env!("CARGO_PKG_VERSION"))]
    Diverged {
        /// The first event that differs.
        n: u64,
        /// The writer of the trace.
        version: String,
    },
}

/// Writes the trace of a seed: the header, and a line for each event. Returns what came of the run.
pub fn write_trace(seed: u64, options: &Options, mut out: Box<dyn Write>) -> io::Result<torture::Outcome> {
    let header = serde_json::to_string(&Header::new(seed, options)).map_err(io::Error::other)?;
    writeln!(out, "{header}")?;
    Ok(torture::run(seed, options, Some(out)).0)
}

/// Shows the events of `trace` up to number `until` at 80 columns while it runs the seed again. Returns how many
/// events agreed.
pub fn replay(trace: &mut dyn BufRead, until: u64, out: &mut dyn Write) -> Result<u64, ReplayError> {
    let mut lines = trace.lines().zip(1..);
    let (first, _) = lines.next().ok_or(ReplayError::Empty)?;
    let header: Header =
        serde_json::from_str(&first?).map_err(|source| ReplayError::Malformed { line: 1, source })?;
    let again = Rc::new(RefCell::new(Vec::new()));
    torture::run(header.seed, &header.options, Some(Box::new(Shared(Rc::clone(&again)))));
    let again = again.borrow();
    let mut fresh = again.split(|&byte| byte == b'\n');
    let mut count = 0;
    for (line, number) in lines {
        let step: Step =
            serde_json::from_str(&line?).map_err(|source| ReplayError::Malformed { line: number, source })?;
        if step.n > until {
            break;
        }
        let same = fresh.next().and_then(|line| serde_json::from_slice::<Step>(line).ok());
        if same.as_ref() != Some(&step) {
            return Err(ReplayError::Diverged { n: step.n, version: header.version });
        }
        show(&step, out)?;
        count += 1;
    }
    Ok(count)
}

/// Lets a run write into memory that its caller keeps.
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One event, wrapped at 80 columns.
fn show(step: &Step, out: &mut dyn Write) -> io::Result<()> {
    let (seconds, micros) = (step.t / 1_000_000_000, step.t / 1_000 % 1_000_000);
    let mut line = format!("{:>7} {seconds:>3}.{micros:06} {}:", step.n, step.node);
    for word in step.what.split_inclusive(' ') {
        if line.chars().count() + 1 + word.trim_end().chars().count() > COLUMNS {
            writeln!(out, "{}", line.trim_end())?;
            line = " ".repeat(19);
        } else if line.ends_with(':') {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{}", line.trim_end())
}
