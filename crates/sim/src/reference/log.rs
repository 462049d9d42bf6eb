//! Access by access, against a log.

use base::Time;
use model::drive::{Access, Drive};

/// One access of a log: when it began, and how long it took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Logged {
    /// When it began.
    pub start: Time,
    pub access: Access,
    pub service_ns: u64,
}

/// How far a model is from a log.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LogComparison {
    /// Accesses on one track.
    pub single: Agreement,
    /// Accesses that cross to another track.
    pub crossing: Agreement,
}

/// How well some accesses agree, whole turns forgiven.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Agreement {
    pub accesses: u64,
    /// Of these, within the bound.
    pub agreeing: u64,
    /// Of these, at least one turn apart.
    pub turns_apart: u64,
    /// The largest distance, whole turns forgiven.
    pub worst_ns: u64,
}

impl Agreement {
    /// The part that is within the bound.
    pub fn share(&self) -> f64 {
        self.agreeing as f64 / self.accesses.max(1) as f64
    }
}

/// Runs every access of a log at the moment at which it began there. A head that comes nanoseconds too late for a sector
/// waits a whole turn, so that whole turns are forgiven and counted.
pub fn compare_log(drive: &mut Drive, log: &[Logged], within_ns: u64) -> LogComparison {
    let turn_ns = drive.model().revolution_ns().unwrap_or(u64::MAX);
    let mut found = LogComparison::default();
    for entry in log {
        let service_ns = drive.serve(entry.start, entry.access).done.0 - entry.start.0;
        let apart_ns = service_ns.abs_diff(entry.service_ns);
        let rest_ns = (apart_ns % turn_ns).min(turn_ns - apart_ns % turn_ns);
        let last = entry.access.sector + u64::from(entry.access.count) - 1;
        let track = |sector| drive.model().place(sector).map(|place| (place.cylinder, place.surface));
        let is_single = track(entry.access.sector) == track(last);
        let agreement = if is_single { &mut found.single } else { &mut found.crossing };
        agreement.accesses += 1;
        agreement.agreeing += u64::from(rest_ns <= within_ns);
        agreement.turns_apart += u64::from(apart_ns > turn_ns / 2);
        agreement.worst_ns = agreement.worst_ns.max(rest_ns);
    }
    found
}
