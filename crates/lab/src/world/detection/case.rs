//! One cluster: what is drawn for it, and how the detector does.

use super::kinds::{Device, Disk, Gradual, Healthy, Ill, Stops, Sudden, Transient, Trap, What, assumptions};
use crate::experiment::{Job, Sample};
use crate::parameters::Parameters;
use crate::world::{drive, layout as layout_of, network, spread};
use base::{BrickId, Time};
use core::time::Duration;
use model::Draw;
use serde_json::json;
use sim::timed::standings::{Change, Standing};
use sim::timed::{
    self, Arrivals, Background, BrickSpec, Cluster, Conditions, Incident, Length, Lived, Locality, Mix,
    Scheme, Sizes, Victim, Workload, WriteRelease,
};
use std::collections::BTreeSet;

/// By how many milliseconds accesses take longer where all drives are slow: none of them is saturated by that.
const ALL_SLOW_MS: f64 = 5.0;
const BRICKS: u32 = 12;
const GATEWAYS: u32 = 2;
const GROUPS_A_BRICK: u32 = 16;
/// Extents of the volume.
const EXTENTS: u64 = 500;
/// Blocks of a request.
const BLOCKS: u32 = 2;

/// The rule on the page of bricks: a write is late from 8 ms and three times the median of the others on, and was late for a quarter of its time at least. So a write
/// of this brick takes four thirds of that.
const LATE_SHARE: f64 = 4.0 / 3.0;
const LATE_MS: f64 = 8.0;
const LATE_TIMES: f64 = 3.0;
/// The same rule wants three half seconds in a row. What was slow for so long has them for certain, wherever half seconds begin, and time for the reports.
pub(super) const COVERED: Duration = Duration::from_secs(3);
/// A brick that stands still for so long is as good as dead, says the same page.
const STANDS_STILL: Duration = Duration::from_secs(2);

/// One cluster, to which one thing happens.
pub(super) struct Case {
    pub(super) parameters: Parameters,
    pub(super) end: Duration,
    pub(super) device: Device,
    pub(super) layout: &'static str,
    pub(super) what: What,
    pub(super) nth: usize,
}

/// What is drawn for a cluster.
#[derive(Debug)]
struct Course {
    /// The brick to which it happens.
    brick: u32,
    /// When it begins.
    onset: Duration,
    /// From when on accesses take so many milliseconds longer.
    added_ms: Vec<(Duration, f64)>,
    /// From when until when the brick stands still.
    stops: Vec<[Duration; 2]>,
}

impl Job for Case {
    fn describe(&self) -> serde_json::Value {
        let assumed: Vec<String> =
            assumptions().map(|name| format!("{name}={}", self.parameters.get(name).value)).collect();
        json!({
            "job": "detection",
            "device": self.device.name(),
            "layout": self.layout,
            "what": format!("{:?}", self.what),
            "nth": self.nth,
            "seconds": self.end.as_secs(),
            "assumed": assumed,
        })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        // Each case has draws of its own: one more drive does not change the others.
        let mut draw =
            named(seed, &format!("{:?} {:?} {} {}", self.device, self.what, self.layout, self.nth));
        let course = self.draw(&mut draw, seed);
        let (cluster, conditions, workload) =
            (self.cluster(&course), self.conditions(&course), self.workload());
        let length = Length { warmup: 0, requests: u64::MAX };
        let lived = timed::live_through(&cluster, workload, length, &conditions, draw.bits());
        Ok(self.judge(&course, &lived.map_err(|error| error.to_string())?))
    }
}

impl Case {
    /// A time between two assumptions, logarithms equally likely.
    fn between(&self, draw: &mut Draw, [least, most]: [&str; 2]) -> Duration {
        Duration::from_secs_f64(drawn(draw, [least, most].map(|name| self.parameters.number(name))))
    }

    fn draw(&self, draw: &mut Draw, seed: u64) -> Course {
        let (brick, onset) =
            (draw.below(BRICKS.into()) as u32, Duration::from_millis(draw.between(10_000, 15_000)));
        let mut course = Course { brick, onset, added_ms: Vec::new(), stops: Vec::new() };
        let well = ["detection_well_least_s", "detection_well_most_s"];
        match self.what {
            Ill(symptom, ms) => {
                let severity = self.severity(seed, ms);
                match symptom {
                    Sudden => course.added_ms.push((onset, severity)),
                    Gradual => course.added_ms = self.rising(onset, severity),
                    Transient => {
                        let slow = ["detection_slow_least_s", "detection_slow_most_s"];
                        let mut at = onset;
                        while at < self.end {
                            let until = at + self.between(draw, slow);
                            course.added_ms.extend([(at, severity), (until, 0.0)]);
                            at = until + self.between(draw, well);
                        }
                    }
                    Stops => self.stop(draw, &mut course, |draw| drawn(draw, ms), well),
                }
            }
            Healthy(Trap::Pauses) => {
                let most_ms = self.parameters.number("detection_pause_most_ms");
                self.stop(draw, &mut course, |draw| drawn(draw, [most_ms / 5.0, most_ms]), well);
            }
            Healthy(_) => {}
        }
        course
    }

