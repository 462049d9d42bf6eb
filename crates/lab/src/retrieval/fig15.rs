//! Figure 15: each request of Exchange meets idle disks. Service times of choosers, and what choosing takes.

use super::setup::{self, Bed, COPIES, Configuration, by_copies, greatest, ratios};
use super::workload::Workload;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use reads::distribute::retrieval::Choice;

pub(super) struct Fig15;

/// Exchange's disks (section IV.A).
const DISKS: u32 = 100;
/// The paper has a homogeneous configuration in (a) and (b), a heterogeneous one in (c) and (d); its text does not say which.
const CONFIGURATIONS: [Configuration; 2] = [Configuration::Slow, Configuration::Mixed];
const RANDOM: &str = "random";
const TWO: &str = "power-of-two-choices";
const ONLINE: &str = "online";
const FLOW: &str = "maxflow";
/// The choosers by name, the best one first.
const CHOOSERS: [(&str, Choice); 4] =
    [(FLOW, Choice::MaxFlow), (ONLINE, Choice::Online), (TWO, Choice::TwoChoices), (RANDOM, Choice::Random)];
/// What choosing by maximum flow takes longer than a heuristic, at most (section IV.E.1).
const LONGER_US: f64 = 200.0;
/// What has fallen: by a hundredth at least.
const FALLS: [f64; 2] = [0.0, 0.99];

impl Experiment for Fig15 {
    fn id(&self) -> &str {
        "retrieval.fig15"
    }

    fn paper(&self) -> &str {
        "continuous-retrieval"
    }

    fn title(&self) -> &str {
        "Requests apart from each other: service and planning by copies"
    }

    fn assumptions(&self) -> Vec<&str> {
        setup::assumptions(&[setup::ASSUMED])
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters, scale };
        let mut points = Vec::new();
        for configuration in CONFIGURATIONS {
            for scheme in CHOOSERS {
                let scheme = bed.discrete(scheme);
                for copies in COPIES {
                    let job = bed.replayed(Workload::Exchange, (configuration, DISKS), copies, scheme)?;
                    let point = Point::new(job).with("disks", configuration.name());
                    points.push(point.with("scheme", scheme.name).with("copies", copies));
                }
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["service_ms", "planning_us"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims: Vec<Claim> = CONFIGURATIONS
            .iter()
            .flat_map(|configuration| Panel { table, configuration: *configuration }.claims())
            .collect();
        let [equal, mixed] = CONFIGURATIONS
            .map(|configuration| setup::mean(&Panel { table, configuration }.of(FLOW, "planning_us")));
        claims.push(shape(
            "planning by maximum flow, mixed disks over equal ones",
            mixed / equal,
            [1.0, 1e3],
        ));
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let panels = CONFIGURATIONS.into_iter().flat_map(|configuration| {
            [("planning_us", Axis::new("planning", "us")), ("service_ms", Axis::new("service", "ms"))]
                .map(|(figure, y)| (configuration, figure, y))
        });
        let chart = |(letter, (configuration, figure, y)): (char, (Configuration, &str, Axis))| {
            let panel = Panel { table, configuration };
            let series = CHOOSERS.iter().map(|(name, _)| setup::over_copies(name, &panel.of(name, figure)));
            let title = format!("Exchange, idle disks: {}", configuration.title());
            let x = Axis::new("copies of a bucket", "").not_from_zero();
            Chart::lines(&format!("retrieval.fig15.{letter}"), &title, x, y, series.collect())
        };
        ('a'..='d').zip(panels).map(chart).collect()
    }

    fn notes(&self) -> Vec<String> {
        vec![
            setup::note(),
            "With two copies, power-of-two-choices looks at both, as online does. With any number of copies, a random copy of a bucket is on a random \
             disk, and two of them are on two random disks: neither scheme can gain by more copies."
                .to_owned(),
        ]
    }
}

/// A configuration's part of the table.
struct Panel<'a> {
    table: &'a Table<'a>,
    configuration: Configuration,
}

impl Panel<'_> {
    /// A figure of a scheme, by copies.
    fn of(&self, scheme: &str, figure: &str) -> Vec<f64> {
        by_copies(self.table, &[("disks", Cell::from(self.configuration.name()))], scheme, figure)
    }

    fn claims(&self) -> Vec<Claim> {
        let name = self.configuration.name();
        let [random, two, online, flow] =
            [RANDOM, TWO, ONLINE, FLOW].map(|scheme| self.of(scheme, "service_ms"));
        let [random_us, two_us, online_us, flow_us] =
            [RANDOM, TWO, ONLINE, FLOW].map(|scheme| self.of(scheme, "planning_us"));
        let order = |what: &str, one: &[f64], other: &[f64]| {
            shape(format!("{name}, service: {what}, greatest"), greatest(&ratios(one, other)), [0.0, 1.0])
        };
        let falls = |scheme: &str, of: &[f64]| {
            shape(format!("{name}, service: {scheme}, 5 copies over 2: it falls"), of[3] / of[0], FALLS)
        };
        let gap_ms: Vec<f64> = online.iter().zip(&flow).map(|(online, flow)| online - flow).collect();
        let slowest_us = greatest(&[random_us, two_us, online_us].concat());
        vec![
            order("maxflow over online", &flow, &online),
            order("online over power-of-two-choices, from 3 copies on", &online[1..], &two[1..]),
            order("power-of-two-choices over random", &two, &random),
            shape(
                format!("{name}, service: online - maxflow, 5 copies over 2: it shrinks"),
                gap_ms[3] / gap_ms[0],
                FALLS,
            ),
            claim(
                format!("{name}, service: online - maxflow, 2 copies: \"a couple of milliseconds\""),
                2.0,
                gap_ms[0],
                [1.0, 4.0],
            ),
            falls(FLOW, &flow),
            falls(ONLINE, &online),
            falls(TWO, &two),
            falls(RANDOM, &random),
            shape(
                format!("{name}, planning: maxflow - the slowest heuristic, greatest (us)"),
                greatest(&flow_us) - slowest_us,
                [0.0, LONGER_US],
            ),
        ]
    }
}
