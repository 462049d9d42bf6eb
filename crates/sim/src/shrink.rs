//! Finds a smaller run with the same violation.
//!
//! A run is cut where that leaves the violation: behind the last turn that it takes, then by all turns of a kind, then by delta
//! debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002) over faults and over operations;
//! the cluster is made simpler, and times in which nothing is done are made short. That is repeated until nothing helps any more.
//! A turn that is left out changes the delays of all packets after it, so that a violation that depends on a rare order of packets
//! shrinks less than others.

use crate::options::{Options, Shape, VolumePlan};
use crate::schedule::{By, Schedule, Turn};
use crate::units::{MS, SECOND};
use serde::Serialize;
use std::collections::BTreeSet;

/// What became of a smaller run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It violates the same promise in the same way.
    Same,
    Other,
    /// No more runs are to be made.
    Stop,
}

/// How large a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Size {
    /// What clients ask of volumes and objects. What is read at the end to check the run is not counted.
    pub operations: usize,
    /// Faults, and the commands that an administrator gives meanwhile.
    pub faults: usize,
    pub bricks: u32,
    pub gateways: u32,
    pub clients: u32,
    pub volumes: usize,
    /// How long faults may happen.
    pub safety_ms: u64,
}

impl Size {
    /// The size of the run that a schedule makes of a seed.
    pub fn of(seed: u64, options: &Options, schedule: &Schedule) -> Size {
        let mut shape = Shape::draw(seed, options);
        shape.change(schedule);
        let count = |is_of: fn(&Turn) -> bool| schedule.turns.iter().filter(|turn| is_of(turn)).count();
        Size {
            operations: count(is_operation),
            faults: count(is_fault),
            bricks: shape.bricks,
            gateways: shape.gateways,
            clients: shape.load.clients,
            volumes: shape.volumes.len() - schedule.changes.without_volumes.len(),
            safety_ms: shape.phases.safety_ns / MS,
        }
    }
}

/// Makes the run of a seed smaller: `full` are all its turns. `attempt` runs a schedule.
pub fn shrink(
    seed: u64,
    options: &Options,
    full: Schedule,
    attempt: &mut dyn FnMut(&Schedule) -> Verdict,
) -> Schedule {
    let shape = Shape::draw(seed, options);
    let mut search = Search { best: full, is_stopped: false, attempt };
    while !search.is_stopped {
        let before = search.best.clone();
        // What shortens the run most comes first: each later attempt then costs less.
        search.cut_behind();
        search.leave_out_kinds();
        search.leave_out_each(is_fault);
        search.end_faults_early(shape.phases.safety_ns);
        search.leave_out_each(is_operation);
        search.close_gaps();
        search.simplify(&shape);
        if search.best == before {
            break;
        }
    }
    search.best
}

fn is_operation(turn: &Turn) -> bool {
    matches!(turn.by, By::Client | By::Segment | By::Object)
}

fn is_fault(turn: &Turn) -> bool {
    !is_operation(turn)
}

/// More gaps than these are only closed together: each costs a run.
const GAPS_MAX: usize = 12;

/// A time in which nothing is done.
struct Gap {
    /// The turn that ends it.
    end_ns: u64,
    /// By how much it is shortened.
    less_ns: u64,
}

fn without_gaps(schedule: &Schedule, gaps: &[Gap]) -> Schedule {
    let closed = |at_ns: u64| {
        at_ns - gaps.iter().filter(|gap| gap.end_ns <= at_ns).map(|gap| gap.less_ns).sum::<u64>()
    };
    let turns = schedule.turns.iter().map(|turn| Turn { at_ns: closed(turn.at_ns), ..*turn });
    Schedule { turns: turns.collect(), safety_ns: schedule.safety_ns.map(closed), ..schedule.clone() }
}

struct Search<'a> {
    /// The smallest schedule so far that leaves the violation.
    best: Schedule,
    is_stopped: bool,
    attempt: &'a mut dyn FnMut(&Schedule) -> Verdict,
}

