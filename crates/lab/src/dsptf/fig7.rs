//! Figure 7: response times of four traces when one of two replicas is slow.

use super::fig6::{orders, response};
use super::setup;
use super::table4::fast_and_slow;
use super::traces::{self, Generated, SHOWN_MS, Shown, TRACES};
use crate::cell::Row;
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::Parameters;
use crate::plot::{Axis, Chart};
use sim::timed::Scheme;

pub(super) struct Fig7;

const SCHEMES: [&str; 5] = ["Central SPTF", "D-SPTF", "Hashing", "LARD", "Weighted hash"];

impl Experiment for Fig7 {
    fn id(&self) -> &str {
        "dsptf.fig7"
    }

    fn paper(&self) -> &str {
        "d-sptf"
    }

    fn title(&self) -> &str {
        "Response times of four traces, a fast and a slow replica"
    }

    fn assumptions(&self) -> Vec<&str> {
        [traces::assumptions_of_figures(), vec!["half_speed_percent"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let point = |(title, name): (&str, &str), scheme: &str| {
            let trace = Generated::new(parameters, scale, name)?;
            let groups = trace.groups(parameters);
            let pair = fast_and_slow(parameters, scheme);
            let scheme_of = match &pair.scheme {
                Scheme::WeightedHash(weights) => Scheme::WeightedHash(weights.repeat(groups as usize)),
                other => other.clone(),
            };
            let mut cluster = traces::cluster(parameters, scale, 2 * groups, 2, scheme_of);
            for (brick, of_pair) in cluster.bricks.iter_mut().zip(pair.bricks.iter().cycle()) {
                brick.speed.clone_from(&of_pair.speed);
            }
            let [figure, ..] = traces::shown(parameters);
            let system = traces::replay(parameters, cluster, trace);
            Ok(Point::new(Shown { system, figure }).with("trace", title).with("scheme", scheme))
        };
        TRACES.into_iter().flat_map(|trace| SCHEMES.map(|scheme| point(trace, scheme))).collect()
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&[SHOWN_MS, "response_ms", "read_response_ms", "response_p99_ms", "hit_rate", "idle"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims = orders(table, "Hashing");
        for (trace, _) in TRACES {
            let ratio = |one: &str, other: &str| response(table, trace, one) / response(table, trace, other);
            let what = format!("{trace}, LARD's response over the weighted hash's");
            claims.push(shape(what, ratio("LARD", "Weighted hash"), [0.85, 1.15]));
            let best = response(table, trace, "LARD").max(response(table, trace, "Weighted hash"));
            let what = format!("{trace}, hashing's response over the worse of LARD's and weighted hash's");
            claims.push(shape(what, response(table, trace, "Hashing") / best, [1.0, 100.0]));
        }
        let worse = response(table, "Financial", "LARD") / response(table, "Financial", "D-SPTF");
        claims.push(shape(
            "Financial, LARD's response over D-SPTF's (similar: the exception)",
            worse,
            [0.95, 1.05],
        ));
        claims
    }

    fn charts(&self, table: &Table, _: &[Runs]) -> Vec<Chart> {
        let (groups, series) = setup::bars(table, "scheme", "trace", SHOWN_MS);
        vec![Chart::bars("dsptf.fig7", self.title(), Axis::new("mean response time", "ms"), groups, series)]
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "The paper's figures cannot be read; its text gives only the order.".to_owned(),
            "shown_ms is what the claims are about: see the assumption trace_response.".to_owned(),
        ]
    }
}
