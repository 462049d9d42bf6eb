//! Table 1 once more, from whole machines: directory, gateway and bricks as they run for real, beside the performance model.

use super::setup;
use crate::cell::{Cell, Row};
use crate::claim::{Claim, shape};
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::parameters::{Parameters, Value};
use crate::plot::Chart;
use crate::system::{Load, Machines};
use sim::timed::{Scheme, Sizes};

pub(super) struct Whole;

/// Central SPTF is an ideal that knows all queues at once: no machines can be it.
const SCHEMES: [&str; 3] = ["D-SPTF", "Hashing", "LARD"];
const RELEASES: [&str; 3] = ["nvram", "half", "all"];
const WORLDS: [(&str, Machines); 2] = [("model", Machines::Modelled), ("machines", Machines::Whole)];

impl Experiment for Whole {
    fn id(&self) -> &str {
        "dsptf.whole"
    }

    fn paper(&self) -> &str {
        "d-sptf"
    }

    fn title(&self) -> &str {
        "Table 1 from whole machines, beside the performance model"
    }

    fn assumptions(&self) -> Vec<&str> {
        // All else is assumed of both worlds, and no claim is about it.
        vec!["drive", "requests", "warm_up_requests"]
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let mut points = Vec::new();
        for release in RELEASES {
            let parameters = parameters.with("write_release", Value::Text(release.to_owned()));
            for scheme in SCHEMES {
                for (world, machines) in WORLDS {
                    // The LARD that gateways have, which is set otherwise than the paper's front end.
                    let policy = match scheme {
                        "LARD" => Scheme::Policy("lard".parse().expect("gateways have it")),
                        other => setup::scheme(&parameters, other, &[]),
                    };
                    let cluster = setup::cluster(&parameters, 8, 8, policy);
                    let mut system = setup::closed(&parameters, scale, cluster, 16, 0.9);
                    system.machines = machines;
                    // A volume's clients ask for whole blocks here, so that a brick's access is one of the client's.
                    if let Load::Closed { mix, .. } = &mut system.load {
                        mix.sizes = Sizes::Blocks(1);
                    }
                    let point = Point::new(system);
                    points.push(
                        point.with("scheme", scheme).with("write_release", release).with("world", world),
                    );
                }
            }
        }
        Ok(points)
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&["throughput_iops", "idle", "service_ms", "queue_seen", "response_ms"])
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        let mut claims = Vec::new();
        for release in RELEASES {
            for scheme in SCHEMES {
                let of = |world: &str, figure: &str| {
                    let row = [
                        ("scheme", Cell::from(scheme)),
                        ("write_release", Cell::from(release)),
                        ("world", Cell::from(world)),
                    ];
                    table.number(&row, figure)
                };
                for (figure, what) in [("throughput_iops", "throughput"), ("service_ms", "service time")] {
                    let ratio = of("machines", figure) / of("model", figure);
                    let what = format!("{scheme}, write leaves: {release}: {what}, machines over model");
                    claims.push(shape(what, ratio, [0.99, 1.01]));
                }
            }
        }
        claims
    }

    fn charts(&self, _: &Table, _: &[Runs]) -> Vec<Chart> {
        Vec::new()
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "The machines are those that run for real: a directory, a gateway, eight bricks over a shelf (a disk as the \
             papers assume it). Requests are of one block of 4096 bytes in both worlds. Whole machines tell all holders of \
             a read at once, where the paper's client tells one that tells the others."
                .to_owned(),
        ]
    }
}
