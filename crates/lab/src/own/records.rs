//! Traces from files, request by request.

use crate::system::{SeenByAll, Stream};
use base::Time;
use sim::timed::Arrival;
use std::fs::File;
use std::path::PathBuf;
use trace::{Description, Format, Options, Order, Reader, Record};

/// A trace in a file.
pub(super) struct Recorded {
    pub(super) path: PathBuf,
    pub(super) format: Option<Format>,
    pub(super) timing: Timing,
    pub(super) devices: Devices,
    pub(super) may_wrap: bool,
    /// The file's length and time of change: another file under the same name is another trace.
    pub(super) stamp: String,
}

/// When the requests of a trace come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// One unit of its times, in nanoseconds; the format's own when absent.
    pub(super) unit_ns: Option<u64>,
    /// What becomes of times that go backwards; as suits the format when absent.
    pub(super) order: Option<Order>,
    /// Requests a second in place of its times.
    pub(super) rate: Option<f64>,
    pub(super) speed_up: f64,
}

/// Where the devices of a trace lie in the cluster's address space: one behind the other by their numbers, this far apart.
#[derive(Clone, Debug)]
pub(super) struct Devices {
    /// Which are taken, in this order; all when absent.
    pub(super) taken: Option<Vec<u32>>,
    pub(super) apart_sectors: u64,
}

impl Devices {
    /// A device of these lies there; none where it is not taken.
    fn place(&self, device: u32, sector: u64) -> Option<u64> {
        let place = match &self.taken {
            None => u64::from(device),
            Some(taken) => taken.iter().position(|taken| *taken == device)? as u64,
        };
        Some(place.wrapping_mul(self.apart_sectors).wrapping_add(sector))
    }
}

impl Recorded {
    /// Whether its format has times.
    ///
    /// # Errors
    /// When its beginning cannot be read.
    pub(super) fn has_times(&self) -> Result<bool, String> {
        Ok(self.reader()?.has_times())
    }

    fn reader(&self) -> Result<Reader, String> {
        let name = self.path.display().to_string();
        let file =
            File::open(&self.path).map_err(|error| format!("cannot read the trace {name}: {error}"))?;
        let Timing { unit_ns, order, rate: rate_per_s, .. } = self.timing;
        let options = Options { format: self.format, unit_ns, order, rate_per_s, ..Options::default() };
        Reader::open(&name, Box::new(file), options).map_err(|error| error.to_string())
    }
}

impl Stream for Recorded {
    fn describe(&self) -> String {
        let format = self.format.map(|format| format.name());
        let said = (format, self.timing, &self.devices, self.may_wrap);
        format!("{} {} {said:?}", self.path.display(), self.stamp)
    }

    fn open(&self, _: u64, seen: &SeenByAll) -> Result<Box<dyn Iterator<Item = Arrival>>, String> {
        let told = Told {
            name: self.path.display().to_string(),
            reader: self.reader()?,
            devices: self.devices.clone(),
            timing: self.timing,
            taken: 0,
            beyond: 0,
            seen: seen.clone(),
        };
        Ok(Box::new(told))
    }

    fn may_wrap(&self) -> bool {
        self.may_wrap
    }
}

/// The requests of a file. A run may be over before they are, so warnings are told when they are dropped.
struct Told {
    name: String,
    reader: Reader,
    devices: Devices,
    timing: Timing,
    /// Requests so far, of devices that are taken.
    taken: u64,
    /// Those that lie where the next device begins.
    beyond: u64,
    seen: SeenByAll,
}

impl Iterator for Told {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let Some(next) = self.reader.next() else {
                if self.taken == 0 {
                    let of = self
                        .devices
                        .taken
                        .as_ref()
                        .map_or(String::new(), |taken| format!(" of devices {taken:?}"));
                    let failure = format!("the trace {} has no requests{of}", self.name);
                    self.seen.borrow_mut().failure.get_or_insert(failure);
                }
                return None;
            };
            match next {
                Ok(record) => {
                    let Some(sector) = self.devices.place(record.device, record.sector) else { continue };
                    let end = record.sector.saturating_add(u64::from(record.count));
                    self.beyond += u64::from(end > self.devices.apart_sectors);
                    self.taken += 1;
                    let arrival = arrival(&record, sector, self.timing.speed_up);
                    return Some(match self.timing.rate {
                        // Evenly, whatever became of requests of other devices.
                        Some(rate) => {
                            Arrival { at: Time(((self.taken - 1) as f64 / rate * 1e9) as u64), ..arrival }
                        }
                        None => arrival,
                    });
                }
                Err(error) => {
                    self.seen.borrow_mut().failure = Some(error.to_string());
                    return None;
                }
            }
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let warnings = self.reader.warnings().into_iter();
        let mut seen = self.seen.borrow_mut();
        seen.notes.extend(warnings.map(|warning| format!("{}: {warning}.", self.name)));
        if self.beyond > 0 {
            seen.notes.push(format!(
                "{}: {} of {} requests lie beyond device_bytes on their device, where the next one begins.",
                self.name, self.beyond, self.taken
            ));
        }
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
        let devices = Devices { taken: None, apart_sectors: APART_SECTORS };
        let placed = move |record: Record| {
            let sector = devices.place(record.device, record.sector)?;
            Some(arrival(&record, sector, speed_up))
        };
        Ok(Box::new(self.description.source(seed).filter_map(placed)))
    }
}

/// From one device to the next, of what is generated: a tebibyte.
const APART_SECTORS: u64 = 1 << 31;

fn arrival(record: &Record, sector: u64, speed_up: f64) -> Arrival {
    let at = Time((record.at_ns as f64 / speed_up) as u64);
    Arrival { at, sector, count: record.count, is_write: record.is_write }
}
