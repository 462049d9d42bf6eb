//! What stands only in the prose: idle disks by share of reads, three replicas under load, claims when all are idle, the
//! bandwidth of messages, and arrays as they were.

use super::setup;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use crate::system::{Load, System};
use rules::heads::Policy;
use sim::timed::{Arrivals, Cluster, Conditions, Scheme};

pub(super) struct Text;

/// Requests outstanding at three replicas.
const LOADS: [u32; 9] = [3, 4, 6, 8, 12, 16, 24, 32, 64];
/// Shares of reads: section 1 says of neither of the two random workloads that its range is of that one alone.
const SHARES: [f64; 2] = [0.9, 0.67];
/// Heavy ones: at least two requests for each disk to choose from even when they are divided.
const HEAVY: u32 = 12;
/// Requests outstanding at eight replicas of an array.
const ARRAY_LOADS: [u32; 4] = [16, 32, 64, 128];

impl Experiment for Text {
    fn id(&self) -> &str {
        "dsptf.text"
    }

    fn paper(&self) -> &str {
        "d-sptf"
    }

    fn title(&self) -> &str {
        "What stands only in the prose"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::CLUSTER, &["read_share"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let shares = [1.0, 0.9, 0.6].into_iter().flat_map(|reads| {
            ["Hashing", "LARD"].map(|name| closed(parameters, scale, "idle by reads", name, 8, 16, reads))
        });
        let reads = parameters.number("read_share");
        let loads = SHARES.into_iter().flat_map(|reads| {
            let of_load = move |load: u32| {
                ["D-SPTF", "Hashing", "LARD"]
                    .map(|name| closed(parameters, scale, "three replicas", name, 3, load, reads))
            };
            LOADS.into_iter().flat_map(of_load)
        });
        let arrays = ARRAY_LOADS.into_iter().flat_map(|load| {
            [
                closed(parameters, scale, "array", "Central SPTF", 8, load, reads),
                array(parameters, scale, load, reads),
            ]
        });
        let bandwidth = [closed(parameters, scale, "bandwidth", "D-SPTF", 8, 16, reads)];
        let idle = [2, 4, 8].map(|replicas| all_idle(parameters, scale, replicas));
        Ok(shares.chain(loads).chain(arrays).chain(bandwidth).chain(idle).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["throughput_iops", "idle", "messages_per_request", "claims_per_request"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims = idle_claims(table);
        claims.extend(load_claims(table));
        for replicas in [2u32, 4, 8] {
            let cells = [("what", Cell::from("all idle")), ("replicas", Cell::from(replicas))];
            let square = f64::from(replicas * replicas);
            let measured = table.number(&cells, "claims_per_request") * f64::from(replicas);
            claims.push(claim(
                format!("claim messages with {replicas} idle replicas, a read"),
                square,
                measured,
                [square * 0.95, square * 1.05],
            ));
        }
        let messages = table.number(&[("what", Cell::from("bandwidth"))], "messages_per_request");
        // Section 5.3.1: messages of 50 bytes beside data of this size, each sent once.
        for (bytes, paper) in [(4096.0, 0.20), (65_536.0, 0.012)] {
            let what = format!("bytes of messages over data of {} KiB", bytes / 1024.0);
            claims.push(claim(what, paper, messages * 50.0 / bytes, [paper * 0.9, paper * 1.1]));
        }
        let gain = |load: u32| {
            throughput(table, "array", "Central SPTF", load)
                / throughput(table, "array", "C-LOOK array", load)
                - 1.0
        };
        let most = ARRAY_LOADS.map(gain).into_iter().fold(f64::NEG_INFINITY, f64::max);
        claims.push(claim(
            "central SPTF over an array with C-LOOK, most of any load",
            0.70,
            most,
            [0.60, 0.80],
        ));
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let shown = [("what", Cell::from("three replicas")), ("reads", Cell::from(SHARES[0]))];
        let rows: Vec<Row> = table.select(&shown).cloned().collect();
        let (x, y) = (Axis::new("requests outstanding", ""), Axis::new("throughput of a brick", "IO/s"));
        let series = setup::series(&Table(&rows), "scheme", "outstanding", "throughput_iops");
        vec![Chart::lines(
            "dsptf.text",
            "Throughput of a brick by load, three replicas, 90% reads",
            x,
            y,
            series,
        )]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "\"Array\" is a controller as section 4 describes those of its time: requests go to the disk with the \
             shortest queue and are served by C-LOOK."
                .to_owned(),
        ]
    }
}

fn closed(
    parameters: &Parameters,
    scale: Scale,
    what: &str,
    name: &str,
    replicas: u32,
    load: u32,
    reads: f64,
) -> Point {
    let cluster = setup::cluster(parameters, replicas, replicas, setup::scheme(parameters, name, &[]));
    labelled(setup::closed(parameters, scale, cluster, load, reads), what, name, replicas, load, reads)
}

fn array(parameters: &Parameters, scale: Scale, load: u32, reads: f64) -> Point {
    let mut cluster = setup::cluster(parameters, 8, 8, Scheme::ShortestQueue);
    cluster.bricks.iter_mut().for_each(|brick| brick.policy = Policy::Clook);
    labelled(setup::closed(parameters, scale, cluster, load, reads), "array", "C-LOOK array", 8, load, reads)
}

/// Reads so rare that every disk is idle when one comes.
fn all_idle(parameters: &Parameters, scale: Scale, replicas: u32) -> Point {
    let cluster: Cluster =
        setup::cluster(parameters, replicas, replicas, setup::scheme(parameters, "D-SPTF", &[]));
    let load = Load::Open { per_second: 1.0, arrivals: Arrivals::Regular, mix: setup::mix(parameters, 1.0) };
    let length = setup::length(parameters, scale, 1);
    let system = System {
        conditions: Conditions::default(),
        cluster,
        load,
        length,
        drives: parameters.text("drive").to_owned(),
    };
    labelled(system, "all idle", "D-SPTF", replicas, 0, 1.0)
}

fn labelled(system: System, what: &str, name: &str, replicas: u32, load: u32, reads: f64) -> Point {
    Point::new(system)
        .with("what", what)
        .with("scheme", name)
        .with("replicas", replicas)
        .with("outstanding", load)
        .with("reads", reads)
}

fn idle_claims(table: &Table) -> Vec<Claim> {
    let idle = |reads: f64| {
        let of = |name: &str| {
            let cells = [
                ("what", Cell::from("idle by reads")),
                ("scheme", Cell::from(name)),
                ("reads", Cell::from(reads)),
            ];
            table.number(&cells, "idle")
        };
        (of("Hashing") + of("LARD")) / 2.0
    };
    vec![
        claim("hashing and LARD, idle share with reads only", 0.15, idle(1.0), [0.13, 0.17]),
        claim("hashing and LARD, idle share with 60% reads", 0.02, idle(0.6), [0.0, 0.04]),
    ]
}

fn load_claims(table: &Table) -> Vec<Claim> {
    let of = |name: &str, load: u32, reads: f64| {
        let cells = [
            ("what", Cell::from("three replicas")),
            ("scheme", Cell::from(name)),
            ("outstanding", Cell::from(load)),
            ("reads", Cell::from(reads)),
        ];
        table.number(&cells, "throughput_iops")
    };
    let gain = |load: u32, reads: f64| of("D-SPTF", load, reads) / of("Hashing", load, reads) - 1.0;
    let both = |load: u32| SHARES.map(|reads| gain(load, reads));
    let heavy = LOADS.into_iter().filter(|load| *load >= HEAVY).flat_map(both);
    let most = LOADS.into_iter().flat_map(both).fold(f64::NEG_INFINITY, f64::max);
    let what = format!("three replicas, D-SPTF over hashing, least gain from {HEAVY} outstanding on");
    vec![
        claim(what, 0.12, heavy.fold(f64::INFINITY, f64::min), [0.09, 0.15]),
        claim("three replicas, D-SPTF over hashing, most of any load", 0.27, most, [0.22, 0.32]),
    ]
}

fn throughput(table: &Table, what: &str, name: &str, load: u32) -> f64 {
    let cells = [("what", Cell::from(what)), ("scheme", Cell::from(name)), ("outstanding", Cell::from(load))];
    table.number(&cells, "throughput_iops")
}