    /// One of those that drives of its kind have: each lies a golden section of the range, in logarithms, from the one before. So they spread over it evenly, however few they are.
    fn severity(&self, seed: u64, [least, most]: [f64; 2]) -> f64 {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let first = part(&mut named(seed, &format!("{:?} {:?}", self.device, self.what)));
        let part = first + GOLDEN * self.nth as f64;
        least * libm::pow(most / least, part - libm::floor(part))
    }

    /// Ever slower, by a step each second.
    fn rising(&self, onset: Duration, severity: f64) -> Vec<(Duration, f64)> {
        let steps = self.parameters.count("detection_gradual_s");
        let step = |nth: u64| (onset + Duration::from_secs(nth - 1), severity * nth as f64 / steps as f64);
        (1..=steps).map(step).collect()
    }

    /// The brick stands still again and again, each time for so many milliseconds.
    fn stop(&self, draw: &mut Draw, course: &mut Course, ms: impl Fn(&mut Draw) -> f64, well: [&str; 2]) {
        let mut at = course.onset;
        loop {
            let until = at + Duration::from_secs_f64(ms(draw) / 1e3);
            if until >= self.end {
                return;
            }
            course.stops.push([at, until]);
            at = until + self.between(draw, well);
        }
    }

    fn cluster(&self, course: &Course) -> Cluster {
        let [model, other, _] = self.device.assumptions().map(|name| name.to_owned());
        let mut brick = BrickSpec { writes_through: true, ..BrickSpec::new(drive(&self.parameters, &model)) };
        match self.what {
            // Elsewhere a write is acknowledged when the disk has it, as a real brick's is when it is in the journal on that disk. Such a shelf never runs out of
            // room, so under overload it has a journal in memory.
            Healthy(Trap::Overload) => (brick.writes_through, brick.journal_bytes) = (false, 8 << 20),
            // The world lets nobody share a disk whose head its brick sees.
            Healthy(Trap::Scan) if self.device == Disk => brick.run_bytes = Some(1 << 20),
            _ => {}
        }
        let usual = Scheme::named("usual").expect("it is a read policy");
        let mut cluster = Cluster::uniform(brick, BRICKS, BRICKS, usual);
        (cluster.gateways, cluster.network) = (GATEWAYS, network(&self.parameters));
        cluster.write_release = WriteRelease::Nvram;
        let speed = |(at, added): &(Duration, f64)| (Time::ZERO + *at, self.percent(*added));
        let ill = &mut cluster.bricks[course.brick as usize];
        ill.speed = course.added_ms.iter().map(speed).collect();
        match self.what {
            Healthy(Trap::Scan) => {
                let (per_second, blocks) = self.device.scan();
                let mix = Mix { reads: 1.0, sizes: Sizes::Blocks(blocks), locality: Locality::Uniform };
                ill.background = Some(Background { per_second, arrivals: Arrivals::Regular, mix });
            }
            Healthy(Trap::Models) => {
                let slower = drive(&self.parameters, &other);
                let is_slower = |at: u32| {
                    if self.nth.is_multiple_of(2) { at == course.brick } else { at.is_multiple_of(2) }
                };
                (0..BRICKS)
                    .filter(|at| is_slower(*at))
                    .for_each(|at| cluster.bricks[at as usize].drive = slower.clone());
            }
            Healthy(Trap::AllSlow) => {
                let slow = vec![(Time::ZERO + course.onset, self.percent(ALL_SLOW_MS))];
                cluster.bricks.iter_mut().for_each(|brick| brick.speed = slow.clone());
            }
            _ => {}
        }
        cluster
    }

    /// How many percent of its time an access takes that takes so much longer.
    fn percent(&self, added_ms: f64) -> u32 {
        let own_ms = self.device.access_ms();
        (100.0 * (own_ms + added_ms) / own_ms).min(100_000.0) as u32
    }

