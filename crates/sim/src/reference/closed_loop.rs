//! A drive that always has as much to do, under a head scheduler.

use base::{Mechanics, Position, Time};
use model::drive::{Access, Drive, DriveOptions, Service};
use rules::heads::{HeadQueue, Policy};

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
    pub accesses: u64,
    /// Until the last of them ended.
    pub simulated_ns: u64,
    /// From the choice until the end, all of them together.
    pub service_ns: u64,
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

    /// The mean time from joining the queue.
    pub fn response_ms(&self) -> f64 {
        self.response_ns as f64 / self.accesses as f64 / 1e6
    }
}

/// How a closed loop is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopConfig {
    pub policy: Policy,
    pub depth: usize,
    /// When finished ones are replaced.
    pub replacement: Replacement,
    /// What the scheduler believes that the drive takes before it acts on a write; nothing before a read. `None` when it
    /// knows the drive's overheads as they are.
    pub write_initiation_ns: Option<u64>,
    /// Whether the scheduler knows where the arm will be after a write that was acknowledged and is still under way.
    /// Otherwise it sees the arm where the last read left it.
    pub knows_destages: bool,
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
    let mut seen = (!config.knows_destages).then(|| drive.clone());
    let mut result = LoopResult::default();
    while let Some((access, since)) = held.or_else(|| queue.pick(seen.as_ref().unwrap_or(drive), now)) {
        let service = drive.serve(now, access);
        result.count(now, since, &service);
        now = service.done;
        if !config.knows_destages && !access.is_write {
            seen = Some(drive.clone());
        }
        let Some(next) = coming.next() else { break };
        held = match replacement {
            Replacement::AfterChoice => queue.pick(seen.as_ref().unwrap_or(drive), now),
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
    fn count(&mut self, start: Time, since: Time, service: &Service) {
        self.accesses += 1;
        self.simulated_ns = service.done.0;
        self.service_ns += service.done.0 - start.0;
        self.response_ns += service.done.0 - since.0;
    }
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
    pub depth: usize,
    /// Accesses in a second.
    pub iops: f64,
    /// The mean time of service.
    pub service_ms: f64,
    /// The mean time from joining the queue.
    pub response_ms: f64,
}

impl CurvePoint {
    /// Reads in a hundred accesses.
    pub fn read_percent(&self) -> u32 {
        self.mix.split('/').next().and_then(|reads| reads.parse().ok()).unwrap_or(100)
    }
}

/// How the reference ran a point's loop, and with what of the drive in force; `None` for schedulers that are not ours.
///
/// It replaced accesses after the choice, and told its scheduler one delay for all writes: the mean of the drive's. That
/// its scheduler did not know of destages is inferred from its throughput.
pub fn loop_of(point: &CurvePoint) -> Option<(LoopConfig, DriveOptions)> {
    let policy = match point.scheduler.as_str() {
        "FCFS" => Policy::Fcfs,
        "C-LOOK" => Policy::Clook,
        "SSTF" => Policy::Sstf,
        "SPTF" => Policy::Sptf,
        _ => return None,
    };
    let (options, write_initiation_ns) = match (point.configuration.as_str(), point.read_percent()) {
        ("A_nocache", 100) => (DriveOptions::UNCACHED, None),
        ("A_nocache", 90) => (DriveOptions::UNCACHED, Some(345_000)),
        ("A_nocache", _) => (DriveOptions::UNCACHED, Some(395_000)),
        ("B_mech", _) => (DriveOptions::MECHANICS, None),
        ("C_stock", 100) => (DriveOptions::FULL, None),
        ("C_stock", _) => (DriveOptions::FULL, Some(395_000)),
        _ => return None,
    };
    let replacement = Replacement::AfterChoice;
    let knows_destages = !options.cache;
    Some((
        LoopConfig { policy, depth: point.depth, replacement, write_initiation_ns, knows_destages },
        options,
    ))
}
