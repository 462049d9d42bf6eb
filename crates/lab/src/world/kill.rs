//! A brick is killed under load and comes back, while all checkers watch: what clients see from second to second.

use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Job, Point, Runs, Sample, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart, Series, Spot};
use core::time::Duration;
use model::drive::{DriveModel, find};
use serde_json::json;
use sim::timed::{self, Conditions, Incident, Window};
use sim::timed::{Arrivals, BrickSpec, Cluster, Length, Locality, Mix, Scheme, Sizes, Workload};
use std::sync::Arc;

pub(super) struct Kill;

const POLICIES: [&str; 3] = ["usual", "claim", "shortest-queue"];
/// When the brick dies, when it is back, and when the run ends.
const KILLED: Duration = Duration::from_secs(10);
const STARTED: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(45);
const WINDOW: Duration = Duration::from_millis(500);

impl Experiment for Kill {
    fn id(&self) -> &str {
        "world.kill"
    }

    fn paper(&self) -> &str {
        "world"
    }

    fn title(&self) -> &str {
        "A brick of three is killed at 10 s and comes back at 30 s"
    }

    fn assumptions(&self) -> Vec<&str> {
        vec!["drive", "requests_per_second", "read_share", "touched_share", "network_one_way_us"]
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let point = |policy: &str| {
            let job = Killing::new(parameters, scale, policy);
            Point::new(job).with("read_policy", policy)
        };
        Ok(POLICIES.into_iter().map(point).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["violations", "p99_before_ms", "p99_down_ms", "p99_after_ms", "worst_ms", "short_s"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims = Vec::new();
        for policy in POLICIES {
            let of = |figure: &str| table.number(&[("read_policy", Cell::from(policy))], figure);
            claims.push(shape(format!("{policy}: violations"), of("violations"), [0.0, 0.0]));
            let down = of("p99_down_ms") / of("p99_before_ms");
            let what = format!("{policy}: p99 while the brick is away and left out, over before");
            claims.push(shape(what, down, [0.0, 1.5]));
            let after = of("p99_after_ms") / of("p99_before_ms");
            claims.push(shape(format!("{policy}: p99 in the last 5 s, over before"), after, [0.0, 1.2]));
            let what = format!("{policy}: seconds with less than half of what was asked for");
            claims.push(shape(what, of("short_s"), [0.0, 3.0]));
        }
        claims
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        let series = |name: &str| -> Vec<Series> {
            let Some(first) = runs.first() else { return Vec::new() };
            let curve = |(labels, sample): &(Row, Sample)| {
                let spots = sample.series[name].iter().map(|[x, y]| Spot { x: *x, y: *y, ci95: None });
                let policy = labels.get("read_policy").map(Cell::text).unwrap_or_default();
                Series { name: policy, spots: spots.collect() }
            };
            first.runs.iter().map(curve).collect()
        };
        let time = || Axis::new("time", "s");
        vec![
            Chart::lines(
                "world.kill.throughput",
                "Requests answered a second; the brick is away from 10 s to 30 s",
                time(),
                Axis::new("requests answered", "1/s"),
                series("throughput"),
            ),
            Chart::lines(
                "world.kill.p99",
                "99th percentile of response times; the brick is away from 10 s to 30 s",
                time(),
                Axis::new("response time, p99", "ms").logarithmic(),
                series("p99_ms"),
            ),
        ]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Whole machines in the timed world, every message and step checked; in the end each block's reads and \
             writes are checked to be linearizable. Requests come whatever became of those before. The processor \
             takes no time here: what is seen are the protocol, the devices and the wires."
                .to_owned(),
            "Times are of half-seconds: a 99th percentile is of the requests that were answered in one. Where devices \
             are far from busy the policies differ little, and their curves lie on one another."
                .to_owned(),
        ]
    }
}

struct Killing {
    cluster: Cluster,
    per_second: f64,
    mix: Mix,
    /// The part of the request rate that is asked for: a quick run asks for less.
    share: f64,
}

impl Killing {
    fn new(parameters: &Parameters, scale: Scale, policy: &str) -> Killing {
        let id = parameters.text("drive");
        let entry = find(id).unwrap_or_else(|| panic!("the parameter file names an unknown drive {id}"));
        let drive = Arc::new(DriveModel::parse(id, entry.text).unwrap_or_else(|error| panic!("{error}")));
        let policy = policy.parse().unwrap_or_else(|error| panic!("{error}"));
        let mut cluster = Cluster::uniform(BrickSpec::new(drive), 3, 3, Scheme::Policy(policy));
        let one_way_ns = (parameters.number("network_one_way_us") * 1e3) as u64;
        (cluster.network.one_way_ns, cluster.network.client_one_way_ns) = (one_way_ns, one_way_ns);
        let locality = Locality::Hot { share: 1.0, space: parameters.number("touched_share") };
        let mix = Mix { reads: parameters.number("read_share"), sizes: Sizes::Blocks(1), locality };
        let share = if scale == Scale::Quick { 0.1 } else { 1.0 };
        Killing { cluster, per_second: parameters.number("requests_per_second"), mix, share }
    }
}

impl Job for Killing {
    fn describe(&self) -> serde_json::Value {
        let Killing { cluster, per_second, mix, share } = self;
        json!({
            "job": "kill", "cluster": format!("{:?} {:?}", cluster.scheme, cluster.network),
            "drive": cluster.bricks[0].drive.name(), "per_second": per_second, "mix": format!("{mix:?}"), "share": share,
        })
    }

    fn run(&self, seed: u64) -> Result<Sample, String> {
        let per_second = self.per_second * self.share;
        let requests = (per_second * END.as_secs_f64()) as u64;
        let workload = Workload::Open { per_second, arrivals: Arrivals::Poisson, mix: self.mix };
        let conditions = Conditions {
            incidents: vec![(KILLED, 1, Incident::Killed), (STARTED, 1, Incident::Started)],
            is_judged: true,
            window: WINDOW,
            ..Conditions::default()
        };
        let length = Length { warmup: 0, requests };
        let lived = timed::live_through(&self.cluster, workload, length, &conditions, seed)
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

/// The mean over the windows that begin within these seconds of each one's 99th percentile. A window without an answer
/// counts as if one answer had taken all of it.
fn mean_p99(windows: &[Window], from: f64, to: f64) -> f64 {
    let p99_ms = |window: &Window| if window.requests > 0 { window.p99_ms } else { window.seconds * 1e3 };
    let within = windows.iter().filter(|window| window.from_s >= from && window.from_s < to);
    let within: Vec<f64> = within.map(p99_ms).collect();
    within.iter().sum::<f64>() / within.len().max(1) as f64
}