    fn conditions(&self, course: &Course) -> Conditions {
        let layout = layout_of(self.layout);
        let stands = |[from, until]: &[Duration; 2]| {
            let happens = |incident| Victim::Brick(course.brick, incident);
            [(*from, happens(Incident::Stopped)), (*until, happens(Incident::Continued))]
        };
        Conditions {
            layout: Some(layout),
            spread: Some(spread(layout, BRICKS, GROUPS_A_BRICK, EXTENTS)),
            incidents: course.stops.iter().flat_map(stands).collect(),
            end: Some(self.end),
            watches_bricks: true,
            ..Conditions::default()
        }
    }

    fn workload(&self) -> Workload {
        let reads = self.parameters.number("detection_reads");
        let mix = Mix { reads, sizes: Sizes::Blocks(BLOCKS), locality: Locality::Uniform };
        let per_second = self.parameters.number(self.device.assumptions()[2]);
        let arrivals = match self.what {
            Healthy(Trap::Overload) => {
                let outstanding = self.parameters.count("detection_overload_outstanding") as u32;
                return Workload::Closed { outstanding, mix: Mix { reads: 0.0, ..mix } };
            }
            Healthy(Trap::Bursts) => Arrivals::Bursts { factor: 10.0, period_ns: 1_000_000_000 },
            _ => Arrivals::Poisson,
        };
        Workload::Open { per_second, arrivals, mix }
    }

    fn judge(&self, course: &Course, lived: &Lived) -> Sample {
        let Lived { measured, standings, .. } = lived;
        let is_ill = |brick: BrickId| matches!(self.what, Ill(..)) && brick.0 == course.brick + 1;
        let mut changes = standings.changes.iter();
        let found = changes.find(|change| {
            is_ill(change.brick) && change.after >= course.onset && is_noticed(&change.standing)
        });
        let is_right = |change: &&Change| is_ill(change.brick) && change.after >= course.onset;
        let alarms = standings.changes.iter().filter(|change| !is_right(change));
        let alarms: Vec<&Change> = alarms.filter(|change| change.standing.slow.is_some()).collect();
        let named = standings.named.iter().filter(|(brick, _)| !is_ill(**brick));
        let leaves = |change: &&Change| change.standing.slow.as_ref().is_some_and(|slow| slow.leaves);
        let left: BTreeSet<BrickId> =
            alarms.iter().copied().filter(leaves).map(|change| change.brick).collect();
        let accused = alarms.iter().map(|change| change.brick);
        let accused: BTreeSet<BrickId> = accused.chain(named.clone().map(|(brick, _)| *brick)).collect();
        let others = measured.bricks.iter().enumerate().filter(|(at, _)| *at != course.brick as usize);
        let others_ms = others.map(|(_, brick)| brick.service_ms).sum::<f64>() / f64::from(BRICKS - 1);
        let covered = self.is_covered(course, others_ms);
        let worst_ms = course.added_ms.iter().map(|(_, ms)| *ms).fold(0.0, f64::max);
        let mut values = vec![
            ("added_ms", worst_ms),
            ("found", f64::from(u8::from(found.is_some()))),
            ("covered", f64::from(u8::from(covered))),
            ("covered_found", f64::from(u8::from(covered && found.is_some()))),
            ("false_alarms", accused.len() as f64),
            ("false_leaves", left.len() as f64),
            ("brick_hours", self.end.as_secs_f64() / 3600.0 * f64::from(BRICKS)),
        ];
        let seconds = |change: &Change| change.after.saturating_sub(course.onset).as_secs_f64();
        values.extend(found.map(|change| ("found_after_s", seconds(change))));
        let happens = BrickId(course.brick + 1);
        let told = |change: &&Change| {
            let Change { after, brick, standing } = change;
            let whose = if *brick == happens { ", the brick of which the row tells" } else { "" };
            format!("False alarm at {:.1} s: {brick}{whose}, was {standing}.", after.as_secs_f64())
        };
        let mut notes: Vec<String> = alarms.iter().map(told).collect();
        notes.extend(named.map(|(_, warning)| format!("False alarm: {warning}.")));
        if covered && found.is_none() {
            notes.push(format!("Missed though covered: {course:?}; other drives took {others_ms:.1} ms."));
        }
        Sample {
            values: values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            simulated_ns: (measured.simulated_s * 1e9) as u64,
            events: measured.events,
            notes,
            ..Sample::default()
        }
    }

