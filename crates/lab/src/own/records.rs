//! Traces from files, request by request.

use crate::system::{Failure, Stream};
use base::Time;
use sim::perf::Arrival;
use std::fs::File;
use std::path::PathBuf;
use trace::{Description, Format, Options, Reader, Record};

/// Sectors from one device of a trace to the next: a tebibyte. Beyond the cluster's end addresses wrap around.
const DEVICE_SECTORS: u64 = 1 << 31;

/// A trace in a file.
pub(super) struct Recorded {
    pub(super) path: PathBuf,
    pub(super) format: Option<Format>,
    pub(super) speed_up: f64,
    /// The file's length and time of change: another file under the same name is another trace.
    pub(super) stamp: String,
}

impl Stream for Recorded {
    fn describe(&self) -> String {
        let format = self.format.map(|format| format.name());
        format!("{} {} {format:?} {}", self.path.display(), self.stamp, self.speed_up)
    }

    fn open(&self, _: u64, failure: &Failure) -> Result<Box<dyn Iterator<Item = Arrival>>, String> {
        let name = self.path.display().to_string();
        let file =
            File::open(&self.path).map_err(|error| format!("cannot read the trace {name}: {error}"))?;
        let options = Options { format: self.format, ..Options::default() };
        let reader = Reader::open(&name, Box::new(file), options).map_err(|error| error.to_string())?;
        let (failure, speed_up) = (failure.clone(), self.speed_up);
        let arrivals = reader.map_while(move |record| match record {
            Ok(record) => Some(arrival(&record, speed_up)),
            Err(error) => {
                *failure.borrow_mut() = Some(error.to_string());
                None
            }
        });
        Ok(Box::new(arrivals))
    }
}

/// A trace that is generated.
pub(super) struct Generated {
    pub(super) description: Description,
    pub(super) speed_up: f64,
}

impl Stream for Generated {
    fn describe(&self) -> String {
        format!("{:?} {}", self.description, self.speed_up)
    }

    fn open(&self, seed: u64, _: &Failure) -> Result<Box<dyn Iterator<Item = Arrival>>, String> {
        let speed_up = self.speed_up;
        Ok(Box::new(self.description.source(seed).map(move |record| arrival(&record, speed_up))))
    }
}

fn arrival(record: &Record, speed_up: f64) -> Arrival {
    let sector = u64::from(record.device).wrapping_mul(DEVICE_SECTORS).wrapping_add(record.sector);
    let at = Time((record.at_ns as f64 / speed_up) as u64);
    Arrival { at, sector, count: record.count, is_write: record.is_write }
}
