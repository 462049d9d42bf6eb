//! Traces from files, request by request.

use crate::system::{SeenByAll, Stream};
use base::Time;
use sim::timed::Arrival;
use std::fs::File;
use std::path::PathBuf;
use trace::{Description, Format, Options, Order, Reader, Record};

/// Sectors from one device of a trace to the next: a tebibyte. Beyond the cluster's end addresses wrap around.
const DEVICE_SECTORS: u64 = 1 << 31;

/// A trace in a file.
pub(super) struct Recorded {
    pub(super) path: PathBuf,
    pub(super) format: Option<Format>,
    /// One unit of its times, in nanoseconds; the format's own when absent.
    pub(super) unit_ns: Option<u64>,
    /// What becomes of times that go backwards; as suits the format when absent.
    pub(super) order: Option<Order>,
    pub(super) speed_up: f64,
    pub(super) may_wrap: bool,
    /// The file's length and time of change: another file under the same name is another trace.
    pub(super) stamp: String,
}

impl Stream for Recorded {
    fn describe(&self) -> String {
        let format = self.format.map(|format| format.name());
        let said = (format, self.unit_ns, self.order, self.speed_up, self.may_wrap);
        format!("{} {} {said:?}", self.path.display(), self.stamp)
    }

    fn open(&self, _: u64, seen: &SeenByAll) -> Result<Box<dyn Iterator<Item = Arrival>>, String> {
        let name = self.path.display().to_string();
        let file =
            File::open(&self.path).map_err(|error| format!("cannot read the trace {name}: {error}"))?;
        let options =
            Options { format: self.format, unit_ns: self.unit_ns, order: self.order, ..Options::default() };
        let reader = Reader::open(&name, Box::new(file), options).map_err(|error| error.to_string())?;
        Ok(Box::new(Told { name, reader, speed_up: self.speed_up, seen: seen.clone() }))
    }

    fn may_wrap(&self) -> bool {
        self.may_wrap
    }
}

/// The requests of a file. A run may be over before they are, so warnings are told when they are dropped.
struct Told {
    name: String,
    reader: Reader,
    speed_up: f64,
    seen: SeenByAll,
}

impl Iterator for Told {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        match self.reader.next()? {
            Ok(record) => Some(arrival(&record, self.speed_up)),
            Err(error) => {
                self.seen.borrow_mut().failure = Some(error.to_string());
                None
            }
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let warnings = self.reader.warnings().into_iter();
        self.seen.borrow_mut().notes.extend(warnings.map(|warning| format!("{}: {warning}.", self.name)));
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

    fn open(&self, seed: u64, _: &SeenByAll) -> Result<Box<dyn Iterator<Item = Arrival>>, String> {
        let speed_up = self.speed_up;
        Ok(Box::new(self.description.source(seed).map(move |record| arrival(&record, speed_up))))
    }
}

fn arrival(record: &Record, speed_up: f64) -> Arrival {
    let sector = u64::from(record.device).wrapping_mul(DEVICE_SECTORS).wrapping_add(record.sector);
    let at = Time((record.at_ns as f64 / speed_up) as u64);
    Arrival { at, sector, count: record.count, is_write: record.is_write }
}
