//! Steps through the trace of a run: does the run again and shows its events, one a line, as long as both agree.

mod filter;

pub use filter::{Filter, Place};

use crate::checkers::Violation;
use crate::options::Options;
use crate::schedule::{Course, Schedule};
use crate::torture;
use crate::trace::Step;
use core::cell::RefCell;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Lines, Write};
use std::rc::Rc;
use thiserror::Error;

/// The first line of a trace file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the program that wrote it.
    pub version: String,
    pub seed: u64,
    /// What the run was asked to be.
    pub options: Options,
    /// What it does, if that is not all that its seed draws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
}

impl Header {
    /// Of a run of this program.
    pub fn new(seed: u64, options: &Options, schedule: Option<Schedule>) -> Header {
        Header { version: env!("CARGO_PKG_VERSION").to_owned(), seed, options: options.clone(), schedule }
    }

    fn course(&self) -> Course {
        self.schedule.clone().map_or(Course::Drawn, Course::Scheduled)
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
    #[error(transparent)]
    Diverged(Box<Divergence>),
}

/// Where a run went another way than its trace.
#[derive(Debug, Error)]
#[error(
    "event {} went another way than in the trace, which version {version} wrote; this is {}\n  recorded: {recorded}\n  replayed: {}",
    .recorded.n,
    env!("CARGO_PKG_VERSION"),
    .replayed.as_ref().map_or("nothing: the run has ended".to_owned(), Step::to_string)
)]
pub struct Divergence {
    /// The writer of the trace.
    pub version: String,
    /// The first event that differs, as the trace has it.
    pub recorded: Step,
    /// What happened instead; `None` if the run had ended.
    pub replayed: Option<Step>,
}

/// Writes the trace of a run: the header, and a line for each event. Returns what came of the run.
pub fn write_trace(header: &Header, mut out: Box<dyn Write>) -> io::Result<torture::Outcome> {
    let line = serde_json::to_string(header).map_err(io::Error::other)?;
    writeln!(out, "{line}")?;
    Ok(torture::run_course(header.seed, &header.options, &header.course(), Some(out)).0)
}

/// A trace, and the run that it is compared with.
#[derive(Clone)]
pub struct Replay {
    header: Header,
    comparison: Rc<RefCell<Comparison>>,
}

impl Replay {
    /// Of a trace, of which the events that pass `filter` are written to `out`.
    ///
    /// # Errors
    ///
    /// If the trace cannot be read or does not begin as a trace does.
    pub fn open(trace: Box<dyn BufRead>, filter: Filter, out: Box<dyn Write>) -> Result<Replay, ReplayError> {
        let mut lines = trace.lines();
        let first = lines.next().ok_or(ReplayError::Empty)??;
        let header: Header =
            serde_json::from_str(&first).map_err(|source| ReplayError::Malformed { line: 1, source })?;
        let comparison =
            Comparison { recorded: lines, filter, out, line: Vec::new(), agreed: 0, error: None };
        Ok(Replay { header, comparison: Rc::new(RefCell::new(comparison)) })
    }

    /// Does the run again, and shows events as they happen. Panics where the run does: [`Replay::finish`] can be called then, too.
    pub fn run(&self) -> Option<Violation> {
        let lines = Box::new(Sink(Rc::clone(&self.comparison)));
        let Header { seed, options, .. } = &self.header;
        let (outcome, _) = torture::run_course(*seed, options, &self.header.course(), Some(lines));
        outcome.violation
    }

    /// How many events agreed.
    ///
    /// # Errors
    ///
    /// If the run and the trace did not agree, the trace could not be read, or events could not be shown.
    pub fn finish(self) -> Result<u64, ReplayError> {
        let mut comparison = self.comparison.borrow_mut();
        if comparison.error.is_none()
            && let Err(error) = comparison.end()
        {
            comparison.error = Some(error);
        }
        match comparison.error.take() {
            None | Some(Stop::Enough) => Ok(comparison.agreed),
            Some(Stop::Error(error)) => Err(error),
            Some(Stop::Diverged { recorded, replayed }) => {
                let version = self.header.version.clone();
                Err(ReplayError::Diverged(Box::new(Divergence { version, recorded, replayed })))
            }
        }
    }
}

/// Compares each event of a run with the next one of a trace.
struct Comparison {
    recorded: Lines<Box<dyn BufRead>>,
    filter: Filter,
    out: Box<dyn Write>,
    /// What was written of the line of the next event.
    line: Vec<u8>,
    agreed: u64,
    error: Option<Stop>,
}

/// Why the comparison went no further.
enum Stop {
    /// No later event is to be shown.
    Enough,
    Error(ReplayError),
    Diverged {
        recorded: Step,
        replayed: Option<Step>,
    },
}

impl Comparison {
    fn take(&mut self, replayed: Step) -> Result<(), Stop> {
        // The trace may have lost its end: what there is of it agreed.
        let Some(recorded) = self.next_recorded()? else { return Err(Stop::Enough) };
        if recorded != replayed {
            return Err(Stop::Diverged { recorded, replayed: Some(replayed) });
        }
        if self.filter.ends_before(&recorded) {
            return Err(Stop::Enough);
        }
        self.agreed += 1;
        if self.filter.shows(&recorded) {
            writeln!(self.out, "{recorded}").map_err(|error| Stop::Error(error.into()))?;
        }
        Ok(())
    }

    /// The run has ended.
    fn end(&mut self) -> Result<(), Stop> {
        self.out.flush().map_err(|error| Stop::Error(error.into()))?;
        match self.next_recorded()? {
            Some(recorded) => Err(Stop::Diverged { recorded, replayed: None }),
            None => Ok(()),
        }
    }

    fn next_recorded(&mut self) -> Result<Option<Step>, Stop> {
        let Some(line) = self.recorded.next() else { return Ok(None) };
        let line = line.map_err(|error| Stop::Error(error.into()))?;
        let number = self.agreed + 2;
        let malformed = |source| Stop::Error(ReplayError::Malformed { line: number, source });
        serde_json::from_str(&line).map(Some).map_err(malformed)
    }
}

/// Takes the lines of a run.
struct Sink(Rc<RefCell<Comparison>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut comparison = self.0.borrow_mut();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            comparison.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = core::mem::take(&mut comparison.line);
                let step = serde_json::from_slice(&line)?;
                if let Err(stop) = comparison.take(step) {
                    comparison.error = Some(stop);
                    // The run goes on without being looked at.
                    return Err(io::Error::other("the trace is compared no further"));
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().out.flush()
    }
}
