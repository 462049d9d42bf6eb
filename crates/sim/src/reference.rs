//! A modelled drive beside what is known about the drive itself: closed loops under a head scheduler, logs of single
//! accesses, and traces with the response times that a real drive gave.
//!
//! Reading order: [`closed_loop`], [`compare_log`], [`replay_measured`], then how their files are read.

use base::{Mechanics, Position, Time};
use model::drive::{Access, Drive};
use proto::heads::{HeadQueue, Policy};

/// When the access that takes the place of a finished one joins the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replacement {
    /// Before the next one is chosen: the scheduler chooses among `depth`.
    BeforeChoice,
    /// After it, as in DiskSim: the scheduler chooses among `depth - 1`.
    AfterChoice,
}

/// What a closed loop came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoopResult {
    /// Accesses that ended.
    pub accesses: u64,
    /// Until the last of them ended.
    pub simulated_ns: u64,
    /// From the choice until the end, all of them together.
    pub service_ns: u64,
    /// Of that, the mechanics: seek, rotation, transfer.
    pub mechanical_ns: u64,
    /// From joining the queue until the end, all of them together.
    pub response_ns: u64,
}

impl LoopResult {
    /// Accesses in a second.
    pub fn iops(&self) -> f64 {
        self.accesses as f64 * 1e9 / self.simulated_ns as f64
    }

    /// The mean time of service.
    pub fn service_ms(&self) -> f64 {
        self.service_ns as f64 / self.accesses as f64 / 1e6
    }

    /// The mean time of the mechanics.
    pub fn mechanical_ms(&self) -> f64 {
        self.mechanical_ns as f64 / self.accesses as f64 / 1e6
    }

    /// The mean time from joining the queue.
    pub fn response_ms(&self) -> f64 {
        self.response_ns as f64 / self.accesses as f64 / 1e6
    }
}

/// How a closed loop is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopConfig {
    /// Who goes next.
    pub policy: Policy,
    /// Accesses outstanding.
    pub depth: usize,
    /// When finished ones are replaced.
    pub replacement: Replacement,
    /// What the scheduler believes that the drive takes before it acts on a write; nothing before a read. `None` when it
    /// knows the drive's overheads as they are.
    pub write_initiation_ns: Option<u64>,
}

/// Keeps `depth` of `accesses` outstanding, issued in their order, until none is left to issue: the last `depth - 1` are
/// not waited for, as they would run with fewer outstanding.
///
/// # Panics
/// When the depth is zero, or there are fewer accesses.
pub fn closed_loop(drive: &mut Drive, config: LoopConfig, accesses: &[Access]) -> LoopResult {
    let LoopConfig { depth, replacement, .. } = config;
    assert!(
        (1..=accesses.len()).contains(&depth),
        "a loop of {} accesses has no depth {depth}",
        accesses.len()
    );
    let mut queue =
        Queue { heads: HeadQueue::new(config.policy), write_initiation_ns: config.write_initiation_ns };
    let mut coming = accesses.iter();
    let mut now = Time::ZERO;
    // The drive takes the first one as soon as it comes; the others find it busy.
    let mut held = coming.next().map(|access| (*access, now));
    coming.by_ref().take(depth - 1).for_each(|access| queue.push(drive, now, access));
    let mut result = LoopResult::default();
    while let Some((access, since)) = held.or_else(|| queue.pick(drive, now)) {
        let service = drive.serve(now, access);
        result.count(now, since, &service);
        now = service.done;
        let Some(next) = coming.next() else { break };
        held = match replacement {
            Replacement::AfterChoice => queue.pick(drive, now),
            Replacement::BeforeChoice => None,
        };
        queue.push(drive, now, next);
    }
    result
}

/// Accesses that wait, with the moments since when.
struct Queue {
    heads: HeadQueue<(Access, Time)>,
    write_initiation_ns: Option<u64>,
}

impl Queue {
    fn push(&mut self, drive: &Drive, now: Time, access: &Access) {
        self.heads.push(drive.position_of(access.sector, access.is_write), (*access, now));
    }

    fn pick(&mut self, drive: &Drive, now: Time) -> Option<(Access, Time)> {
        let picked = match self.write_initiation_ns {
            Some(write_ns) => self.heads.pick(now, &Believed { drive, write_ns }),
            None => self.heads.pick(now, drive),
        };
        picked.map(|picked| picked.item)
    }
}

/// A drive whose overheads the scheduler knows only roughly.
struct Believed<'a> {
    drive: &'a Drive,
    write_ns: u64,
}

