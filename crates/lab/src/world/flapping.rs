//! Bricks that are ill again and again, or one that is slow beside one that is dead: what it costs, and whether it settles.

use super::{drive, layout as layout_of, network, sample, spread};
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart, Series, Spot};
use crate::system::{Load, SeenByAll, System};
use base::Time;
use core::time::Duration;
use serde_json::json;
use sim::timed::standings::{Change, Standing};
use sim::timed::{
    self, Arrivals, BrickSpec, Cluster, Conditions, Incident, Length, Lived, Locality, Mix, Scheme, Sizes,
    Victim, WriteRelease,
};
use std::collections::BTreeMap;

pub(super) struct Flapping;

const LAYOUTS: [&str; 3] = ["raid1x3", "raid5-4+1", "rs-4+2"];
const BRICKS: u32 = 12;
/// The brick that flaps or is slow, and the one that is killed.
const ILL: u32 = 1;
const KILLED: u32 = 5;
const GROUPS_A_BRICK: u32 = 16;
/// Extents of the volume.
const EXTENTS: u64 = 500;
const WINDOW: Duration = Duration::from_secs(1);
/// In the load's first seconds nothing happens.
const BEGINS: Duration = Duration::from_secs(20);

/// What ails the bricks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Illness {
    None,
    /// It stands still for so many milliseconds of every so many.
    Stops(u64, u64),
    /// Its drive takes so many times as long in every other minute.
    SlowEveryOtherMinute(u32),
    /// Another brick is killed, and stays away; its own drive takes so many times as long all the time.
    BesideADeadOne(u32),
}

use Illness::{BesideADeadOne, SlowEveryOtherMinute, Stops};

const ILLNESSES: [Illness; 6] = [
    Illness::None,
    Stops(200, 400),
    Stops(2000, 60_000),
    SlowEveryOtherMinute(10),
    BesideADeadOne(1),
    BesideADeadOne(3),
];

impl Illness {
    fn name(self) -> String {
        match self {
            Illness::None => "all well".to_owned(),
            Stops(stopped, every) => {
                let seconds = |ms: u64| ms as f64 / 1000.0;
                format!("stops {} s in every {} s", seconds(stopped), seconds(every))
            }
            SlowEveryOtherMinute(times) => format!("{times} times as slow every other minute"),
            BesideADeadOne(1) => "one dead".to_owned(),
            BesideADeadOne(times) => format!("one dead, one {times} times as slow"),
        }
    }

    fn is_flapping(self) -> bool {
        matches!(self, Stops(..) | SlowEveryOtherMinute(_))
    }

    fn incidents(self, end: Duration) -> Vec<(Duration, Victim)> {
        match self {
            Stops(stopped, every) => (0..)
                .map(|nth| BEGINS + Duration::from_millis(every) * nth)
                .take_while(|at| *at < end)
                .flat_map(|at| {
                    let goes_on = at + Duration::from_millis(stopped);
                    [
                        (at, Victim::Brick(ILL, Incident::Stopped)),
                        (goes_on, Victim::Brick(ILL, Incident::Continued)),
                    ]
                })
                .collect(),
            BesideADeadOne(_) => vec![(BEGINS, Victim::Brick(KILLED, Incident::Killed))],
            Illness::None | SlowEveryOtherMinute(_) => Vec::new(),
        }
    }

    /// From when on its drive takes how many percent of its time.
    fn speed(self, end: Duration) -> Vec<(Time, u32)> {
        match self {
            BesideADeadOne(times) => vec![(Time::ZERO, 100 * times)],
            SlowEveryOtherMinute(times) => (0..)
                .map(|minute: u32| (BEGINS + Duration::from_secs(60) * minute, minute))
                .take_while(|(at, _)| *at < end)
                .map(|(at, minute)| (Time::ZERO + at, if minute % 2 == 0 { 100 * times } else { 100 }))
                .collect(),
            Illness::None | Stops(..) => Vec::new(),
        }
    }
}

