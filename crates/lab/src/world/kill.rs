//! A brick is killed under load and comes back, while all checkers watch: what clients see from second to second.

use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::killing::{self, FIGURES, Killed, Killing, NOTE};
use crate::parameters::Parameters;
use crate::plot::Chart;
use crate::system::{Load, System};
use sim::timed::{Arrivals, BrickSpec, Cluster, Conditions, Length, Locality, Mix, Scheme, Sizes};

pub(super) struct Kill;

const POLICIES: [&str; 3] = ["usual", "claim", "shortest-queue"];

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
        let point = |policy: &str| Point::new(killing(parameters, scale, policy)).with("read_policy", policy);
        Ok(POLICIES.into_iter().map(point).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(FIGURES)
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
            claims.push(shape(what, of("short_s"), [0.0, 1.0]));
            claims.push(shape(format!("{policy}: longest request, ms"), of("worst_ms"), [0.0, 500.0]));
        }
        claims
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        killing::charts((self.id(), killing::BRICK_AWAY), "read_policy", runs)
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Whole machines in the timed world, every message and step checked; in the end each block's reads and \
             writes are checked to be linearizable. Requests come whatever became of those before. The processor \
             takes no time here: what is seen are the protocol, the devices and the wires."
                .to_owned(),
            format!("{NOTE} Where devices are far from busy the policies differ little, and their curves lie on one another."),
        ]
    }
}

fn killing(parameters: &Parameters, scale: Scale, policy: &str) -> Killing {
    let policy = policy.parse().unwrap_or_else(|error| panic!("{error}"));
    let brick = BrickSpec::new(super::drive(parameters, "drive"));
    let mut cluster = Cluster::uniform(brick, 3, 3, Scheme::Policy(policy));
    cluster.network = super::network(parameters);
    let locality = Locality::Hot { share: 1.0, space: parameters.number("touched_share") };
    let mix = Mix { reads: parameters.number("read_share"), sizes: Sizes::Blocks(1), locality };
    // A quick run asks for less.
    let share = if scale == Scale::Quick { 0.1 } else { 1.0 };
    let per_second = parameters.number("requests_per_second") * share;
    let drives = cluster.bricks[0].drive.name().to_owned();
    let load = Load::Open { per_second, arrivals: Arrivals::Poisson, mix };
    let length = Length { warmup: 0, requests: 0 };
    let system = System { cluster, load, length, conditions: Conditions::default(), drives };
    Killing { system, killed: Killed::Brick(1) }
}
