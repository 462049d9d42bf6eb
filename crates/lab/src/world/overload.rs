//! More writes than the disks take, on equal bricks and beside one that is slower: who keeps its place, and how evenly writes go on.

use super::{drive, layout, network, sample, spread};
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
use sim::timed::{
    self, BrickSpec, CACHED, Cluster, Conditions, Length, Lived, Locality, Mix, Scheme, Sizes, WriteRelease,
};

pub(super) struct Overload;

/// A layout, and how many bricks there are.
const CASES: [(&str, u32); 4] = [("raid1x3", 3), ("raid1x3", 6), ("raid5-4+1", 5), ("rs-4+2", 6)];
/// How many times what saturates the disks.
const TIMES: [u32; 4] = [1, 2, 5, 10];
/// One brick's drive takes so many times as long.
const SLOWER: [u32; 4] = [1, 2, 3, 10];
/// Which one that is.
const SLOWER_BRICK: usize = 1;
/// In how many groups each brick is, where there are more bricks than a group has.
const GROUPS_A_BRICK: u32 = 16;
/// Extents of a volume that lies on several groups: most of a brick's disk.
const EXTENTS: u64 = 2000;
const WINDOW: Duration = Duration::from_secs(1);

const FIGURES: &[&str] = &[
    "writes_per_second",
    "worst_second",
    "p50_ms",
    "p99_ms",
    "longest_ms",
    "times_left_out",
    "less_redundant",
    "named",
];

impl Experiment for Overload {
    fn id(&self) -> &str {
        "world.overload"
    }

    fn paper(&self) -> &str {
        "world"
    }

    fn title(&self) -> &str {
        "More writes than the disks take: equal bricks, and one that is slower"
    }