    /// Whether the rule on the page of bricks says that this is found, beside drives that take so long for an access.
    fn is_covered(&self, course: &Course, others_ms: f64) -> bool {
        let least_ms = LATE_SHARE * LATE_MS.max(LATE_TIMES * others_ms);
        let ends = course.added_ms.iter().skip(1).map(|(at, _)| *at).chain([self.end]);
        let mut lasted = Duration::ZERO;
        let is_slow = course.added_ms.iter().zip(ends).any(|((at, added), end)| {
            let own_ms = self.device.access_ms();
            let takes_ms = own_ms * f64::from(self.percent(*added)) / 100.0;
            lasted = if takes_ms >= least_ms {
                lasted + end.min(self.end).saturating_sub(*at)
            } else {
                Duration::ZERO
            };
            lasted >= COVERED
        });
        is_slow
            || (matches!(self.what, Ill(..))
                && course.stops.iter().any(|[from, until]| *until - *from >= STANDS_STILL))
    }
}

/// All draws of what has that name.
fn named(seed: u64, name: &str) -> Draw {
    Draw::new(seed ^ (u64::from(crc32c::crc32c(name.as_bytes())) << 32))
}

/// A number from 0 to 1.
fn part(draw: &mut Draw) -> f64 {
    draw.below(1 << 32) as f64 / (1u64 << 32) as f64
}

/// A number between two, logarithms equally likely.
fn drawn(draw: &mut Draw, [least, most]: [f64; 2]) -> f64 {
    least * libm::pow(most / least, part(draw))
}

fn is_noticed(standing: &Standing) -> bool {
    standing.slow.is_some() || standing.is_silent || standing.left_out_of > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::detection::kinds::Flash;

    fn case(device: Device, what: What) -> Case {
        let (parameters, end) = (crate::papers::parameters("world"), Duration::from_secs(60));
        Case { parameters, end, device, layout: "raid1x3", what, nth: 0 }
    }

    fn course(added_ms: &[(u64, f64)], stops: &[[u64; 2]]) -> Course {
        let s = Duration::from_secs;
        let added_ms = added_ms.iter().map(|(at, ms)| (s(*at), *ms)).collect();
        let stops = stops.iter().map(|stop| stop.map(s)).collect();
        Course { brick: 0, onset: s(10), added_ms, stops }
    }

    #[test]
    fn what_the_rule_covers_is_slow_enough_for_long_enough() {
        let flash = case(Flash, Ill(Sudden, [1.0, 10.0]));
        assert!(flash.is_covered(&course(&[(10, 11.0)], &[]), 0.1));
        assert!(!flash.is_covered(&course(&[(10, 10.0)], &[]), 0.1));
        assert!(!flash.is_covered(&course(&[(58, 11.0)], &[]), 0.1));
        assert!(!flash.is_covered(&course(&[(10, 11.0), (12, 0.0), (20, 11.0), (22, 0.0)], &[]), 0.1));
        assert!(flash.is_covered(&course(&[(10, 11.0), (12, 12.0), (13, 0.0)], &[]), 0.1));
        let disk = case(Disk, Ill(Sudden, [10.0, 100.0]));
        assert!(disk.is_covered(&course(&[(10, 22.0)], &[]), 7.0));
        assert!(!disk.is_covered(&course(&[(10, 20.0)], &[]), 7.0));
    }

    #[test]
    fn only_long_stops_of_ill_drives_are_covered() {
        let stops = case(Disk, Ill(Stops, [1000.0, 5000.0]));
        assert!(stops.is_covered(&course(&[], &[[10, 11], [20, 22]]), 7.0));
        assert!(!stops.is_covered(&course(&[], &[[10, 11]]), 7.0));
        assert!(!case(Disk, Healthy(Trap::Pauses)).is_covered(&course(&[], &[[10, 12]]), 7.0));
    }

    #[test]
    fn drives_fall_ill_after_ten_seconds_and_recover_as_they_should() {
        for symptom in crate::world::detection::kinds::SYMPTOMS {
            let case = case(Disk, Ill(symptom, [10.0, 100.0]));
            let course = case.draw(&mut Draw::new(1), 1);
            assert!((10..=15).contains(&course.onset.as_secs()), "{course:?}");
            assert!(course.added_ms.is_sorted_by_key(|(at, _)| *at), "{course:?}");
            assert_eq!(course.added_ms.iter().any(|(_, ms)| *ms == 0.0), symptom == Transient, "{course:?}");
            assert_eq!(course.stops.is_empty(), symptom != Stops, "{course:?}");
        }
    }
}