impl Search<'_> {
    /// Takes a schedule instead of the best one, if the violation stays.
    fn take(&mut self, schedule: Schedule) -> bool {
        if self.is_stopped || schedule == self.best {
            return false;
        }
        match (self.attempt)(&schedule) {
            Verdict::Same => self.best = schedule,
            Verdict::Other => return false,
            Verdict::Stop => {
                self.is_stopped = true;
                return false;
            }
        }
        true
    }

    fn keep(&mut self, is_kept: impl Fn(&Turn) -> bool) -> bool {
        let turns = self.best.turns.iter().filter(|turn| is_kept(turn)).copied().collect();
        self.take(Schedule { turns, ..self.best.clone() })
    }

    /// Looks for the earliest moment behind which nothing needs to be done.
    fn cut_behind(&mut self) {
        let mut times: Vec<u64> = self.best.turns.iter().map(|turn| turn.at_ns).collect();
        times.sort_unstable();
        let (mut too_few, mut enough) = (0, times.len());
        while too_few + 1 < enough && !self.is_stopped {
            let middle = too_few.midpoint(enough);
            let end_ns = times[middle];
            if self.keep(|turn| turn.at_ns < end_ns) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
    }

    /// Lets faults end soon after the last turn: some begin or end by themselves only later.
    fn end_faults_early(&mut self, drawn_ns: u64) {
        let Some(last_ns) = self.best.turns.iter().map(|turn| turn.at_ns).max() else { return };
        let now_ns = self.best.safety_ns.unwrap_or(drawn_ns);
        for more_ns in [MS, 2 * SECOND, 10 * SECOND] {
            let safety_ns = last_ns + more_ns;
            if safety_ns >= now_ns || self.take(Schedule { safety_ns: Some(safety_ns), ..self.best.clone() })
            {
                return;
            }
        }
    }

    /// Brings turns closer together where nothing is done for long: all gaps at once if the violation stays, and else each by itself.
    fn close_gaps(&mut self) {
        for most_ns in [100 * MS, SECOND, 5 * SECOND] {
            let times: BTreeSet<u64> = self.best.turns.iter().map(|turn| turn.at_ns).collect();
            let times: Vec<u64> = times.into_iter().collect();
            let begins = core::iter::once(0).chain(times.iter().copied());
            let gaps: Vec<Gap> = begins
                .zip(&times)
                .filter(|(begin_ns, end_ns)| **end_ns - begin_ns > most_ns)
                .map(|(begin_ns, end_ns)| Gap { end_ns: *end_ns, less_ns: end_ns - begin_ns - most_ns })
                .collect();
            if gaps.is_empty() || self.take(without_gaps(&self.best, &gaps)) {
                return;
            }
            if gaps.len() <= GAPS_MAX {
                // The last first, so that the others stay where they are.
                for gap in gaps.iter().rev() {
                    self.take(without_gaps(&self.best, core::slice::from_ref(gap)));
                }
            }
        }
    }

    /// Leaves out all turns of a kind.
    fn leave_out_kinds(&mut self) {
        let kinds: BTreeSet<By> = self.best.turns.iter().map(|turn| turn.by).collect();
        for by in kinds {
            self.keep(|turn| turn.by != by);
        }
    }

    /// Leaves out turns of a kind: halves of them, then quarters, down to each one. Ends when none of them can be left out by itself.
    fn leave_out_each(&mut self, is_of: fn(&Turn) -> bool) {
        let count = |search: &Self| search.best.turns.iter().filter(|turn| is_of(turn)).count();
        let mut size = count(self).div_ceil(2);
        while size > 0 && !self.is_stopped {
            let before = count(self);
            let turns: Vec<Turn> = self.best.turns.iter().filter(|turn| is_of(turn)).copied().collect();
            // The last first: what comes after is often what was only met by chance.
            for chunk in turns.rchunks(size) {
                let left_out: BTreeSet<Turn> = chunk.iter().copied().collect();
                self.keep(|turn| !left_out.contains(turn));
            }
            size = match size {
                1 if count(self) == before => 0,
                _ => (size / 2).max(1).min(count(self)),
            };
        }
    }

    /// Makes the cluster simpler, one property after the other.
    fn simplify(&mut self, shape: &Shape) {
        for volume in 0..shape.volumes.len() {
            if self.best.changes.without_volumes.len() + 1 < shape.volumes.len() {
                self.change(|schedule| _ = schedule.changes.without_volumes.insert(volume));
            }
        }
        let is_made = |(at, _): &(usize, &VolumePlan)| !self.best.changes.without_volumes.contains(at);
        let made = shape.volumes.iter().enumerate().filter(is_made);
        let widest = made.map(|(_, plan)| u32::from(plan.layout.width())).max().unwrap_or(1);
        let bricks = self.best.changes.bricks.unwrap_or(shape.bricks);
        for fewer in widest..bricks {
            if self.change(|schedule| schedule.changes.bricks = Some(fewer)) {
                break;
            }
        }
        for fewer in 1..self.best.changes.gateways.unwrap_or(shape.gateways) {
            if self.change(|schedule| schedule.changes.gateways = Some(fewer)) {
                break;
            }
        }
        for fewer in 0..self.best.changes.clients.unwrap_or(shape.load.clients) {
            if self.change(|schedule| schedule.changes.clients = Some(fewer)) {
                break;
            }
        }
        if shape.disks.per_brick > 1 {
            self.change(|schedule| schedule.changes.one_disk = true);
        }
        if shape.clocks.skew_ppm > 0 || shape.clocks.offset_ns > 0 {
            self.change(|schedule| schedule.changes.exact_clocks = true);
        }
        if shape.intrigues.lies.is_some() {
            self.change(|schedule| schedule.changes.no_lies = true);
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Schedule)) -> bool {
        let mut schedule = self.best.clone();
        change(&mut schedule);
        self.take(schedule)
    }
}