const FIGURES: &[&str] = &[
    "p50_ms",
    "p99_ms",
    "write_p99_ms",
    "longest_ms",
    "times_left_out",
    "out_share",
    "bytes_a_request",
    "climbs",
];

impl Experiment for Flapping {
    fn id(&self) -> &str {
        "world.flapping"
    }

    fn paper(&self) -> &str {
        "world"
    }

    fn title(&self) -> &str {
        "Bricks that are ill again and again, and one that is slow beside one that is dead"
    }

    fn assumptions(&self) -> Vec<&str> {
        vec![
            "flapping_drive",
            "flapping_seconds",
            "flapping_per_second",
            "flapping_reads",
            "network_one_way_us",
        ]
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let mut points = Vec::new();
        for layout in LAYOUTS {
            for illness in ILLNESSES {
                let job = Ill(system(parameters, scale, layout, illness));
                points.push(Point::new(job).with("layout", layout).with("illness", illness.name()));
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(FIGURES)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims = Vec::new();
        for layout in LAYOUTS {
            let of = |illness: Illness, figure: &str| of(table, layout, illness, figure);
            let mut claim = |illness: Illness, what: &str, measured, band| {
                claims.push(shape(format!("{layout}, {}: {what}", illness.name()), measured, band));
            };
            for illness in ILLNESSES {
                claim(
                    illness,
                    "p99 in the last third over the second third",
                    of(illness, "climbs"),
                    [0.0, 1.5],
                );
            }
            claim(
                Illness::None,
                "times a brick is left out",
                of(Illness::None, "times_left_out"),
                [0.0, 0.0],
            );
            for illness in ILLNESSES.into_iter().filter(|illness| illness.is_flapping()) {
                // Out for 10 s, 20 s, 40 s and so on, up to 10 min: of an hour that leaves room for eleven.
                claim(illness, "times it is left out", of(illness, "times_left_out"), [0.0, 11.0]);
                // No group gives up its last redundancy for speed.
                if layout_of(layout).tolerates() > 1 {
                    let over = of(illness, "p99_ms") / of(Illness::None, "p99_ms");
                    claim(illness, "p99 over all well", over, [0.0, 1.5]);
                }
            }
        }
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let chart = |figure: &str, id: &str, title: &str, axis: Axis| {
            let series = LAYOUTS.map(|layout| {
                let spot = |(at, illness): (usize, Illness)| Spot {
                    x: at as f64,
                    y: of(table, layout, illness, figure),
                    ci95: None,
                };
                let spots = ILLNESSES.into_iter().enumerate().map(spot).collect();
                Series { name: layout.to_owned(), spots }
            });
            Chart::bars(id, title, axis, ILLNESSES.map(Illness::name).to_vec(), series.to_vec())
        };
        vec![
            chart(
                "p99_ms",
                "world.flapping.p99",
                "99th percentile of response times, by what ails bricks",
                Axis::new("p99 of all requests", "ms"),
            ),
            chart(
                "longest_ms",
                "world.flapping.longest",
                "Longest request of the hour, by what ails bricks",
                Axis::new("longest request", "ms"),
            ),
        ]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "What ails bricks begins 20 s after the load. `times_left_out` counts how often a brick was left out of groups, and `out_share` the share of the time from then on in which \
             the brick that flaps or is slow was, or caught up. `bytes_a_request` are all bytes of data that crossed the network, those of catching up too, over the requests answered. \
             `climbs` is the worst second's p99 in the last third of the run over that in the second third."
                .to_owned(),
        ]
    }
}

/// A cluster and its load, for as long as the conditions say.
struct Ill(System);

impl Job for Ill {
    fn describe(&self) -> serde_json::Value {
        json!({ "job": "flapping", "system": self.0.describe() })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let System { cluster, load, length, conditions, .. } = &self.0;
        let workload = load.open(cluster.groups.0.len(), seed, &SeenByAll::default())?;
        let lived = timed::live_through(cluster, workload, *length, conditions, seed);
        let lived = lived.map_err(|error| error.to_string())?;
        let Lived { measured, windows, standings, .. } = &lived;
        let end = conditions.end.unwrap_or_default();
        let worst = |from: f64, to: f64| {
            let part = windows.iter().filter(|window| window.from_s >= from && window.from_s < to);
            part.map(|window| window.p99_ms).fold(0.0, f64::max)
        };
        let third = end.as_secs_f64() / 3.0;
        let answered = &measured.answered;
        let figures = [
            ("p50_ms", answered.response.p50_ms),
            ("p99_ms", answered.response.p99_ms),
            ("write_p99_ms", answered.write_response.p99_ms),
            ("longest_ms", answered.response.max_ms),
            ("times_left_out", f64::from(standings.left)),
            ("out_share", out(&standings.changes, end).as_secs_f64() / (end - BEGINS).as_secs_f64()),
            ("bytes_a_request", measured.traffic.bytes[0] as f64 / answered.requests as f64),
            ("climbs", worst(2.0 * third, 3.0 * third) / worst(third, 2.0 * third)),
        ];
        let mut whys: BTreeMap<String, u32> = BTreeMap::new();
        for change in standings.changes.iter().filter(|change| is_away(&change.standing)) {
            *whys.entry(change.brick.to_string()).or_default() += 1;
        }
        let notes = whys.into_iter().map(|(brick, times)| match times {
            1 => format!("The state of {brick} changed once."),
            _ => format!("The state of {brick} changed {times} times."),
        });
        Ok(sample(&lived, &figures, notes))
    }
}

fn is_away(standing: &Standing) -> bool {
    standing.left_out_of > 0 || standing.catches_up_in > 0
}

/// For how long the ill brick was left out of groups, or caught up.
fn out(changes: &[Change], end: Duration) -> Duration {
    let ill = changes.iter().filter(|change| change.brick.0 == ILL + 1);
    let mut since = None;
    let mut out = Duration::ZERO;
    for Change { after, standing, .. } in ill {
        match (since, is_away(standing)) {
            (None, true) => since = Some(*after),
            (Some(from), false) => {
                out += after.saturating_sub(from);
                since = None;
            }
            _ => {}
        }
    }
    out + since.map_or(Duration::ZERO, |from| end.saturating_sub(from))
}

fn of(table: &Table, layout: &str, illness: Illness, figure: &str) -> f64 {
    let name = illness.name();
    table.number(&[("layout", Cell::from(layout)), ("illness", Cell::from(name.as_str()))], figure)
}

fn system(parameters: &Parameters, scale: Scale, layout: &str, illness: Illness) -> System {
    let layout = layout_of(layout);
    let drive = drive(parameters, "flapping_drive");
    let drives = drive.name().to_owned();
    let policy = Scheme::named("usual").expect("it is a read policy");
    let mut cluster = Cluster::uniform(BrickSpec::new(drive), BRICKS, BRICKS, policy);
    cluster.network = network(parameters);
    cluster.write_release = WriteRelease::Nvram;
    let end = Duration::from_secs(scale.of(parameters.count("flapping_seconds")));
    cluster.bricks[ILL as usize].speed = illness.speed(end);
    let conditions = Conditions {
        layout: Some(layout),
        spread: Some(spread(layout, BRICKS, GROUPS_A_BRICK, EXTENTS)),
        incidents: illness.incidents(end),
        window: WINDOW,
        end: Some(end),
        watches_bricks: true,
        ..Conditions::default()
    };
    let mix = Mix {
        reads: parameters.number("flapping_reads"),
        sizes: Sizes::Blocks(2),
        locality: Locality::Uniform,
    };
    let per_second = parameters.number("flapping_per_second");
    let load = Load::Open { per_second, arrivals: Arrivals::Poisson, mix };
    System { cluster, load, length: Length { warmup: 0, requests: u64::MAX }, conditions, drives }
}
