//! Devices without an arm: solid state, memory, and the constant access times with which some papers model disks.

use super::DriveError;
use super::form::{AccessForm, Source};

/// A device whose accesses all take the same time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AccessTime {
    pub read_ns: u64,
    pub write_ns: u64,
    /// Beside it, each byte; not counted when `None`.
    pub bytes_per_second: Option<f64>,
}

impl AccessTime {
    pub(super) fn new(source: &Source<'_>, form: &AccessForm, scale: f64) -> Result<AccessTime, DriveError> {
        let to_ns = |ms: f64, field: &str| {
            if ms.is_finite() && (0.0..1e6).contains(&ms) {
                return Ok((ms * scale * 1e6).round() as u64);
            }
            Err(source.error(
                source.find(field.trim_start_matches("access.")),
                field,
                format!("is {ms}; it must be a time from 0 to 1000000"),
            ))
        };
        let bytes_per_second = form.bytes_per_second.map(|rate| rate / scale);
        if let Some(rate) = bytes_per_second.filter(|rate| !rate.is_finite() || *rate <= 0.0) {
            return Err(source.error(
                None,
                "access.bytes_per_second",
                format!("is {rate}; it must be above 0"),
            ));
        }
        Ok(AccessTime {
            read_ns: to_ns(form.read_ms, "access.read_ms")?,
            write_ns: to_ns(form.write_ms, "access.write_ms")?,
            bytes_per_second,
        })
    }

    /// Until the first byte.
    pub(super) fn access_ns(&self, is_write: bool) -> u64 {
        if is_write { self.write_ns } else { self.read_ns }
    }

    /// All bytes of so many sectors.
    pub(super) fn transfer_ns(&self, sectors: u32) -> u64 {
        self.bytes_per_second
            .map_or(0, |rate| (f64::from(sectors) * super::SECTOR_BYTES as f64 / rate * 1e9) as u64)
    }
}
