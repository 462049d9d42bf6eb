//! Command overheads and the bus.

use super::form::{ControllerForm, Source};
use super::{DriveError, DriveOptions};

/// An overhead after a read, and after a write.
type After = [u64; 2];

/// What a command costs beside the mechanics, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Controller {
    /// Of reads, and of writes.
    bus_q16: [u64; 2],
    read_hit_ns: After,
    read_miss_ns: After,
    write_hit_ns: After,
    write_miss_ns: After,
    read_watermark: f64,
    write_disconnect_ns: u64,
    pub(super) write_keeps_ahead: bool,
    read_completion_ns: u64,
    write_completion_ns: u64,
    pub(super) zero_latency_read: bool,
    pub(super) zero_latency_write: bool,
}

impl Controller {
    /// The controller that the form states, every time multiplied by `scale`.
    pub(super) fn new(
        source: &Source<'_>,
        form: &ControllerForm,
        scale: f64,
    ) -> Result<Controller, DriveError> {
        let time = |ms: f64, field: &str| {
            if ms.is_finite() && (0.0..1e3).contains(&ms) {
                return Ok(ms * scale * 1e6);
            }
            let why = format!("is {ms}; it must be a time from 0 to 1000");
            Err(source.error(source.find(field), &format!("controller.{field}"), why))
        };
        let bus = |ms, field| Ok((time(ms, field)? * 65_536.0).round() as u64);
        let bus_write_ms = form.bus_write_ms_per_sector.unwrap_or(form.bus_ms_per_sector);
        let part = |part: f64, field: &str| {
            if (0.0..=1.0).contains(&part) {
                return Ok(part);
            }
            let why = format!("is {part}; it must be a part of the access, from 0 to 1");
            Err(source.error(source.find(field), &format!("controller.{field}"), why))
        };
        if form.write_disconnect_ms > 0.0 && !form.write_keeps_ahead {
            let why =
                "counts only where the platter waits for the data: set write_keeps_ahead = true".to_owned();
            return Err(source.error(
                source.find("write_disconnect_ms"),
                "controller.write_disconnect_ms",
                why,
            ));
        }
        let after = |ms: [f64; 2], field| {
            Ok([time(ms[0], field)?.round() as u64, time(ms[1], field)?.round() as u64])
        };
        Ok(Controller {
            bus_q16: [
                bus(form.bus_ms_per_sector, "bus_ms_per_sector")?,
                bus(bus_write_ms, "bus_write_ms_per_sector")?,
            ],
            read_hit_ns: after(form.read_hit_ms, "read_hit_ms")?,
            read_miss_ns: after(form.read_miss_ms, "read_miss_ms")?,
            write_hit_ns: after(form.write_hit_ms, "write_hit_ms")?,
            write_miss_ns: after(form.write_miss_ms, "write_miss_ms")?,
            read_watermark: part(form.read_watermark, "read_watermark")?,
            write_disconnect_ns: time(form.write_disconnect_ms, "write_disconnect_ms")?.round() as u64,
            write_keeps_ahead: form.write_keeps_ahead,
            read_completion_ns: time(form.read_completion_ms, "read_completion_ms")?.round() as u64,
            write_completion_ns: time(form.write_completion_ms, "write_completion_ms")?.round() as u64,
            zero_latency_read: form.zero_latency_read,
            zero_latency_write: form.zero_latency_write,
        })
    }

    /// From the command's arrival until the drive acts on it.
    pub(super) fn command_ns(
        &self,
        options: DriveOptions,
        is_write: bool,
        is_hit: bool,
        was_write: bool,
    ) -> u64 {
        if !options.overheads {
            return 0;
        }
        let after = match (is_write, is_hit) {
            (false, true) => self.read_hit_ns,
            (false, false) => self.read_miss_ns,
            (true, true) => self.write_hit_ns,
            (true, false) => self.write_miss_ns,
        };
        after[usize::from(was_write)]
    }

    /// What a sector takes over the bus.
    pub(super) fn bus_q16(&self, is_write: bool) -> u64 {
        self.bus_q16[usize::from(is_write)]
    }

    /// So many sectors of a read pass the head before its bus begins.
    pub(super) fn sectors_before_bus(&self, count: u32) -> u32 {
        sectors(self.read_watermark, count).max(1)
    }

    /// Between the command of a write to the platter and its data.
    pub(super) fn write_disconnect_ns(&self, options: DriveOptions) -> u64 {
        if options.overheads { self.write_disconnect_ns } else { 0 }
    }

    /// From the last of the data until the drive says so.
    pub(super) fn completion_ns(&self, options: DriveOptions, is_write: bool) -> u64 {
        if !options.overheads {
            0
        } else if is_write {
            self.write_completion_ns
        } else {
            self.read_completion_ns
        }
    }
}

/// This part of so many sectors, begun ones included.
fn sectors(part: f64, count: u32) -> u32 {
    libm::ceil(part * f64::from(count)) as u32
}