impl Mechanics for Believed<'_> {
    fn position_of(&self, sector: u64, is_write: bool) -> Position {
        self.drive.position_of(sector, is_write)
    }

    fn cylinder(&self) -> u32 {
        self.drive.cylinder()
    }

    fn positioning_ns(&self, free: Time, to: &Position) -> u64 {
        let command_ns = if to.is_write { self.write_ns } else { 0 };
        command_ns + self.drive.reach_ns(Time(free.0 + command_ns), to)
    }

    fn rotation_ns(&self, free: Time, to: &Position) -> u64 {
        self.drive.rotation_ns(free, to)
    }

    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        self.drive.seek_floor_ns(cylinders)
    }
}

impl LoopResult {
    fn count(&mut self, start: Time, since: Time, service: &model::drive::Service) {
        self.accesses += 1;
        self.simulated_ns = service.done.0;
        self.service_ns += service.done.0 - start.0;
        self.mechanical_ns += service.seek_ns + service.rotation_ns + service.transfer_ns;
        self.response_ns += service.done.0 - since.0;
    }
}

/// One access of a log: when it began, and how long it took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Logged {
    /// When it began.
    pub start: Time,
    /// The access.
    pub access: Access,
    /// What it took.
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
    /// How many.
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

/// One access of a validation trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// The access.
    pub access: Access,
    /// What the real drive took.
    pub service_ns: u64,
    /// From its end until the next one is issued.
    pub think_ns: u64,
}

/// How a drive's model replays what the drive itself did.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasuredComparison {
    /// Accesses.
    pub accesses: u64,
    /// The real drive's mean time.
    pub real_ms: f64,
    /// The model's.
    pub model_ms: f64,
    /// Means over reads and over writes: the real drive's and the model's.
    pub reads_ms: [f64; 2],
    /// As before.
    pub writes_ms: [f64; 2],
    /// See [`rms_demerit_ms`].
    pub demerit_ms: f64,
}

/// Replays a validation trace with one access outstanding, each issued as long after the end of the one before as in the
/// trace.
pub fn replay_measured(drive: &mut Drive, trace: &[Measured]) -> MeasuredComparison {
    let mut now = Time::ZERO;
    let mut replay = |entry: &Measured| {
        let done = drive.serve(now, entry.access).done;
        let service_ns = done.0 - now.0;
        now = Time(done.0 + entry.think_ns);
        service_ns
    };
    let model: Vec<u64> = trace.iter().map(&mut replay).collect();
    let real: Vec<u64> = trace.iter().map(|entry| entry.service_ns).collect();
    let means = |of: fn(&Access) -> bool| {
        [&real, &model].map(|times| {
            mean_ms(trace.iter().zip(times.iter()).filter(|(entry, _)| of(&entry.access)).map(|(_, &ns)| ns))
        })
    };
    MeasuredComparison {
        accesses: trace.len() as u64,
        real_ms: mean_ms(real.iter().copied()),
        model_ms: mean_ms(model.iter().copied()),
        reads_ms: means(|access| !access.is_write),
        writes_ms: means(|access| access.is_write),
        demerit_ms: rms_demerit_ms(real, model),
    }
}

/// The root mean square of the horizontal distance between two distributions of times, sampled at every 0.0001 of
/// probability (Ruemmler and Wilkes, "An introduction to disk drive modeling", 1994).
pub fn rms_demerit_ms(mut one: Vec<u64>, mut other: Vec<u64>) -> f64 {
    const SAMPLES: usize = 10_000;
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    one.sort_unstable();
    other.sort_unstable();
    let at = |times: &[u64], sample: usize| times[(times.len() * sample / SAMPLES).min(times.len() - 1)];
    let square = |sample| {
        let apart_ms = at(&one, sample).abs_diff(at(&other, sample)) as f64 / 1e6;
        apart_ms * apart_ms
    };
    libm::sqrt((0..SAMPLES).map(square).sum::<f64>() / SAMPLES as f64)
}

fn mean_ms(times: impl Iterator<Item = u64>) -> f64 {
    let (sum, count) = times.fold((0u64, 0u64), |(sum, count), ns| (sum + ns, count + 1));
    if count == 0 { 0.0 } else { sum as f64 / count as f64 / 1e6 }
}

/// A line of reference data that does not read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {field}: is `{found}`; it must be {must}")]
pub struct ReferenceError {
    /// From 1.
    pub line: usize,
    /// The column.
    pub field: &'static str,
    /// What stands there.
    pub found: String,
    /// What could.
    pub must: &'static str,
}

/// A line, cut.
struct Row<'a> {
    line: usize,
    cells: Vec<&'a str>,
}

