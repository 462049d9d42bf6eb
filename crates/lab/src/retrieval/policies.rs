//! Which read policy to take when: what five papers offer, on one workload. (No paper has this comparison.)
//!
//! Here whole machines serve volumes of three copies, with the policies that gateways ship.

use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart, Series, Spot};
use crate::system::{Load, System};
use base::Time;
use model::drive::{DriveModel, find};
use sim::timed::{BrickSpec, Cluster, Conditions, Length, Locality, Mix, Scheme, Sizes};
use std::sync::Arc;

pub(super) struct Policies;

/// What each paper has, and what a volume has unless its owner says otherwise.
const POLICIES: [&str; 8] = [
    "claim",
    "hash",
    "shortest-queue",
    "hedged",
    "online",
    "max-flow-conservative",
    "max-flow-adaptive",
    "usual",
];

/// The disks of five groups of three bricks: a name for people, and the drives in turn.
struct Disks {
    name: &'static str,
    drives: &'static [&'static str],
}

const BARRACUDA: &str = "retrieval-barracuda";
const RAPTOR: &str = "retrieval-raptor";
const CHEETAH: &str = "retrieval-cheetah";
const VERTEX: &str = "retrieval-vertex";
const X25E: &str = "retrieval-x25e";

const DISKS: [Disks; 5] = [
    Disks { name: "conf1, slow", drives: &[BARRACUDA] },
    Disks { name: "conf2, SSDs", drives: &[X25E] },
    Disks { name: "conf3, mixed", drives: &[BARRACUDA, RAPTOR, CHEETAH, VERTEX, X25E] },
    // An SSD among the copies of a part of the data.
    Disks {
        name: "conf4, one SSD",
        drives: &[
            BARRACUDA, RAPTOR, CHEETAH, BARRACUDA, RAPTOR, CHEETAH, BARRACUDA, RAPTOR, CHEETAH, BARRACUDA,
            RAPTOR, CHEETAH, BARRACUDA, RAPTOR, X25E,
        ],
    },
    Disks { name: "heads seen", drives: &["quantum-atlas-10k"] },
];

const GROUPS: u32 = 5;
const COPIES: u32 = 3;

/// What is different about a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Situation {
    Plain,
    Cached,
    Slow,
}

impl Situation {
    const ALL: [Situation; 3] = [Situation::Plain, Situation::Cached, Situation::Slow];

    fn name(self) -> &'static str {
        match self {
            Situation::Plain => "no cache",
            Situation::Cached => "caches",
            Situation::Slow => "one disk slow",
        }
    }
}

const ASSUMED: [&str; 7] = [
    "policy_requests",
    "policy_outstanding",
    "policy_request_kib",
    "policy_read_share",
    "policy_data_mib",
    "policy_cache_mib",
    "policy_slow_percent",
];

fn drive(id: &str) -> Arc<DriveModel> {
    let entry = find(id).unwrap_or_else(|| panic!("no drive is named {id}"));
    Arc::new(DriveModel::parse(id, entry.text).unwrap_or_else(|error| panic!("{error}")))
}

fn system(
    parameters: &Parameters,
    scale: Scale,
    disks: &Disks,
    situation: Situation,
    policy: &str,
) -> System {
    let count = |name: &str| parameters.count(name);
    let brick = |at: u32| {
        let drive = drive(disks.drives[at as usize % disks.drives.len()]);
        let is_slow = situation == Situation::Slow && at.is_multiple_of(COPIES);
        BrickSpec {
            cache_bytes: if situation == Situation::Cached { count("policy_cache_mib") << 20 } else { 0 },
            data_bytes: Some(count("policy_data_mib") << 20),
            speed: is_slow.then_some((Time::ZERO, count("policy_slow_percent") as u32)).into_iter().collect(),
            ..BrickSpec::new(drive)
        }
    };
    let scheme = Scheme::named(policy).unwrap_or_else(|| panic!("no policy is named {policy}"));
    let bricks = (0..GROUPS * COPIES).map(brick).collect();
    let cluster = Cluster { bricks, ..Cluster::uniform(brick(0), GROUPS * COPIES, COPIES, scheme) };
    let locality = match situation {
        Situation::Cached => Locality::Hot { share: 0.8, space: 0.1 },
        Situation::Plain | Situation::Slow => Locality::Uniform,
    };
    let sizes = Sizes::Chunks((count("policy_request_kib") / 4).max(1) as u32);
    let mix = Mix { reads: parameters.number("policy_read_share"), sizes, locality };
    let requests = scale.of(count("policy_requests")) * u64::from(GROUPS);
    System {
        cluster,
        load: Load::Closed { outstanding: count("policy_outstanding") as u32, mix },
        length: Length { warmup: requests / 2, requests },
        conditions: Conditions { are_blocks: true, ..Conditions::default() },
        drives: disks.drives.join(" "),
    }
}

