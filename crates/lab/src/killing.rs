//! A brick is killed under load and started again, or a gateway is killed: what clients see from interval to interval, while all checkers watch.

use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::experiment::{Job, Runs, Sample, Table};
use crate::plot::{Axis, Chart, Series, Spot};
use crate::system::{Load, System};
use core::time::Duration;
use serde_json::json;
use sim::timed::{self, Conditions, Incident, Length, Victim, Window, Workload};

/// When one dies, when a brick is back, and when the run ends.
const KILLED: Duration = Duration::from_secs(10);
const STARTED: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(45);
const WINDOW: Duration = Duration::from_millis(500);

/// What happens to a brick, in titles of pictures.
pub(crate) const BRICK_AWAY: &str = "the brick is away from 10 s to 30 s";

/// The figures of a run.
pub(crate) const FIGURES: &[&str] =
    &["violations", "p99_before_ms", "p99_down_ms", "p99_after_ms", "worst_ms", "short_s"];

/// How its figures are to be read.
pub(crate) const NOTE: &str =
    "Times are of half-seconds: a 99th percentile is of the requests that were answered in one.";

/// Who is killed at 10 s.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Killed {
    /// A brick, which is started at 30 s.
    Brick(u32),
    /// A gateway, for good.
    Gateway(u32),
}

/// A run of 45 s in which one is killed.
pub(crate) struct Killing {
    /// What it is run on. Its load is open; its length and incidents are set here, and all checkers watch.
    pub(crate) system: System,
    pub(crate) killed: Killed,
}

impl Killed {
    fn incidents(self) -> Vec<(Duration, Victim)> {
        match self {
            Killed::Brick(brick) => vec![
                (KILLED, Victim::Brick(brick, Incident::Killed)),
                (STARTED, Victim::Brick(brick, Incident::Started)),
            ],
            Killed::Gateway(gateway) => vec![(KILLED, Victim::Gateway(gateway))],
        }
    }
}

impl Job for Killing {
    fn describe(&self) -> serde_json::Value {
        let times = format!("{KILLED:?} {STARTED:?} {END:?} {WINDOW:?}");
        json!({ "job": "killing", "killed": format!("{:?}", self.killed), "times": times, "system": self.system.describe() })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let Load::Open { per_second, arrivals, mix } = self.system.load else {
            return Err("bricks and gateways are killed under a load that is open".to_owned());
        };
        let requests = (per_second * END.as_secs_f64()) as u64;
        let workload = Workload::Open { per_second, arrivals, mix };
        let conditions = Conditions {
            incidents: self.killed.incidents(),
            is_judged: true,
            window: WINDOW,
            ..self.system.conditions.clone()
        };
        let length = Length { warmup: 0, requests };
        let lived = timed::live_through(&self.system.cluster, workload, length, &conditions, seed)
            .map_err(|error| error.to_string())?;
        let mut sample = Sample {
            simulated_ns: (lived.measured.simulated_s * 1e9) as u64,
            events: lived.measured.events,
            notes: lived.violation.iter().map(|violation| format!("A checker found: {violation}")).collect(),
            ..Sample::default()
        };
        // The last one ends with the load, before its time is over.
        let windows = &lived.windows[..lived.windows.len().saturating_sub(1)];
        let highest = |from: f64, to: f64| {
            let within = windows.iter().filter(|window| window.from_s >= from && window.from_s < to);
            within.map(|window| window.p99_ms).fold(0.0, f64::max)
        };
        let (killed, started, end) = (KILLED.as_secs_f64(), STARTED.as_secs_f64(), END.as_secs_f64());
        let asked = per_second * WINDOW.as_secs_f64();
        let short = windows.iter().filter(|w| (w.requests as f64) < 0.5 * asked);
        let figures = [
            ("violations", f64::from(u8::from(lived.violation.is_some()))),
            ("p99_before_ms", mean_p99(windows, 1.0, killed)),
            // A brick that died is left out within some seconds.
            ("p99_down_ms", mean_p99(windows, killed + 5.0, started)),
            ("p99_after_ms", mean_p99(windows, end - 5.0, end)),
            ("worst_ms", highest(killed, end)),
            ("short_s", short.count() as f64 * WINDOW.as_secs_f64()),
            ("lost", lived.lost as f64),
        ];
        sample.values = figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let curve =
            |of: fn(&Window) -> f64| windows.iter().map(|w| [w.from_s + w.seconds / 2.0, of(w)]).collect();
        sample.series = [
            ("throughput".to_owned(), curve(|window| window.requests as f64 / window.seconds)),
            ("p99_ms".to_owned(), curve(|window| window.p99_ms)),
        ]
        .into();
        Ok(sample)
    }
}

/// What is claimed of runs of the paper's clusters, by the cell `label`: no violation, nearly all is answered at nearly all times, and in the end it
/// is as fast as before.
pub(crate) fn claims(label: &'static str, names: &[&str], table: &Table) -> Vec<Claim> {
    let mut claims = Vec::new();
    for name in names {
        let of = |figure: &str| table.number(&[(label, Cell::from(*name))], figure);
        claims.push(shape(format!("{name}: violations"), of("violations"), [0.0, 0.0]));
        let what = format!("{name}: seconds with less than half of what was asked for");
        claims.push(shape(what, of("short_s"), [0.0, 5.0]));
        let after = of("p99_after_ms") / of("p99_before_ms");
        claims.push(shape(format!("{name}: p99 in the last 5 s, over before"), after, [0.0, 1.5]));
    }
    claims
}

/// The mean over the windows that begin within these seconds of each one's 99th percentile. A window without an answer
/// counts as if one answer had taken all of it.
fn mean_p99(windows: &[Window], from: f64, to: f64) -> f64 {
    let p99_ms = |window: &Window| if window.requests > 0 { window.p99_ms } else { window.seconds * 1e3 };
    let within = windows.iter().filter(|window| window.from_s >= from && window.from_s < to);
    let within: Vec<f64> = within.map(p99_ms).collect();
    within.iter().sum::<f64>() / within.len().max(1) as f64
}

/// What clients see over time: a curve for each run of the first seed, by the cell `label`. Two pictures, whose names begin with `id`, of runs in which
/// `what` happens.
pub(crate) fn charts((id, what): (&str, &str), label: &str, runs: &[Runs]) -> Vec<Chart> {
    let series = |name: &str| -> Vec<Series> {
        let Some(first) = runs.first() else { return Vec::new() };
        let curve = |(labels, sample): &(Row, Sample)| {
            let spots = sample.series[name].iter().map(|[x, y]| Spot { x: *x, y: *y, ci95: None });
            Series { name: labels.get(label).map(Cell::text).unwrap_or_default(), spots: spots.collect() }
        };
        first.runs.iter().map(curve).collect()
    };
    let time = || Axis::new("time", "s");
    vec![
        Chart::lines(
            &format!("{id}.throughput"),
            &format!("Requests answered a second; {what}"),
            time(),
            Axis::new("requests answered", "1/s"),
            series("throughput"),
        ),
        Chart::lines(
            &format!("{id}.p99"),
            &format!("99th percentile of response times; {what}"),
            time(),
            Axis::new("response time, p99", "ms").logarithmic(),
            series("p99_ms"),
        ),
    ]
}