    fn assumptions(&self) -> Vec<&str> {
        vec![
            "overload_drive",
            "overload_seconds",
            "overload_outstanding",
            "overload_journal_mib",
            "overload_cached",
            "network_one_way_us",
        ]
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let mut points = Vec::new();
        for at in CASES {
            for slower in SLOWER {
                for times in TIMES {
                    let load = Overloaded(system(parameters, scale, at, [slower, times]));
                    let point = Point::new(load).with("case", case(at));
                    points.push(point.with("slower", f64::from(slower)).with("times", f64::from(times)));
                }
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(FIGURES)
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims = Vec::new();
        for at in CASES {
            let each = |slower: u32, figure: &str| TIMES.map(|times| of(table, at, [slower, times], figure));
            let most = |slower: u32, figure: &str| each(slower, figure).into_iter().fold(0.0, f64::max);
            let least =
                |slower: u32, figure: &str| each(slower, figure).into_iter().fold(f64::INFINITY, f64::min);
            let mut claim = |what: &str, measured, band| {
                claims.push(shape(format!("{}: {what}", case(at)), measured, band));
            };
            claim("all equal, times a brick is left out", most(1, "times_left_out"), [0.0, 0.0]);
            claim("all equal, less redundant in the end", most(1, "less_redundant"), [0.0, 0.0]);
            let at_most_load = of(table, at, [1, TIMES[TIMES.len() - 1]], "writes_per_second");
            let share = at_most_load / most(1, "writes_per_second");
            claim("all equal, writes a second at 10 times over the best", share, [0.9, 1.0]);
            let worst = each(1, "worst_second").into_iter().zip(each(1, "writes_per_second"));
            let worst = worst.map(|(worst, mean)| worst / mean).fold(f64::INFINITY, f64::min);
            claim("all equal, the worst second over the mean", worst, [0.7, 1.0]);
            for slower in [2, 3] {
                let left = most(slower, "times_left_out");
                claim(&format!("one {slower} times as slow, times it is left out"), left, [0.0, 0.0]);
                claim(&format!("one {slower} times as slow, is named"), least(slower, "named"), [1.0, 1.0]);
            }
            claim("one 10 times as slow, is named", least(10, "named"), [1.0, 1.0]);
            // No group is brought to where one failure more loses data.
            let (left, band) = match layout(at.0).tolerates() {
                1 => (most(10, "times_left_out"), [0.0, 0.0]),
                _ => (least(10, "times_left_out"), [1.0, 100.0]),
            };
            claim("one 10 times as slow, times it is left out", left, band);
            // Its own pace is what writes have if it stays.
            let beside = each(10, "writes_per_second").into_iter().zip(each(1, "writes_per_second"));
            let least_share = beside.map(|(beside, equal)| beside / equal).fold(f64::INFINITY, f64::min);
            claim(
                "one 10 times as slow, writes a second over those of equal bricks",
                least_share,
                [0.1, 1.0],
            );
        }
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let series = CASES.map(|at| {
            let spot = |times: u32| {
                let y = of(table, at, [1, times], "writes_per_second");
                Spot { x: f64::from(times), y, ci95: None }
            };
            Series { name: case(at), spots: TIMES.map(spot).to_vec() }
        });
        vec![Chart::lines(
            "world.overload.throughput",
            "Writes answered a second by load, all bricks equal",
            Axis::new("load, times what saturates the disks", ""),
            Axis::new("writes answered", "1/s"),
            series.to_vec(),
        )]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "So many random writes of 4 KiB are outstanding all the time as saturate the disks, and 2, 5 and 10 times as many. \
             Writes a second and the worst second are without the first third, in which the journals fill. A brick is left out \
             when the directory's status says so, which is looked at ten times a second; it is named when a warning says that its disks are \
             saturated and how much slower it is than its peers."
                .to_owned(),
        ]
    }
}

/// A cluster and its load, for as long as the conditions say.
struct Overloaded(System);

impl Job for Overloaded {
    fn describe(&self) -> serde_json::Value {
        json!({ "job": "overload", "system": self.0.describe() })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let System { cluster, load, length, conditions, .. } = &self.0;
        let workload = load.open(cluster.groups.0.len(), seed, &SeenByAll::default())?;
        let lived = timed::live_through(cluster, workload, *length, conditions, seed);
        let lived = lived.map_err(|error| error.to_string())?;
        let Lived { measured, windows, standings, .. } = &lived;
        let end = conditions.end.unwrap_or_default();
        let seconds = end.as_secs_f64() / WINDOW.as_secs_f64();
        let mut each = vec![0.0; seconds as usize];
        each.iter_mut()
            .zip(windows)
            .for_each(|(each, window)| *each = window.requests as f64 / window.seconds);
        let steady = &each[each.len() / 3..];
        let answered = measured.answered.write_response;
        let figures = [
            ("writes_per_second", steady.iter().sum::<f64>() / steady.len() as f64),
            ("worst_second", steady.iter().copied().fold(f64::INFINITY, f64::min)),
            ("p50_ms", answered.p50_ms),
            ("p99_ms", answered.p99_ms),
            ("longest_ms", answered.max_ms),
            ("times_left_out", f64::from(standings.left)),
            ("less_redundant", f64::from(u8::from(standings.lacks_redundancy))),
            ("named", standings.named.len() as f64),
        ];
        let named = standings.named.values().map(|warning| format!("In the last warning {warning}."));
        Ok(sample(&lived, &figures, named))
    }
}

fn case((layout, bricks): (&str, u32)) -> String {
    format!("{layout} on {bricks}")
}

/// A figure of a case with one brick so many times slower, at so many times the load.
fn of(table: &Table, at: (&str, u32), [slower, times]: [u32; 2], figure: &str) -> f64 {
    let cells = [
        ("case", Cell::from(case(at).as_str())),
        ("slower", Cell::from(f64::from(slower))),
        ("times", Cell::from(f64::from(times))),
    ];
    table.number(&cells, figure)
}

fn system(parameters: &Parameters, scale: Scale, at: (&str, u32), [slower, times]: [u32; 2]) -> System {
    let (layout, bricks) = (layout(at.0), at.1);
    let drive = drive(parameters, "overload_drive");
    let drives = drive.name().to_owned();
    let journal_bytes = parameters.count("overload_journal_mib") << 20;
    let cache_bytes = if parameters.flag("overload_cached") { CACHED } else { 0 };
    let brick = BrickSpec { journal_bytes, cache_bytes, ..BrickSpec::new(drive) };
    let policy = Scheme::named("usual").expect("it is a read policy");
    let mut cluster = Cluster::uniform(brick, bricks, bricks, policy);
    cluster.network = network(parameters);
    cluster.write_release = WriteRelease::Nvram;
    cluster.bricks[SLOWER_BRICK].speed = vec![(Time::ZERO, 100 * slower)];
    let has_others = bricks > u32::from(layout.width());
    let spread = has_others.then(|| spread(layout, bricks, GROUPS_A_BRICK, EXTENTS));
    let end = Duration::from_secs(scale.of(parameters.count("overload_seconds")));
    let conditions = Conditions {
        layout: Some(layout),
        spread,
        window: WINDOW,
        end: Some(end),
        watches_bricks: true,
        ..Conditions::default()
    };
    let mix = Mix { reads: 0.0, sizes: Sizes::Blocks(1), locality: Locality::Uniform };
    let outstanding = parameters.count("overload_outstanding") as u32 * times;
    let length = Length { warmup: 0, requests: u64::MAX };
    System { cluster, load: Load::Closed { outstanding, mix }, length, conditions, drives }
}