impl Experiment for Policies {
    fn id(&self) -> &str {
        "retrieval.policies"
    }

    fn paper(&self) -> &str {
        "continuous-retrieval"
    }

    fn title(&self) -> &str {
        "Which read policy to take when: three copies, whole machines"
    }

    fn assumptions(&self) -> Vec<&str> {
        ASSUMED.into()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let mut points = Vec::new();
        for situation in Situation::ALL {
            for disks in &DISKS {
                for policy in POLICIES {
                    let job = system(parameters, scale, disks, situation, policy);
                    let point = Point::new(job).with("situation", situation.name());
                    points.push(point.with("disks", disks.name).with("policy", policy));
                }
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&[
            "requests_per_second",
            "read_response_ms",
            "read_response_p99_ms",
            "hit_rate",
            "device_reads_per_read",
            "messages_per_request",
        ])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let ms = |situation: Situation, disks: usize, policy: &str, figure: &str| {
            let cells = [
                ("situation", Cell::from(situation.name())),
                ("disks", Cell::from(DISKS[disks].name)),
                ("policy", Cell::from(policy)),
            ];
            table.number(&cells, figure)
        };
        let over = |situation, disks, policy, other, figure| {
            ms(situation, disks, policy, figure) / ms(situation, disks, other, figure)
        };
        let (mean, p99) = ("read_response_ms", "read_response_p99_ms");
        vec![
            shape(
                "five kinds of disks: planning over hashing, mean response",
                over(Situation::Plain, 2, "max-flow-adaptive", "hash", mean),
                [0.0, 0.7],
            ),
            shape(
                "heads seen: claims over planning, mean response",
                over(Situation::Plain, 4, "claim", "max-flow-adaptive", mean),
                [0.0, 1.0],
            ),
            shape(
                "one disk slow, slow disks: planning over hashing, 99th percentile",
                over(Situation::Slow, 0, "max-flow-adaptive", "hash", p99),
                [0.0, 0.5],
            ),
            shape(
                "one disk slow, slow disks: claims over hashing, 99th percentile",
                over(Situation::Slow, 0, "claim", "hash", p99),
                [0.0, 0.5],
            ),
            shape(
                "caches, slow disks: planning over shortest queue, mean response",
                over(Situation::Cached, 0, "max-flow-adaptive", "shortest-queue", mean),
                [0.0, 0.8],
            ),
            shape(
                "fast SSDs: the slowest of all policies over the fastest, mean response",
                {
                    let all = POLICIES.map(|policy| ms(Situation::Plain, 1, policy, mean));
                    all.into_iter().fold(0.0, f64::max) / all.into_iter().fold(f64::INFINITY, f64::min)
                },
                [1.0, 2.0],
            ),
        ]
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let chart = |situation: Situation| {
            let line = |policy: &str| {
                let cells = [("situation", Cell::from(situation.name())), ("policy", Cell::from(policy))];
                let ms = |row: &Row| row.get("read_response_ms").and_then(Cell::number).unwrap_or(f64::NAN);
                let spots = table.select(&cells).zip(0..);
                let spots =
                    spots.map(|(row, at)| Spot { x: f64::from(at), y: ms(row), ci95: None }).collect();
                Series { name: policy.to_owned(), spots }
            };
            let name = format!("retrieval.policies.{}", situation.name().replace(' ', "-"));
            let title = format!("{}: {}", self.title(), situation.name());
            let groups = DISKS.iter().map(|disks| disks.name.to_owned()).collect();
            let y = Axis::new("mean response of reads", "ms").logarithmic();
            // With requests of one part the two that plan by maximum flow choose alike: one of them is shown, as there are as many
            // colours as bars then.
            let shown = POLICIES.into_iter().filter(|policy| *policy != "max-flow-conservative");
            Chart::bars(&name, &title, y, groups, shown.map(line).collect())
        };
        Situation::ALL.map(chart).into()
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Disks of conf1 to conf4 take the same time for each access (Table I), wherever it is. Those whose heads are seen take less for \
             what is near."
                .to_owned(),
            "Heads seen: disks of 10,000 turns a minute. Conf1 to conf4 are the paper's configurations; conf4 has one SSD among fifteen disks.".to_owned(),
            "One disk slow: the first of each group's three, from the beginning on.".to_owned(),
        ]
    }
}