impl Row<'_> {
    fn number<T: std::str::FromStr>(&self, column: usize, field: &'static str) -> Result<T, ReferenceError> {
        let cell = self.cells.get(column).map_or("", |cell| cell.trim());
        cell.parse().map_err(|_| self.error(field, cell, "a number that is not negative"))
    }

    /// Milliseconds as nanoseconds.
    fn ms(&self, column: usize, field: &'static str) -> Result<u64, ReferenceError> {
        let ms: f64 = self.number(column, field)?;
        if ms.is_finite() && (0.0..1e12).contains(&ms) {
            return Ok((ms * 1e6).round() as u64);
        }
        Err(self.error(field, &ms.to_string(), "a time in milliseconds"))
    }

    fn access(&self, sector: usize, is_write: bool) -> Result<Access, ReferenceError> {
        let access = Access {
            sector: self.number(sector, "lbn")?,
            count: self.number(sector + 1, "blocks")?,
            is_write,
        };
        if access.count == 0 {
            return Err(self.error("blocks", "0", "at least 1"));
        }
        Ok(access)
    }

    fn error(&self, field: &'static str, found: &str, must: &'static str) -> ReferenceError {
        ReferenceError { line: self.line, field, found: found.to_owned(), must }
    }
}

fn rows(text: &str, headings: usize, by_comma: bool) -> impl Iterator<Item = Row<'_>> {
    let cut = move |line| {
        if by_comma { str::split(line, ',').collect() } else { str::split_whitespace(line).collect() }
    };
    let lines = text.lines().enumerate().skip(headings).filter(|(_, line)| !line.trim().is_empty());
    lines.map(move |(index, line)| Row { line: index + 1, cells: cut(line) })
}

/// Reads `lbn,blocks,read_in_r90,read_in_r67`, a stream for [`closed_loop`]; `read_percent` says whether all are reads
/// (100), or which column tells (90, 67).
///
/// # Errors
/// The line and the column.
pub fn parse_workload(text: &str, read_percent: u32) -> Result<Vec<Access>, ReferenceError> {
    let access = |row: Row<'_>| {
        let is_read = match read_percent {
            100 => 1,
            90 => row.number(2, "read_in_r90")?,
            _ => row.number::<u32>(3, "read_in_r67")?,
        };
        row.access(0, is_read == 0)
    };
    rows(text, 1, true).map(access).collect()
}

/// Reads `issue_ms,lbn,blocks,is_read,service_ms`.
///
/// # Errors
/// The line and the column.
pub fn parse_log(text: &str) -> Result<Vec<Logged>, ReferenceError> {
    let logged = |row: Row<'_>| {
        let is_read: u32 = row.number(3, "is_read")?;
        let (start, service_ns) = (Time(row.ms(0, "issue_ms")?), row.ms(4, "service_ms")?);
        Ok(Logged { start, access: row.access(1, is_read == 0)?, service_ns })
    };
    rows(text, 1, true).map(logged).collect()
}

/// Reads DiskSim's validation format: `R|W Hit|Miss|... lbn blocks service_us think_us`.
///
/// # Errors
/// The line and the column.
pub fn parse_measured(text: &str) -> Result<Vec<Measured>, ReferenceError> {
    let measured = |row: Row<'_>| {
        let is_write = match row.cells.first().copied() {
            Some("R") => false,
            Some("W") => true,
            other => return Err(row.error("direction", other.unwrap_or(""), "R or W")),
        };
        let us = |column, field| row.number::<f64>(column, field).map(|us| (us * 1e3).round() as u64);
        let (service_ns, think_ns) = (us(4, "service_us")?, us(5, "think_us")?);
        Ok(Measured { access: row.access(2, is_write)?, service_ns, think_ns })
    };
    rows(text, 0, false).map(measured).collect()
}

/// One point of reference curves.
#[derive(Clone, PartialEq, Debug)]
pub struct CurvePoint {
    /// `A_nocache`, `B_mech` or `C_stock`.
    pub configuration: String,
    /// `100/0`, `90/10` or `67/33`: reads and writes in a hundred.
    pub mix: String,
    /// FCFS, C-LOOK, SSTF, SPTF or others.
    pub scheduler: String,
    /// Accesses outstanding.
    pub depth: usize,
    /// Accesses in a second.
    pub iops: f64,
    /// The mean time of service.
    pub service_ms: f64,
    /// The mean time from joining the queue.
    pub response_ms: f64,
}

/// Reads reference curves: `config,read_write,scheduler,_,outstanding_Q,_,iops,mean_service_ms,...,mean_response_ms` with
/// the last in the 14th column.
///
/// # Errors
/// The line and the column.
pub fn parse_curves(text: &str) -> Result<Vec<CurvePoint>, ReferenceError> {
    let point = |row: Row<'_>| {
        let word = |column: usize| row.cells.get(column).copied().unwrap_or("").to_owned();
        Ok(CurvePoint {
            configuration: word(0),
            mix: word(1),
            scheduler: word(2),
            depth: row.number(4, "outstanding_Q")?,
            iops: row.number(6, "iops")?,
            service_ms: row.number(7, "mean_service_ms")?,
            response_ms: row.number(13, "mean_response_ms")?,
        })
    };
    rows(text, 1, true).map(point).collect()
}
